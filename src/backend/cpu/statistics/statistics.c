/* Statistics of a value and of the difference of two, in one pass.
 *
 * Elements are taken in the order of their indices, whatever their strides, in chunks of a fixed length: each chunk's
 * FP64 sums go to the workspace and are added up in order, so that neither the number of threads nor the layout changes
 * a bit. Counts are integers of 64 bits, a set for each thread.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/statistics/loops.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 16384, TILE = MIXT__ROW_TILE, LANES = MIXT_STATS_LANES, NUMBERS = 8, COUNTS = MIXT_STATS_COUNTS };

_Static_assert((int)MIXT_STATS_NUMBERS <= (int)NUMBERS && (int)MIXT_DIFF_NUMBERS <= (int)NUMBERS, "of a chunk");
_Static_assert((int)MIXT_DIFF_COUNTS <= (int)COUNTS, "of a thread");

/** Workspace: numbers of each chunk, then counts of each thread. */
typedef struct layout {
    int64_t count, chunks, columns, threads; // columns: numbers in a row, all of them where rows lie behind each other
    bool targets;                            // some format is held against
    uint32_t beyond[MIXT_STATS_TARGETS], flushed[MIXT_STATS_TARGETS]; // as bits of magnitudes
    mixt__stats_loop *loop;
} layout;

mixt__stats_loop *mixt__stats_loop_get(void)
{
    mixt__isa level = mixt__isa_level();
    if (level >= MIXT_ISA_AVX512)
        return mixt__stats_loop_avx512;
    return level >= MIXT_ISA_AVX2 ? mixt__stats_loop_avx2 : mixt__stats_loop_scalar;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    layout *l = mixt__arena_alloc(arena, sizeof *l);
    if (!l)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the layout of statistics");
    const mixt__shape *shape = &call->in[0].shape;
    l->count = mixt__shape_count(shape);
    bool dense = true;
    for (int k = 0; k < call->in_count; k++)
        dense = dense && call->in[k].contiguous;
    l->columns = dense ? l->count : shape->rank ? shape->dims[shape->rank - 1] : 1;
    l->columns = l->columns > 0 ? l->columns : 1;
    l->chunks = (l->count + CHUNK - 1) / CHUNK;
    l->threads = mixt__threads_count();
    call->state = l;
    call->workspace_bytes =
        (size_t)l->chunks * NUMBERS * sizeof(double) + (size_t)l->threads * COUNTS * sizeof(int64_t);
    return MIXT_OK;
}

static mixt_status prepare_stats(mixt__call *call, mixt__arena *arena)
{
    const mixt__tensor_stats_attrs *at = call->attrs;
    MIXT_TRY(prepare(call, arena));
    layout *l = call->state;
    l->loop = mixt__stats_loop_get();
    for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
        l->beyond[t] = mixt__fp32_bits(mixt__dtype_beyond(at->targets[t]));
        l->flushed[t] = mixt__fp32_bits(mixt__dtype_flushed(at->targets[t]));
        l->targets = l->targets || at->targets[t] != MIXT_DTYPE_NONE;
    }
    return MIXT_OK;
}

static double *chunk_numbers(const mixt__call *call, int64_t chunk)
{
    return (double *)call->workspace + chunk * NUMBERS;
}

static int64_t *thread_counts(const mixt__call *call, int64_t thread)
{
    const layout *l = call->state;
    return (int64_t *)(void *)chunk_numbers(call, l->chunks) + thread * COUNTS;
}

/** `count` elements of a tensor from index `first` on, all within one row, as FP32. */
static const float *load(float *tile, const mixt__tensor *t, int64_t columns, int64_t first, int64_t count)
{
    int64_t row = first / columns, at = first % columns;
    if (t->contiguous)
        return mixt__row_load(tile, t->data, t->dtype, first, count);
    for (int d = t->shape.rank - 2; d >= 0; d--) {
        at += row % t->shape.dims[d] * t->strides[d];
        row /= t->shape.dims[d];
    }
    return mixt__row_load(tile, t->data, t->dtype, at, count);
}

/** Elements that can be loaded at once from index `first` on, below `end`. */
static int64_t span(const layout *l, int64_t first, int64_t end)
{
    int64_t count = l->columns - first % l->columns;
    count = count < TILE ? count : TILE;
    return count < end - first ? count : end - first;
}

/* ---- statistics ---- */

