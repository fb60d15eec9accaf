/* Depthwise convolution, forward and with respect to the source, with channels in vectors; compiled for AVX2 and
 * AVX-512.
 *
 * Both are the same sum over taps: value (z, y, x) of the result reads, by tap (l, i, k), one pixel of the other tensor
 * or none. For the gradient with a stride that is one of every stride-th tap. Which pixels of a row read the same taps
 * does not depend on the row: the plan cuts a row into blocks of such pixels, whose sums stay in registers while each
 * weight is loaded once. Borders are blocks with fewer taps: nothing is padded and nothing is checked inside.
 * Threads split rows of the result, never a sum: the bits do not depend on their number.
 */
#include "backend/cpu/conv/axis.h"
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/core/vec.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

#ifdef __AVX512F__
enum { BLOCK = 8 }; // pixels: 16 registers of 32 hold their sums, two vectors each
#else
enum { BLOCK = 4 };
#endif

/** A tap of a block, and the column that its first pixel reads. */
typedef struct column {
    int32_t tap, at;
} column;

typedef struct block {
    int32_t x, pixels;    // of the result: x, x + gap, …
    int32_t first, count; // of its columns
} block;

/** A row that is read: its first pixel, and the first tap of its row of the kernel. */
typedef struct line {
    int64_t at, tap;
} line;

typedef struct plan {
    mixt__conv_steps z, y, x;
    int64_t out_d, out_h, out_w, in_d, in_h, in_w, channels, lanes; // lanes: channels up to whole vectors
    int64_t gap, in_gap; // from a pixel of a block to the next, in the result and in what it reads
    int64_t block_count;
    block *blocks;
    column *columns;
    size_t lines_at; // in the workspace: room for the lines of each thread
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
} job;

/* ---- plan ---- */

/** The columns that pixel x of the result reads, appended to the plan's; how many. */
static int32_t list_columns(const plan *p, int64_t x, column *to)
{
    int32_t count = 0;
    for (int64_t t = 0; t < p->x.taps; t++) {
        int64_t at = mixt__conv_reads(&p->x, x, t);
        if (at >= 0)
            to[count++] = (column){(int32_t)t, (int32_t)at};
    }
    return count;
}

/** Whether pixel x reads by the same taps as the block whose columns are `first`. */
static bool continues(const plan *p, int64_t x, const column *first, int32_t count)
{
    int32_t same = 0;
    for (int64_t t = 0; t < p->x.taps; t++)
        if (mixt__conv_reads(&p->x, x, t) >= 0) {
            if (same == count || first[same].tap != t)
                return false;
            same++;
        }
    return same == count;
}

/** Cuts the pixels of one row into blocks of 1, 2, 4 or, at most, BLOCK. */
static void cut_row(plan *p)
{
    int32_t used = 0;
    for (int64_t phase = 0; phase < p->gap; phase++)
        for (int64_t x = phase; x < p->out_w;) {
            int32_t count = list_columns(p, x, p->columns + used), pixels = 1, whole = 1;
            while (pixels < BLOCK && x + pixels * p->gap < p->out_w &&
                   continues(p, x + pixels * p->gap, p->columns + used, count))
                pixels++;
            while (whole * 2 <= pixels)
                whole *= 2;
            p->blocks[p->block_count++] = (block){(int32_t)x, whole, used, count};
            used += count;
            x += whole * p->gap;
        }
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__conv v = mixt__conv_of(call);
    bool turned = v.kind == MIXT_CONV_GRAD_SRC;
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    int64_t width = turned ? v.w : v.out_w;
    block *blocks = mixt__arena_alloc(arena, (size_t)width * sizeof *blocks);
    column *columns = mixt__arena_alloc(arena, (size_t)(width * v.kernel_w) * sizeof *columns);
    if (!p || !blocks || !columns)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    *p = (plan){.out_d = turned ? v.d : v.out_d,
                .out_h = turned ? v.h : v.out_h,
                .out_w = width,
                .in_d = turned ? v.out_d : v.d,
                .in_h = turned ? v.out_h : v.h,
                .in_w = turned ? v.out_w : v.w,
                .channels = v.c,
                .gap = turned ? v.stride_w : 1,
                .in_gap = turned ? 1 : v.stride_w,
                .blocks = blocks,
                .columns = columns};
    p->lanes = (v.c + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    p->z = mixt__conv_axis_of(turned, v.kernel_d, v.stride_d, v.dilation_d, v.pad_d, p->in_d);
    p->y = mixt__conv_axis_of(turned, v.kernel_h, v.stride, v.dilation_h, v.pad, p->in_h);
    p->x = mixt__conv_axis_of(turned, v.kernel_w, v.stride_w, v.dilation_w, v.pad_w, p->in_w);
    cut_row(p);
    p->lines_at = (size_t)(mixt__conv_taps(&v) * p->lanes) * sizeof(float);
    call->workspace_bytes =
        p->lines_at + (size_t)mixt__threads_count() * (size_t)(v.kernel_d * v.kernel_h) * sizeof(line);
    call->state = p;
    return MIXT_OK;
}

/* ---- sums ---- */

/** (O, taps) becomes (taps, lanes) in FP32. */
static void pack_weight(const job *j, int64_t taps)
{
    const mixt__tensor *weight = &j->call->in[1];
    float *packed = j->call->workspace;
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < j->plan->lanes; c++)
            packed[t * j->plan->lanes + c] =
                c < j->plan->channels ? mixt__load(weight->data, weight->dtype, c * taps + t) : 0;
}

