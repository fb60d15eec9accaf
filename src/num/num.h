/* Conversions for use inside kernels: array routines chosen by instruction set, and scalar inlines.
 *
 * Array routines are single-threaded (callers already split work), take any alignment and any count, and give the
 * same bits at every instruction-set level. They convert between FP32 and one narrower format, nearest-even.
 */
#ifndef MIXT_NUM_NUM_H
#define MIXT_NUM_NUM_H

#include "mixt/num.h"

#include <string.h>

/** dst and src may be the same array only where both hold FP32 (FP32, TF32). */
typedef void mixt__widen_fn(float *dst, const void *src, int64_t count);
typedef void mixt__narrow_fn(void *dst, const float *src, int64_t count);

/** Array conversion from `dtype` to FP32 (FP32, TF32, FP16, BF16, FP8, INT8 and UINT8); NULL for other formats. */
mixt__widen_fn *mixt__widen(mixt_dtype dtype);
/** Array conversion from FP32 to `dtype`, the same formats; integers clamp, NaN gives 0. NULL for other formats. */
mixt__narrow_fn *mixt__narrow(mixt_dtype dtype);

/** Unit roundoff: half the distance from 1 to the next value (2^-24, 2^-11, 2^-8, …). */
double mixt__dtype_roundoff(mixt_dtype dtype);
/** Largest finite value and smallest positive subnormal. */
double mixt__dtype_max(mixt_dtype dtype);
double mixt__dtype_min_subnormal(mixt_dtype dtype);
/** The smallest FP32 magnitude that rounds beyond the format's largest number; infinity: none does. */
float mixt__dtype_beyond(mixt_dtype dtype);
/** The largest FP32 magnitude that rounds to 0; 0: none but 0 does. */
float mixt__dtype_flushed(mixt_dtype dtype);
/** Whether mixt_convert scales values of this format (INT8, UINT8, FP8). */
bool mixt__dtype_has_scale(mixt_dtype dtype);

static inline uint32_t mixt__fp32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float mixt__fp32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float mixt__bf16_widen(uint16_t bits)
{
    return mixt__fp32_of_bits((uint32_t)bits << 16);
}

/** One element of any format as FP32; for plain kernels, not for inner loops of fast ones. */
float mixt__load(const void *array, mixt_dtype dtype, int64_t index);
void mixt__store(void *array, mixt_dtype dtype, int64_t index, float value);

#endif
