/* exp, log, tanh and what is made of them, for single FP32 values, written so that a loop over them becomes vector
 * code.
 *
 * No branches and no library calls: selects, integer arithmetic on bit patterns, and FMA by name. So every
 * instruction-set level gives the same bits. Errors stay below 2.5 ulp where nothing else is said; subnormal results
 * are kept, NaN goes through, infinities give their limits. The coefficients are minimax fits (Remez) on the reduced
 * range.
 */
#ifndef MIXT_BACKEND_CPU_CORE_MATHS_H
#define MIXT_BACKEND_CPU_CORE_MATHS_H

#include "num/num.h"

#include <math.h>

#define MIXT__INLINE static inline __attribute__((always_inline))

/** Adding it to |v| < 2^22 rounds v to an integer, which then stands in the low bits of the sum. */
#define MATHS_ROUNDER 0x1.8p23f
#define MATHS_LN2_HIGH 0x1.62e43p-1f
#define MATHS_LN2_LOW -0x1.05c61p-29f

/** x = n·ln 2 + r: gives e^r - 1, and 2^(n + offset - 127) in *power; offset must keep that a normal number. */
MIXT__INLINE float mixt__maths_exp_reduced(float x, float offset, float *power)
{
    float sum = fmaf(x, 0x1.715476p0f, MATHS_ROUNDER + offset);
    float n = sum - (MATHS_ROUNDER + offset);
    float r = fmaf(n, -MATHS_LN2_LOW, fmaf(n, -MATHS_LN2_HIGH, x));
    float q = fmaf(r, 0x1.6bec06p-10f, 0x1.122776p-7f);
    q = fmaf(r, q, 0x1.555674p-5f);
    q = fmaf(r, q, 0x1.5554bp-3f);
    q = fmaf(r, q, 0x1.fffffep-2f);
    *power = mixt__fp32_of_bits(mixt__fp32_bits(sum) << 23); // the rounder's own bits leave at the top
    return fmaf(q, r * r, r);
}

/** e^x for x <= 0. The power of two is made 2^24 too large and the result put right, so that subnormals round once. */
MIXT__INLINE float mixt__maths_exp_nonpositive(float x)
{
    float power;
    x = x < -104.0f ? -104.0f : x;
    float t = mixt__maths_exp_reduced(x, 127 + 24, &power);
    return (1.0f + t) * power * 0x1p-24f;
}

MIXT__INLINE float mixt__maths_exp(float x)
{
    float power;
    bool negative = x < 0.0f;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x; // past the largest finite result: the last product gives infinity
    float t = mixt__maths_exp_reduced(x, negative ? 127 + 24 : 127 - 24, &power);
    return (1.0f + t) * power * (negative ? 0x1p-24f : 0x1p24f);
}

/** From e^(-2|x|) - 1, which keeps its relative accuracy down to x = 0. */
MIXT__INLINE float mixt__maths_tanh(float x)
{
    float power, z = -2.0f * fabsf(x);
    z = z < -20.0f ? -20.0f : z; // 1 to the last bit from there on
    float t = mixt__maths_exp_reduced(z, 127, &power);
    float m = fmaf(power, t, power - 1.0f);
    return copysignf(m / (2.0f + m), x);
}

MIXT__INLINE float mixt__maths_log(float x)
{
    bool tiny = x < 0x1p-126f;
    uint32_t bits = mixt__fp32_bits(tiny ? x * 0x1p23f : x);
    int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23; // so that the mantissa lies in [sqrt(1/2), sqrt(2))
    float f = mixt__fp32_of_bits(bits - ((uint32_t)exponent << 23)) - 1.0f;
    float e = (float)exponent - (tiny ? 23.0f : 0.0f);
    float q = fmaf(f, 0x1.145796p-4f, -0x1.de3c04p-4f);
    q = fmaf(f, q, 0x1.e6f06ap-4f);
    q = fmaf(f, q, -0x1.fc220ap-4f);
    q = fmaf(f, q, 0x1.233768p-3f);
    q = fmaf(f, q, -0x1.555c4ep-3f);
    q = fmaf(f, q, 0x1.99a4b6p-3f);
    q = fmaf(f, q, -0x1.000006p-2f);
    q = fmaf(f, q, 0x1.555548p-2f);
    float square = f * f;
    float tail = fmaf(square * f, q, fmaf(-0.5f, square, e * MATHS_LN2_LOW)); // log(1 + f) - f, and the low part
    float result = fmaf(e, MATHS_LN2_HIGH, f + tail);
    result = x < INFINITY ? result : x; // infinity and NaN
    result = x < 0.0f ? NAN : result;
    return x == 0.0f ? -INFINITY : result;
}

