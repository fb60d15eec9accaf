/* The loops that rows.h declares, compiled for the baseline, AVX2 and AVX-512.
 *
 * Sums keep 64 partial sums whatever the vectors' width, element i going to partial sum i % 64: the order of additions
 * is the same at every level. Everything else is plain loops that the compiler vectorises.
 */
#include "backend/cpu/core/rows.h"

#include "backend/cpu/core/maths.h"
#include "base/isa_at.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { PARTIALS = 64, PARTS = PARTIALS / LANES };

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t lane_bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/** Adds up the partial sums, in halves: whole vectors first, then the lanes of the one that is left. */
MIXT__INLINE float fold(lanes *parts)
{
    float lane[LANES];
#pragma GCC unroll 4
    for (int half = PARTS / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int p = 0; p < half; p++)
            parts[p] += parts[p + half];
    memcpy(lane, parts, sizeof lane);
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

/** The elements behind the last whole group of PARTIALS, zeros after them. */
MIXT__INLINE void load_rest(float *rest, const float *src, int64_t count)
{
    memset(rest, 0, PARTIALS * sizeof *rest);
    memcpy(rest, src, (size_t)count * sizeof *rest);
}

static float sum(const float *src, int64_t count)
{
    lanes parts[PARTS] = {{0}};
    float rest[PARTIALS];
    int64_t i = 0;
    for (; i + PARTIALS <= count; i += PARTIALS)
        for (int p = 0; p < PARTS; p++)
            parts[p] += *(const lanes *)(src + i + LANES * p);
    if (i < count) {
        load_rest(rest, src + i, count - i);
        for (int p = 0; p < PARTS; p++)
            parts[p] += *(const lanes *)(rest + LANES * p);
    }
    return fold(parts);
}

static float dot(const float *a, const float *b, int64_t count)
{
    lanes parts[PARTS] = {{0}};
    float rest_a[PARTIALS], rest_b[PARTIALS];
    int64_t i = 0;
    for (; i + PARTIALS <= count; i += PARTIALS)
        for (int p = 0; p < PARTS; p++)
            parts[p] += *(const lanes *)(a + i + LANES * p) * *(const lanes *)(b + i + LANES * p);
    if (i < count) {
        load_rest(rest_a, a + i, count - i);
        load_rest(rest_b, b + i, count - i);
        for (int p = 0; p < PARTS; p++)
            parts[p] += *(const lanes *)(rest_a + LANES * p) * *(const lanes *)(rest_b + LANES * p);
    }
    return fold(parts);
}

MIXT__INLINE lanes larger_of(const lanes *a, const lanes *b)
{
    lane_bits larger = *a > *b;
    return (lanes)(((lane_bits)*a & larger) | ((lane_bits)*b & ~larger));
}

static float max(const float *src, int64_t count)
{
    enum { ROWS = 4 };
    float best = -INFINITY, lane[LANES];
    int64_t i = 0;
    if (count >= LANES) {
        lanes parts[ROWS];
        for (int p = 0; p < ROWS; p++)
            parts[p] = (lanes){0} - INFINITY;
        for (; i + LANES * ROWS <= count; i += LANES * ROWS)
            for (int p = 0; p < ROWS; p++)
                parts[p] = larger_of((const lanes *)(src + i + LANES * p), &parts[p]);
        for (; i + LANES <= count; i += LANES)
            parts[0] = larger_of((const lanes *)(src + i), &parts[0]);
        parts[0] = larger_of(&parts[2], &parts[0]);
        parts[1] = larger_of(&parts[3], &parts[1]);
        parts[0] = larger_of(&parts[1], &parts[0]);
        memcpy(lane, parts, sizeof lane);
#pragma GCC unroll 4
        for (int half = LANES / 2; half > 0; half /= 2)
#pragma GCC unroll 8
            for (int l = 0; l < half; l++)
                lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
        best = lane[0];
    }
    for (; i < count; i++)
        best = src[i] > best ? src[i] : best;
    return best;
}

static void exp_below(float *dst, const float *src, float shift, int64_t count)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++)
        dst[i] = mixt__maths_exp_nonpositive(src[i] - shift);
}

static void exp_below_affine(float *dst, const float *src, float shift, float less, float factor, int64_t count)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++)
        dst[i] = (mixt__maths_exp_nonpositive(src[i] - shift) - less) * factor;
}

static void scaled_difference(float *dst, const float *a, const float *b, float shift, int64_t count)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++)
        dst[i] = a[i] * (b[i] - shift);
}

static void scale(float *dst, const float *src, float factor, int64_t count)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++)
        dst[i] = src[i] * factor;
}

static void add(float *dst, const float *src, int64_t count)
{
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++)
        dst[i] += src[i];
}

MIXT__INLINE float element(const void *row, int64_t i, bool bf16)
{
    return bf16 ? mixt__bf16_widen(((const uint16_t *)row)[i]) : ((const float *)row)[i];
}

MIXT__INLINE void add_rows(float *dst, const void *src, int64_t stride, int64_t count, bool bf16)
{
    const char *r[MIXT__ROW_GROUP];
    for (int k = 0; k < MIXT__ROW_GROUP; k++)
        r[k] = (const char *)src + k * stride * (bf16 ? 2 : 4);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; i++) {
        float low =
            (element(r[0], i, bf16) + element(r[1], i, bf16)) + (element(r[2], i, bf16) + element(r[3], i, bf16));
        float high =
            (element(r[4], i, bf16) + element(r[5], i, bf16)) + (element(r[6], i, bf16) + element(r[7], i, bf16));
        dst[i] += low + high;
    }
}

static void add_group(float *dst, const float *src, int64_t stride, int64_t count)
{
    add_rows(dst, src, stride, count, false);
}

static void add_group_bf16(float *dst, const uint16_t *src, int64_t stride, int64_t count)
{
    add_rows(dst, src, stride, count, true);
}

static void relu(float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

static void keep_where(float *restrict x, const float *restrict mask, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = mask[i] > 0.0f ? x[i] : 0.0f;
}

static void keep_where_low(float *restrict x, const uint16_t *restrict mask, uint16_t infinity, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (uint16_t)(mask[i] - 1) < infinity ? x[i] : 0.0f; // the bits of numbers above 0 are 1 … infinity's
}

const mixt__row_loops MIXT_AT(mixt__row_loops) = {
    .sum = sum,
    .dot = dot,
    .max = max,
    .exp_below = exp_below,
    .exp_below_affine = exp_below_affine,
    .scaled_difference = scaled_difference,
    .scale = scale,
    .add = add,
    .add_group = add_group,
    .add_group_bf16 = add_group_bf16,
    .relu = relu,
    .keep_where = keep_where,
    .keep_where_low = keep_where_low,
};
