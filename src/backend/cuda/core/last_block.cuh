/* Finishing a reduction inside the launch that began it: the block that ends last adds up what all blocks left behind.
 *
 * Which block that is changes from run to run, what it adds and in which order does not: results keep their bits.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_LAST_BLOCK_CUH
#define MIXT_BACKEND_CUDA_CORE_LAST_BLOCK_CUH

#include "backend/cuda/core/device.cuh"

static __device__ __forceinline__ double warp_sum_f64(double x)
{
    for (int lane = 16; lane; lane >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}

/** True in all threads of the block that gets here last, which may then read (with __ldcg) what every block wrote to
 *  device memory before its call. The counter starts at 0 and is 0 again afterwards; launches that share one must not
 *  overlap. */
static __device__ __forceinline__ bool last_block(unsigned *counter)
{
    __shared__ bool last;
    unsigned blocks = gridDim.x * gridDim.y;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(counter, blocks - 1) == blocks - 1;
    __syncthreads();
    __threadfence();
    return last;
}

#endif
