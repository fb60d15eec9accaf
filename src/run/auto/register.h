/* What a run decides by itself, made a part of it. */
#ifndef MIXT_RUN_REGISTER_H
#define MIXT_RUN_REGISTER_H

#include "mixt/run.h"

/** Lets the controller hear the run as its next observer, and be asked by it. Before the run is opened. */
void mixt__auto_register(mixt_run *run);

#endif
