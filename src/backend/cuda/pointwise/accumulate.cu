/* accumulate: a value of any float format into an FP32 parameter gradient, put there or added. A thread moves four
 * elements at a time, two such in flight; unaligned memory goes element by element.
 * Bytes moved: the source, the gradient written and, when added to, read.
 */
#include "backend/cuda/core/device.cuh"

#include "backend/cuda/kernels.h"

namespace
{

enum { THREADS = 256, UNROLL = 2 };

template <typename T> struct alignas(4 * sizeof(T)) four {
    T v[4];
};

template <typename T>
__global__ void __launch_bounds__(THREADS) accumulate_four(float *dst, const T *src, int64_t fours, bool add)
{
    int64_t first = static_cast<int64_t>(blockIdx.x) * (THREADS * UNROLL) + threadIdx.x;
    four<T> x[UNROLL];
    float4 y[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        if (first + u * THREADS < fours) {
            x[u] = reinterpret_cast<const four<T> *>(src)[first + u * THREADS];
            y[u] = add ? reinterpret_cast<const float4 *>(dst)[first + u * THREADS] : make_float4(0, 0, 0, 0);
        }
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        if (first + u * THREADS < fours)
            reinterpret_cast<float4 *>(dst)[first + u * THREADS] =
                make_float4(y[u].x + to_float(x[u].v[0]), y[u].y + to_float(x[u].v[1]), y[u].z + to_float(x[u].v[2]),
                            y[u].w + to_float(x[u].v[3]));
}

/** Elements [begin, count). */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    accumulate_single(float *dst, const T *src, int64_t begin, int64_t count, bool add)
{
    int64_t i = begin + static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        dst[i] = (add ? dst[i] : 0.0f) + to_float(src[i]);
}

template <typename T> void launch(const mixt__cuda_device *gpu, float *dst, const T *src, int64_t count, bool add)
{
    bool aligned = aligned16(dst) && reinterpret_cast<uintptr_t>(src) % (4 * sizeof(T)) == 0;
    int64_t fours = aligned ? count / 4 : 0, rest = count - 4 * fours;
    if (fours)
        accumulate_four<<<static_cast<unsigned>(mixt__ceil_div(fours, THREADS * UNROLL)), THREADS, 0, gpu->stream>>>(
            dst, src, fours, add);
    if (rest)
        accumulate_single<<<static_cast<unsigned>(mixt__ceil_div(rest, THREADS)), THREADS, 0, gpu->stream>>>(
            dst, src, 4 * fours, count, add);
}

mixt_status run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0];
    float *dst = static_cast<float *>(call->out[0].data);
    DISPATCH(src->dtype, T,
             launch(mixt__cuda_of(call), dst, static_cast<const T *>(src->data), mixt__tensor_count(src),
                    call->accumulate & 1));
    return mixt__cuda_launched("accumulate");
}

const mixt__kernel vectors = {.name = "vectors", .run = run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_accumulate_kernels[] = {&vectors, nullptr};
