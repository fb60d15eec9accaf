/* AVX2 tiles of 6 × 16: twelve sums, two vectors of outputs, one broadcast. */
#include "backend/cpu/conv/tile.h"

#include <immintrin.h>
#include <string.h>

enum { TILE_ROWS = 6, TILE_LANES = 8, TILE_PANEL = 16 };

#define TILE_INLINE static inline __attribute__((always_inline))
#define TILE_EACH(X) X(1) X(2) X(3) X(4) X(5) X(6)

/** Nearest-even to BF16 in each 32-bit lane's low half, NaN kept as a quiet NaN: the bits of src/num. */
TILE_INLINE __m128i round_bf16(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    rounded = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}

/** The first `count` lanes (8 or fewer) in the format of dst. */
TILE_INLINE void store_vector(void *dst, int64_t index, mixt_dtype dtype, int count, __m256 value)
{
    size_t size = dtype == MIXT_DTYPE_FP32 ? 4 : 2;
    char *to = (char *)dst + (size_t)index * size, part[32] = {0};
    char *lanes = count >= TILE_LANES ? to : part;
    if (dtype == MIXT_DTYPE_FP32)
        _mm256_storeu_ps((float *)lanes, value);
    else if (dtype == MIXT_DTYPE_BF16)
        _mm_storeu_si128((__m128i *)lanes, round_bf16(value));
    else
        _mm_storeu_si128((__m128i *)lanes, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    if (count > 0 && count < TILE_LANES)
        memcpy(to, part, (size_t)count * size);
}

TILE_INLINE __m256 load_bias(const float *bias, int count)
{
    float lanes[TILE_LANES] = {0};
    for (int i = 0; bias && i < count && i < TILE_LANES; i++)
        lanes[i] = bias[i];
    return _mm256_loadu_ps(lanes);
}

TILE_INLINE void tile_pixels(const mixt__conv_tile *t, const int pixels)
{
    __m256 sum[TILE_ROWS][2];
    __m256 bias0 = load_bias(t->bias, t->cols);
    __m256 bias1 = load_bias(t->bias ? t->bias + TILE_LANES : NULL, t->cols - TILE_LANES);
#pragma GCC unroll 6
    for (int r = 0; r < pixels; r++) {
        sum[r][0] = bias0;
        sum[r][1] = bias1;
    }
    const int64_t step = t->pixel_step;
    const float *panel = t->panel;
    for (int64_t i = 0; i < t->rows; i++) {
        const float *p0 = t->src + i * t->row_step, *p3 = p0 + 3 * step;
        __asm__("" : "+r"(p3)); // two pointers and one step register reach all pixels
        for (int64_t k = t->run; k > 0; k--, panel += TILE_PANEL, p0++, p3++) {
            __m256 b0 = _mm256_load_ps(panel), b1 = _mm256_load_ps(panel + TILE_LANES);
#pragma GCC unroll 6
            for (int r = 0; r < pixels; r++) {
                __m256 a = _mm256_broadcast_ss((r < 3 ? p0 : p3) + r % 3 * step);
                sum[r][0] = _mm256_fmadd_ps(a, b0, sum[r][0]);
                sum[r][1] = _mm256_fmadd_ps(a, b1, sum[r][1]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < pixels; r++) {
        store_vector(t->dst, r * t->dst_step, t->dst_dtype, t->cols, sum[r][0]);
        store_vector(t->dst, r * t->dst_step + TILE_LANES, t->dst_dtype, t->cols - TILE_LANES, sum[r][1]);
    }
}

#define FORWARD_CASE(count)                                                                                            \
    case count:                                                                                                        \
        tile_pixels(t, count);                                                                                         \
        break;

static void forward(const mixt__conv_tile *t)
{
    switch (t->pixels) {
        TILE_EACH(FORWARD_CASE)
    }
}

/** Eight outputs as FP32; with `count` below 8 the others are zero and not read. */
TILE_INLINE __m256 load_grad(const void *grad, int64_t index, int count, const mixt_dtype dtype)
{
    char lanes[32] = {0};
    size_t size = dtype == MIXT_DTYPE_FP32 ? 4 : 2;
    const char *from = (const char *)grad + (size_t)index * size;
    if (count < TILE_LANES) {
        memcpy(lanes, from, count > 0 ? (size_t)count * size : 0);
        from = lanes;
    }
    if (dtype == MIXT_DTYPE_FP32)
        return _mm256_loadu_ps((const float *)from);
    __m128i half = _mm_loadu_si128((const __m128i *)from);
    if (dtype == MIXT_DTYPE_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    return _mm256_cvtph_ps(half);
}

TILE_INLINE void tile_taps(const mixt__conv_grad_tile *t, const int taps, const mixt_dtype dtype)
{
    __m256 sum[TILE_ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < taps; r++)
        sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    for (int64_t y = 0; y < t->rows; y++) {
        const float *src = t->src + y * t->src_row;
        int64_t grad = y * t->grad_row;
        for (int64_t x = t->pixels; x > 0; x--, src += t->src_pixel, grad += t->grad_pixel) {
            __m256 g0 = load_grad(t->grad, grad, t->cols, dtype);
            __m256 g1 = load_grad(t->grad, grad + TILE_LANES, t->cols - TILE_LANES, dtype);
#pragma GCC unroll 6
            for (int r = 0; r < taps; r++) {
                __m256 a = _mm256_broadcast_ss(src + r);
                sum[r][0] = _mm256_fmadd_ps(a, g0, sum[r][0]);
                sum[r][1] = _mm256_fmadd_ps(a, g1, sum[r][1]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < taps; r++) {
        float *dst = t->sums + r * TILE_PANEL;
        _mm256_store_ps(dst, _mm256_add_ps(_mm256_load_ps(dst), sum[r][0]));
        _mm256_store_ps(dst + TILE_LANES, _mm256_add_ps(_mm256_load_ps(dst + TILE_LANES), sum[r][1]));
    }
}

#define GRAD_CASE(count)                                                                                               \
    case count:                                                                                                        \
        if (t->grad_dtype == MIXT_DTYPE_FP32)                                                                          \
            tile_taps(t, count, MIXT_DTYPE_FP32);                                                                      \
        else if (t->grad_dtype == MIXT_DTYPE_BF16)                                                                     \
            tile_taps(t, count, MIXT_DTYPE_BF16);                                                                      \
        else                                                                                                           \
            tile_taps(t, count, MIXT_DTYPE_FP16);                                                                      \
        break;

static void grad(const mixt__conv_grad_tile *t)
{
    switch (t->taps) {
        TILE_EACH(GRAD_CASE)
    }
}

const mixt__conv_tiles mixt__conv_tiles_avx2 = {TILE_ROWS, TILE_PANEL, forward, NULL, grad, &mixt__gemm_kernel_avx2,
                                                NULL};
