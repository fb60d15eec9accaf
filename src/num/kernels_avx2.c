/* Array conversions for AVX2 and F16C, up to 16 elements at a time; what is left over goes through the scalar kernel.
 *
 * A kernel is one loop (always inlined) with the conversion of eight values passed in, so that the loops, their
 * tails and their streaming forms are written once.
 */
#include "num/kernels.h"

#include "num/reference.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m128i to_16(__m256 value);   // eight 16-bit codes
typedef __m256i to_8(__m256 value);    // eight 8-bit codes in 32-bit lanes
typedef __m256 from_16(__m128i codes); // eight 16-bit codes
typedef __m256 from_8(__m128i codes);  // the low eight bytes

INLINE __m256i is_nan(__m256 value)
{
    return _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
}

INLINE __m256i pick(__m256i no, __m256i yes, __m256i mask)
{
    return _mm256_blendv_epi8(no, yes, mask);
}

INLINE __m128i fp16_of(__m256 value)
{
    return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE __m128i bf16_of(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), even);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(FP32_QUIET));
    __m256i codes = _mm256_srli_epi32(pick(rounded, quiet, is_nan(value)), 16);
    __m256i packed = _mm256_packus_epi32(codes, codes); // within each half: permute the halves together
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

INLINE __m256 tf32_of(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 13), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0xfff)), even);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(FP32_QUIET));
    __m256i chosen = pick(rounded, quiet, is_nan(value));
    return _mm256_castsi256_ps(_mm256_and_si256(chosen, _mm256_set1_epi32(~0x1fff)));
}

/** minifloat_narrow_magnitude and the sign, for the two 8-bit formats. */
INLINE __m256i fp8_of(__m256 value, minifloat f)
{
    const int shift = 23 - f.mantissa_bits;
    __m256i bits = _mm256_castps_si256(value);
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(FP32_MAGNITUDE));
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(magnitude, shift), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32((1 << (shift - 1)) - 1)), even);
    __m256i normal =
        _mm256_sub_epi32(_mm256_srli_epi32(rounded, shift), _mm256_set1_epi32((127 - f.bias) << f.mantissa_bits));
    __m256i magic = _mm256_set1_epi32((int)minifloat_magic(f));
    __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_castsi256_ps(magic));
    __m256i subnormal = _mm256_sub_epi32(_mm256_castps_si256(sum), magic);
    __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32((127 + 1 - f.bias) << 23), magnitude);
    __m256i code = pick(normal, subnormal, small);
    __m256i past = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32((int)f.overflow - 1));
    code = pick(code, _mm256_set1_epi32((int)f.past_range), past);
    __m256i payload =
        _mm256_and_si256(_mm256_srli_epi32(magnitude, shift), _mm256_set1_epi32((1 << f.mantissa_bits) - 1));
    code = pick(code, _mm256_or_si256(payload, _mm256_set1_epi32((int)f.nan)), is_nan(value));
    return _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80)));
}

INLINE __m256i e4m3_of(__m256 value)
{
    return fp8_of(value, E4M3);
}

INLINE __m256i e5m2_of(__m256 value)
{
    return fp8_of(value, E5M2);
}

INLINE __m256i integer_of(__m256 value, float low, float high)
{
    __m256 number = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q)); // NaN becomes 0
    __m256 clamped = _mm256_min_ps(_mm256_max_ps(number, _mm256_set1_ps(low)), _mm256_set1_ps(high));
    return _mm256_and_si256(_mm256_cvtps_epi32(clamped), _mm256_set1_epi32(0xff));
}

INLINE __m256i int8_of(__m256 value)
{
    return integer_of(value, INT8_MIN, INT8_MAX);
}

INLINE __m256i uint8_of(__m256 value)
{
    return integer_of(value, 0, UINT8_MAX);
}

INLINE __m256 fp16_to(__m128i codes)
{
    return _mm256_cvtph_ps(codes);
}