/** 1/(1 + e^-x), through e^-|x| so that neither tail loses accuracy. */
MIXT__INLINE float mixt__maths_sigmoid(float x)
{
    float e = mixt__maths_exp_nonpositive(-fabsf(x)), q = 1.0f / (1.0f + e);
    return x < 0.0f ? e * q : q;
}

/** Derivative of x · sigmoid(x): s + x·s·(1 - s). Past 104 one share is 0. */
MIXT__INLINE float mixt__maths_silu_slope(float x)
{
    float near = x < -104.0f ? -104.0f : x > 104.0f ? 104.0f : x;
    float e = mixt__maths_exp_nonpositive(-fabsf(near)), q = 1.0f / (1.0f + e);
    float share = near < 0.0f ? e * q : q, other = near < 0.0f ? q : e * q;
    return fmaf(near * share, other, share);
}

#define MATHS_GELU_A 0x1.988454p0f  // 2·sqrt(2/pi)
#define MATHS_GELU_B 0x1.2444f2p-4f // 0.044715 times that

/** x · sigmoid(2u), u = sqrt(2/pi)·(x + 0.044715·x³): the tanh form without its cancellation. */
MIXT__INLINE float mixt__maths_gelu(float x)
{
    float e = mixt__maths_exp_nonpositive(fabsf(x) * fmaf(-MATHS_GELU_B, x * x, -MATHS_GELU_A)), q = 1.0f / (1.0f + e);
    return x * (x < 0.0f ? e * q : q);
}

/** s + x·s·(1 - s)·2u', s = sigmoid(2u). Past the bound on |x| both limits are reached: there e^-2|u| is just small
 * enough to round to 0, and its power of two still a normal number in exp_reduced, so the exponent needs no bound. */
MIXT__INLINE float mixt__maths_gelu_slope(float x)
{
    float power, size = fabsf(x);
    size = size > 10.685f ? 10.685f : size;
    float square = size * size;
    float t = mixt__maths_exp_reduced(size * fmaf(-MATHS_GELU_B, square, -MATHS_GELU_A), 127 + 24, &power);
    float e = (1.0f + t) * power * 0x1p-24f, q = 1.0f / (1.0f + e), p = e * q;
    float s = x < 0.0f ? p : q;
    return fmaf(p * q, copysignf(size, x) * fmaf(3.0f * MATHS_GELU_B, square, MATHS_GELU_A), s);
}

/** The normal distribution's share below -size, size in [0, 15], within 8 ulp, and e^(-size²/2) in *bell. Their
 *  quotient is smooth from 0, where it is 1/2 exactly, to the end: a polynomial in 2·size/(size + 3), over size + 3.
 *  What the square loses by rounding goes into *bell afterwards. */
MIXT__INLINE float mixt__maths_normal_tail(float size, float *bell)
{
    float square = size * size, lost = fmaf(size, size, -square);
    float e = mixt__maths_exp_nonpositive(-0.5f * square), inverse = 1.0f / (size + 3.0f);
    float w = (size + size) * inverse;
    float q = fmaf(w, 0x1.b181bcp-15f, -0x1.5da2e6p-11f);
    q = fmaf(w, q, 0x1.4bb19ap-9f);
    q = fmaf(w, q, -0x1.363d14p-9f);
    q = fmaf(w, q, -0x1.334a8cp-10f);
    q = fmaf(w, q, -0x1.1eb352p-6f);
    q = fmaf(w, q, 0x1.adc3d6p-6f);
    q = fmaf(w, q, 0x1.11a06ep-2f);
    q = fmaf(w, q, -0x1.0b94bap0f);
    q = fmaf(w, q, 1.5f);
    *bell = fmaf(e, -0.5f * lost, e);
    return *bell * (q * inverse);
}

