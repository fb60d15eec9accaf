/* Launches that begin while the kernel before them ends: its last blocks and the next one's start overlap.
 *
 * A kernel launched by launch_dependent must call dependency_wait before it touches anything that the kernel before it
 * writes; that returns when all of that kernel's writes can be seen. dependents_may_start says that the next kernel may
 * be started; called after dependency_wait, it also tells the next one that everything before this kernel is done, so
 * that the next one may read such things ahead of its own wait. Before compute capability 9.0 these are plain launches.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_DEPENDENT_CUH
#define MIXT_BACKEND_CUDA_CORE_DEPENDENT_CUH

#include "backend/cuda/core/device.cuh"

static __device__ __forceinline__ void dependency_wait(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

static __device__ __forceinline__ void dependents_may_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <typename... P, typename... A>
static cudaError_t launch_dependent(const mixt__cuda_device *gpu, void (*kernel)(P...), unsigned grid, unsigned threads,
                                    A... arguments)
{
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(grid);
    config.blockDim = dim3(threads);
    config.stream = gpu->stream;
    config.attrs = &overlap;
    config.numAttrs = gpu->sm >= 90 ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, P(arguments)...);
}

#endif
