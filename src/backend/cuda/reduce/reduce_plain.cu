/* Sums and means over any dimensions of a tensor with any strides: a warp a result, or a block where
 * results are few and sums long. */
#include "backend/cuda/core/any_format.cuh"

#include "backend/cuda/reduce/reduce.h"

namespace
{

enum { THREADS = 512, LONG = 4096 };

/** Dimensions in two lists, innermost first: those that stay and those that are summed. */
struct dimensions {
    int rank;
    int64_t count, dims[MIXT_MAX_RANK], strides[MIXT_MAX_RANK];
};

__device__ int64_t place(const dimensions &d, int64_t index)
{
    int64_t offset = 0;
    for (int i = 0; i < d.rank; i++) {
        int64_t rest = i + 1 < d.rank ? index / d.dims[i] : 0;
        offset += (index - rest * d.dims[i]) * d.strides[i];
        index = rest;
    }
    return offset;
}

__global__ void __launch_bounds__(THREADS)
    reduce_any(const void *src, mixt_dtype dtype, const dimensions kept, const dimensions summed,
               const mixt__reduce_result result, int lanes)
{
    __shared__ float shared[32];
    int64_t i = static_cast<int64_t>(blockIdx.x) * (THREADS / lanes) + threadIdx.x / lanes;
    if (i >= kept.count) // whole warps, and never with barriers to come
        return;
    int64_t base = place(kept, i);
    float sum = 0;
    for (int64_t k = threadIdx.x % lanes; k < summed.count; k += lanes)
        sum += load_any(src, dtype, base + place(summed, k));
    sum = lanes == 32 ? warp_sum(sum) : block_sum(sum, shared);
    if (threadIdx.x % lanes == 0)
        reduce_store(result, i, sum, reduce_old(result, i));
}

mixt_status run(const mixt__call *call)
{
    const mixt__reduce_attrs *at = static_cast<const mixt__reduce_attrs *>(call->attrs);
    const mixt__tensor *src = &call->in[0];
    dimensions lists[2] = {{0, 1, {0}, {0}}, {0, 1, {0}, {0}}};
    for (int d = src->shape.rank - 1; d >= 0; d--) {
        dimensions *list = &lists[at->axes >> d & 1];
        list->dims[list->rank] = src->shape.dims[d];
        list->strides[list->rank++] = src->strides[d];
        list->count *= src->shape.dims[d];
    }
    int lanes = lists[1].count < LONG ? 32 : THREADS;
    if (lists[0].count > 0)
        reduce_any<<<static_cast<unsigned>(mixt__ceil_div(lists[0].count, THREADS / lanes)), THREADS, 0,
                     mixt__cuda_of(call)->stream>>>(src->data, src->dtype, lists[0], lists[1],
                                                    mixt__reduce_result_of(call, lists[1].count), lanes);
    return mixt__cuda_launched("reduce");
}

} // namespace

extern "C" const mixt__kernel mixt__cuda_reduce_plain = {.name = "plain", .run = run};
