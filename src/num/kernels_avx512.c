/* Array conversions for AVX-512, up to 32 elements at a time; what is left over goes through masked vectors.
 *
 * BF16 is rounded with integers: vcvtneps2bf16 flushes subnormals to zero. As in the AVX2 file, each kernel is one
 * loop with the conversion of sixteen values passed in.
 */
#include "num/kernels.h"

#include "num/reference.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m256i to_16(__m512 value); // sixteen 16-bit codes
typedef __m128i to_8(__m512 value);  // sixteen 8-bit codes
typedef __m512 from_16(__m256i codes);
typedef __m512 from_8(__m128i codes);

INLINE __mmask16 is_nan(__m512 value)
{
    return _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
}

INLINE __m256i fp16_of(__m512 value)
{
    return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/** Adds half a step, less one where the kept part is even, to `bits`; NaN is made quiet instead. */
INLINE __m512i round_bits(__m512 value, int dropped)
{
    __m512i bits = _mm512_castps_si512(value);
    __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, (unsigned)dropped), _mm512_set1_epi32(1));
    __m512i half = _mm512_set1_epi32((1 << (dropped - 1)) - 1);
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, half), even);
    return _mm512_mask_or_epi32(rounded, is_nan(value), bits, _mm512_set1_epi32(FP32_QUIET));
}

INLINE __m256i bf16_of(__m512 value)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bits(value, 16), 16));
}

INLINE __m512 tf32_of(__m512 value)
{
    return _mm512_castsi512_ps(_mm512_and_si512(round_bits(value, 13), _mm512_set1_epi32(~0x1fff)));
}

/** minifloat_narrow_magnitude and the sign, for the two 8-bit formats. */
INLINE __m128i fp8_of(__m512 value, minifloat f)
{
    const int shift = 23 - f.mantissa_bits;
    __m512i bits = _mm512_castps_si512(value);
    __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(FP32_MAGNITUDE));
    __m512i rounded = _mm512_srli_epi32(round_bits(_mm512_castsi512_ps(magnitude), shift), (unsigned)shift);
    __m512i code = _mm512_sub_epi32(rounded, _mm512_set1_epi32((127 - f.bias) << f.mantissa_bits));
    __m512i magic = _mm512_set1_epi32((int)minifloat_magic(f));
    __m512 sum = _mm512_add_ps(_mm512_castsi512_ps(magnitude), _mm512_castsi512_ps(magic));
    __mmask16 small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32((127 + 1 - f.bias) << 23));
    code = _mm512_mask_sub_epi32(code, small, _mm512_castps_si512(sum), magic);
    __mmask16 past = _mm512_cmpge_epi32_mask(magnitude, _mm512_set1_epi32((int)f.overflow));
    code = _mm512_mask_mov_epi32(code, past, _mm512_set1_epi32((int)f.past_range));
    __m512i payload = _mm512_and_si512(rounded, _mm512_set1_epi32((1 << f.mantissa_bits) - 1));
    code = _mm512_mask_or_epi32(code, is_nan(value), payload, _mm512_set1_epi32((int)f.nan));
    __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80));
    return _mm512_cvtepi32_epi8(_mm512_or_si512(code, sign));
}

INLINE __m128i e4m3_of(__m512 value)
{
    return fp8_of(value, E4M3);
}

INLINE __m128i e5m2_of(__m512 value)
{
    return fp8_of(value, E5M2);
}

INLINE __m128i integer_of(__m512 value, float low, float high)
{
    __m512 number = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q), value); // NaN becomes 0
    __m512 clamped = _mm512_min_ps(_mm512_max_ps(number, _mm512_set1_ps(low)), _mm512_set1_ps(high));
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(clamped));
}

INLINE __m128i int8_of(__m512 value)
{
    return integer_of(value, INT8_MIN, INT8_MAX);
}

INLINE __m128i uint8_of(__m512 value)
{
    return integer_of(value, 0, UINT8_MAX);
}

