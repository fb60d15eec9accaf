/* Tensor Core products of FP16 and BF16 for the recurrence: D (16 x 8, FP32) += A (16 x 16) B (16 x 8).
 *
 * Of A, lane 4q + c has rows q and q + 8, places 2c, 2c + 1, 2c + 8 and 2c + 9 of the sum; of B, column q and the same
 * places; of D, rows q and q + 8, columns 2c and 2c + 1. Which element of a sum counts as which place is free, as long
 * as A and B agree: callers choose the places so that a lane's elements are neighbours in memory.
 */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_MMA_CUH
#define MIXT_BACKEND_CUDA_RECURRENT_MMA_CUH

#include "backend/cuda/recurrent/cells.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1, bf16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1, fp16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

template <typename T> static __device__ __forceinline__ uint32_t bits_of(float x)
{
    T t = from_float<T>(x);
    return *reinterpret_cast<uint16_t *>(&t);
}

/** Place of 4 values that a lane of a product takes at once: `block` of 4 along the sum, one of 8 sequences. The
 * sequences of every other pair of blocks are swapped by halves, so that 16 lanes read from 32 different banks. */
[[maybe_unused]] static __device__ __forceinline__ int place_of(int block, int sequence)
{
    return block * 8 + (sequence ^ (block & 2) << 1);
}

#endif
