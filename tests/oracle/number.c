/* FP32, TF32, FP16, BF16 and FP8 by arithmetic on doubles: value = m · 2^e with p bits. Independent of the
 * library's conversions.
 */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static const struct format {
    mixt_dtype dtype;
    int bits, min_exponent, max_exponent; // significand with the hidden bit; exponents of 1.xxx · 2^e
} formats[] = {
    {MIXT_DTYPE_FP32, 24, -126, 127},  {MIXT_DTYPE_TF32, 11, -126, 127},   {MIXT_DTYPE_FP16, 11, -14, 15},
    {MIXT_DTYPE_BF16, 8, -126, 127},   {MIXT_DTYPE_FP64, 53, -1022, 1023}, {MIXT_DTYPE_FP8_E4M3, 4, -6, 8},
    {MIXT_DTYPE_FP8_E5M2, 3, -14, 15},
};

static const struct format *find(mixt_dtype dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].dtype == dtype)
            return &formats[i];
    return NULL;
}

/** x · 2^e, as ldexp, which is slow: 2^e by its bits. Exponents of these formats and products are far inside FP64's. */
static double times_power(double x, int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return x * power;
}

double number_round(double value, mixt_dtype dtype)
{
    const struct format *f = find(dtype);
    if (!f || dtype == MIXT_DTYPE_FP64 || value == 0 || !isfinite(value))
        return value;
    int e;
    frexp(value, &e); // value = 0.1xxx · 2^e
    int exponent = e - 1 < f->min_exponent ? f->min_exponent : e - 1;
    double unit = times_power(1.0, exponent - f->bits + 1);
    double rounded = rint(value / unit) * unit; // the division is by a power of two: exact
    bool fp8 = dtype == MIXT_DTYPE_FP8_E4M3;    // whose largest pattern is NaN: it ends one number earlier
    double limit = times_power(2.0 - times_power(1.0, (fp8 ? 2 : 1) - f->bits), f->max_exponent);
    return fabs(rounded) > limit ? copysign(INFINITY, value) : rounded;
}

double number_roundoff(mixt_dtype dtype)
{
    const struct format *f = find(dtype);
    return f ? times_power(1.0, -f->bits) : 0;
}

double number_operand(const test_case *c)
{
    return c->rounds && c->arithmetic == MIXT_DTYPE_TF32 ? number_roundoff(MIXT_DTYPE_TF32) : 0;
}

double number_smallest(mixt_dtype dtype)
{
    const struct format *f = find(dtype);
    return f ? ldexp(1.0, f->min_exponent - f->bits + 1) : 0;
}

/** Of E4M3 the only NaN is all ones, and there is no infinity; E5M2 is the upper byte of FP16. */
static double decode_fp8(uint8_t byte, mixt_dtype dtype)
{
    bool e4m3 = dtype == MIXT_DTYPE_FP8_E4M3;
    int width = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
    int field = (byte & 0x7f) >> width, fraction = byte & ((1 << width) - 1), hidden = 1 << width;
    double size =
        field ? times_power(hidden + fraction, field - bias - width) : times_power(fraction, 1 - bias - width);
    if (e4m3 ? (byte & 0x7f) == 0x7f : field == 31)
        size = e4m3 || fraction ? NAN : INFINITY;
    return byte >> 7 ? -size : size;
}

/** By trial: there are few of them. */
static uint8_t encode_fp8(double value, mixt_dtype dtype)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        double x = decode_fp8((uint8_t)byte, dtype);
        if (isnan(value) ? isnan(x) : x == value && byte >> 7 == !!signbit(value))
            return (uint8_t)byte;
    }
    return 0x7f;
}

double number_decode(const void *array, mixt_dtype dtype, int64_t index)
{
    if (dtype == MIXT_DTYPE_INT32)
        return ((const int32_t *)array)[index];
    if (dtype == MIXT_DTYPE_INT8)
        return ((const int8_t *)array)[index];
    if (dtype == MIXT_DTYPE_INT64)
        return (double)((const int64_t *)array)[index];
    if (dtype == MIXT_DTYPE_FP64)
        return ((const double *)array)[index];
    if (dtype == MIXT_DTYPE_FP32)
        return ((const float *)array)[index];
    if (dtype == MIXT_DTYPE_FP8_E4M3 || dtype == MIXT_DTYPE_FP8_E5M2)
        return decode_fp8(((const uint8_t *)array)[index], dtype);
    const struct format *f = find(dtype);
    uint16_t word = ((const uint16_t *)array)[index];
    int stored = f->bits - 1, field = word >> stored & ((1 << (15 - stored)) - 1), all = (1 << (15 - stored)) - 1;
    double fraction = word & ((1 << stored) - 1), sign = word >> 15 ? -1 : 1;
    if (field == all)
        return fraction != 0 ? NAN : sign * INFINITY;
    double significand = times_power(fraction, -stored) + (field ? 1 : 0);
    return sign * times_power(significand, field ? field - all / 2 : f->min_exponent);
}

void number_encode(void *array, mixt_dtype dtype, int64_t index, double value)
{
    if (dtype == MIXT_DTYPE_INT32) {
        ((int32_t *)array)[index] = (int32_t)value;
        return;
    }
    if (dtype == MIXT_DTYPE_INT8) {
        ((int8_t *)array)[index] = (int8_t)value;
        return;
    }
    if (dtype == MIXT_DTYPE_FP32) {
        ((float *)array)[index] = (float)value;
        return;
    }
    if (dtype == MIXT_DTYPE_FP8_E4M3 || dtype == MIXT_DTYPE_FP8_E5M2) {
        ((uint8_t *)array)[index] = encode_fp8(value, dtype);
        return;
    }
    const struct format *f = find(dtype);
    int stored = f->bits - 1, all = (1 << (15 - stored)) - 1, e;
    unsigned word = signbit(value) ? 1u << 15 : 0;
    if (isnan(value)) {
        word |= 0x7fff;
    } else if (isinf(value)) {
        word |= (unsigned)all << stored;
    } else if (value != 0) {
        frexp(value, &e);
        if (e - 1 < f->min_exponent)
            word |= (unsigned)times_power(fabs(value), stored - f->min_exponent);
        else
            word |= (unsigned)(e - 1 + all / 2) << stored |
                    ((unsigned)times_power(fabs(value), stored - e + 1) & ((1u << stored) - 1));
    }
    uint16_t bits = (uint16_t)word;
    memcpy((char *)array + 2 * index, &bits, sizeof bits);
}
