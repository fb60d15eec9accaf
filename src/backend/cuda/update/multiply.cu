/* A few numbers times one that only the device knows: the gradient of the loss, weighed for each pass of a step.
 *
 * One block of as many threads as numbers, or 256 that go over them; 4 bytes read and 4 written each.
 */
#include "backend/cuda/kernels.h"

extern "C" {
#include "base/status.h"
}

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    multiply_f32(float *dst, const float *src, const float *factor, int64_t count)
{
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        dst[i] = src[i] * *factor;
}

extern "C" mixt_status mixt__cuda_multiply(mixt__device *device, float *dst, const float *src, const float *factor,
                                           int64_t count)
{
    mixt__cuda_enter(device);
    unsigned threads = count < THREADS ? (unsigned)count : THREADS;
    multiply_f32<<<1, threads, 0, mixt__cuda_device_of(device)->stream>>>(dst, src, factor, count);
    return mixt__cuda_check(cudaGetLastError(), "weighing passes");
}
