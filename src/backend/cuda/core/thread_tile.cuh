/* Products in FP32 on the ordinary units: a block makes TM × TN results from slices of both operands in shared memory,
 * TM · TN / 64 threads, 8 × 8 a thread, so that a vector read feeds 16 multiply-adds.
 *
 * A warp has 4 × 8 threads. A thread's rows are every TM / 8th, or with multiply_columns two runs of four; its columns
 * two runs of four, or with multiply_turned every TN / 8th. The order of each sum is that of the depth.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_THREAD_TILE_CUH
#define MIXT_BACKEND_CUDA_CORE_THREAD_TILE_CUH

#include "backend/cuda/core/async_copy.cuh"

enum {
    DEPTH = 16,        // of a slice
    PITCH = DEPTH + 4, // of a slice's rows: eight of them meet no bank twice
    SLOTS = 3,         // slices in shared memory
};

/** Goes over the slices of a product, each of SLOT floats: copy(slice, slot) runs two slices ahead of
 *  multiply(slice, slot). */
template <int SLOT, typename copy_fn, typename multiply_fn>
static __device__ __forceinline__ void over_slices(int slices, copy_fn copy, multiply_fn multiply)
{
    extern __shared__ float4 slots[];
    float *memory = reinterpret_cast<float *>(slots);
    for (int s = 0; s < SLOTS - 1; s++) {
        if (s < slices)
            copy(s, memory + s * SLOT);
        copies_commit();
    }
    for (int s = 0; s < slices; s++) {
        int next = s + SLOTS - 1;
        copies_wait<SLOTS - 2>();
        __syncthreads(); // this slice is there, and all have read the one whose place the next takes
        if (next < slices)
            copy(next, memory + next % SLOTS * SLOT);
        copies_commit();
        multiply(s, memory + s % SLOTS * SLOT);
    }
}

template <int TM, int TN> struct thread_tile {
    float sum[8][8];

    static constexpr int threads = TM * TN / 64;

    static __device__ __forceinline__ int group(void) // of TM / 8
    {
        return (int)(threadIdx.x >> 5) % (TM / 32) * 4 + (int)(threadIdx.x >> 3 & 3);
    }
    static __device__ __forceinline__ int across(void) // of TN / 8
    {
        return (int)(threadIdx.x >> 5) / (TM / 32) * 8 + (int)(threadIdx.x & 7);
    }

    /** One of the depth: eight values of the left operand, a row of the right. */
    __device__ __forceinline__ void add(const float (&x)[8], const float *right)
    {
        const float *at = right + 4 * across();
        float4 low = *(const float4 *)at, high = *(const float4 *)(at + TN / 2);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sum[i][0] = fmaf(x[i], low.x, sum[i][0]);
            sum[i][1] = fmaf(x[i], low.y, sum[i][1]);
            sum[i][2] = fmaf(x[i], low.z, sum[i][2]);
            sum[i][3] = fmaf(x[i], low.w, sum[i][3]);
            sum[i][4] = fmaf(x[i], high.x, sum[i][4]);
            sum[i][5] = fmaf(x[i], high.y, sum[i][5]);
            sum[i][6] = fmaf(x[i], high.z, sum[i][6]);
            sum[i][7] = fmaf(x[i], high.w, sum[i][7]);
        }
    }

    /** Four of the depth, from k on, of each of the thread's rows. */
    template <int pitch> static __device__ __forceinline__ void load_rows(float4 (&a)[8], const float *left, int k)
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            a[i] = *(const float4 *)(left + (group() + TM / 8 * i) * pitch + k);
    }

    /** left (TM, depth), rows `pitch` apart; right (depth, TN). */
    template <int depth, int pitch> __device__ __forceinline__ void multiply_rows(const float *left, const float *right)
    {
#pragma unroll 4
        for (int k = 0; k < depth; k += 4) {
            float4 a[8];
            load_rows<pitch>(a, left, k);
#pragma unroll
            for (int q = 0; q < 4; q++) {
                float x[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    x[i] = q == 0 ? a[i].x : q == 1 ? a[i].y : q == 2 ? a[i].z : a[i].w;
                add(x, right + (k + q) * TN);
            }
        }
    }

    /** left (depth, TM); right (depth, TN). */
    template <int depth> __device__ __forceinline__ void multiply_columns(const float *left, const float *right)
    {
#pragma unroll 16
        for (int k = 0; k < depth; k++) {
            const float *at = left + k * TM + 4 * group();
            float4 low = *(const float4 *)at, high = *(const float4 *)(at + TM / 2);
            const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            add(x, right + k * TN);
        }
    }

    /** left (TM, depth), right (TN, depth), rows of both `pitch` apart. */
    template <int depth, int pitch>
    __device__ __forceinline__ void multiply_turned(const float *left, const float *right)
    {
#pragma unroll 4
        for (int k = 0; k < depth; k += 4) {
            float4 a[8];
            load_rows<pitch>(a, left, k);
#pragma unroll
            for (int c = 0; c < 8; c++) {
                float4 b = *(const float4 *)(right + (across() + TN / 8 * c) * pitch + k);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum[i][c] = fmaf(a[i].w, b.w, fmaf(a[i].z, b.z, fmaf(a[i].y, b.y, fmaf(a[i].x, b.x, sum[i][c]))));
            }
        }
    }

    /** Row i of the thread, whose columns are in runs, into `row` from column `first` on, where it has such columns. */
    __device__ __forceinline__ void store(int i, float *row, int first, int columns, const float *bias) const
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int at = first + 4 * across() + half * (TN / 2);
            const float *s = sum[i] + 4 * half;
            if (at >= columns)
                continue;
            float4 b = bias ? *(const float4 *)(bias + at) : make_float4(0, 0, 0, 0);
            *(float4 *)(row + at) = make_float4(s[0] + b.x, s[1] + b.y, s[2] + b.z, s[3] + b.w);
        }
    }
};

#endif
