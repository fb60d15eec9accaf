/* Loops over FP32 rows that reductions, softmax, losses and the ends of products are made of: one table per
 * instruction-set level.
 *
 * Sums run in 64 interleaved partial sums that are added up in one fixed order, so every level gives the same bits.
 * Destinations may be one of the sources.
 */
#ifndef MIXT_BACKEND_CPU_CORE_ROWS_H
#define MIXT_BACKEND_CPU_CORE_ROWS_H

#include "base/isa.h"
#include "num/num.h"

enum { MIXT__ROW_TILE = 1024, MIXT__ROW_GROUP = 8 };

typedef struct mixt__row_loops {
    float (*sum)(const float *src, int64_t count);
    float (*dot)(const float *a, const float *b, int64_t count);
    /** The largest element; NaN is passed over, -infinity when there is nothing else. */
    float (*max)(const float *src, int64_t count);
    /** dst = e^(src - shift), shift at least the largest element. */
    void (*exp_below)(float *dst, const float *src, float shift, int64_t count);
    /** dst = (e^(src - shift) - less) · factor, shift as above. */
    void (*exp_below_affine)(float *dst, const float *src, float shift, float less, float factor, int64_t count);
    /** dst = a · (b - shift) */
    void (*scaled_difference)(float *dst, const float *a, const float *b, float shift, int64_t count);
    void (*scale)(float *dst, const float *src, float factor, int64_t count);
    /** dst += src */
    void (*add)(float *dst, const float *src, int64_t count);
    /** dst += the sum of MIXT__ROW_GROUP rows that lie `stride` elements apart. */
    void (*add_group)(float *dst, const float *src, int64_t stride, int64_t count);
    void (*add_group_bf16)(float *dst, const uint16_t *src, int64_t stride, int64_t count);
    /** x = 0 where it is not above 0; NaN stays. */
    void (*relu)(float *x, int64_t count);
    /** x = 0 where `mask` is not above 0, which NaN is not; in 16 bits, infinity's say which format that is. */
    void (*keep_where)(float *x, const float *mask, int64_t count);
    void (*keep_where_low)(float *x, const uint16_t *mask, uint16_t infinity, int64_t count);
} mixt__row_loops;

extern const mixt__row_loops mixt__row_loops_scalar, mixt__row_loops_avx2, mixt__row_loops_avx512;

/** Those of this machine. */
const mixt__row_loops *mixt__row_loops_best(void);

/** A tensor's elements as FP32: the tensor's own memory when it is FP32, else widened into `tile`. */
const float *mixt__row_load(float *tile, const void *data, mixt_dtype dtype, int64_t index, int64_t count);

/** What softmax needs to know of a row. */
typedef struct mixt__row_peak {
    float max;        // the largest element; -infinity when there is none
    double sum;       // of e^(x - max); NaN when the row has a NaN or an infinite maximum
    int64_t max_tile; // the first tile (of MIXT__ROW_TILE elements) that has the maximum, by its first element
} mixt__row_peak;

/** One pass over `count` elements from `index` on. In `tile` (MIXT__ROW_TILE long) it leaves e^(x - max) of the last
 * tile: for a short row, of all of it. */
mixt__row_peak mixt__row_peak_of(float *tile, const void *data, mixt_dtype dtype, int64_t index, int64_t count);

/** Rows a thread should get at least, so that waking it pays. */
int64_t mixt__row_grain(int64_t columns);

/** Where element `index` of an array lies. */
static inline void *mixt__row_at(const void *data, mixt_dtype dtype, int64_t index)
{
    return (char *)(uintptr_t)data + (size_t)index * mixt_dtype_size(dtype);
}

#endif
