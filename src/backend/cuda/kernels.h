/* The candidates of each op on the GPU: each kernel file exports one NULL-ended list, best first; the last supports
 * every shape and format. */
#ifndef MIXT_BACKEND_CUDA_KERNELS_H
#define MIXT_BACKEND_CUDA_KERNELS_H

#include "backend/cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIXT_OP(name) extern const mixt__kernel *const mixt__cuda_##name##_kernels[];
#include "ops/ops.def"
#undef MIXT_OP

/* the passes that end a step: see backend/training.h */
mixt_status mixt__cuda_gradient_stats(mixt__device *device, const mixt__update *update);
void mixt__cuda_join_stats(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats);
mixt_status mixt__cuda_step_control(mixt__device *device, const mixt__update *update);
mixt_status mixt__cuda_optimizer_step(mixt__device *device, const mixt__update *update);
mixt_status mixt__cuda_lamb_moments(mixt__device *device, const mixt__update *update);
float mixt__cuda_lamb_ratio(const double *sums, int64_t count);
mixt_status mixt__cuda_lamb_weights(mixt__device *device, const mixt__update *update, const float *ratios);
/* dst[i] = src[i] * *factor, all in device memory: see backend/backend.h */
mixt_status mixt__cuda_multiply(mixt__device *device, float *dst, const float *src, const float *factor, int64_t count);
/* dst[i] = src[i] rounded: the same */
mixt_status mixt__cuda_narrow(mixt__device *device, void *dst, mixt_dtype format, const float *src, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
