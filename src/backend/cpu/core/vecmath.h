/* exp, tanh and the logistic function on vectors of FP32, within about 2 ulp; NaN stays NaN.
 *
 * Include only where vec.h may be included. Coefficients: Chebyshev fits of the remainders after the first terms.
 */
#ifndef MIXT_BACKEND_CPU_CORE_VECMATH_H
#define MIXT_BACKEND_CPU_CORE_VECMATH_H

#include "backend/cpu/core/vec.h"

/** x · 2^n for whole n in [-151, 129]. */
VEC_INLINE vec vec_scale(vec x, vec n)
{
#ifdef __AVX512F__
    return _mm512_scalef_ps(x, n);
#else
    // Two factors, as one alone could leave the range of exponents; only the second may round (into subnormals).
    __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1), rest = _mm256_sub_epi32(i, half);
    __m256i bias = _mm256_set1_epi32(127);
    vec a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vec b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(x, a), b);
#endif
}

VEC_INLINE vec vec_round(vec x)
{
#ifdef __AVX512F__
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#endif
}

VEC_INLINE vec vec_exp(vec x)
{
    x = vec_max(vec_set(-104.5f), vec_min(vec_set(89.0f), x)); // past these the result is 0 or infinity
    vec n = vec_round(vec_mul(x, vec_set(1.44269504f)));
    vec r = vec_fnma(n, vec_set(0.693145752f), x); // ln 2 in two parts: the first has zeros at its end, n · it is exact
    r = vec_fnma(n, vec_set(1.42860677e-6f), r);
    vec p = vec_fma(r, vec_set(0.0013933734f), vec_set(0.008363236f));
    p = vec_fma(p, r, vec_set(0.041666463f));
    p = vec_fma(p, r, vec_set(0.16666576f));
    p = vec_fma(p, r, vec_set(0.5f));
    p = vec_fma(p, vec_mul(r, r), r);
    return vec_scale(vec_add(p, vec_set(1)), n);
}

VEC_INLINE vec vec_sigmoid(vec x)
{
    vec one = vec_set(1);
    return vec_div(one, vec_add(one, vec_exp(vec_sub(vec_zero(), x))));
}

VEC_INLINE vec vec_tanh(vec x)
{
    vec u = vec_mul(x, x), one = vec_set(1);
    vec p = vec_fma(u, vec_set(0.002249326f), vec_set(-0.008305112f));
    p = vec_fma(p, u, vec_set(0.021756932f));
    p = vec_fma(p, u, vec_set(-0.053957775f));
    p = vec_fma(p, u, vec_set(0.13333297f));
    p = vec_fma(p, u, vec_set(-0.33333334f));
    vec small = vec_fma(vec_mul(p, u), x, x);
    vec size = vec_with_sign(x, one);
    vec large = vec_sub(one, vec_div(vec_set(2), vec_add(one, vec_exp(vec_add(size, size)))));
    return vec_if_below(x, vec_set(0.625f), small, vec_with_sign(large, x));
}

#endif