INLINE __m512 fp16_to(__m256i codes)
{
    return _mm512_cvtph_ps(codes);
}

INLINE __m512 bf16_to(__m256i codes)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
}

/** E5M2 is the upper byte of an FP16. */
INLINE __m512 e5m2_to(__m128i codes)
{
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 8));
}

/** As FP16 with exponents 8 too small, so that the hardware deals with subnormals; then scaled and NaN put right. */
INLINE __m512 e4m3_to(__m128i codes)
{
    __m256i wide = _mm256_cvtepu8_epi16(codes);
    __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
    __mmask16 not_number = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7f));
    __m256i half = _mm256_mask_mov_epi16(_mm256_slli_epi16(magnitude, 7), not_number, _mm256_set1_epi16(0x7e00));
    __m256i sign = _mm256_slli_epi16(_mm256_andnot_si256(magnitude, wide), 8);
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_or_si256(half, sign)), _mm512_set1_ps(256));
}

INLINE __m512 int8_to(__m128i codes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
}

INLINE __m512 uint8_to(__m128i codes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(codes));
}

INLINE __mmask16 mask_of(int64_t left)
{
    return (__mmask16)((1u << (left < 16 ? left : 16)) - 1);
}

/** Elements before an aligned-to-its-element `dst` reaches a cache line, at most `count`. */
INLINE int64_t head_of(const void *dst, size_t size, int64_t count)
{
    int64_t head = (int64_t)((-(uintptr_t)dst & 63) / size);
    return head < count ? head : count;
}

INLINE void narrow_16(void *dst, const float *src, int64_t count, to_16 *of)
{
    char *out = dst;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(out + 2 * i), of(_mm512_loadu_ps(src + i)));
    if (i < count) {
        __mmask16 mask = mask_of(count - i);
        _mm256_mask_storeu_epi16(out + 2 * i, mask, of(_mm512_maskz_loadu_ps(mask, src + i)));
    }
}

INLINE void narrow_16_stream(void *dst, const float *src, int64_t count, to_16 *of)
{
    char *out = dst;
    int64_t i = head_of(dst, 2, count);
    narrow_16(dst, src, i, of);
    for (; i + 32 <= count; i += 32) { // a whole cache line
        __m512i low = _mm512_castsi256_si512(of(_mm512_loadu_ps(src + i)));
        __m512i line = _mm512_inserti64x4(low, of(_mm512_loadu_ps(src + i + 16)), 1);
        _mm512_stream_si512((__m512i *)(out + 2 * i), line);
    }
    narrow_16(out + 2 * i, src + i, count - i, of);
    _mm_sfence();
}

INLINE void widen_16(float *dst, const void *src, int64_t count, from_16 *to)
{
    const char *in = src;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(dst + i, to(_mm256_loadu_si256((const __m256i *)(in + 2 * i))));
    if (i < count) {
        __mmask16 mask = mask_of(count - i);
        _mm512_mask_storeu_ps(dst + i, mask, to(_mm256_maskz_loadu_epi16(mask, in + 2 * i)));
    }
}

INLINE void widen_16_stream(float *dst, const void *src, int64_t count, from_16 *to)
{
    const char *in = src;
    int64_t i = head_of(dst, 4, count);
    widen_16(dst, src, i, to);
    for (; i + 16 <= count; i += 16)
        _mm512_stream_ps(dst + i, to(_mm256_loadu_si256((const __m256i *)(in + 2 * i))));
    widen_16(dst + i, in + 2 * i, count - i, to);
    _mm_sfence();
}

INLINE void narrow_8(void *dst, const float *src, int64_t count, to_8 *of)
{
    char *out = dst;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm_storeu_si128((__m128i *)(out + i), of(_mm512_loadu_ps(src + i)));
    if (i < count) {
        __mmask16 mask = mask_of(count - i);
        _mm_mask_storeu_epi8(out + i, mask, of(_mm512_maskz_loadu_ps(mask, src + i)));
    }
}

