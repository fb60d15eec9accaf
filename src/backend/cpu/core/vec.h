/* FP32 vectors for files compiled for AVX2 or AVX-512: one spelling, so that a kernel is written once.
 *
 * Include only from sources that cmake/isa.cmake compiles for AVX2 and more. Loads and stores take any alignment and
 * convert from and to the format that `dtype` names; callers pass a constant there, so the choice costs nothing.
 * Narrowing rounds to nearest even.
 */
#ifndef MIXT_BACKEND_CPU_CORE_VEC_H
#define MIXT_BACKEND_CPU_CORE_VEC_H

#include "backend/backend.h"
#include "base/isa_at.h"

#include <immintrin.h>
#include <string.h>

#define VEC_INLINE static inline __attribute__((always_inline, unused))

#ifdef __AVX512F__
enum { VEC_LANES = 16 };
typedef __m512 vec;
typedef __m256i vec_half; // the bits of a vector of 16-bit numbers

#define VEC_F(name) _mm512_##name##_ps
#else
enum { VEC_LANES = 8 };
typedef __m256 vec;
typedef __m128i vec_half;

#define VEC_F(name) _mm256_##name##_ps
#endif

/** A candidate's answer: the CPU has this instruction set, and input 0 is in a format that vec_get reads. */
static inline bool vec_supports(const mixt__call *call, const char **reason)
{
    mixt_dtype dtype = call->in[0].dtype;
    if (mixt__isa_level() < MIXT_AT_LEVEL) {
        *reason = MIXT_AT_REASON;
        return false;
    }
    if (dtype != MIXT_DTYPE_FP32 && dtype != MIXT_DTYPE_FP16 && dtype != MIXT_DTYPE_BF16) {
        *reason = "only FP32, FP16 and BF16";
        return false;
    }
    return true;
}

VEC_INLINE vec vec_zero(void)
{
    return VEC_F(setzero)();
}

VEC_INLINE vec vec_set(float x)
{
    return VEC_F(set1)(x);
}

VEC_INLINE vec vec_load(const float *p)
{
    return VEC_F(loadu)(p);
}

VEC_INLINE void vec_store(float *p, vec x)
{
    VEC_F(storeu)(p, x);
}

VEC_INLINE vec vec_add(vec a, vec b)
{
    return VEC_F(add)(a, b);
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
    return VEC_F(sub)(a, b);
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
    return VEC_F(mul)(a, b);
}

VEC_INLINE vec vec_div(vec a, vec b)
{
    return VEC_F(div)(a, b);
}

/** a > b ? a : b, and b when either is NaN. */
VEC_INLINE vec vec_max(vec a, vec b)
{
    return VEC_F(max)(a, b);
}

/** a < b ? a : b, and b when either is NaN. */
VEC_INLINE vec vec_min(vec a, vec b)
{
    return VEC_F(min)(a, b);
}

/** a · b + c, rounded once. */
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return VEC_F(fmadd)(a, b, c);
}

/** c - a · b, rounded once. */
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    return VEC_F(fnmadd)(a, b, c);
}

#ifdef __AVX512F__

VEC_INLINE __mmask16 vec_first(int64_t count)
{
    return (__mmask16)((1u << count) - 1);
}

/** The first `count` lanes of x, `fill` in the others; 0 ≤ count ≤ lanes. */
VEC_INLINE vec vec_keep(vec x, int64_t count, vec fill)
{
    return _mm512_mask_blend_ps(vec_first(count), fill, x);
}

typedef __mmask16 vec_mask;

VEC_INLINE vec_mask vec_mask_none(void)
{
    return 0;
}

/** Lanes where x equals y or is NaN. */
VEC_INLINE vec_mask vec_equal_or_nan(vec x, vec y)
{
    return (vec_mask)(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ) | _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q));
}

/** Lanes where x is above 0, which NaN is not. */
VEC_INLINE vec_mask vec_above_zero(vec x)
{
    return _mm512_cmp_ps_mask(x, vec_zero(), _CMP_GT_OQ);
}

