/* Masters rounded to working copies by themselves: where ranks share weights out, each rounds its own before they are
 * gathered. As the optimizer rounds them, so to the same bits.
 *
 * A thread takes 4 elements: 16 bytes read and 8 written.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/device.cuh"

extern "C" {
#include "base/status.h"
}

enum { THREADS = 256, VECTOR = 4 };

template <typename T>
static __global__ void __launch_bounds__(THREADS) narrow_f32(T *dst, const float *src, int64_t count)
{
    int64_t at = VECTOR * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    if (at + VECTOR <= count) {
        union {
            uint2 raw;
            T v[VECTOR];
        } low;
        float4 x = *reinterpret_cast<const float4 *>(src + at);
        low.v[0] = from_float<T>(x.x);
        low.v[1] = from_float<T>(x.y);
        low.v[2] = from_float<T>(x.z);
        low.v[3] = from_float<T>(x.w);
        *reinterpret_cast<uint2 *>(dst + at) = low.raw;
        return;
    }
    for (; at < count; at++)
        dst[at] = from_float<T>(src[at]);
}

extern "C" mixt_status mixt__cuda_narrow(mixt__device *device, void *dst, mixt_dtype format, const float *src,
                                         int64_t count)
{
    mixt__cuda_enter(device);
    cudaStream_t stream = mixt__cuda_device_of(device)->stream;
    unsigned grid = (unsigned)mixt__ceil_div(count, THREADS * VECTOR);
    if (!count)
        return MIXT_OK;
    if (format == MIXT_DTYPE_BF16)
        narrow_f32<bf16><<<grid, THREADS, 0, stream>>>((bf16 *)dst, src, count);
    else if (format == MIXT_DTYPE_FP16)
        narrow_f32<fp16><<<grid, THREADS, 0, stream>>>((fp16 *)dst, src, count);
    else
        return mixt__fail(MIXT_ERROR_DTYPE, "no working copy in %s is possible on the GPU", mixt_dtype_name(format));
    return mixt__cuda_launched("rounding weights");
}
