/* Which share of a step's numbers is in which format: known from its plan, the same until another policy comes. */
#ifndef MIXT_RUN_SHARES_H
#define MIXT_RUN_SHARES_H

#include "mixt/run.h"
#include "train/trainer.h"

/** Of all values that the step makes or reads (activations, gradients, weights as they are read, the batch), each
 * counted once; integers are left out. Zeros before the step is compiled. */
void mixt__shares_find(const mixt__trainer *trainer, mixt_run_row *row);

#endif
