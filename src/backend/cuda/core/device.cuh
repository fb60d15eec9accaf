/* Device code that kernels share: elements of any float format, 16-byte vectors, sums over warps and blocks.
 *
 * Sums follow a fixed tree (butterfly over lanes, then over warps in order), so the same launch gives the same bits.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_DEVICE_CUH
#define MIXT_BACKEND_CUDA_CORE_DEVICE_CUH

#include "backend/cuda/core/cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;
typedef __half fp16;

static __device__ __forceinline__ float to_float(float x)
{
    return x;
}
static __device__ __forceinline__ float to_float(bf16 x)
{
    return __bfloat162float(x);
}
static __device__ __forceinline__ float to_float(fp16 x)
{
    return __half2float(x);
}

/** Rounds to nearest even. */
template <typename T> static __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ bf16 from_float<bf16>(float x)
{
    return __float2bfloat16_rn(x);
}
template <> __device__ __forceinline__ fp16 from_float<fp16>(float x)
{
    return __float2half_rn(x);
}

/** As many elements as one 16-byte access moves. */
template <typename T> struct alignas(16) vec16 {
    static constexpr int size = 16 / sizeof(T);
    T v[size];
};

template <typename T> static __device__ __forceinline__ vec16<T> load16(const T *p)
{
    vec16<T> r;
    *reinterpret_cast<uint4 *>(&r) = *reinterpret_cast<const uint4 *>(p);
    return r;
}

template <typename T> static __device__ __forceinline__ void store16(T *p, const vec16<T> &x)
{
    *reinterpret_cast<uint4 *>(p) = *reinterpret_cast<const uint4 *>(&x);
}

static inline bool aligned16(const void *p)
{
    return (reinterpret_cast<uintptr_t>(p) & 15) == 0;
}

/** Over a warp, or over groups of LANES neighbours in it. */
template <int LANES = 32> static __device__ __forceinline__ float warp_sum(float x)
{
    for (int lane = LANES / 2; lane; lane >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

template <int LANES = 32> static __device__ __forceinline__ float warp_max(float x)
{
    for (int lane = LANES / 2; lane; lane >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lane));
    return x;
}

/** Sum over the block, the same in every thread. Whole warps only; `shared` holds 32 floats and may be reused after
 *  the call returns (it ends with a barrier). */
static __device__ __forceinline__ float block_sum(float x, float *shared)
{
    x = warp_sum(x);
    int warps = blockDim.x >> 5;
    if ((threadIdx.x & 31) == 0)
        shared[threadIdx.x >> 5] = x;
    __syncthreads();
    x = (threadIdx.x & 31) < warps ? shared[threadIdx.x & 31] : 0.0f;
    x = warp_sum(x);
    __syncthreads();
    return x;
}

static __device__ __forceinline__ float block_max(float x, float *shared)
{
    x = warp_max(x);
    int warps = blockDim.x >> 5;
    if ((threadIdx.x & 31) == 0)
        shared[threadIdx.x >> 5] = x;
    __syncthreads();
    x = (threadIdx.x & 31) < warps ? shared[threadIdx.x & 31] : -INFINITY;
    x = warp_max(x);
    __syncthreads();
    return x;
}

/** Runs `statement` with `T` as the C type of a float format: DISPATCH(dtype, T, launch<T>(…)). */
#define DISPATCH(dtype, T, ...)                                                                                        \
    do {                                                                                                               \
        if ((dtype) == MIXT_DTYPE_FP32) {                                                                              \
            typedef float T;                                                                                           \
            __VA_ARGS__;                                                                                               \
        } else if ((dtype) == MIXT_DTYPE_BF16) {                                                                       \
            typedef bf16 T;                                                                                            \
            __VA_ARGS__;                                                                                               \
        } else {                                                                                                       \
            typedef fp16 T;                                                                                            \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

#endif
