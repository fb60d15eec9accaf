/* Products in TF32 by whole warps, from tiles of FP32 rows in shared memory: D (16 × 8, FP32) += A (16 × 8) · B (8 ×
 * 8).
 *
 * Of A, lane 4g + c has rows g and g + 8 at places c and c + 4 of the sum; of B, column g at the same places; of D,
 * rows g and g + 8 at columns 2c and 2c + 1. Which element of a sum counts as which place is free as long as A and B
 * agree, and so is the order of B's columns: both are chosen here so that a lane reads 16 bytes at a time, and so that
 * results of one product are the left operand of the next without leaving the registers: left · tileᵀ   places c, c + 4
 * of two steps are elements 4c … 4c + 3 of 16 neighbours in a row; left · tile    places c, c + 4 are rows 2c, 2c + 1,
 * as D has them; the columns 4g … 4g + 3 belong to four products, so that a lane's results are eight neighbours in
 * memory. A tile's 16-byte pieces are permuted by the row's number: reads of both kinds meet no bank twice.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_TF32_TILE_CUH
#define MIXT_BACKEND_CUDA_CORE_TF32_TILE_CUH

#include "backend/cuda/core/async_copy.cuh"

/** Where 16-byte piece `piece` of row `row` lies in a tile of rows of DIM floats. Neighbouring rows differ by four
 * pieces, every other row by two. */
template <int DIM> static __device__ __forceinline__ int tf32_place(int row, int piece)
{
    return row * DIM + ((piece ^ (row & 6) ^ (row & 1) << 2) << 2);
}

/** Where the lane's 16 bytes of eight rows from `row` on lie for left · tileᵀ; row is a multiple of 8. */
template <int DIM> static __device__ __forceinline__ int tf32_turned_place(int row, int step)
{
    int lane = threadIdx.x & 31, first = tf32_place<DIM>(lane >> 2, lane & 3);
    return (step & 1 ? first ^ 16 : first) + row * DIM + step / 2 * 32;
}

/** The same for left · tile: of row 2c, or 2c + 1 when odd, 32 columns from 32 · wide on. */
template <int DIM> static __device__ __forceinline__ int tf32_weighted_place(int row, int wide, bool odd)
{
    int lane = threadIdx.x & 31, first = tf32_place<DIM>(2 * (lane & 3), lane >> 2);
    return (odd ? (first ^ 16) + DIM : first) + row * DIM + wide * 32;
}

/** Rounded to TF32, to nearest and ties away: three instructions, for values that are rounded once and used often. */
static __device__ __forceinline__ unsigned tf32_nearest(float x)
{
    unsigned bits = __float_as_uint(x);
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#endif
    return bits;
}

/** Rounded to TF32 by one multiplication, for values on their way to the Tensor Cores, which leave out the 13 bits
 * behind by themselves. With m in [1, 2) the significand, m (1 + 2^-11) without what lies below 2^-10 is off by more
 * than m 2^-11 - 2^-10 and at most m 2^-11: as with rounding to nearest, at most 2^-11 of the value, 0 for what TF32
 * holds exactly; NaN and infinity stay. Unlike there the mean error is not 0 but a third of that bound. */
