/* How long an update should take, from what its ops compute and move: a prediction to compare plans by, made without
 * running anything. */
#ifndef MIXT_TRAIN_SECONDS_H
#define MIXT_TRAIN_SECONDS_H

#include "train/trainer.h"

/** Of all passes of an update and the update itself, batches at hand. Needs compile. */
double mixt__trainer_seconds(const mixt__trainer *t);
/** Of evaluating so many samples, as it is planned; 0: it is not. */
double mixt__trainer_evaluation_seconds(const mixt__trainer *t, int64_t samples);

#endif
