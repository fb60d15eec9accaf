/* The weights that a run ends with: those of its last update; with train.early_stop those of its best
 * validation, as the updates after that one only made it worse.
 */
#ifndef MIXT_RUN_FINAL_H
#define MIXT_RUN_FINAL_H

#include "run/run.h"

/** Saves them as model.safetensors; the trainer has them then. Sets result.weights_step. */
mixt_status mixt__final_save(mixt_run *run);

#endif
