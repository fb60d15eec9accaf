/* A machine that is not at hand, as a backend: graphs are compiled and memory is planned for it, nothing runs. */
#ifndef MIXT_CHOOSE_ASSUMED_H
#define MIXT_CHOOSE_ASSUMED_H

#include "machine/machine.h"

/** From now on contexts that this thread opens are of this machine, until mixt__assume_end. Memory that they plan is
 *  what the real one would take, but for the scratch of vendor libraries on a GPU and of other instruction sets on a
 *  CPU. */
void mixt__assume_begin(const mixt_machine *machine);
void mixt__assume_end(void);

#endif