VEC_INLINE vec_mask vec_mask_or(vec_mask a, vec_mask b)
{
    return (vec_mask)(a | b);
}

/** a and not b. */
VEC_INLINE vec_mask vec_mask_without(vec_mask a, vec_mask b)
{
    return (vec_mask)(a & ~b);
}

/** x where the mask is set, else 0. */
VEC_INLINE vec vec_where(vec_mask mask, vec x)
{
    return _mm512_maskz_mov_ps(mask, x);
}

/** a where a is NaN, else b. */
VEC_INLINE vec vec_nan_or(vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), b, a);
}

/** a where |x| < bound, else b. */
VEC_INLINE vec vec_if_below(vec x, vec bound, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(_mm512_abs_ps(x), bound, _CMP_LT_OQ), b, a);
}

/** |x| with the sign of s. */
VEC_INLINE vec vec_with_sign(vec x, vec s)
{
    __m512i sign = _mm512_and_si512(_mm512_castps_si512(s), _mm512_set1_epi32((int)0x80000000u));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(_mm512_abs_ps(x)), sign));
}

VEC_INLINE float vec_sum(vec x)
{
    return _mm512_reduce_add_ps(x);
}

VEC_INLINE float vec_largest(vec x)
{
    return _mm512_reduce_max_ps(x);
}

VEC_INLINE vec vec_from_half(vec_half h, mixt_dtype dtype)
{
    if (dtype == MIXT_DTYPE_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
    return _mm512_cvtph_ps(h);
}

VEC_INLINE vec_half vec_to_half(vec x, mixt_dtype dtype)
{
    if (dtype != MIXT_DTYPE_BF16)
        return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512i u = _mm512_castps_si512(x), high = _mm512_srli_epi32(u, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __mmask16 nan =
        _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); // rounding up could turn NaN into infinity: make it quiet instead
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(r, nan, high, _mm512_set1_epi32(0x40)));
}

#else