/** A row of the result: its first pixel, and the rows that it reads. */
typedef struct row {
    const job *job;
    int64_t to, count;
    const line *from;
} row;

/** `pixels` pixels and `vectors` vectors from channel c, the last of `lanes` channels. */
VEC_INLINE void run_tile(mixt_dtype dtype, int pixels, int vectors, int64_t lanes, const row *r, const block *b,
                         int64_t c)
{
    const plan *p = r->job->plan;
    const mixt__call *call = r->job->call;
    const float *weight = (const float *)call->workspace + c;
    const column *columns = p->columns + b->first;
    vec sums[BLOCK][2];
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < pixels; i++)
            sums[i][v] = call->in_count == 3 ? vec_get_part(call->in[2].data, MIXT_DTYPE_FP32, c + v * VEC_LANES,
                                                            v + 1 < vectors ? VEC_LANES : lanes)
                                             : vec_zero();
    for (int64_t f = 0; f < r->count; f++)
        for (int32_t k = 0; k < b->count; k++) {
            const float *w = weight + (r->from[f].tap + columns[k].tap) * p->lanes;
            int64_t at = (r->from[f].at + columns[k].at) * p->channels + c;
            for (int v = 0; v < vectors; v++) {
                vec wv = vec_load(w + v * VEC_LANES);
                for (int i = 0; i < pixels; i++)
                    sums[i][v] =
                        vec_fma(vec_get_part(call->in[0].data, dtype, at + i * p->in_gap * p->channels + v * VEC_LANES,
                                             v + 1 < vectors ? VEC_LANES : lanes),
                                wv, sums[i][v]);
            }
        }
    for (int i = 0; i < pixels; i++)
        for (int v = 0; v < vectors; v++)
            vec_put_part(call->out[0].data, dtype, (r->to + b->x + i * p->gap) * p->channels + c + v * VEC_LANES,
                         v + 1 < vectors ? VEC_LANES : lanes, sums[i][v]);
}

VEC_INLINE void run_block(mixt_dtype dtype, int pixels, const row *r, const block *b)
{
    int64_t c = 0, channels = r->job->plan->channels;
    for (; c + 2 * VEC_LANES <= channels; c += 2 * VEC_LANES)
        run_tile(dtype, pixels, 2, VEC_LANES, r, b, c);
    if (c + VEC_LANES <= channels) {
        run_tile(dtype, pixels, 1, VEC_LANES, r, b, c);
        c += VEC_LANES;
    }
    if (c < channels)
        run_tile(dtype, pixels, 1, channels - c, r, b, c);
}

VEC_INLINE void run_row(mixt_dtype dtype, const row *r)
{
    const plan *p = r->job->plan;
    for (const block *b = p->blocks; b < p->blocks + p->block_count; b++)
        switch (b->pixels) {
        case 1:
            run_block(dtype, 1, r, b);
            break;
        case 2:
            run_block(dtype, 2, r, b);
            break;
        case 4:
            run_block(dtype, 4, r, b);
            break;
        default:
            run_block(dtype, BLOCK, r, b);
        }
}

static void run_typed(const row *r)
{
    switch (r->job->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        run_row(MIXT_DTYPE_FP32, r);
        break;
    case MIXT_DTYPE_BF16:
        run_row(MIXT_DTYPE_BF16, r);
        break;
    default:
        run_row(MIXT_DTYPE_FP16, r);
    }
}

/** The rows that row `at` of the result reads. */
static void find_lines(row *r, int64_t at, line *lines)
{
    const plan *p = r->job->plan;
    int64_t y = at % p->out_h, z = at / p->out_h % p->out_d, image = at / p->out_h / p->out_d;
    r->to = at * p->out_w;
    r->count = 0;
    for (int64_t l = 0; l < p->z.taps; l++)
        for (int64_t i = 0; i < p->y.taps; i++) {
            int64_t in_z = mixt__conv_reads(&p->z, z, l), in_y = mixt__conv_reads(&p->y, y, i);
            if (in_z >= 0 && in_y >= 0)
                lines[r->count++] =
                    (line){((image * p->in_d + in_z) * p->in_h + in_y) * p->in_w, (l * p->y.taps + i) * p->x.taps};
        }
}

static void run_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    line *lines = (line *)((char *)j->call->workspace + j->plan->lines_at) + thread * j->plan->z.taps * j->plan->y.taps;
    row r = {.job = j, .from = lines};
    for (int64_t at = begin; at < end; at++) {
        find_lines(&r, at, lines);
        run_typed(&r);
    }
}

static mixt_status run(const mixt__call *call)
{
    const plan *p = call->state;
    job j = {call, p};
    int64_t taps = p->z.taps * p->y.taps * p->x.taps, work = p->out_w * p->channels * taps;
    pack_weight(&j, taps);
    mixt__parallel(mixt__shape_count(&call->out[0].shape) / (p->out_w * p->channels), 32768 / (work + 1) + 1, run_rows,
                   &j);
    return MIXT_OK;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__conv v = mixt__conv_of(call);
    if (!vec_supports(call, reason) || !mixt__conv_is_ordinary(call, reason))
        return false;
    if (v.groups == 1 || v.groups != v.c || v.o != v.c)
        *reason = "only depthwise: a group for each channel, one output each";
    else if (call->in[0].dtype != call->out[0].dtype)
        *reason = "only a result in the format of what is read";
    return !*reason;
}

const mixt__kernel MIXT_AT(mixt__conv_depthwise) = {
    .name = "depthwise_" MIXT_AT_NAME, .supports = supports, .prepare = prepare, .run = run};
