/* What decides the bits of an update, as one number. */
#ifndef MIXT_RUN_BITS_H
#define MIXT_RUN_BITS_H

#include "mixt/run.h"

enum { MIXT_BITS_TEXT = 20 };

/** A hash of all that decides the bits of an update but its state: settings, schedule, device, threads, data and its
 *  order. Updates that were made under another one cannot be computed again. */
void mixt__run_bits(mixt_run *run, char hash[MIXT_BITS_TEXT]);

#endif