/** One number of a lane: what does not fill a group. */
static void add_number(mixt__stats_sums *s, int lane, float x)
{
    uint32_t size = mixt__fp32_bits(x) & 0x7fffffffu;
    s->zeros[lane] += size == 0;
    s->nan[lane] += size > 0x7f800000u;
    s->inf[lane] += size == 0x7f800000u;
    s->exponents[lane][size >> 23]++;
    if (size >= 0x7f800000u)
        return;
    double v = (double)x;
    s->sum[lane] += v;
    s->squares[lane] += v * v;
    s->low[lane] = x < s->low[lane] ? x : s->low[lane];
    s->high[lane] = x > s->high[lane] ? x : s->high[lane];
}

/** @param first index of x[0] in the tensor */
static void add_numbers(const layout *l, mixt__stats_sums *s, const float *x, int64_t first, int64_t count)
{
    int64_t i = 0;
    for (; i < count && (first + i) % LANES; i++)
        add_number(s, (int)((first + i) % LANES), x[i]);
    l->loop(s, x + i, (count - i) / LANES);
    for (i += (count - i) / LANES * LANES; i < count; i++)
        add_number(s, (int)((first + i) % LANES), x[i]);
}

static void add_targets(int64_t *counts, const layout *l, const float *x, int64_t count)
{
    int32_t beyond[MIXT_STATS_TARGETS] = {0}, flushed[MIXT_STATS_TARGETS] = {0};
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = mixt__fp32_bits(x[i]) & 0x7fffffffu;
        for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
            beyond[t] += size >= l->beyond[t] && size < 0x7f800000u;
            flushed[t] += size <= l->flushed[t] && size > 0;
        }
    }
    for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
        counts[MIXT_STATS_BEYOND + t] += beyond[t];
        counts[MIXT_STATS_FLUSHED + t] += flushed[t];
    }
}

static double in_order(const double *lanes)
{
    double total = 0;
    for (int i = 0; i < LANES; i++)
        total += lanes[i];
    return total;
}

/** A chunk's numbers in its place, its counts beside those of the thread. */
static void leave_chunk(const mixt__stats_sums *s, int64_t count, double *numbers, int64_t *counts)
{
    numbers[MIXT_STATS_SUM] = in_order(s->sum);
    numbers[MIXT_STATS_SQUARES] = in_order(s->squares);
    numbers[MIXT_STATS_MIN] = INFINITY;
    numbers[MIXT_STATS_MAX] = -INFINITY;
    counts[MIXT_STATS_COUNT] += count;
    for (int lane = 0; lane < LANES; lane++) {
        numbers[MIXT_STATS_MIN] = fmin(numbers[MIXT_STATS_MIN], (double)s->low[lane]);
        numbers[MIXT_STATS_MAX] = fmax(numbers[MIXT_STATS_MAX], (double)s->high[lane]);
        counts[MIXT_STATS_ZEROS] += s->zeros[lane];
        counts[MIXT_STATS_NAN] += s->nan[lane];
        counts[MIXT_STATS_INF] += s->inf[lane];
        for (int e = 0; e < MIXT_STATS_BINS; e++)
            counts[MIXT_STATS_EXPONENTS + e] += s->exponents[lane][e];
    }
}

static void stats_chunks(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const layout *l = call->state;
    float tile[TILE];
    int64_t *counts = thread_counts(call, thread);
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t first = chunk * CHUNK, last = first + CHUNK < l->count ? first + CHUNK : l->count;
        mixt__stats_sums s = {0};
        for (int lane = 0; lane < LANES; lane++) {
            s.low[lane] = INFINITY;
            s.high[lane] = -INFINITY;
        }
        for (int64_t i = first, n; i < last; i += n) {
            n = span(l, i, last);
            const float *x = load(tile, &call->in[0], l->columns, i, n);
            add_numbers(l, &s, x, i, n);
            if (l->targets)
                add_targets(counts, l, x, n);
        }
        leave_chunk(&s, last - first, chunk_numbers(call, chunk), counts);
    }
}

/** Counts of all threads. */
static void total_counts(const mixt__call *call, int64_t *totals, int count)
{
    const layout *l = call->state;
    memset(totals, 0, (size_t)count * sizeof *totals);
    for (int64_t t = 0; t < l->threads; t++)
        for (int i = 0; i < count; i++)
            totals[i] += thread_counts(call, t)[i];
}

