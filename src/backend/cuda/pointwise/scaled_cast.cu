/* Scaled casts: one kernel for the largest magnitude, one that divides and rounds.
 *
 * The first leaves the bits of the largest finite magnitude in the workspace: an atomic maximum of whole numbers, the
 * same in whatever order blocks come. The second finds the scale from it again in every thread and writes it once, so
 * that nothing waits for the host. A thread takes 16 bytes' worth of the source an access where memory is aligned.
 * Bytes moved: the source twice, the second time from the L2 cache where it fits, the result once.
 */
#include "backend/cuda/core/any_format.cuh"

#include "backend/cuda/kernels.h"

namespace
{

enum { THREADS = 256, BLOCKS_PER_SM = 8 };

/** V elements that move in one access. */
template <typename T, int V> struct alignas(V * sizeof(T)) piece {
    T v[V];
};

/** FP8 E4M3 of a magnitude that is within its range or not finite; nearest even. */
static __device__ __forceinline__ uint8_t to_e4m3(float x)
{
    uint32_t bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu, code;
    if (magnitude >= 0x7f800000u)
        code = 0x7f;
    else if (magnitude < 0x3c800000u) // below 2^-6: subnormal, in steps of 2^-9
        code = __float_as_uint(__uint_as_float(magnitude) + 16384.0f) - __float_as_uint(16384.0f);
    else
        code = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
    return static_cast<uint8_t>((bits >> 24 & 0x80u) | code);
}

template <typename D> static __device__ __forceinline__ D narrow(float x);
template <> __device__ __forceinline__ uint8_t narrow<uint8_t>(float x)
{
    return to_e4m3(x);
}
template <> __device__ __forceinline__ fp16 narrow<fp16>(float x)
{
    return from_float<fp16>(x);
}

/** Bits of the scale, from those of the largest magnitude: mixt__cast_scale_bits of ops/attrs.h for a device. */
template <typename D> static __device__ __forceinline__ uint32_t scale_bits(uint32_t largest)
{
    constexpr bool fp8 = sizeof(D) == 1;
    int exponent =
        static_cast<int>(largest >> 23) - (fp8 ? 8 : 15) + ((largest & 0x7fffffu) > (fp8 ? 0x600000u : 0x7fe000u));
    return largest == 0 ? 127u << 23 : static_cast<uint32_t>(max(exponent, 1)) << 23;
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) largest_magnitude(uint32_t *largest, const T *src, int64_t count)
{
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS * V;
    uint32_t most = 0;
    for (int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * V; i < count; i += step) {
        piece<T, V> p = *reinterpret_cast<const piece<T, V> *>(src + i);
#pragma unroll
        for (int j = 0; j < V; j++) {
            uint32_t magnitude = __float_as_uint(to_float(p.v[j])) & 0x7fffffffu;
            most = max(most, magnitude < 0x7f800000u ? magnitude : 0u);
        }
    }
    for (int lane = 16; lane; lane >>= 1)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, lane));
    if ((threadIdx.x & 31) == 0 && most)
        atomicMax(largest, most);
}

template <typename T, typename D, int V>
__global__ void __launch_bounds__(THREADS)
    cast(D *dst, float *scale, const T *src, const uint32_t *largest, int64_t count, float least)
{
    const uint32_t bits = scale_bits<D>(*largest);
    const float factor = __uint_as_float((254u << 23) - bits); // 1 / scale
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS * V;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *scale = __uint_as_float(bits);
    for (int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * V; i < count; i += step) {
        piece<T, V> p = *reinterpret_cast<const piece<T, V> *>(src + i);
        piece<D, V> q;
#pragma unroll
        for (int j = 0; j < V; j++) {
            float x = to_float(p.v[j]), y = x * factor;
            q.v[j] = narrow<D>(x != 0.0f && fabsf(y) < least ? copysignf(least, x) : y);
        }
        *reinterpret_cast<piece<D, V> *>(dst + i) = q;
    }
}

template <typename T, typename D, int V> void launch(const mixt__call *call, int64_t count)
{
    const mixt__scaled_cast_attrs *at = static_cast<const mixt__scaled_cast_attrs *>(call->attrs);
    const T *src = static_cast<const T *>(call->in[0].data);
    uint32_t *largest = static_cast<uint32_t *>(call->workspace);
    int64_t most = static_cast<int64_t>(mixt__cuda_of(call)->multiprocessors) * BLOCKS_PER_SM;
    int64_t wanted = mixt__ceil_div(count, static_cast<int64_t>(THREADS) * V);
    unsigned blocks = static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
    float least = at->flush ? 0.0f : at->dtype == MIXT_DTYPE_FP16 ? 0x1p-24f : 0x1p-9f;
    largest_magnitude<T, V><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(largest, src, count);
    cast<T, D, V><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(
        static_cast<D *>(call->out[0].data), static_cast<float *>(call->out[1].data), src, largest, count, least);
}

template <typename T> void launch_from(const mixt__call *call)
{
    constexpr int V = 16 / sizeof(T);
    int64_t count = mixt__tensor_count(&call->in[0]);
    bool vectors = count % V == 0 && aligned16(call->in[0].data) && aligned16(call->out[0].data);
    bool fp16_wanted = call->out[0].dtype == MIXT_DTYPE_FP16;
    auto chosen = fp16_wanted ? (vectors ? launch<T, fp16, V> : launch<T, fp16, 1>)
                              : (vectors ? launch<T, uint8_t, V> : launch<T, uint8_t, 1>);
    chosen(call, count);
}

mixt_status prepare(mixt__call *call, mixt__arena *)
{
    call->workspace_bytes = sizeof(uint32_t);
    return MIXT_OK;
}

mixt_status run(const mixt__call *call)
{
    MIXT_TRY(mixt__cuda_check(cudaMemsetAsync(call->workspace, 0, sizeof(uint32_t), mixt__cuda_of(call)->stream),
                              "scaled_cast"));
    DISPATCH(call->in[0].dtype, T, launch_from<T>(call));
    return mixt__cuda_launched("scaled_cast");
}

bool supports(const mixt__call *call, const char **reason)
{
    *reason = "FP8 E5M2 is not for this kernel";
    return call->out[0].dtype != MIXT_DTYPE_FP8_E5M2;
}

const mixt__kernel atomic_kernel = {.name = "atomic_max", .supports = supports, .prepare = prepare, .run = run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_scaled_cast_kernels[] = {&atomic_kernel, nullptr};
