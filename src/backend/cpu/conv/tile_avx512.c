/* AVX-512 tiles for FP32 units, and the weight gradient's. */
#include "backend/cpu/conv/tile_avx512.h"

#define FORWARD_CASE(count)                                                                                            \
    case count:                                                                                                        \
        if (t->cols > TILE_LANES)                                                                                      \
            tile_pixels(t, count, 2, false);                                                                           \
        else                                                                                                           \
            tile_pixels(t, count, 1, false);                                                                           \
        break;

void mixt__conv_forward_avx512(const mixt__conv_tile *t)
{
    switch (t->pixels) {
        TILE_EACH(FORWARD_CASE)
    }
}

TILE_INLINE __m512 load_grad(const void *grad, int64_t index, __mmask16 mask, const mixt_dtype dtype)
{
    if (dtype == MIXT_DTYPE_FP32)
        return _mm512_maskz_loadu_ps(mask, (const float *)grad + index);
    __m256i half = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)grad + index);
    if (dtype == MIXT_DTYPE_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    return _mm512_cvtph_ps(half);
}

TILE_INLINE void tile_taps(const mixt__conv_grad_tile *t, const int taps, const int vectors, const mixt_dtype dtype)
{
    __m512 sum[TILE_ROWS][2];
    __mmask16 m0 = lanes_mask(t->cols), m1 = lanes_mask(t->cols - TILE_LANES);
#pragma GCC unroll 14
    for (int r = 0; r < taps; r++)
        sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    for (int64_t y = 0; y < t->rows; y++) {
        const float *src = t->src + y * t->src_row;
        int64_t grad = y * t->grad_row;
#pragma GCC unroll 1
        for (int64_t x = t->pixels; x > 0; x--, src += t->src_pixel, grad += t->grad_pixel) {
            __m512 g0 = load_grad(t->grad, grad, m0, dtype);
            __m512 g1 = vectors > 1 ? load_grad(t->grad, grad + TILE_LANES, m1, dtype) : g0;
#pragma GCC unroll 14
            for (int r = 0; r < taps; r++) {
                __m512 a = _mm512_set1_ps(src[r]);
                sum[r][0] = _mm512_fmadd_ps(a, g0, sum[r][0]);
                if (vectors > 1)
                    sum[r][1] = _mm512_fmadd_ps(a, g1, sum[r][1]);
            }
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < taps; r++) {
        float *dst = t->sums + r * TILE_PANEL;
        _mm512_store_ps(dst, _mm512_add_ps(_mm512_load_ps(dst), sum[r][0]));
        if (vectors > 1)
            _mm512_store_ps(dst + TILE_LANES, _mm512_add_ps(_mm512_load_ps(dst + TILE_LANES), sum[r][1]));
    }
}

#define GRAD_CASE(count, dtype)                                                                                        \
    case count:                                                                                                        \
        if (t->cols > TILE_LANES)                                                                                      \
            tile_taps(t, count, 2, dtype);                                                                             \
        else                                                                                                           \
            tile_taps(t, count, 1, dtype);                                                                             \
        break;
#define GRAD_CASE_FP32(count) GRAD_CASE(count, MIXT_DTYPE_FP32)
#define GRAD_CASE_FP16(count) GRAD_CASE(count, MIXT_DTYPE_FP16)
#define GRAD_CASE_BF16(count) GRAD_CASE(count, MIXT_DTYPE_BF16)

static void grad_fp32(const mixt__conv_grad_tile *t)
{
    switch (t->taps) {
        TILE_EACH(GRAD_CASE_FP32)
    }
}

static void grad_fp16(const mixt__conv_grad_tile *t)
{
    switch (t->taps) {
        TILE_EACH(GRAD_CASE_FP16)
    }
}

static void grad_bf16(const mixt__conv_grad_tile *t)
{
    switch (t->taps) {
        TILE_EACH(GRAD_CASE_BF16)
    }
}

void mixt__conv_grad_avx512(const mixt__conv_grad_tile *t)
{
    if (t->grad_dtype == MIXT_DTYPE_FP32)
        grad_fp32(t);
    else if (t->grad_dtype == MIXT_DTYPE_FP16)
        grad_fp16(t);
    else
        grad_bf16(t);
}

const mixt__conv_tiles mixt__conv_tiles_avx512 = {
    TILE_ROWS, TILE_PANEL, mixt__conv_forward_avx512, NULL, mixt__conv_grad_avx512, &mixt__gemm_kernel_avx512, NULL};