VEC_INLINE __m256i vec_first(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VEC_INLINE vec vec_keep(vec x, int64_t count, vec fill)
{
    return _mm256_blendv_ps(fill, x, _mm256_castsi256_ps(vec_first(count)));
}

typedef __m256 vec_mask; // all bits of a lane

VEC_INLINE vec_mask vec_mask_none(void)
{
    return _mm256_setzero_ps();
}

VEC_INLINE vec_mask vec_equal_or_nan(vec x, vec y)
{
    return _mm256_or_ps(_mm256_cmp_ps(x, y, _CMP_EQ_OQ), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

VEC_INLINE vec_mask vec_above_zero(vec x)
{
    return _mm256_cmp_ps(x, vec_zero(), _CMP_GT_OQ);
}

VEC_INLINE vec_mask vec_mask_or(vec_mask a, vec_mask b)
{
    return _mm256_or_ps(a, b);
}

VEC_INLINE vec_mask vec_mask_without(vec_mask a, vec_mask b)
{
    return _mm256_andnot_ps(b, a);
}

VEC_INLINE vec vec_where(vec_mask mask, vec x)
{
    return _mm256_and_ps(mask, x);
}

VEC_INLINE vec vec_nan_or(vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

VEC_INLINE vec vec_if_below(vec x, vec bound, vec a, vec b)
{
    vec size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(size, bound, _CMP_LT_OQ));
}

VEC_INLINE vec vec_with_sign(vec x, vec s)
{
    vec sign = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(sign, x), _mm256_and_ps(sign, s));
}

VEC_INLINE float vec_sum(vec x)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

VEC_INLINE float vec_largest(vec x)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

VEC_INLINE vec vec_from_half(vec_half h, mixt_dtype dtype)
{
    if (dtype == MIXT_DTYPE_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
    return _mm256_cvtph_ps(h);
}

VEC_INLINE vec_half vec_to_half(vec x, mixt_dtype dtype)
{
    if (dtype != MIXT_DTYPE_BF16)
        return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256i u = _mm256_castps_si256(x), high = _mm256_srli_epi32(u, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i r = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    r = _mm256_blendv_epi8(r, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}

#endif

/** Elements [i, i + lanes) of an array of FP32, FP16 or BF16. */
VEC_INLINE vec vec_get(const void *array, mixt_dtype dtype, int64_t i)
{
    vec_half h;
    if (dtype == MIXT_DTYPE_FP32)
        return vec_load((const float *)array + i);
    memcpy(&h, (const uint16_t *)array + i, sizeof h);
    return vec_from_half(h, dtype);
}

VEC_INLINE void vec_put(void *array, mixt_dtype dtype, int64_t i, vec x)
{
    if (dtype == MIXT_DTYPE_FP32) {
        vec_store((float *)array + i, x);
        return;
    }
    vec_half h = vec_to_half(x, dtype);
    memcpy((uint16_t *)array + i, &h, sizeof h);
}

/** Whole vectors only, of values that the format has exactly: BF16 needs no rounding then. */
VEC_INLINE void vec_put_exact(void *array, mixt_dtype dtype, int64_t i, vec x)
{
    if (dtype != MIXT_DTYPE_BF16) {
        vec_put(array, dtype, i, x);
        return;
    }
#ifdef __AVX512F__
    vec_half h = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x), 16));
#else
    __m256i u = _mm256_srli_epi32(_mm256_castps_si256(x), 16);
    vec_half h = _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
#endif
    memcpy((uint16_t *)array + i, &h, sizeof h);
}

#ifdef __AVX512F__

/** vec_get and vec_put for the first `count` ≤ lanes elements; the other lanes are 0, and what lies there is not
 *  touched. */
VEC_INLINE vec vec_get_part(const void *array, mixt_dtype dtype, int64_t i, int64_t count)
{
    if (count == VEC_LANES)
        return vec_get(array, dtype, i);
    if (dtype == MIXT_DTYPE_FP32)
        return _mm512_maskz_loadu_ps(vec_first(count), (const float *)array + i);
    return vec_from_half(_mm256_maskz_loadu_epi16(vec_first(count), (const uint16_t *)array + i), dtype);
}

VEC_INLINE void vec_put_part(void *array, mixt_dtype dtype, int64_t i, int64_t count, vec x)
{
    if (count == VEC_LANES)
        vec_put(array, dtype, i, x);
    else if (dtype == MIXT_DTYPE_FP32)
        _mm512_mask_storeu_ps((float *)array + i, vec_first(count), x);
    else
        _mm256_mask_storeu_epi16((uint16_t *)array + i, vec_first(count), vec_to_half(x, dtype));
}

#else

/** As with AVX-512, but numbers of 16 bits go through a buffer. */
VEC_INLINE vec vec_get_part(const void *array, mixt_dtype dtype, int64_t i, int64_t count)
{
    uint16_t buffer[VEC_LANES] = {0};
    if (count == VEC_LANES)
        return vec_get(array, dtype, i);
    if (dtype == MIXT_DTYPE_FP32)
        return _mm256_maskload_ps((const float *)array + i, vec_first(count));
    memcpy(buffer, (const uint16_t *)array + i, (size_t)count * sizeof *buffer);
    return vec_get(buffer, dtype, 0);
}

VEC_INLINE void vec_put_part(void *array, mixt_dtype dtype, int64_t i, int64_t count, vec x)
{
    uint16_t buffer[VEC_LANES];
    if (count == VEC_LANES) {
        vec_put(array, dtype, i, x);
        return;
    }
    if (dtype == MIXT_DTYPE_FP32) {
        _mm256_maskstore_ps((float *)array + i, vec_first(count), x);
        return;
    }
    vec_put(buffer, dtype, 0, x);
    memcpy((uint16_t *)array + i, buffer, (size_t)count * sizeof *buffer);
}

#endif

#endif