INLINE __m256 bf16_to(__m128i codes)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}

/** E5M2 is the upper byte of an FP16. */
INLINE __m256 e5m2_to(__m128i codes)
{
    return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), codes));
}

/** As FP16 with exponents 8 too small, so that F16C deals with subnormals; then scaled and NaN put right. */
INLINE __m256 e4m3_to(__m128i codes)
{
    __m128i upper = _mm_unpacklo_epi8(_mm_setzero_si128(), codes);
    __m128i magnitude = _mm_srli_epi16(_mm_and_si128(upper, _mm_set1_epi16(0x7f00)), 1);
    __m128i sign = _mm_and_si128(upper, _mm_set1_epi16((short)0x8000));
    __m128i not_number = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x3f80));
    __m128i half = _mm_or_si128(sign, _mm_blendv_epi8(magnitude, _mm_set1_epi16(0x7e00), not_number));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256));
}

INLINE __m256 int8_to(__m128i codes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
}

INLINE __m256 uint8_to(__m128i codes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes));
}

/** Elements before an aligned-to-its-element `dst` reaches a 32-byte boundary, at most `count`. */
INLINE int64_t head_of(const void *dst, size_t size, int64_t count)
{
    int64_t head = (int64_t)((-(uintptr_t)dst & 31) / size);
    return head < count ? head : count;
}

INLINE void narrow_16(mixt_dtype dtype, void *dst, const float *src, int64_t count, to_16 *of, bool stream)
{
    mixt__narrow_fn *rest = mixt__num_kernels_scalar.narrow[dtype];
    char *out = dst;
    int64_t i = stream ? head_of(dst, 2, count) : 0;
    if (i)
        rest(dst, src, i);
    for (; i + 16 <= count; i += 16) {
        __m256i codes = _mm256_set_m128i(of(_mm256_loadu_ps(src + i + 8)), of(_mm256_loadu_ps(src + i)));
        if (stream)
            _mm256_stream_si256((__m256i *)(out + 2 * i), codes);
        else
            _mm256_storeu_si256((__m256i *)(out + 2 * i), codes);
    }
    if (i < count)
        rest(out + 2 * i, src + i, count - i);
    if (stream)
        _mm_sfence();
}

INLINE void widen_16(mixt_dtype dtype, float *dst, const void *src, int64_t count, from_16 *to, bool stream)
{
    mixt__widen_fn *rest = mixt__num_kernels_scalar.widen[dtype];
    const char *in = src;
    int64_t i = stream ? head_of(dst, 4, count) : 0;
    if (i)
        rest(dst, src, i);
    for (; i + 8 <= count; i += 8) {
        __m256 value = to(_mm_loadu_si128((const __m128i *)(in + 2 * i)));
        if (stream)
            _mm256_stream_ps(dst + i, value);
        else
            _mm256_storeu_ps(dst + i, value);
    }
    if (i < count)
        rest(dst + i, in + 2 * i, count - i);
    if (stream)
        _mm_sfence();
}

INLINE void narrow_8(mixt_dtype dtype, void *dst, const float *src, int64_t count, to_8 *of)
{
    char *out = dst;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i low = of(_mm256_loadu_ps(src + i)), high = of(_mm256_loadu_ps(src + i + 8));
        __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
        __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(out + i), bytes);
    }
    if (i < count)
        mixt__num_kernels_scalar.narrow[dtype](out + i, src + i, count - i);
}

INLINE void widen_8(mixt_dtype dtype, float *dst, const void *src, int64_t count, from_8 *to)
{
    const char *in = src;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i, to(_mm_loadl_epi64((const __m128i *)(in + i))));
    if (i < count)
        mixt__num_kernels_scalar.widen[dtype](dst + i, in + i, count - i);
}

static void tf32_narrow_avx2(void *dst, const float *src, int64_t count)
{
    float *out = dst;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, tf32_of(_mm256_loadu_ps(src + i)));
    if (i < count)
        mixt__num_kernels_scalar.narrow[MIXT_DTYPE_TF32](out + i, src + i, count - i);
}

