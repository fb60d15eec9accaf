/* Softmax over the last dimension and its gradient, in FP32 whatever the format.
 *
 * A warp takes a short row, a block a longer one. An aligned row of up to 8 accesses a thread is held in registers and
 * so read once; other rows are read again in each pass (peak, sum, result), from the cache while they fit it. Each
 * thread writes only elements that it alone reads in the last pass, so the output may be the memory of an input. A NaN
 * or a +Inf makes the whole row NaN: Inf - Inf is in its sum.
 */
#include "backend/cuda/core/device.cuh"

#include "backend/cuda/kernels.h"

namespace
{

enum { THREADS = 256, HELD = 8 };

/** V elements that move in one access: 16 bytes, or one element where memory is not aligned. */
template <typename T, int V> struct alignas(V * sizeof(T)) piece {
    T v[V];
};

/** The pieces of a row that belong to one thread of `width`; HOLD of them stay in registers, 0: none does. */
template <typename T, int V, int HOLD> struct pieces {
    const T *row;
    int64_t columns;
    int first, step;
    uint4 held[HOLD ? HOLD : 1];

    __device__ __forceinline__ pieces(const T *row, int64_t columns, int width)
        : row(row), columns(columns), first(static_cast<int>(threadIdx.x) % width * V), step(width * V)
    {
#pragma unroll
        for (int u = 0; u < HOLD; u++)
            if (first + u * step < columns)
                held[u] = *reinterpret_cast<const uint4 *>(row + first + u * step);
    }

    /** f(column, its V elements) for each piece, `u` counting them. */
    template <typename F> __device__ __forceinline__ void each(F f) const
    {
        if constexpr (HOLD > 0) {
#pragma unroll
            for (int u = 0; u < HOLD; u++)
                if (first + u * step < columns)
                    f(first + u * step, reinterpret_cast<const piece<T, V> &>(held[u]), u);
        } else {
            for (int64_t c = first; c < columns; c += step)
                f(c, *reinterpret_cast<const piece<T, V> *>(row + c), 0);
        }
    }

    __device__ __forceinline__ piece<T, V> at(int64_t column, int u) const
    {
        if constexpr (HOLD > 0)
            return reinterpret_cast<const piece<T, V> &>(held[u]);
        else
            return *reinterpret_cast<const piece<T, V> *>(row + column);
    }
};

/** Reductions over the threads of a row: a warp's or the block's. */
__device__ __forceinline__ float team_sum(float x, int width, float *shared)
{
    return width == 32 ? warp_sum(x) : block_sum(x, shared);
}

__device__ __forceinline__ float team_max(float x, int width, float *shared)
{
    return width == 32 ? warp_max(x) : block_max(x, shared);
}

template <typename T, int V, int HOLD>
__global__ void __launch_bounds__(THREADS) softmax_rows(T *dst, const T *src, int64_t rows, int64_t columns, int width)
{
    __shared__ float shared[32];
    int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / width) + threadIdx.x / width;
    if (row >= rows) // whole warps; a block with one row is never here
        return;
    pieces<T, V, HOLD> x(src + row * columns, columns, width);
    float peak = -INFINITY, sum = 0;
    x.each([&](int64_t, const piece<T, V> &p, int) {
#pragma unroll
        for (int j = 0; j < V; j++)
            peak = fmaxf(peak, to_float(p.v[j]));
    });
    peak = team_max(peak, width, shared);
    x.each([&](int64_t, const piece<T, V> &p, int) {
#pragma unroll
        for (int j = 0; j < V; j++)
            sum += expf(to_float(p.v[j]) - peak);
    });
    float factor = 1.0f / team_sum(sum, width, shared);
    x.each([&](int64_t c, const piece<T, V> &p, int) {
        piece<T, V> y;
#pragma unroll
        for (int j = 0; j < V; j++)
            y.v[j] = from_float<T>(expf(to_float(p.v[j]) - peak) * factor);
        *reinterpret_cast<piece<T, V> *>(dst + row * columns + c) = y;
    });
}

/** grad_src = y · (grad_dst - sum(y · grad_dst)). */
template <typename T, int V, int HOLD>
__global__ void __launch_bounds__(THREADS)
    softmax_grad_rows(T *grad_src, const T *y, const T *grad_dst, int64_t rows, int64_t columns, int width)
{
    __shared__ float shared[32];
    int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / width) + threadIdx.x / width;
    if (row >= rows)
        return;
    pieces<T, V, HOLD> ys(y + row * columns, columns, width), grads(grad_dst + row * columns, columns, width);
    float dot = 0;
    ys.each([&](int64_t c, const piece<T, V> &p, int u) {
        piece<T, V> g = grads.at(c, u);
#pragma unroll
        for (int j = 0; j < V; j++)
            dot += to_float(p.v[j]) * to_float(g.v[j]);
    });
    dot = team_sum(dot, width, shared);
    ys.each([&](int64_t c, const piece<T, V> &p, int u) {
        piece<T, V> g = grads.at(c, u), x;
#pragma unroll
        for (int j = 0; j < V; j++)
            x.v[j] = from_float<T>(to_float(p.v[j]) * (to_float(g.v[j]) - dot));
        *reinterpret_cast<piece<T, V> *>(grad_src + row * columns + c) = x;
    });
}

struct rows_of {
    int64_t rows, columns;
    int width; // threads of a row
    unsigned blocks;
    bool vectors, held;
    explicit rows_of(const mixt__call *call)
    {
        const mixt__tensor *out = &call->out[0];
        int size = static_cast<int>(mixt_dtype_size(out->dtype));
        columns = mixt__tensor_last(out);
        rows = columns ? mixt__tensor_count(out) / columns : 0;
        vectors = columns * size % 16 == 0 && aligned16(out->data);
        for (int i = 0; i < call->in_count; i++)
            vectors = vectors && aligned16(call->in[i].data);
        int64_t reach = HELD * (vectors ? 16 / size : 4); // of a thread
        width = columns <= 32 * reach ? 32 : THREADS;
        held = vectors && columns <= width * reach;
        blocks = static_cast<unsigned>(mixt__ceil_div(rows, THREADS / width));
    }
};

template <typename T> void softmax(const mixt__call *call, const rows_of &r)
{
    constexpr int V = 16 / sizeof(T);
    auto kernel = r.held ? softmax_rows<T, V, HELD> : r.vectors ? softmax_rows<T, V, 0> : softmax_rows<T, 1, 0>;
    kernel<<<r.blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(
        static_cast<T *>(call->out[0].data), static_cast<const T *>(call->in[0].data), r.rows, r.columns, r.width);
}

template <typename T> void softmax_grad(const mixt__call *call, const rows_of &r)
{
    constexpr int V = 16 / sizeof(T);
    auto kernel = r.held      ? softmax_grad_rows<T, V, HELD>
                  : r.vectors ? softmax_grad_rows<T, V, 0>
                              : softmax_grad_rows<T, 1, 0>;
    kernel<<<r.blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(
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
