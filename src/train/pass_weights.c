/* Counting targets, and counts to weights. */
#include "train/pass_weights.h"

#include <math.h>

int64_t mixt__targets_count(const void *target, mixt_dtype dtype, int64_t elements)
{
    const int32_t *labels = target;
    const float *values = target;
    int64_t count = 0;
    for (int64_t i = 0; i < elements; i++)
        count += dtype == MIXT_DTYPE_INT32 ? labels[i] >= 0 : !isnan(values[i]);
    return count;
}

float mixt__pass_weight(mixt__pass_weights *w, int64_t count)
{
    if (!w->first)
        w->first = count;
    w->total += count;
    return w->first ? (float)((double)count / (double)w->first) : 0.0f;
}

double mixt__pass_weights_factor(const mixt__pass_weights *w, int64_t passes)
{
    return w->total ? (double)passes * (double)w->first / (double)w->total : 1.0;
}

void mixt__pass_weights_of(const int64_t *counts, int64_t passes, float *weights)
{
    double total = 0;
    for (int64_t i = 0; i < passes; i++)
        total += (double)counts[i];
    for (int64_t i = 0; i < passes; i++)
        weights[i] = total > 0 ? (float)((double)counts[i] * (double)passes / total) : 1.0f;
}
