/* What the candidates of reduce share: the layout of a reduction and how its results are stored. */
#ifndef MIXT_BACKEND_CUDA_REDUCE_REDUCE_H
#define MIXT_BACKEND_CUDA_REDUCE_REDUCE_H

#include "backend/cuda/kernels.h"
#include "backend/reduce.h"

typedef struct mixt__reduce_result {
    void *data;
    mixt_dtype dtype;
    bool mean, add; // divide by `divisor`; add to what is there (FP32)
    float divisor;
} mixt__reduce_result;

static inline mixt__reduce_result mixt__reduce_result_of(const mixt__call *call, int64_t summed)
{
    const mixt__reduce_attrs *at = (const mixt__reduce_attrs *)call->attrs;
    mixt__reduce_result r = {call->out[0].data, call->out[0].dtype, at->mean, (bool)(call->accumulate & 1),
                             (float)summed};
    return r;
}

#ifdef __CUDACC__
/** What result i is added to. */
static __device__ __forceinline__ float reduce_old(const mixt__reduce_result &r, int64_t i)
{
    return r.add ? static_cast<const float *>(r.data)[i] : 0.0f;
}

static __device__ __forceinline__ void reduce_store(const mixt__reduce_result &r, int64_t i, float sum, float old)
{
    store_any(r.data, r.dtype, i, (r.mean ? sum / r.divisor : sum) + old);
}
#endif

#ifdef __cplusplus
extern "C" {
#endif
extern const mixt__kernel mixt__cuda_reduce_plain;
#ifdef __cplusplus
}
#endif

#endif
