/* Numbers of values: brought to the host, counted, held against FP32. */
#include "inspect/debug.h"

#include "num/num.h"

#include <math.h>
#include <string.h>

void mixt__debug_count(const float *numbers, int64_t count, double *totals, int64_t *counts)
{
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    float beyond = mixt__dtype_beyond(MIXT_DTYPE_FP16), flushed = mixt__dtype_flushed(MIXT_DTYPE_FP16);
    memset(counts, 0, MIXT_STATS_COUNTS * sizeof *counts);
    counts[MIXT_STATS_COUNT] = count;
    for (int64_t i = 0; i < count; i++) {
        float x = numbers[i];
        counts[MIXT_STATS_EXPONENTS + (mixt__fp32_bits(x) >> 23 & 255)]++;
        if (!isfinite(x)) {
            counts[isnan(x) ? MIXT_STATS_NAN : MIXT_STATS_INF]++;
            continue;
        }
        counts[MIXT_STATS_ZEROS] += x == 0;
        counts[MIXT_STATS_BEYOND] += fabsf(x) >= beyond;
        counts[MIXT_STATS_FLUSHED] += x != 0 && fabsf(x) <= flushed;
        sum += (double)x;
        squares += (double)x * (double)x;
        least = (double)x < least ? (double)x : least;
        most = (double)x > most ? (double)x : most;
    }
    totals[MIXT_STATS_SUM] = sum;
    totals[MIXT_STATS_SQUARES] = squares;
    totals[MIXT_STATS_MIN] = least;
    totals[MIXT_STATS_MAX] = most;
    totals[MIXT_STATS_AMAX] = least > most ? 0 : fmax(fabs(least), fabs(most));
}

/** Numbers that are 0 here and not in FP32. What FP32 has left of a sum that cancels, and the format could hold, is
 * none of them: there 0 is as good. */
static int64_t count_flushed(const float *mine, const float *full, int64_t count, mixt_dtype dtype, double largest)
{
    double flushed = (double)mixt__dtype_flushed(dtype), noise = 1e-6 * largest;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        double y = fabs((double)full[i]);
        found += mine[i] == 0 && y > 0 && (y <= flushed || y >= noise);
    }
    return found;
}

void mixt__debug_compare(mixt__sight *s, mixt_dtype dtype, const float *mine, const float *full, int64_t count)
{
    s->compared = true;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)mine[i], y = (double)full[i];
        if (!isfinite(y))
            continue;
        s->reference = fmax(s->reference, fabs(y));
        if (!isfinite(x)) {
            s->broken++;
            continue;
        }
        s->noise += (x - y) * (x - y);
        s->signal += y * y;
    }
    s->flushed = count_flushed(mine, full, count, dtype, s->reference);
}

int64_t mixt__debug_span(const mixt__tensor *t)
{
    int64_t span = 1;
    for (int i = 0; i < t->shape.rank; i++) {
        if (!t->shape.dims[i])
            return 0;
        span += (t->shape.dims[i] - 1) * t->strides[i];
    }
    return span;
}

mixt_status mixt__debug_read(const mixt__backend *backend, const mixt__tensor *t, void *raw, float *numbers)
{
    int64_t count = mixt__shape_count(&t->shape), span = t->contiguous ? count : mixt__debug_span(t);
    size_t size = mixt_dtype_size(t->dtype);
    if (!count)
        return MIXT_OK;
    MIXT_TRY(backend->download(raw, t->data, (size_t)span * size));
    if (t->contiguous) {
        mixt__widen(t->dtype)(numbers, raw, count);
        return MIXT_OK;
    }
    int64_t at[MIXT_MAX_RANK] = {0}, place = 0;
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = mixt__load(raw, t->dtype, place);
        for (int d = t->shape.rank - 1; d >= 0; d--) {
            place += t->strides[d];
            if (++at[d] < t->shape.dims[d])
                break;
            place -= t->strides[d] * t->shape.dims[d];
            at[d] = 0;
        }
    }
    return MIXT_OK;
}
