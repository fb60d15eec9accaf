/* A training step within an amount of memory: which parts a batch is passed in, and what is computed again.
 *
 * Every plan that comes into question is compiled, which takes no memory, and counted to the byte; of those that fit,
 * the one that should take the least time is left in the trainer. Nothing is run: times are predictions (seconds.h).
 */
#ifndef MIXT_TRAIN_FIT_H
#define MIXT_TRAIN_FIT_H

#include "train/trainer.h"

/** One way to plan a step. */
typedef struct mixt__fit_plan {
    int64_t split;    // parts of a batch
    size_t recompute; // bytes that activations may take; 0: no limit
    mixt_dtype keep;  // format in which they wait for the backward pass; NONE: as they are
    size_t bytes;     // of all that is counted
    double update;    // seconds of an update, predicted
    double beside;    // and of what else there is to each update
} mixt__fit_plan;

/** What to fit, and how. */
typedef struct mixt__fit_request {
    size_t budget;
    bool may_recompute, may_split, may_keep; // else they stay as they are
    /** Bytes of all that a budget is for, the step as it is compiled included; may plan what lies beside it smaller to
     *  fit, and says how many seconds that takes for each update. */
    mixt_status (*measure)(void *user, mixt__trainer *t, size_t budget, size_t *bytes, double *seconds);
    void *user;
} mixt__fit_request;

/** What came of it. */
typedef struct mixt__fit_choice {
    bool fits;
    mixt__fit_plan chosen; // the cheapest that fits; where none does, the smallest
} mixt__fit_choice;

/** Compiles the step for batches of another size, in other parts or with other activations: before memory is taken. As
 *  it was on failure. The plan of evaluation stays. */
mixt_status mixt__trainer_replan(mixt__trainer *t, int64_t batch, int64_t split, size_t recompute);

/** The same between two updates whose results were read, with batches of the same size: weights, moments, counters and
 *  the place in the data stay to the bit, evaluation and prediction keep their memory. As it was on failure, unless the
 *  trainer is `broken`.
 *  @param keep format in which activations wait for the backward pass; NONE: as they are */
mixt_status mixt__trainer_refit(mixt__trainer *t, int64_t split, size_t recompute, mixt_dtype keep);

/** Plans the step within the budget, and leaves the chosen plan in the trainer, fits or not. Needs compile; takes no
 *  memory. */
mixt_status mixt__trainer_fit(mixt__trainer *t, const mixt__fit_request *request, mixt__fit_choice *choice);

#endif
