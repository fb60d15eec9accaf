/* The 14 × 32 register tile of AVX-512: 28 sums, two vectors of B, one broadcast of A; FP32 or BF16 pairs.
 *
 * Included by the files that compile it for their instruction set. There is one variant for each count of rows: a
 * little code, and no work on rows that do not exist (128 rows are nine tiles of 14 and one of 2).
 */
#ifndef MIXT_BACKEND_CPU_GEMM_TILE_AVX512_H
#define MIXT_BACKEND_CPU_GEMM_TILE_AVX512_H

#include "backend/cpu/gemm/kernel.h"

#include <immintrin.h>

enum { TILE_ROWS = 14, TILE_LANES = 16, TILE_COLS = 32, TILE_A_WIDTH = 16 };

#define TILE_INLINE static inline __attribute__((always_inline))

TILE_INLINE __mmask16 lanes_mask(int64_t count)
{
    unsigned kept = count >= TILE_LANES ? TILE_LANES : count > 0 ? (unsigned)count : 0;
    return (__mmask16)((1u << kept) - 1);
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

/** The product of a tile. `direct`: A is read from rows instead of a panel; three rows share a pointer, which is what
 *  addressing modes and 16 registers allow. */
TILE_INLINE void tile_rows(const mixt__gemm_tile *t, const int rows, const int vectors, const bool pairs,
                           const bool direct)
{
    __m512 sum[TILE_ROWS][2];
    const float *a = t->a, *b = t->b, *group[5];
    const char *next = t->next;
    const int64_t stride = direct ? t->a_stride : 1;
#pragma GCC unroll 5
    for (int g = 0; g < 5; g++)
        group[g] = a + 3 * g * stride;
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm512_setzero_ps();
        _mm_prefetch((const char *)(t->c + r * t->ldc), _MM_HINT_T0);
        _mm_prefetch((const char *)(t->c + r * t->ldc + (t->cols - 1)), _MM_HINT_T0);
    }
#pragma GCC unroll 1
    for (int64_t k = 0; k < t->k; k++, b += TILE_COLS, next += 64) {
        _mm_prefetch(next, _MM_HINT_T1);
        __m512 b0 = _mm512_load_ps(b), b1 = vectors > 1 ? _mm512_load_ps(b + TILE_LANES) : b0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            __m512 ar = _mm512_set1_ps(direct ? group[r / 3][r % 3 * stride + k] : a[k * TILE_A_WIDTH + r]);
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

/** Defines <name>_<rows>x16 and <name>_<rows>x32. */
#define TILE_DEFINE(name, rows, pairs, direct)                                                                         \
    static void name##_##rows##x16(const mixt__gemm_tile *t)                                                           \
    {                                                                                                                  \
        tile_rows(t, rows, 1, pairs, direct);                                                                          \
    }                                                                                                                  \
    static void name##_##rows##x32(const mixt__gemm_tile *t)                                                           \
    {                                                                                                                  \
        tile_rows(t, rows, 2, pairs, direct);                                                                          \
    }
#define TILE_ENTRY(name, rows)                                                                                         \
    {                                                                                                                  \
        name##_##rows##x16, name##_##rows##x32                                                                         \
    }

/** Defines all of them, and `name`, which picks by the tile's rows and columns. */
#define TILE_DEFINE_ALL(name, pairs, direct)                                                                           \
    TILE_DEFINE(name, 1, pairs, direct)                                                                                \
    TILE_DEFINE(name, 2, pairs, direct)                                                                                \
    TILE_DEFINE(name, 3, pairs, direct)                                                                                \
    TILE_DEFINE(name, 4, pairs, direct)                                                                                \
    TILE_DEFINE(name, 5, pairs, direct)                                                                                \
    TILE_DEFINE(name, 6, pairs, direct)                                                                                \
    TILE_DEFINE(name, 7, pairs, direct)                                                                                \
    TILE_DEFINE(name, 8, pairs, direct)                                                                                \
    TILE_DEFINE(name, 9, pairs, direct)                                                                                \
    TILE_DEFINE(name, 10, pairs, direct)                                                                               \
    TILE_DEFINE(name, 11, pairs, direct)                                                                               \
    TILE_DEFINE(name, 12, pairs, direct)                                                                               \
    TILE_DEFINE(name, 13, pairs, direct)                                                                               \
    TILE_DEFINE(name, 14, pairs, direct)                                                                               \
    static mixt__gemm_tile_fn *const name##_variants[TILE_ROWS][2] = {                                                 \
        TILE_ENTRY(name, 1),  TILE_ENTRY(name, 2),  TILE_ENTRY(name, 3),  TILE_ENTRY(name, 4), TILE_ENTRY(name, 5),    \
        TILE_ENTRY(name, 6),  TILE_ENTRY(name, 7),  TILE_ENTRY(name, 8),  TILE_ENTRY(name, 9), TILE_ENTRY(name, 10),   \
        TILE_ENTRY(name, 11), TILE_ENTRY(name, 12), TILE_ENTRY(name, 13), TILE_ENTRY(name, 14)};                       \
    static void name(const mixt__gemm_tile *t)                                                                         \
    {                                                                                                                  \
        name##_variants[t->rows - 1][t->cols > TILE_LANES](t);                                                         \
    }

#endif
