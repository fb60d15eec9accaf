/* The training loop: updates, validation, rows of metrics, checkpoints, a clean stop. It tells observers what happens
 * and does what they ask for; it does not know who they are.
 */
#ifndef MIXT_RUN_LOOP_H
#define MIXT_RUN_LOOP_H

#include "run/run.h"

/** Trains a run whose directory is open, from where its resume says; then saves the weights as its model.safetensors.
 *  Figures go to run->result. */
mixt_status mixt__loop_run(mixt_run *run);

#endif
