/* Whether a run's formats are faster than FP32, for its own model on the machine at hand. */
#ifndef MIXT_STEER_FASTER_H
#define MIXT_STEER_FASTER_H

#include "judge/judge.h"
#include "train/trainer.h"

enum {
    MIXT_FASTER_PAIRS = 7,                            // of passes
    MIXT_FASTER_PASSES = 2 * (MIXT_FASTER_PAIRS + 1), // that are made in all
};

/**
 * Lets forward and backward pass of the coming batch run in the trainer's formats and in FP32, in turns, and compares
 * the time that processors have spent: others on the machine count on neither side. Nothing of the trainer changes.
 * What ends a step, the optimizer, is not in it: it is about the same for both.
 * @param judgement FASTER, with a margin of 1
 */
mixt_status mixt__faster_measure(const mixt__trainer *trainer, const mixt_data *data, mixt_judgement *judgement);

#endif
