/* Copies to shared memory that nobody waits for yet: the way to keep memory busy without registers.
 *
 * A thread that reads back only what it copied itself needs no barrier, only copies_wait. Before compute capability 8.0
 * the copies are ordinary ones.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_ASYNC_COPY_CUH
#define MIXT_BACKEND_CUDA_CORE_ASYNC_COPY_CUH

#include "backend/cuda/core/device.cuh"

/** 16 bytes, or zeros where there is nothing to copy; `global` must be a valid address all the same. */
static __device__ __forceinline__ void copy16_async(void *shared, const void *global, bool something)
{
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(shared), bytes = something ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(bytes) : "memory");
#else
    *(uint4 *)shared = something ? *(const uint4 *)global : make_uint4(0, 0, 0, 0);
#endif
}

/** The same of 4 bytes. */
static __device__ __forceinline__ void copy4_async(void *shared, const void *global, bool something)
{
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(shared), bytes = something ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(global), "r"(bytes) : "memory");
#else
    *(unsigned *)shared = something ? *(const unsigned *)global : 0;
#endif
}

/** Ends a group of copies. */
static __device__ __forceinline__ void copies_commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/** Until all but the last PENDING groups of this thread's copies are there. */
template <int PENDING> static __device__ __forceinline__ void copies_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/** Goes over tiles of `step` rows from `first` to `end`: copy(row, slot) runs one tile ahead of use(row, slot). */
template <typename copy_fn, typename use_fn>
static __device__ __forceinline__ void over_tiles(int first, int end, int step, copy_fn copy, use_fn use)
{
    if (first < end)
        copy(first, 0);
    for (int row = first, slot = 0; row < end; row += step, slot ^= 1) {
        copies_commit();
        copies_wait<0>();
        __syncthreads(); // this tile is there, and all have read the one whose place the next takes
        if (row + step < end)
            copy(row + step, slot ^ 1);
        use(row, slot);
    }
}

#endif