static mixt_status run_stats(const mixt__call *call)
{
    const layout *l = call->state;
    double *totals = call->out[0].data;
    memset(thread_counts(call, 0), 0, (size_t)l->threads * COUNTS * sizeof(int64_t));
    mixt__parallel(l->chunks, 1, stats_chunks, (void *)call);
    memset(totals, 0, MIXT_STATS_NUMBERS * sizeof *totals);
    totals[MIXT_STATS_MIN] = INFINITY;
    totals[MIXT_STATS_MAX] = -INFINITY;
    for (int64_t c = 0; c < l->chunks; c++) {
        const double *n = chunk_numbers(call, c);
        totals[MIXT_STATS_SUM] += n[MIXT_STATS_SUM];
        totals[MIXT_STATS_SQUARES] += n[MIXT_STATS_SQUARES];
        totals[MIXT_STATS_MIN] = fmin(totals[MIXT_STATS_MIN], n[MIXT_STATS_MIN]);
        totals[MIXT_STATS_MAX] = fmax(totals[MIXT_STATS_MAX], n[MIXT_STATS_MAX]);
    }
    totals[MIXT_STATS_AMAX] = fmax(0, fmax(-totals[MIXT_STATS_MIN], totals[MIXT_STATS_MAX]));
    total_counts(call, call->out[1].data, MIXT_STATS_COUNTS);
    return MIXT_OK;
}

/* ---- differences ---- */

/** One pair. @param w 0 without a weight */
static inline void add_pair(double *numbers, int64_t *counts, float reference, float other, float w)
{
    if (!isfinite(reference) || !isfinite(w)) {
        counts[MIXT_DIFF_SKIPPED]++;
        return;
    }
    if (!isfinite(other)) {
        counts[MIXT_DIFF_BROKEN]++;
        return;
    }
    double a = (double)reference, b = (double)other, e = b - a, we = (double)w * e;
    counts[MIXT_DIFF_FLUSHED] += a != 0 && b == 0;
    numbers[MIXT_DIFF_SQUARES] += e * e;
    numbers[MIXT_DIFF_REFERENCE] += a * a;
    numbers[MIXT_DIFF_OTHER] += b * b;
    numbers[MIXT_DIFF_PRODUCT] += a * b;
    numbers[MIXT_DIFF_LARGEST] = fabs(e) > numbers[MIXT_DIFF_LARGEST] ? fabs(e) : numbers[MIXT_DIFF_LARGEST];
    numbers[MIXT_DIFF_FIRST] += we;
    numbers[MIXT_DIFF_SECOND] += we * we;
}

static void error_chunks(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const layout *l = call->state;
    float tiles[3][TILE];
    int64_t *counts = thread_counts(call, thread);
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t last = (chunk + 1) * CHUNK < l->count ? (chunk + 1) * CHUNK : l->count;
        double *numbers = chunk_numbers(call, chunk);
        memset(numbers, 0, NUMBERS * sizeof *numbers);
        for (int64_t i = chunk * CHUNK, n; i < last; i += n) {
            const float *x[3] = {0};
            n = span(l, i, last);
            for (int k = 0; k < call->in_count; k++)
                x[k] = load(tiles[k], &call->in[k], l->columns, i, n);
            for (int64_t j = 0; j < n; j++)
                add_pair(numbers, counts, x[0][j], x[1][j], x[2] ? x[2][j] : 0.0f);
            counts[MIXT_DIFF_COUNT] += n;
        }
    }
}

static mixt_status run_error(const mixt__call *call)
{
    const layout *l = call->state;
    double *totals = call->out[0].data;
    memset(thread_counts(call, 0), 0, (size_t)l->threads * COUNTS * sizeof(int64_t));
    mixt__parallel(l->chunks, 1, error_chunks, (void *)call);
    memset(totals, 0, MIXT_DIFF_NUMBERS * sizeof *totals);
    for (int64_t c = 0; c < l->chunks; c++)
        for (int i = 0; i < MIXT_DIFF_NUMBERS; i++) {
            double n = chunk_numbers(call, c)[i];
            totals[i] = i == MIXT_DIFF_LARGEST ? fmax(totals[i], n) : totals[i] + n;
        }
    total_counts(call, call->out[1].data, MIXT_DIFF_COUNTS);
    return MIXT_OK;
}

static const mixt__kernel stats_chunked = {.name = "chunked", .prepare = prepare_stats, .run = run_stats};
static const mixt__kernel error_chunked = {.name = "chunked", .prepare = prepare, .run = run_error};

const mixt__kernel *const mixt__cpu_tensor_stats_kernels[] = {&stats_chunked, NULL};
const mixt__kernel *const mixt__cpu_tensor_error_kernels[] = {&error_chunked, NULL};
