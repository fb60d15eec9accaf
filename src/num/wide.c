/* Wide formats: loads, stores and conversions among them, element by element. */
#include "num/wide.h"

#include <math.h>

bool mixt__dtype_is_wide(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_INT32 || dtype == MIXT_DTYPE_INT64 || dtype == MIXT_DTYPE_FP64;
}

static int64_t load_integer(const void *src, mixt_dtype dtype, int64_t i)
{
    int32_t narrow;
    int64_t wide;
    if (dtype == MIXT_DTYPE_INT64) {
        memcpy(&wide, (const char *)src + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)src + 4 * i, sizeof narrow);
    return narrow;
}

static double load_fp64(const void *src, int64_t i)
{
    double value;
    memcpy(&value, (const char *)src + 8 * i, sizeof value);
    return value;
}

static void store_fp64(void *dst, int64_t i, double value)
{
    memcpy((char *)dst + 8 * i, &value, sizeof value);
}

static void store_integer(void *dst, mixt_dtype dtype, int64_t i, int64_t value)
{
    if (dtype == MIXT_DTYPE_INT64) {
        memcpy((char *)dst + 8 * i, &value, sizeof value);
        return;
    }
    int32_t clamped = (int32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
    memcpy((char *)dst + 4 * i, &clamped, sizeof clamped);
}

static int64_t nearest_integer(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return (int64_t)nearbyint(value);
}

/** Rounds down to a multiple of 2^10 and keeps the loss as its last bit: exact in double for any INT64. */
static double sticky_double(int64_t value)
{
    if (value >= -(1ll << 53) && value <= 1ll << 53)
        return (double)value;
    // cppcheck-suppress shiftNegativeLHS; GCC and Clang shift arithmetically
    int64_t kept = (value >> 10) | ((value & 1023) != 0);
    return (double)kept * 0x1p10;
}

void mixt__wide_load(double *dst, const void *src, mixt_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = dtype == MIXT_DTYPE_FP64 ? load_fp64(src, i) : sticky_double(load_integer(src, dtype, i));
}

void mixt__wide_store(void *dst, mixt_dtype dtype, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (dtype == MIXT_DTYPE_FP64)
            store_fp64(dst, i, (double)src[i]);
        else
            store_integer(dst, dtype, i, nearest_integer((double)src[i]));
    }
}

void mixt__wide_convert(void *dst, mixt_dtype dst_dtype, const void *src, mixt_dtype src_dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (src_dtype == MIXT_DTYPE_FP64 && dst_dtype == MIXT_DTYPE_FP64) {
            store_fp64(dst, i, load_fp64(src, i));
        } else if (src_dtype == MIXT_DTYPE_FP64) {
            store_integer(dst, dst_dtype, i, nearest_integer(load_fp64(src, i)));
        } else {
            int64_t value = load_integer(src, src_dtype, i);
            if (dst_dtype == MIXT_DTYPE_FP64)
                store_fp64(dst, i, (double)value);
            else
                store_integer(dst, dst_dtype, i, value);
        }
    }
}

float mixt__fp32_round_odd(double value)
{
    float nearest = (float)value;
    if (isnan(value) || (double)nearest == value)
        return nearest;
    uint32_t bits = mixt__fp32_bits(nearest);
    if (fabs((double)nearest) > fabs(value))
        bits--; // toward zero; from infinity to the largest finite value
    return mixt__fp32_of_bits(bits | 1);
}
