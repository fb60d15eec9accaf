/* The 14 × 32 register tile of AVX-512: 28 sums, two vectors of B, one broadcast of A; FP32 or BF16 pairs.
 *
 * Included by the files that compile it for their instruction set. There is one variant for each count of rows: a
 * little code, and no work on rows that do not exist (128 rows are nine tiles of 14 and one of 2).
 */
#ifndef MIXT_BACKEND_CPU_GEMM_TILE_AVX512_H
#define MIXT_BACKEND_CPU_GEMM_TILE_AVX512_H

#include "backend/cpu/gemm_kernel.h"

#include <immintrin.h>

enum { TILE_ROWS = 14, TILE_LANES = 16, TILE_COLS = 32, TILE_A_WIDTH = 16 };

#define TILE_INLINE static inline __attribute__((always_inline))

TILE_INLINE __mmask16 lanes_mask(int64_t count)
{
    return count >= TILE_LANES ? (__mmask16)0xffff : count <= 0 ? (__mmask16)0 : (__mmask16)((1u << count) - 1);
}

/** One vector of a finished tile: alpha, bias, what C holds. */
TILE_INLINE void store_vector(const mixt__gemm_tile *t, int64_t row, int column, __mmask16 mask, __m512 sum)
{
    float *dst = t->c + row * t->ldc + column;
    sum = _mm512_mul_ps(sum, _mm512_set1_ps(t->alpha));
    if (t->bias)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, t->bias + column));
    if (t->add)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, dst));
    _mm512_mask_storeu_ps(dst, mask, sum);
}

TILE_INLINE __m512 multiply_add(__m512 sum, __m512 a, __m512 b, const bool pairs)
{
#ifdef __AVX512BF16__
    if (pairs)
        return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#else
    (void)pairs;
#endif
    return _mm512_fmadd_ps(a, b, sum);
}

TILE_INLINE void tile_rows(const mixt__gemm_tile *t, const int rows, const int vectors, const bool pairs)
{
    __m512 sum[TILE_ROWS][2];
    const float *a = t->a, *b = t->b;
    const char *next = t->next;
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm512_setzero_ps();
        _mm_prefetch((const char *)(t->c + r * t->ldc), _MM_HINT_T0);
        _mm_prefetch((const char *)(t->c + r * t->ldc + (t->cols - 1)), _MM_HINT_T0);
    }
#pragma GCC unroll 1
    for (int64_t k = t->k; k > 0; k--, a += TILE_A_WIDTH, b += TILE_COLS, next += 64) {
        _mm_prefetch(next, _MM_HINT_T1);
        __m512 b0 = _mm512_load_ps(b), b1 = vectors > 1 ? _mm512_load_ps(b + TILE_LANES) : b0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512 ar = _mm512_set1_ps(a[r]);
            sum[r][0] = multiply_add(sum[r][0], ar, b0, pairs);
            if (vectors > 1)
                sum[r][1] = multiply_add(sum[r][1], ar, b1, pairs);
        }
    }
    __mmask16 m0 = lanes_mask(t->cols), m1 = lanes_mask(t->cols - TILE_LANES);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        store_vector(t, r, 0, m0, sum[r][0]);
        if (vectors > 1)
            store_vector(t, r, TILE_LANES, m1, sum[r][1]);
    }
}

/** Defines tile_<rows>x16 and tile_<rows>x32. */
#define TILE_DEFINE(rows, pairs)                                                                                       \
    static void tile_##rows##x16(const mixt__gemm_tile *t)                                                             \
    {                                                                                                                  \
        tile_rows(t, rows, 1, pairs);                                                                                  \
    }                                                                                                                  \
    static void tile_##rows##x32(const mixt__gemm_tile *t)                                                             \
    {                                                                                                                  \
        tile_rows(t, rows, 2, pairs);                                                                                  \
    }

/** Defines all of them, and tile_14x32_any that picks by the tile's rows and columns. */
#define TILE_DEFINE_ALL(pairs)                                                                                         \
    TILE_DEFINE(1, pairs)                                                                                              \
    TILE_DEFINE(2, pairs)                                                                                              \
    TILE_DEFINE(3, pairs)                                                                                              \
    TILE_DEFINE(4, pairs)                                                                                              \
    TILE_DEFINE(5, pairs)                                                                                              \
    TILE_DEFINE(6, pairs)                                                                                              \
    TILE_DEFINE(7, pairs)                                                                                              \
    TILE_DEFINE(8, pairs)                                                                                              \
    TILE_DEFINE(9, pairs)                                                                                              \
    TILE_DEFINE(10, pairs)                                                                                             \
    TILE_DEFINE(11, pairs)                                                                                             \
    TILE_DEFINE(12, pairs)                                                                                             \
    TILE_DEFINE(13, pairs)                                                                                             \
    TILE_DEFINE(14, pairs)                                                                                             \
    static mixt__gemm_tile_fn *const variants[TILE_ROWS][2] = {                                                        \
        {tile_1x16, tile_1x32},   {tile_2x16, tile_2x32},   {tile_3x16, tile_3x32},   {tile_4x16, tile_4x32},          \
        {tile_5x16, tile_5x32},   {tile_6x16, tile_6x32},   {tile_7x16, tile_7x32},   {tile_8x16, tile_8x32},          \
        {tile_9x16, tile_9x32},   {tile_10x16, tile_10x32}, {tile_11x16, tile_11x32}, {tile_12x16, tile_12x32},        \
        {tile_13x16, tile_13x32}, {tile_14x16, tile_14x32}};                                                           \
    static void tile_any(const mixt__gemm_tile *t)                                                                     \
    {                                                                                                                  \
        variants[t->rows - 1][t->cols > TILE_LANES](t);                                                                \
    }

#endif
