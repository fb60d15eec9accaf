/* Elements whose format is known only when the kernel runs; for kernels that touch few of them. */
#ifndef MIXT_BACKEND_CUDA_CORE_ANY_FORMAT_CUH
#define MIXT_BACKEND_CUDA_CORE_ANY_FORMAT_CUH

#include "backend/cuda/core/device.cuh"

/** FP8 E4M3 has FP16's layout with three bits of mantissa fewer and exponents lower by 8; all ones is NaN. */
static __device__ __forceinline__ float load_e4m3(uint8_t x)
{
    unsigned magnitude = x & 0x7fu;
    float size = to_float(__ushort_as_half(static_cast<unsigned short>(magnitude << 7))) * 256.0f;
    size = magnitude == 0x7fu ? __uint_as_float(0x7fc00000u) : size;
    return x >> 7 ? -size : size;
}

static __device__ __forceinline__ float load_any(const void *data, mixt_dtype dtype, int64_t i)
{
    if (dtype == MIXT_DTYPE_BF16)
        return to_float(static_cast<const bf16 *>(data)[i]);
    if (dtype == MIXT_DTYPE_FP16)
        return to_float(static_cast<const fp16 *>(data)[i]);
    if (dtype == MIXT_DTYPE_FP8_E4M3)
        return load_e4m3(static_cast<const uint8_t *>(data)[i]);
    return static_cast<const float *>(data)[i];
}

static __device__ __forceinline__ void store_any(void *data, mixt_dtype dtype, int64_t i, float value)
{
    if (dtype == MIXT_DTYPE_BF16)
        static_cast<bf16 *>(data)[i] = from_float<bf16>(value);
    else if (dtype == MIXT_DTYPE_FP16)
        static_cast<fp16 *>(data)[i] = from_float<fp16>(value);
    else
        static_cast<float *>(data)[i] = value;
}

#endif