static __device__ __forceinline__ unsigned tf32_bits(float x)
{
    return __float_as_uint(x * (1 + 1 / 2048.0f));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void tf32_multiply(float (&d)[4], uint4 a, unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
#endif

/** A lane's share of 16 rows by 16 elements, rounded: left operands of two steps. */
struct tf32_left {
    uint4 first, second;

    tf32_left() = default;
    /** From four elements each of rows g and g + 8. */
    __device__ __forceinline__ tf32_left(float4 low, float4 high)
        : first(make_uint4(tf32_nearest(low.x), tf32_nearest(high.x), tf32_nearest(low.y), tf32_nearest(high.y))),
          second(make_uint4(tf32_nearest(low.z), tf32_nearest(high.z), tf32_nearest(low.w), tf32_nearest(high.w)))
    {
    }
};

/** Rows of a matrix as the threads of a block copy them into tiles: each its pieces of every STEPth row. */
template <int DIM, int threads> struct tf32_rows {
    static constexpr int PIECES = DIM / 4, STEP = threads / PIECES;
    static_assert(STEP % 4 == 0, "every fourth row's pieces lie the same way but for 16 places");
    const float *first; // this thread's piece of its first row
    int64_t stride;

    __device__ __forceinline__ tf32_rows(const float *data, int64_t stride)
        : first(data + (int)threadIdx.x / PIECES * stride + threadIdx.x % PIECES * 4), stride(stride)
    {
    }

    /** `count` rows from `row` on into a tile; zeros from row `end` on. */
    template <int count> __device__ __forceinline__ void copy(float *tile, int row, int end) const
    {
        const float *from = first + row * stride;
        int at = (int)threadIdx.x / PIECES, place = tf32_place<DIM>(at, threadIdx.x % PIECES);
        bool whole = row + count <= end;
#pragma unroll
        for (int n = 0; n < count / STEP; n++, from += STEP * stride) {
            bool there = whole || row + at + n * STEP < end;
            copy16_async(tile + (STEP % 8 && n % 2 ? place ^ 16 : place) + n * STEP * DIM, there ? from : first, there);
        }
    }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/** sum += left · tileᵀ: M · 16 rows, 8 N rows of the tile. left(m, step) gives the left operands. Four columns of
 * products go together, so that no product waits for the one before it. */
template <int DIM, int M, int N, typename left_fn>
static __device__ __forceinline__ void tf32_add_turned(float (&sum)[M][N][4], left_fn left, const float *tile)
{
    constexpr int GROUP = N < 4 ? N : 4;
#pragma unroll
    for (int step = 0; step < DIM / 16; step++) {
        tf32_left a[M];
#pragma unroll
        for (int m = 0; m < M; m++)
            a[m] = left(m, step);
#pragma unroll
        for (int first = 0; first < N; first += GROUP) {
            unsigned b[GROUP][4];
#pragma unroll
            for (int n = 0; n < GROUP; n++) {
                float4 x = *(const float4 *)(tile + tf32_turned_place<DIM>(8 * (first + n), step));
                b[n][0] = tf32_bits(x.x);
                b[n][1] = tf32_bits(x.y);
                b[n][2] = tf32_bits(x.z);
                b[n][3] = tf32_bits(x.w);
            }
#pragma unroll
            for (int n = 0; n < GROUP; n++)
#pragma unroll
                for (int m = 0; m < M; m++)
                    tf32_multiply(sum[m][first + n], a[m].first, b[n][0], b[n][1]);
#pragma unroll
            for (int n = 0; n < GROUP; n++)
#pragma unroll
                for (int m = 0; m < M; m++)
                    tf32_multiply(sum[m][first + n], a[m].second, b[n][2], b[n][3]);
        }
    }
}

/** sum += weights · tile: M · 16 rows of weights as tf32_add_turned leaves them, 8 N rows of the tile. */
template <int DIM, int M, int N>
static __device__ __forceinline__ void tf32_add_weighted(float (&sum)[M][DIM / 8][4], const float (&weights)[M][N][4],
                                                         const float *tile)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        uint4 a[M];
#pragma unroll
        for (int m = 0; m < M; m++) {
            const float(&w)[4] = weights[m][n];
            a[m] = make_uint4(tf32_bits(w[0]), tf32_bits(w[2]), tf32_bits(w[1]), tf32_bits(w[3]));
        }
#pragma unroll
        for (int wide = 0; wide < DIM / 32; wide++) {
            float4 x = *(const float4 *)(tile + tf32_weighted_place<DIM>(8 * n, wide, false)),
                   y = *(const float4 *)(tile + tf32_weighted_place<DIM>(8 * n, wide, true));
            const float first[4] = {x.x, x.y, x.z, x.w}, second[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int t = 0; t < 4; t++) {
                unsigned b0 = tf32_bits(first[t]), b1 = tf32_bits(second[t]);
#pragma unroll
                for (int m = 0; m < M; m++)
                    tf32_multiply(sum[m][4 * wide + t], a[m], b0, b1);
            }
        }
    }
}

#endif

/** Half `half` of 16 rows that tf32_add_weighted made: row g or g + 8, times `factor`, into memory. */
template <int DIM>
static __device__ __forceinline__ void tf32_put(float *memory, const float (&sum)[DIM / 8][4], int half, float factor)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int n = 0; n < DIM / 16; n++) { // pieces of four columns: 32 (n / 2) + 8c + 4 (n % 2)
        int e = 2 * half + n % 2;
        const float(*four)[4] = sum + n / 2 * 4;
        *(float4 *)(memory + n / 2 * 32 + 8 * (lane & 3) + n % 2 * 4) =
            make_float4(four[0][e] * factor, four[1][e] * factor, four[2][e] * factor, four[3][e] * factor);
    }
}

#endif
