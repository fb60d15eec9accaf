/* The CPU's versions of the passes that end a training step. */
#ifndef MIXT_BACKEND_CPU_UPDATE_TRAINING_H
#define MIXT_BACKEND_CPU_UPDATE_TRAINING_H

#include "backend/training.h"

mixt_status mixt__cpu_gradient_stats(const mixt__update *update);
void mixt__cpu_join_stats(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats);
mixt_status mixt__cpu_step_control(const mixt__update *update);
mixt_status mixt__cpu_optimizer_step(const mixt__update *update);

/* integrity: see backend.h */
mixt_status mixt__cpu_sum_segments(const mixt__update *update);
mixt_status mixt__cpu_check_segments(const mixt__update *update);
mixt_status mixt__cpu_judge_sums(const mixt__update *update);
mixt_status mixt__cpu_sum_blocks(mixt__still_block *blocks, int64_t count, mixt__damage *damage);
mixt_status mixt__cpu_check_statistics(const mixt__update *update);

/* LAMB in two halves */
mixt_status mixt__cpu_lamb_moments(const mixt__update *update);
float mixt__cpu_lamb_ratio(const double *sums, int64_t count);
mixt_status mixt__cpu_lamb_weights(const mixt__update *update, const float *ratios);

#endif
