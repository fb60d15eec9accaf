/* INT32, INT64 and FP64: formats that FP32 cannot hold, converted by way of double. */
#ifndef MIXT_NUM_WIDE_H
#define MIXT_NUM_WIDE_H

#include "num/num.h"

bool mixt__dtype_is_wide(mixt_dtype dtype);

/** Elements as double. An INT64 past 53 bits keeps a sticky last bit, so that one later rounding to FP32 or narrower is
 *  still the right one. */
void mixt__wide_load(double *dst, const void *src, mixt_dtype dtype, int64_t count);

/** FP32 to a wide format: exact, or for integers nearest even, clamped, NaN as 0. */
void mixt__wide_store(void *dst, mixt_dtype dtype, const float *src, int64_t count);

/** Between two wide formats. */
void mixt__wide_convert(void *dst, mixt_dtype dst_dtype, const void *src, mixt_dtype src_dtype, int64_t count);

/** The FP32 next to `value` toward zero, its last bit set when inexact: rounds again without double rounding. */
float mixt__fp32_round_odd(double value);

#endif
