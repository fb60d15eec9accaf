/* The CPU's versions of the passes that end a training step. */
#ifndef MIXT_BACKEND_CPU_UPDATE_TRAINING_H
#define MIXT_BACKEND_CPU_UPDATE_TRAINING_H

#include "backend/training.h"

mixt_status mixt__cpu_gradient_stats(const mixt__update *update);
void mixt__cpu_join_stats(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats);
mixt_status mixt__cpu_step_control(const mixt__update *update);
mixt_status mixt__cpu_optimizer_step(const mixt__update *update);

/* LAMB in two halves, for segments that are parts of others': between the two the sums of all parts are put together.
 * Not for an update that is skipped. */

/** Moments; squares of weights and of their directions, two sums a chunk, to the beginning of the workspace. */
void mixt__cpu_lamb_moments(const mixt__update *update);
/** Weights and working copies. @param ratios by segment: what its rate is multiplied with */
void mixt__cpu_lamb_weights(const mixt__update *update, const float *ratios);
/** The ratio of a segment whose chunks have these sums. */
float mixt__cpu_lamb_ratio(double weights, double directions);

#endif
