/* Times of candidates, measured here: the same steps of each, in turn, so that whatever slows the machine down meets
 * all of them. */
#ifndef MIXT_CHOOSE_TRIAL_H
#define MIXT_CHOOSE_TRIAL_H

#include "base/progress.h"
#include "choose/advice.h"
#include "run/run.h"

typedef struct mixt__trial mixt__trial;

/**
 * Trains every candidate that the machine can run, from the same weights on the same batches, and puts what was
 * measured into it: seconds of an update, and the share of the loss that it lost next to FP32. What there is no time
 * for keeps its modelled time, scaled by what the others took.
 * @param first only candidates from this one on, and FP32.
 * @param limit seconds that all of it may take.
 * @param teller hears what is being tried.
 * @return MIXT_ERROR_STATE when who hears of it ended it.
 */
mixt_status mixt__trial_run(mixt_advice *advice, mixt_run *run, int first, double limit, mixt__teller teller);

/** A trainer like the run's own under a candidate's policy, compiled, with no memory taken; for
 *  mixt__trainer_close.
 *  @param larger times that its batch is the run's own */
mixt_status mixt__trial_open(mixt_run *run, const mixt__contender *contender, int larger, mixt_trainer **trainer);

/** Seconds of an update whose batches lie ready in the device's memory, the median of a few. */
mixt_status mixt__trial_resident(mixt__trainer *trainer, const mixt_data *data, int64_t steps, double *seconds);

#endif
