/* How much each pass of an update counts when gradients are accumulated.
 *
 * A loss is the mean over its pass's own targets that count (a label from 0, a value that is a number). For the sum of
 * the passes to be the gradient of one large batch, each must count as much as it has such targets. Where all have the
 * same number every weight is exactly 1, and nothing is rounded that was not rounded before.
 */
#ifndef MIXT_TRAIN_PASS_WEIGHTS_H
#define MIXT_TRAIN_PASS_WEIGHTS_H

#include "mixt/types.h"

/** Targets that count: labels from 0 (INT32), values that are no NaN (FP32). In host memory. */
int64_t mixt__targets_count(const void *target, mixt_dtype dtype, int64_t elements);

/** Weights of passes whose counts become known one after the other: relative to the first that has any; the sum is put
 * right at the end. Begins as zeros. */
typedef struct mixt__pass_weights {
    int64_t first, total;
} mixt__pass_weights;

/** The weight of the next pass, which has so many targets. */
float mixt__pass_weight(mixt__pass_weights *weights, int64_t count);
/** What the sum of `passes` gradients must then be multiplied with. */
double mixt__pass_weights_factor(const mixt__pass_weights *weights, int64_t passes);

/** Weights of passes whose counts are all known: their sum needs no factor. */
void mixt__pass_weights_of(const int64_t *counts, int64_t passes, float *weights);

#endif
