/* A small matrix product on packed blocks in cache, for files compiled for AVX2, AVX-512 or AVX512-BF16.
 *
 * C (m, n) = or += A (m, k) · B (k, n). B lies in panels of TILE_COLS columns (element (d, c) of a panel at d · ldb +
 * c), A anywhere with two strides, so a transposed A costs nothing. Columns come in whole vectors: C and B are padded.
 * The tile of C stays in registers over the depth: 24 accumulators of 32 with AVX-512, 12 of 16 with AVX2.
 *
 * A word of A and B is one FP32 number, or with AVX512-BF16 two BF16 numbers that follow each other in depth, the first
 * in the low half; k and all strides count words, C is FP32 always.
 *
 * With AMX the product runs on tile registers (tile_amx.h): then k is a multiple of 16 words, n of 32, a_depth is
 * 1, and rows of A and C past m, up to a multiple of 16, are touched.
 */
#ifndef MIXT_BACKEND_CPU_CORE_TILE_H
#define MIXT_BACKEND_CPU_CORE_TILE_H

#include "backend/cpu/core/vec.h"

#ifdef __AVX512F__
enum { TILE_ROWS = 6, TILE_VECS = 4 };
#else
enum { TILE_ROWS = 6, TILE_VECS = 2 };
#endif
enum { TILE_COLS = TILE_VECS * VEC_LANES };

#if MIXT_AT_AMX
enum { TILE_PACK = 2, TILE_DEPTH = 16 }; // numbers of a word; words that a product consumes at once
#elif defined(__AVX512BF16__)
enum { TILE_PACK = 2, TILE_DEPTH = 1 };

VEC_INLINE vec tile_step(vec a, vec b, vec sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#else
enum { TILE_PACK = 1, TILE_DEPTH = 1 };

VEC_INLINE vec tile_step(vec a, vec b, vec sum)
{
    return vec_fma(a, b, sum);
}
#endif

/** Which part of the product a causal mask leaves, with row i of C and `diagonal` the offset of the mask. */
typedef enum tile_mask {
    TILE_ALL,
    TILE_COLUMNS,     // column c matters for rows i ≥ c - diagonal: what else there is in C stays or is garbage
    TILE_DEPTH_BELOW, // depth d ≤ i + diagonal contributes, in numbers; what A holds elsewhere must be 0
    TILE_DEPTH_FROM   // depth d ≥ i + diagonal contributes
} tile_mask;

typedef struct tile_product {
    int64_t m, n, k; // n a multiple of VEC_LANES, k in words
    const float *a;
    int64_t a_row, a_depth;
    const float *b;
    int64_t ldb, b_panel; // b_panel: from one panel to the next
    float *c;
    int64_t ldc;
    bool add;
    tile_mask mask;
    int64_t diagonal;
} tile_product;

#if MIXT_AT_AMX
#include "backend/cpu/core/tile_amx.h"
#else

/** Around a thread's products: for tile registers only. */
static void tile_begin(void)
{
}

static void tile_end(void)
{
}

VEC_INLINE void tile_compute(int rows, int vecs, const tile_product *p, const float *a, const float *b, float *c,
                             int64_t depth)
{
    vec acc[TILE_ROWS][TILE_VECS];
    int64_t a_row = p->a_row, a_depth = p->a_depth, ldb = p->ldb;
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            acc[i][j] = p->add ? vec_load(c + i * p->ldc + j * VEC_LANES) : vec_zero();
    for (int64_t d = 0; d < depth; d++) {
        vec bv[TILE_VECS];
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            bv[j] = vec_load(b + j * VEC_LANES);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            vec av = vec_set(a[i * a_row]);
#pragma GCC unroll 4
            for (int j = 0; j < vecs; j++)
                acc[i][j] = tile_step(av, bv[j], acc[i][j]);
        }
        a += a_depth;
        b += ldb;
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++)
            vec_store(c + i * p->ldc + j * VEC_LANES, acc[i][j]);
}

#define TILE_CASE(rows)                                                                                                \
    case rows:                                                                                                         \
        tile_compute(rows, vecs, p, a, b, c, depth);                                                                   \
        return;

/** A constant number of vectors; the number of rows is looked up. */
VEC_INLINE void tile_rows(int64_t rows, int vecs, const tile_product *p, const float *a, const float *b, float *c,
                          int64_t depth)
{
    switch (rows) {
        TILE_CASE(6)
        TILE_CASE(5)
        TILE_CASE(4)
        TILE_CASE(3)
        TILE_CASE(2)
        TILE_CASE(1)
    default:
        return;
    }
}

/** The first `columns` of a strip that a mask cuts short, in narrower tiles. */
static void tile_cut(int64_t rows, int64_t columns, const tile_product *p, const float *a, const float *b, float *c)
{
    int64_t j = 0;
    for (; TILE_VECS > 2 && j + VEC_LANES < columns; j += 2 * VEC_LANES)
        tile_rows(rows, 2, p, a, b + j, c + j, p->k);
    for (; j < columns; j += VEC_LANES)
        tile_rows(rows, 1, p, a, b + j, c + j, p->k);
}

/** One strip of columns against all rows: the panel of B stays in the first cache. */
VEC_INLINE void tile_strip(const tile_product *p, int vecs, int64_t column, const float *b)
{
    for (int64_t i = 0; i < p->m; i += TILE_ROWS) {
        int64_t rows = p->m - i < TILE_ROWS ? p->m - i : TILE_ROWS, from = 0, to = p->k;
        int64_t seen = i + rows + p->diagonal; // columns, or depth, up to the last row's end
        if (p->mask == TILE_COLUMNS && seen - column <= (vecs - 1) * VEC_LANES) {
            tile_cut(rows, seen - column, p, p->a + i * p->a_row, b, p->c + i * p->ldc + column);
            continue;
        }
        if (p->mask == TILE_DEPTH_BELOW && to * TILE_PACK > seen)
            to = (seen + TILE_PACK - 1) / TILE_PACK;
        if (p->mask == TILE_DEPTH_FROM && from * TILE_PACK < i + p->diagonal)
            from = (i + p->diagonal) / TILE_PACK;
        tile_rows(rows, vecs, p, p->a + i * p->a_row + from * p->a_depth, b + from * p->ldb, p->c + i * p->ldc + column,
                  to - from);
    }
}

static void tile_multiply(const tile_product *p)
{
    for (int64_t c = 0; c < p->n; c += TILE_COLS) {
        const float *b = p->b + c / TILE_COLS * p->b_panel;
        int64_t left = p->n - c;
        if (left >= TILE_COLS) {
            tile_strip(p, TILE_VECS, c, b);
            continue;
        }
        for (int64_t j = 0; j < left; j += VEC_LANES)
            tile_strip(p, 1, c + j, b + j);
    }
}

#endif

/** Transposes an 8 × 8 block. */
VEC_INLINE void tile_transpose8(const float *src, int64_t src_stride, float *dst, int64_t dst_stride)
{
    __m256 r[8], t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = _mm256_loadu_ps(src + i * src_stride);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(dst + i * dst_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(dst + (i + 4) * dst_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

#endif
