/* Numbers of values: brought to the host, counted, held against FP32. */
#include "inspect/debug.h"

#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

enum { GRAIN = 1 << 16 }; // numbers that are worth a thread

/** What one thread found; those of all threads are added up. */
typedef struct part {
    bool used;
    double totals[MIXT_STATS_NUMBERS];
    int64_t counts[MIXT_STATS_COUNTS];
    mixt__sight seen; // of a comparison
} part;

/** Numbers to count, or to hold against those of FP32. */
typedef struct work {
    const float *mine, *full;
    mixt_dtype dtype;
    double largest; // of FP32's
    part *parts;    // by thread
} work;

/** Splits the numbers among the threads, each with a part of w->parts, which is for mixt__free; false: no memory. */
static bool split(mixt__range_fn *each, work *w, int64_t count)
{
    w->parts = mixt__alloc((size_t)mixt__threads_count() * sizeof *w->parts);
    if (w->parts)
        mixt__parallel(count, GRAIN, each, w);
    return w->parts;
}

/* ---- statistics ---- */

static void count_range(const float *numbers, int64_t count, double *totals, int64_t *counts)
{
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    float beyond = mixt__dtype_beyond(MIXT_DTYPE_FP16), flushed = mixt__dtype_flushed(MIXT_DTYPE_FP16);
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
}

static void count_part(void *argument, int64_t begin, int64_t end, int thread)
{
    const work *w = argument;
    part *p = &w->parts[thread];
    count_range(w->mine + begin, end - begin, p->totals, p->counts);
    p->used = true;
}

static void add_part(const part *p, double *totals, int64_t *counts)
{
    totals[MIXT_STATS_SUM] += p->totals[MIXT_STATS_SUM];
    totals[MIXT_STATS_SQUARES] += p->totals[MIXT_STATS_SQUARES];
    totals[MIXT_STATS_MIN] = fmin(totals[MIXT_STATS_MIN], p->totals[MIXT_STATS_MIN]);
    totals[MIXT_STATS_MAX] = fmax(totals[MIXT_STATS_MAX], p->totals[MIXT_STATS_MAX]);
    for (int i = 0; i < MIXT_STATS_COUNTS; i++)
        counts[i] += p->counts[i];
}

void mixt__debug_count(const float *numbers, int64_t count, double *totals, int64_t *counts)
{
    work w = {.mine = numbers};
    memset(counts, 0, MIXT_STATS_COUNTS * sizeof *counts);
    if (count < 2 * GRAIN || !split(count_part, &w, count)) {
        count_range(numbers, count, totals, counts);
    } else {
        totals[MIXT_STATS_SUM] = totals[MIXT_STATS_SQUARES] = 0;
        totals[MIXT_STATS_MIN] = INFINITY;
        totals[MIXT_STATS_MAX] = -INFINITY;
        for (int t = 0; t < mixt__threads_count(); t++)
            if (w.parts[t].used)
                add_part(&w.parts[t], totals, counts);
    }
    mixt__free(w.parts);
    double least = totals[MIXT_STATS_MIN], most = totals[MIXT_STATS_MAX];
    totals[MIXT_STATS_AMAX] = least > most ? 0 : fmax(fabs(least), fabs(most));
    counts[MIXT_STATS_COUNT] = count;
}

/* ---- against FP32 ---- */

static void compare_range(mixt__sight *s, const float *mine, const float *full, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = (double)mine[i], y = (double)full[i];
        if (!isfinite(y))
            continue;
        s->reference = fabs(y) > s->reference ? fabs(y) : s->reference;
        if (!isfinite(x)) {
            s->broken++;
            continue;
        }
        s->noise += (x - y) * (x - y);
        s->signal += y * y;
    }
}

static void compare_part(void *argument, int64_t begin, int64_t end, int thread)
{
    const work *w = argument;
    compare_range(&w->parts[thread].seen, w->mine + begin, w->full + begin, end - begin);
}

/** Numbers that are 0 here and not in FP32. What FP32 has left of a sum that cancels, and the format could hold, is
 * none of them: there 0 is as good. */
static int64_t count_flushed(const work *w, int64_t begin, int64_t end)
{
    double flushed = (double)mixt__dtype_flushed(w->dtype), noise = 1e-6 * w->largest;
    int64_t found = 0;
    for (int64_t i = begin; i < end; i++) {
        double y = fabs((double)w->full[i]);
        found += w->mine[i] == 0 && y > 0 && (y <= flushed || y >= noise);
    }
    return found;
}

static void flushed_part(void *argument, int64_t begin, int64_t end, int thread)
{
    const work *w = argument;
    w->parts[thread].seen.flushed += count_flushed(w, begin, end);
}

void mixt__debug_compare(mixt__sight *s, mixt_dtype dtype, const float *mine, const float *full, int64_t count)
{
    work w = {.mine = mine, .full = full, .dtype = dtype};
    s->compared = true;
    bool shared = count >= 2 * GRAIN && split(compare_part, &w, count);
    if (!shared)
        compare_range(s, mine, full, count);
    for (int t = 0; shared && t < mixt__threads_count(); t++) {
        const mixt__sight *p = &w.parts[t].seen;
        s->reference = fmax(s->reference, p->reference);
        s->broken += p->broken;
        s->noise += p->noise;
        s->signal += p->signal;
    }
    w.largest = s->reference;
    if (shared)
        mixt__parallel(count, GRAIN, flushed_part, &w);
    for (int t = 0; shared && t < mixt__threads_count(); t++)
        s->flushed += w.parts[t].seen.flushed;
    if (!shared)
        s->flushed = count_flushed(&w, 0, count);
    mixt__free(w.parts);
}

/* ---- from the device ---- */

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

mixt_status mixt__debug_read(mixt__device *device, const mixt__tensor *t, void *raw, float *numbers)
{
    int64_t count = mixt__shape_count(&t->shape), span = t->contiguous ? count : mixt__debug_span(t);
    size_t size = mixt_dtype_size(t->dtype);
    if (!count)
        return MIXT_OK;
    MIXT_TRY(mixt__device_download(device, raw, t->data, (size_t)span * size));
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
