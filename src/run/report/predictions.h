/* What the page of a run shows of its predictions: predictions.json, written once the final weights are there. */
#ifndef MIXT_RUN_PREDICTIONS_H
#define MIXT_RUN_PREDICTIONS_H

#include "run/run.h"

#define MIXT_PREDICTIONS_FILE "predictions.json"

/** Predicts the validation part with the weights that the trainer has: which classes are taken for which, or targets
 *  beside what was predicted. Nothing where the model gives neither, in a run of several processes, and where memory is
 *  scarce: prediction is not in the plan. What fails is told as a warning: the run has all that it is for. */
void mixt__predictions_write(mixt_run *run);

#endif
