/* The scalar reference of each conversion between FP32 and a narrower format, as inlines on bit patterns.
 *
 * Every other path must give these bits. NaN keeps its sign and its top payload bits and becomes quiet, as F16C does;
 * BF16 to FP32 is a plain shift and leaves a signalling NaN alone. Rounding assumes the default floating-point
 * environment (nearest-even, no flush to zero).
 */
#ifndef MIXT_NUM_REFERENCE_H
#define MIXT_NUM_REFERENCE_H

#include "num/num.h"

enum { FP32_INFINITY = 0x7f800000, FP32_QUIET = 0x00400000, FP32_MAGNITUDE = 0x7fffffff };

/** A format with fewer exponent bits than FP32, described by what narrowing needs. */
typedef struct minifloat {
    int mantissa_bits, bias;
    uint32_t overflow; // FP32 magnitude from which the result is `past_range`: just past the last value rounding to max
    uint32_t past_range;
    uint32_t nan; // ORed into the narrowed payload
} minifloat;

// FP16 and E5M2: the tie above max goes up, to infinity. E4M3: 448 is even, so the tie at 464 goes down, and there is
// no infinity above it.
static const minifloat FP16 = {10, 15, 0x477ff000, 0x7c00, 0x7e00};
static const minifloat E5M2 = {2, 15, 0x47700000, 0x7c, 0x7e};
static const minifloat E4M3 = {3, 7, 0x43e80001, 0x7f, 0x7f};

/** FP32 bits of the constant whose last place is the format's subnormal step: adding it rounds to that step. */
static inline uint32_t minifloat_magic(minifloat f)
{
    return (uint32_t)(127 + 23 + 1 - f.bias - f.mantissa_bits) << 23;
}

/** Sign not included. */
static inline uint32_t minifloat_narrow_magnitude(uint32_t magnitude, minifloat f)
{
    const int shift = 23 - f.mantissa_bits;
    const uint32_t min_normal = (uint32_t)(127 + 1 - f.bias) << 23, magic = minifloat_magic(f);
    if (magnitude > FP32_INFINITY)
        return f.nan | ((magnitude >> shift) & ((1u << f.mantissa_bits) - 1));
    if (magnitude >= f.overflow)
        return f.past_range;
    if (magnitude < min_normal)
        return mixt__fp32_bits(mixt__fp32_of_bits(magnitude) + mixt__fp32_of_bits(magic)) - magic;
    uint32_t rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
    return (rounded >> shift) - ((uint32_t)(127 - f.bias) << f.mantissa_bits);
}

static inline uint16_t fp16_narrow(uint32_t bits)
{
    return (uint16_t)(((bits >> 16) & 0x8000) | minifloat_narrow_magnitude(bits & FP32_MAGNITUDE, FP16));
}

static inline uint8_t e5m2_narrow(uint32_t bits)
{
    return (uint8_t)(((bits >> 24) & 0x80) | minifloat_narrow_magnitude(bits & FP32_MAGNITUDE, E5M2));
}

static inline uint8_t e4m3_narrow(uint32_t bits)
{
    return (uint8_t)(((bits >> 24) & 0x80) | minifloat_narrow_magnitude(bits & FP32_MAGNITUDE, E4M3));
}

static inline uint16_t bf16_narrow(uint32_t bits)
{
    if ((bits & FP32_MAGNITUDE) > FP32_INFINITY)
        return (uint16_t)((bits | FP32_QUIET) >> 16);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline uint32_t tf32_narrow(uint32_t bits)
{
    if ((bits & FP32_MAGNITUDE) > FP32_INFINITY)
        return (bits | FP32_QUIET) & ~0x1fffu;
    return (bits + 0xfff + ((bits >> 13) & 1)) & ~0x1fffu;
}

/** FP32 bits of a magnitude that is finite. */
static inline uint32_t minifloat_widen_magnitude(uint32_t magnitude, minifloat f)
{
    if (magnitude >> f.mantissa_bits)
        return (magnitude << (23 - f.mantissa_bits)) + ((uint32_t)(127 - f.bias) << 23);
    const uint32_t step = (uint32_t)(127 + 1 - f.bias - f.mantissa_bits) << 23;
    return mixt__fp32_bits((float)(int32_t)magnitude * mixt__fp32_of_bits(step));
}

/** FP16 and E5M2: the top exponent means infinity or NaN. */
static inline uint32_t ieee_widen(uint32_t sign, uint32_t magnitude, minifloat f)
{
    if (magnitude < f.past_range)
        return sign | minifloat_widen_magnitude(magnitude, f);
    uint32_t payload = (magnitude - f.past_range) << (23 - f.mantissa_bits);
    return sign | FP32_INFINITY | payload | (payload ? FP32_QUIET : 0);
}

static inline uint32_t fp16_widen(uint16_t bits)
{
    return ieee_widen((bits & 0x8000u) << 16, bits & 0x7fffu, FP16);
}

static inline uint32_t e5m2_widen(uint8_t bits)
{
    return ieee_widen((bits & 0x80u) << 24, bits & 0x7fu, E5M2);
}

static inline uint32_t e4m3_widen(uint8_t bits)
{
    uint32_t sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    return sign | (magnitude == E4M3.nan ? FP32_INFINITY | FP32_QUIET : minifloat_widen_magnitude(magnitude, E4M3));
}

/** Nearest even, clamped to [low, high] (both within ±2^22); NaN gives 0. */
static inline int32_t integer_narrow(float value, float low, float high)
{
    if (value != value)
        return 0;
    float clamped = value < low ? low : value > high ? high : value;
    return (int32_t)(mixt__fp32_bits(clamped + 0x1.8p23f) - mixt__fp32_bits(0x1.8p23f));
}

#endif
