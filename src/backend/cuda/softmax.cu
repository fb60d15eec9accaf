/* Softmax over the last dimension and its gradient, in FP32 whatever the format.
 *
 * A warp takes a row of up to 2048 columns, a block a longer one. The row is read once from memory; the later passes
 * over it (peak, sum, result) find it in the cache. Each thread writes only elements that it alone reads in the last
 * pass, so the output may be the memory of an input. A NaN or a +Inf makes the whole row NaN: Inf - Inf is in its sum.
 */
#include "backend/cuda/device.cuh"

#include "backend/cuda/kernels.h"

namespace
{

enum { THREADS = 256, WARP_COLUMNS = 2048 };

/** Reductions over the threads of a row: a warp's or the block's. */
struct team {
    bool whole_block;
    float *shared;
    __device__ float sum(float x) const
    {
        return whole_block ? block_sum(x, shared) : warp_sum(x);
    }
    __device__ float max(float x) const
    {
        return whole_block ? block_max(x, shared) : warp_max(x);
    }
};

/** V elements of a row at a time as floats: 16 bytes, or one where memory is not aligned. */
template <typename T, int V> __device__ __forceinline__ void get(float *x, const T *p)
{
    if constexpr (V == 1) {
        x[0] = to_float(*p);
    } else {
        vec16<T> raw = load16(p);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = to_float(raw.v[j]);
    }
}

template <typename T, int V> __device__ __forceinline__ void put(T *p, const float *x)
{
    if constexpr (V == 1) {
        *p = from_float<T>(x[0]);
    } else {
        vec16<T> raw;
#pragma unroll
        for (int j = 0; j < V; j++)
            raw.v[j] = from_float<T>(x[j]);
        store16(p, raw);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) softmax_rows(T *dst, const T *src, int64_t rows, int64_t columns, int width)
{
    __shared__ float shared[32];
    team t = {width == THREADS, shared};
    int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / width) + threadIdx.x / width;
    int first = static_cast<int>(threadIdx.x % width) * V;
    if (row >= rows)
        return;
    float x[V], peak = -INFINITY, sum = 0;
    for (int64_t c = first; c < columns; c += width * V) {
        get<T, V>(x, src + row * columns + c);
#pragma unroll
        for (int j = 0; j < V; j++)
            peak = fmaxf(peak, x[j]);
    }
    peak = t.max(peak);
    for (int64_t c = first; c < columns; c += width * V) {
        get<T, V>(x, src + row * columns + c);
#pragma unroll
        for (int j = 0; j < V; j++)
            sum += expf(x[j] - peak);
    }
    float factor = 1.0f / t.sum(sum);
    for (int64_t c = first; c < columns; c += width * V) {
        get<T, V>(x, src + row * columns + c);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = expf(x[j] - peak) * factor;
        put<T, V>(dst + row * columns + c, x);
    }
}

/** grad_src = y · (grad_dst - sum(y · grad_dst)). */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    softmax_grad_rows(T *grad_src, const T *y, const T *grad_dst, int64_t rows, int64_t columns, int width)
{
    __shared__ float shared[32];
    team t = {width == THREADS, shared};
    int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / width) + threadIdx.x / width;
    int first = static_cast<int>(threadIdx.x % width) * V;
    if (row >= rows)
        return;
    float p[V], g[V], dot = 0;
    for (int64_t c = first; c < columns; c += width * V) {
        get<T, V>(p, y + row * columns + c);
        get<T, V>(g, grad_dst + row * columns + c);
#pragma unroll
        for (int j = 0; j < V; j++)
            dot += p[j] * g[j];
    }
    dot = t.sum(dot);
    for (int64_t c = first; c < columns; c += width * V) {
        get<T, V>(p, y + row * columns + c);
        get<T, V>(g, grad_dst + row * columns + c);
#pragma unroll
        for (int j = 0; j < V; j++)
            p[j] *= g[j] - dot;
        put<T, V>(grad_src + row * columns + c, p);
    }
}

struct rows_of {
    int64_t rows, columns;
    int width; // threads of a row
    unsigned blocks;
    bool vectors;
    explicit rows_of(const mixt__call *call)
    {
        const mixt__tensor *out = &call->out[0];
        columns = mixt__tensor_last(out);
        rows = columns ? mixt__tensor_count(out) / columns : 0;
        width = columns <= WARP_COLUMNS ? 32 : THREADS;
        blocks = static_cast<unsigned>(mixt__ceil_div(rows, THREADS / width));
        vectors = columns * static_cast<int64_t>(mixt_dtype_size(out->dtype)) % 16 == 0 && aligned16(out->data);
        for (int i = 0; i < call->in_count; i++)
            vectors = vectors && aligned16(call->in[i].data);
    }
};

template <typename T> void softmax(const mixt__call *call, const rows_of &r)
{
    auto kernel = r.vectors ? softmax_rows<T, 16 / sizeof(T)> : softmax_rows<T, 1>;
    kernel<<<r.blocks, THREADS, 0, mixt__cuda.stream>>>(
        static_cast<T *>(call->out[0].data), static_cast<const T *>(call->in[0].data), r.rows, r.columns, r.width);
}

template <typename T> void softmax_grad(const mixt__call *call, const rows_of &r)
{
    auto kernel = r.vectors ? softmax_grad_rows<T, 16 / sizeof(T)> : softmax_grad_rows<T, 1>;
    kernel<<<r.blocks, THREADS, 0, mixt__cuda.stream>>>(
        static_cast<T *>(call->out[0].data), static_cast<const T *>(call->in[0].data),
        static_cast<const T *>(call->in[1].data), r.rows, r.columns, r.width);
}

mixt_status softmax_run(const mixt__call *call)
{
    rows_of r(call);
    if (r.rows > 0)
        DISPATCH(call->out[0].dtype, T, softmax<T>(call, r));
    return mixt__cuda_launched("softmax");
}

mixt_status softmax_grad_run(const mixt__call *call)
{
    rows_of r(call);
    if (r.rows > 0)
        DISPATCH(call->out[0].dtype, T, softmax_grad<T>(call, r));
    return mixt__cuda_launched("softmax_grad");
}

const mixt__kernel softmax_kernel = {.name = "rows", .run = softmax_run},
                   softmax_grad_kernel = {.name = "rows", .run = softmax_grad_run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_softmax_kernels[] = {&softmax_kernel, nullptr};
extern "C" const mixt__kernel *const mixt__cuda_softmax_grad_kernels[] = {&softmax_grad_kernel, nullptr};