INLINE void widen_8(float *dst, const void *src, int64_t count, from_8 *to)
{
    const char *in = src;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(dst + i, to(_mm_loadu_si128((const __m128i *)(in + i))));
    if (i < count) {
        __mmask16 mask = mask_of(count - i);
        _mm512_mask_storeu_ps(dst + i, mask, to(_mm_maskz_loadu_epi8(mask, in + i)));
    }
}

static void tf32_narrow_avx512(void *dst, const float *src, int64_t count)
{
    float *out = dst;
    for (int64_t i = 0; i < count; i += 16) {
        __mmask16 mask = mask_of(count - i);
        _mm512_mask_storeu_ps(out + i, mask, tf32_of(_mm512_maskz_loadu_ps(mask, src + i)));
    }
}

static void fp16_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_16(dst, src, count, fp16_of);
}

static void fp16_narrow_stream_avx512(void *dst, const float *src, int64_t count)
{
    narrow_16_stream(dst, src, count, fp16_of);
}

static void fp16_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_16(dst, src, count, fp16_to);
}

static void fp16_widen_stream_avx512(float *dst, const void *src, int64_t count)
{
    widen_16_stream(dst, src, count, fp16_to);
}

static void bf16_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_16(dst, src, count, bf16_of);
}

static void bf16_narrow_stream_avx512(void *dst, const float *src, int64_t count)
{
    narrow_16_stream(dst, src, count, bf16_of);
}

static void bf16_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_16(dst, src, count, bf16_to);
}

static void bf16_widen_stream_avx512(float *dst, const void *src, int64_t count)
{
    widen_16_stream(dst, src, count, bf16_to);
}

static void e4m3_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_8(dst, src, count, e4m3_of);
}

static void e4m3_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_8(dst, src, count, e4m3_to);
}

static void e5m2_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_8(dst, src, count, e5m2_of);
}

static void e5m2_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_8(dst, src, count, e5m2_to);
}

static void int8_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_8(dst, src, count, int8_of);
}

static void int8_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_8(dst, src, count, int8_to);
}

static void uint8_narrow_avx512(void *dst, const float *src, int64_t count)
{
    narrow_8(dst, src, count, uint8_of);
}

static void uint8_widen_avx512(float *dst, const void *src, int64_t count)
{
    widen_8(dst, src, count, uint8_to);
}

const mixt__num_kernels mixt__num_kernels_avx512 = {
    .widen = {[MIXT_DTYPE_FP16] = fp16_widen_avx512,
              [MIXT_DTYPE_BF16] = bf16_widen_avx512,
              [MIXT_DTYPE_FP8_E4M3] = e4m3_widen_avx512,
              [MIXT_DTYPE_FP8_E5M2] = e5m2_widen_avx512,
              [MIXT_DTYPE_INT8] = int8_widen_avx512,
              [MIXT_DTYPE_UINT8] = uint8_widen_avx512},
    .narrow = {[MIXT_DTYPE_TF32] = tf32_narrow_avx512,
               [MIXT_DTYPE_FP16] = fp16_narrow_avx512,
               [MIXT_DTYPE_BF16] = bf16_narrow_avx512,
               [MIXT_DTYPE_FP8_E4M3] = e4m3_narrow_avx512,
               [MIXT_DTYPE_FP8_E5M2] = e5m2_narrow_avx512,
               [MIXT_DTYPE_INT8] = int8_narrow_avx512,
               [MIXT_DTYPE_UINT8] = uint8_narrow_avx512},
    .widen_stream = {[MIXT_DTYPE_FP16] = fp16_widen_stream_avx512, [MIXT_DTYPE_BF16] = bf16_widen_stream_avx512},
    .narrow_stream = {[MIXT_DTYPE_FP16] = fp16_narrow_stream_avx512, [MIXT_DTYPE_BF16] = bf16_narrow_stream_avx512},
};
