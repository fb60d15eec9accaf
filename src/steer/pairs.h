/* What FP32 would have made of the same updates: a judgement of the format, from this very run.
 *
 * From each good state the updates since are computed once more in FP32, on the same batches with the same random
 * numbers; the first that shows FP32 to be better counts.
 * Losses are compared update by update, so that hard batches count on neither side; how sure that is, is judged as of
 * numbers that depend on their neighbours (mixt__judge_series): weights of one update are those of the next, nearly.
 */
#ifndef MIXT_STEER_PAIRS_H
#define MIXT_STEER_PAIRS_H

#include "judge/judge.h"
#include "steer/snapshots.h"

/** By how much worse the formats may be: where nothing but the loss speaks against them, and where looks do. */
#define MIXT_PAIRS_MARGIN 0.005
#define MIXT_PAIRS_MARGIN_SUSPECTED 0.001

typedef struct mixt__pairs {
    mixt_judgement judgement; // SAFE: of the formats in which the run computes; undecided where there is too little
    int64_t from, updates;    // the state that it began with, and how many it is about
    int64_t replayed;         // updates in all
    double low, fp32;         // losses of the last block
} mixt__pairs;

/** The trainer is where it was afterwards, in its own policy; its evaluation is to be planned anew. Ranks do it
 *  together.
 *  @param began the first loss of all; 0 or NaN: not known */
mixt_status mixt__pairs_measure(mixt__snapshots *ring, const mixt_data *data, double began, double margin,
                                mixt__pairs *pairs);

#endif
