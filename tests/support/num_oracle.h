/* An independent oracle of narrow floating-point formats, in double arithmetic: shares nothing with the library.
 *
 * A format is its mantissa bits, its exponents and its largest value. Decoding follows the definition (sign, exponent,
 * mantissa); rounding scales by the step, rounds with nearbyint and compares with the largest value.
 */
#ifndef MIXT_TESTS_NUM_ORACLE_H
#define MIXT_TESTS_NUM_ORACLE_H

#include "mixt/types.h"

#include <math.h>

typedef struct oracle_format {
    mixt_dtype dtype;
    int bits, exponent_bits, mantissa_bits, bias;
    double max;
    bool has_infinity;
    int shift; // of the code within its storage: 13 for TF32, which is kept in 32 bits
} oracle_format;

static const oracle_format oracle_formats[] = {
    {MIXT_DTYPE_FP16, 16, 5, 10, 15, 65504, true, 0},         {MIXT_DTYPE_BF16, 16, 8, 7, 127, 0x1.fep127, true, 0},
    {MIXT_DTYPE_TF32, 32, 8, 10, 127, 0x1.ffcp127, true, 13}, {MIXT_DTYPE_FP8_E4M3, 8, 4, 3, 7, 448, false, 0},
    {MIXT_DTYPE_FP8_E5M2, 8, 5, 2, 15, 57344, true, 0},
};
enum { ORACLE_FORMATS = sizeof oracle_formats / sizeof oracle_formats[0] };

/** The value of a code; NaN for NaN codes. */
static inline double oracle_decode(const oracle_format *f, uint32_t storage)
{
    uint32_t code = storage >> f->shift;
    uint32_t mantissa = code & ((1u << f->mantissa_bits) - 1);
    int exponent = (int)((code >> f->mantissa_bits) & ((1u << f->exponent_bits) - 1));
    bool negative = (code >> (f->mantissa_bits + f->exponent_bits)) & 1;
    double value;
    if (f->has_infinity && exponent == (1 << f->exponent_bits) - 1)
        value = mantissa ? NAN : INFINITY;
    else if (!f->has_infinity && (code & 0x7f) == 0x7f)
        value = NAN;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    else
        value = ldexp(mantissa + (1u << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
    return negative ? -value : value;
}

/** What `value` should become: nearest even, past the range infinity or NaN. */
static inline double oracle_round(const oracle_format *f, double value)
{
    if (isnan(value) || value == 0)
        return value;
    if (isinf(value))
        return f->has_infinity ? value : NAN;
    int exponent = ilogb(value);
    if (exponent < 1 - f->bias)
        exponent = 1 - f->bias;
    double step = ldexp(1, exponent - f->mantissa_bits);
    double rounded = nearbyint(value / step) * step;
    if (fabs(rounded) > f->max)
        return f->has_infinity ? copysign(INFINITY, value) : NAN;
    return copysign(rounded, value);
}

/** True when `storage` is the right result for `value`, sign of zero and of NaN included. */
static inline bool oracle_accepts(const oracle_format *f, double value, uint32_t storage)
{
    bool negative = (storage >> (f->bits - 1)) & 1;
    if (negative != (signbit(value) != 0) || (storage & ((1u << f->shift) - 1)))
        return false;
    double want = oracle_round(f, value), got = oracle_decode(f, storage);
    return isnan(want) ? isnan(got) : want == got;
}

#endif