static void fp16_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_16(MIXT_DTYPE_FP16, dst, src, count, fp16_of, false);
}

static void fp16_narrow_stream_avx2(void *dst, const float *src, int64_t count)
{
    narrow_16(MIXT_DTYPE_FP16, dst, src, count, fp16_of, true);
}

static void fp16_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_16(MIXT_DTYPE_FP16, dst, src, count, fp16_to, false);
}

static void fp16_widen_stream_avx2(float *dst, const void *src, int64_t count)
{
    widen_16(MIXT_DTYPE_FP16, dst, src, count, fp16_to, true);
}

static void bf16_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_16(MIXT_DTYPE_BF16, dst, src, count, bf16_of, false);
}

static void bf16_narrow_stream_avx2(void *dst, const float *src, int64_t count)
{
    narrow_16(MIXT_DTYPE_BF16, dst, src, count, bf16_of, true);
}

static void bf16_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_16(MIXT_DTYPE_BF16, dst, src, count, bf16_to, false);
}

static void bf16_widen_stream_avx2(float *dst, const void *src, int64_t count)
{
    widen_16(MIXT_DTYPE_BF16, dst, src, count, bf16_to, true);
}

static void e4m3_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_8(MIXT_DTYPE_FP8_E4M3, dst, src, count, e4m3_of);
}

static void e4m3_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_8(MIXT_DTYPE_FP8_E4M3, dst, src, count, e4m3_to);
}

static void e5m2_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_8(MIXT_DTYPE_FP8_E5M2, dst, src, count, e5m2_of);
}

static void e5m2_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_8(MIXT_DTYPE_FP8_E5M2, dst, src, count, e5m2_to);
}

static void int8_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_8(MIXT_DTYPE_INT8, dst, src, count, int8_of);
}

static void int8_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_8(MIXT_DTYPE_INT8, dst, src, count, int8_to);
}

static void uint8_narrow_avx2(void *dst, const float *src, int64_t count)
{
    narrow_8(MIXT_DTYPE_UINT8, dst, src, count, uint8_of);
}

static void uint8_widen_avx2(float *dst, const void *src, int64_t count)
{
    widen_8(MIXT_DTYPE_UINT8, dst, src, count, uint8_to);
}

const mixt__num_kernels mixt__num_kernels_avx2 = {
    .widen = {[MIXT_DTYPE_FP16] = fp16_widen_avx2,
              [MIXT_DTYPE_BF16] = bf16_widen_avx2,
              [MIXT_DTYPE_FP8_E4M3] = e4m3_widen_avx2,
              [MIXT_DTYPE_FP8_E5M2] = e5m2_widen_avx2,
              [MIXT_DTYPE_INT8] = int8_widen_avx2,
              [MIXT_DTYPE_UINT8] = uint8_widen_avx2},
    .narrow = {[MIXT_DTYPE_TF32] = tf32_narrow_avx2,
               [MIXT_DTYPE_FP16] = fp16_narrow_avx2,
               [MIXT_DTYPE_BF16] = bf16_narrow_avx2,
               [MIXT_DTYPE_FP8_E4M3] = e4m3_narrow_avx2,
               [MIXT_DTYPE_FP8_E5M2] = e5m2_narrow_avx2,
               [MIXT_DTYPE_INT8] = int8_narrow_avx2,
               [MIXT_DTYPE_UINT8] = uint8_narrow_avx2},
    .widen_stream = {[MIXT_DTYPE_FP16] = fp16_widen_stream_avx2, [MIXT_DTYPE_BF16] = bf16_widen_stream_avx2},
    .narrow_stream = {[MIXT_DTYPE_FP16] = fp16_narrow_stream_avx2, [MIXT_DTYPE_BF16] = bf16_narrow_stream_avx2},
};