/** x · Φ(x). */
MIXT__INLINE float mixt__maths_gelu_erf(float x)
{
    float bell, size = fabsf(x);
    float tail = mixt__maths_normal_tail(size > 15.0f ? 15.0f : size, &bell); // 0 from there on
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

/** Φ(x) + x·φ(x). */
MIXT__INLINE float mixt__maths_gelu_erf_slope(float x)
{
    float bell, size = fabsf(x);
    size = size > 15.0f ? 15.0f : size;
    float tail = mixt__maths_normal_tail(size, &bell);
    return fmaf(copysignf(size, x) * 0x1.988454p-2f, bell, x < 0.0f ? tail : 1.0f - tail);
}

/** e^x - 1 for x <= 0, relative to itself. */
MIXT__INLINE float mixt__maths_expm1_nonpositive(float x)
{
    float power;
    x = x < -20.0f ? -20.0f : x; // -1 to the last bit from there on
    float t = mixt__maths_exp_reduced(x, 127, &power);
    return fmaf(power, t, power - 1.0f);
}

/** log(1 + e^x): log(1 + e) with e = e^-|x| at most 1, put right by what 1 + e lost. */
MIXT__INLINE float mixt__maths_softplus(float x)
{
    float e = mixt__maths_exp_nonpositive(-fabsf(x)), sum = 1.0f + e, lost = sum - 1.0f;
    float log = mixt__maths_log(sum) * (e / (lost > 0.0f ? lost : 1.0f));
    return (x > 0.0f ? x : x != x ? x : 0.0f) + (lost > 0.0f ? log : e);
}

/** From the normal distribution's tail, near 0 by its series, which loses nothing there. */
MIXT__INLINE float mixt__maths_erf(float x)
{
    float bell, size = fabsf(x) * 0x1.6a09e6p0f, square = x * x;
    float tail = mixt__maths_normal_tail(size > 15.0f ? 15.0f : size, &bell);
    float q = fmaf(square, -0x1.c02db4p-11f, 0x1.565bcep-8f);
    q = fmaf(square, q, -0x1.b82ce4p-6f);
    q = fmaf(square, q, 0x1.ce2f22p-4f);
    q = fmaf(square, q, -0x1.812746p-2f);
    q = fmaf(square, q, 0x1.20dd76p0f);
    float far = copysignf(fmaf(-2.0f, tail, 1.0f), x);
    return x != x ? x : fabsf(x) < 0.5f ? x * q : far;
}

/** 2/sqrt(pi) · e^(-x²), the square's rounding put right. */
MIXT__INLINE float mixt__maths_erf_slope(float x)
{
    float size = fabsf(x) > 12.0f ? 12.0f : fabsf(x), square = size * size, lost = fmaf(size, size, -square);
    float e = mixt__maths_exp_nonpositive(-square);
    return x != x ? x : 0x1.20dd76p0f * fmaf(-lost, e, e);
}

/** tanh(log(1 + e^x)) = n / (n + 2) with n = e^x·(e^x + 2), and 1 minus its square; 1 and 0 far above 0. */
MIXT__INLINE float mixt__maths_mish_gate(float x, float *rest)
{
    float e = mixt__maths_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), inverse = 1.0f / (n + 2.0f);
    *rest = 4.0f * (n + 1.0f) * inverse * inverse;
    return n * inverse;
}

MIXT__INLINE float mixt__maths_mish_slope(float x)
{
    float rest, gate = mixt__maths_mish_gate(x, &rest), near = x < -104.0f ? -104.0f : x > 104.0f ? 104.0f : x;
    return fmaf(near * mixt__maths_sigmoid(near), rest, gate);
}

#endif
