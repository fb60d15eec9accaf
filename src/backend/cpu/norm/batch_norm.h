/* What the batch-norm kernels share, and the candidates. */
#ifndef MIXT_BACKEND_CPU_NORM_BATCH_NORM_H
#define MIXT_BACKEND_CPU_NORM_BATCH_NORM_H

#include "backend/backend.h"
#include "ops/attrs.h"

/** From the batch's mean and sum of squared deviations of channel c to the outputs mean and rstd; moves the running
 *  statistics in training and uses them in evaluation. */
void mixt__batch_norm_finish(const mixt__call *call, int64_t c, double mean, double squares);

extern const mixt__kernel mixt__batch_norm_avx512, mixt__batch_norm_avx2;
extern const mixt__kernel mixt__batch_norm_grad_avx512, mixt__batch_norm_grad_avx2;

#endif
