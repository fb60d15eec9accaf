/* Numbers with a scale: value = number · scale. Symmetric: 0 is 0. */
#ifndef MIXT_NUM_QUANTISE_H
#define MIXT_NUM_QUANTISE_H

#include "num/format.h"

/** The scale with which the largest magnitude of some values becomes the format's largest number; 0 of values that are
 *  all 0, or too small for a scale. Values that were rounded with it have the same one: of INT8's 127 steps FP32 loses
 *  less than a scale's last bit. */
float mixt__quantise_scale(mixt_dtype dtype, const float *values, int64_t count);

/** Rounds values that share a scale, to nearest, ties to even; with scale 0 all become 0. dst holds `count` numbers. */
void mixt__quantise(void *dst, mixt_dtype dtype, const float *values, int64_t count, float scale);

/** The values of numbers that share a scale. */
void mixt__dequantise(float *dst, const void *src, mixt_dtype dtype, int64_t count, float scale);

/** Rows that have a scale each: `scales` receives one for each of them. */
void mixt__quantise_rows(void *dst, mixt_dtype dtype, float *scales, const float *values, int64_t rows, int64_t width);

/** The values of such rows. */
void mixt__dequantise_rows(float *dst, const void *src, mixt_dtype dtype, const float *scales, int64_t rows,
                           int64_t width);

#endif
