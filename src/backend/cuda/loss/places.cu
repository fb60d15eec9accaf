/* The place of each sample in its batch: see ops/places.c. A thread a sample; bytes: one read and one write. */
#include "backend/cuda/core/device.cuh"
#include "backend/cuda/kernels.h"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS) places_of(const int32_t *targets, int32_t *places, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        places[i] = targets[i] < 0 ? -1 : (int32_t)i;
}

static mixt_status run(const mixt__call *call)
{
    int64_t count = mixt__tensor_count(&call->in[0]);
    if (!count)
        return MIXT_OK;
    places_of<<<(unsigned)mixt__ceil_div(count, THREADS), THREADS, 0, mixt__cuda_of(call)->stream>>>(
        (const int32_t *)call->in[0].data, (int32_t *)call->out[0].data, count);
    return mixt__cuda_launched("places");
}

static const mixt__kernel kernel = {.name = "samples", .run = run};

extern "C" const mixt__kernel *const mixt__cuda_places_kernels[] = {&kernel, NULL};
