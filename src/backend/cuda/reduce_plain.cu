/* Sums and means over any dimensions of a tensor with any strides: a warp a result, its lanes in a fixed order. */
#include "backend/cuda/any_format.cuh"

#include "backend/cuda/reduce.h"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32 };

/** Dimensions in two lists, innermost first: those that stay and those that are summed. */
struct dimensions {
    int rank;
    int64_t count, dims[MIXT_MAX_RANK], strides[MIXT_MAX_RANK];
};

__device__ int64_t place(const dimensions &d, int64_t index)
{
    int64_t offset = 0;
    for (int i = 0; i < d.rank; i++) {
        offset += index % d.dims[i] * d.strides[i];
        index /= d.dims[i];
    }
    return offset;
}

__global__ void __launch_bounds__(THREADS) reduce_any(const void *src, mixt_dtype dtype, const dimensions kept,
                                                      const dimensions summed, const mixt__reduce_result result)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (i >= kept.count)
        return;
    int64_t base = place(kept, i);
    float sum = 0;
    for (int64_t k = threadIdx.x % 32; k < summed.count; k += 32)
        sum += load_any(src, dtype, base + place(summed, k));
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        reduce_store(result, i, sum);
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
    if (lists[0].count > 0)
        reduce_any<<<static_cast<unsigned>(mixt__ceil_div(lists[0].count, WARPS)), THREADS, 0, mixt__cuda.stream>>>(
            src->data, src->dtype, lists[0], lists[1], mixt__reduce_result_of(call, lists[1].count));
    return mixt__cuda_launched("reduce");
}

} // namespace

extern "C" const mixt__kernel mixt__cuda_reduce_plain = {.name = "plain", .run = run};
