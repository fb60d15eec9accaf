/* AVX-512 tiles of 14 × 32: 28 sums, two vectors of outputs, one broadcast. Included by the files that compile them.
 *
 * There is one variant for each count of rows, so a row of 28, 14 or 7 pixels never computes pixels that do not exist.
 */
#ifndef MIXT_BACKEND_CPU_CONV_TILE_AVX512_H
#define MIXT_BACKEND_CPU_CONV_TILE_AVX512_H

#include "backend/cpu/conv/tile.h"

#include <immintrin.h>

enum { TILE_ROWS = 14, TILE_LANES = 16, TILE_PANEL = 32 };

#define TILE_INLINE static inline __attribute__((always_inline))

TILE_INLINE __mmask16 lanes_mask(int count)
{
    uint32_t mask = count >= TILE_LANES ? 0xffffu : count <= 0 ? 0u : (1u << count) - 1u;
    return (__mmask16)mask;
}

/** Nearest-even to BF16, NaN kept as a quiet NaN: the bits of src/num. */
TILE_INLINE __m256i round_bf16(__m512 value)
{
    __m512i bits = _mm512_castps_si512(value);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

TILE_INLINE void store_vector(void *dst, int64_t index, mixt_dtype dtype, __mmask16 mask, __m512 value)
{
    if (dtype == MIXT_DTYPE_FP32)
        _mm512_mask_storeu_ps((float *)dst + index, mask, value);
    else if (dtype == MIXT_DTYPE_BF16)
        _mm256_mask_storeu_epi16((uint16_t *)dst + index, mask, round_bf16(value));
    else
        _mm256_mask_storeu_epi16((uint16_t *)dst + index, mask,
                                 _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
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

/** Keeps the compiler from deriving one pointer from another, which would cost more registers than there are. */
#define TILE_OPAQUE(pointer) __asm__("" : "+r"(pointer))

TILE_INLINE void tile_pixels(const mixt__conv_tile *t, const int pixels, const int vectors, const bool pairs)
{
    __m512 sum[TILE_ROWS][2];
    __mmask16 m0 = lanes_mask(t->cols), m1 = lanes_mask(t->cols - TILE_LANES);
    __m512 bias0 = t->bias ? _mm512_maskz_loadu_ps(m0, t->bias) : _mm512_setzero_ps();
    __m512 bias1 = t->bias ? _mm512_maskz_loadu_ps(m1, t->bias + TILE_LANES) : _mm512_setzero_ps();
#pragma GCC unroll 14
    for (int r = 0; r < pixels; r++) {
        sum[r][0] = bias0;
        sum[r][1] = bias1;
    }
    // every third pixel has a pointer, those between are reached by one step register, scaled by 1 or 2
    const int64_t step = t->pixel_step;
    const float *panel = t->panel;
    for (int64_t i = 0; i < t->rows; i++) {
        const float *p0 = t->src + i * t->row_step, *p3 = p0 + 3 * step, *p6 = p0 + 6 * step, *p9 = p0 + 9 * step,
                    *p12 = p0 + 12 * step;
        TILE_OPAQUE(p3);
        TILE_OPAQUE(p6);
        TILE_OPAQUE(p9);
        TILE_OPAQUE(p12);
#pragma GCC unroll 1
        for (int64_t k = t->run; k > 0; k--, panel += TILE_PANEL, p0++, p3++, p6++, p9++, p12++) {
            __m512 b0 = _mm512_load_ps(panel), b1 = vectors > 1 ? _mm512_load_ps(panel + TILE_LANES) : b0;
#pragma GCC unroll 14
            for (int r = 0; r < pixels; r++) {
                const float *p = r < 3 ? p0 : r < 6 ? p3 : r < 9 ? p6 : r < 12 ? p9 : p12;
                __m512 a = _mm512_set1_ps(p[r % 3 * step]);
                sum[r][0] = multiply_add(sum[r][0], a, b0, pairs);
                if (vectors > 1)
                    sum[r][1] = multiply_add(sum[r][1], a, b1, pairs);
            }
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < pixels; r++) {
        store_vector(t->dst, r * t->dst_step, t->dst_dtype, m0, sum[r][0]);
        if (vectors > 1)
            store_vector(t->dst, r * t->dst_step + TILE_LANES, t->dst_dtype, m1, sum[r][1]);
    }
}

/** Calls X(rows) for each count of rows. */
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

#endif
