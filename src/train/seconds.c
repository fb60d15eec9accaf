/* An update as the sum of its ops, each by the device's roofline (runtime/roofline.h), and of what ends it. */
#include "train/seconds.h"

#include "runtime/roofline.h"
#include "train/trainer_inside.h"

#include <math.h>

/** One run of a plan. */
static double pass_seconds(const mixt__roofline *r, const mixt__graph *g)
{
    double seconds = 0;
    for (int64_t i = 0; i < g->node_count; i++)
        seconds += mixt__roofline_seconds(r, g, &g->nodes[i]);
    return seconds;
}

double mixt__trainer_seconds(const mixt__trainer *t)
{
    enum { GRADIENT = 4, TOUCHED = 4 }; // bytes; master read and written, gradient read for statistics and update
    mixt__roofline r = mixt__roofline_of(t->device);
    double passes = (double)t->settings.accumulate, parameters = (double)t->params->total;
    double added = (passes - 1) * GRADIENT * parameters; // gradients of earlier passes, read again
    double update = GRADIENT * parameters * (TOUCHED + 2 * mixt__optimizer_moments(&t->settings.optimizer));
    return passes * pass_seconds(&r, t->train->graph) + (added + update) / r.bytes;
}

double mixt__trainer_evaluation_seconds(const mixt__trainer *t, int64_t samples)
{
    if (!t->eval)
        return 0;
    mixt__roofline r = mixt__roofline_of(t->device);
    return ceil((double)samples / (double)t->settings.eval_batch) * pass_seconds(&r, t->eval->graph);
}
