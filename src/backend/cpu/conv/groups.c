/* Convolution in groups of few channels, forward and with respect to the source; compiled for AVX2 and AVX-512.
 *
 * Both are the same sum over taps and over the channels of a group that are read (axis.h). A unit is one or two
 * vectors of the result's channels: a part of a group, or several groups side by side, whose read channels are spread
 * over their lanes. The plan cuts a row into blocks of pixels whose sums stay in registers; a tap that lies outside for
 * some of a block reads zeros there, a tap that lies outside for all of it is left out. What is not FP32 is widened a
 * row at a time. Threads split rows of the result, never a sum: the bits do not depend on their number.
 */
#include "backend/cpu/conv/groups.h"
#include "backend/cpu/conv/axis.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

enum { BLOCK = 8 }; // pixels: the sums of all of them and of a unit's vectors stay in registers

/** A tap of a block, and the column that each of its pixels reads; −1: none. */
typedef struct column {
    int32_t tap, at[BLOCK];
} column;

typedef struct block {
    int32_t x, pixels;    // of the result: x, x + gap, …
    int32_t first, count; // of its columns
} block;

/** A row that is read, and the first tap of its row of the kernel. */
typedef struct line {
    const float *from;
    int64_t tap;
} line;

typedef struct plan {
    mixt__conv_steps z, y, x;
    int64_t out_d, out_h, out_w, out_c, in_d, in_h, in_w, in_c;
    int64_t gap, taps; // gap: from a pixel of a block to the next
    int64_t block_count, unit_count, packed;
    block *blocks;
    column *columns;
    unit *units;
    lanes lanes;
    bool turned, widened;
    size_t wide_at, zeros_at, lines_at, lines_bytes, rows_at, rows_bytes; // in the workspace; wide: the weight
                                                                          // in FP32; lines, rows: of a thread
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
    const float *weight;
} job;

/* ---- plan ---- */

/** The columns that a block's pixels read, appended to the plan's; how many. */
static int32_t list_columns(const plan *p, int64_t x, int64_t pixels, column *to)
{
    int32_t count = 0;
    for (int64_t t = 0; t < p->x.taps; t++) {
        bool any = false;
        to[count].tap = (int32_t)t;
        for (int64_t i = 0; i < pixels; i++) {
            int64_t at = mixt__conv_reads(&p->x, x + i * p->gap, t);
            to[count].at[i] = (int32_t)at;
            any = any || at >= 0;
        }
        count += any;
    }
    return count;
}

/** Cuts the pixels of one row into blocks of nearly one size. */
static void cut_row(plan *p)
{
    int32_t used = 0;
    for (int64_t phase = 0; phase < p->gap && phase < p->out_w; phase++) {
        int64_t pixels = (p->out_w - phase + p->gap - 1) / p->gap, count = (pixels + BLOCK - 1) / BLOCK;
        for (int64_t b = 0; b < count; b++) {
            int64_t begin = pixels * b / count, size = pixels * (b + 1) / count - begin, x = phase + begin * p->gap;
            int32_t columns = list_columns(p, x, size, p->columns + used);
            p->blocks[p->block_count++] = (block){(int32_t)x, (int32_t)size, used, columns};
            used += columns;
        }
    }
}

static plan plan_of(const mixt__conv *v)
{
    bool turned = v->kind == MIXT_CONV_GRAD_SRC;
    int64_t c = v->c / v->groups, o = v->o / v->groups;
    plan p = {.turned = turned, .taps = mixt__conv_taps(v), .gap = turned ? v->stride_w : 1};
    p.out_d = turned ? v->d : v->out_d, p.in_d = turned ? v->out_d : v->d;
    p.out_h = turned ? v->h : v->out_h, p.in_h = turned ? v->out_h : v->h;
    p.out_w = turned ? v->w : v->out_w, p.in_w = turned ? v->out_w : v->w;
    p.out_c = turned ? v->c : v->o, p.in_c = turned ? v->o : v->c;
    p.lanes = lanes_of(turned ? c : o, turned ? o : c);
    p.z = mixt__conv_axis_of(turned, v->kernel_d, v->stride_d, v->dilation_d, v->pad_d, p.in_d);
    p.y = mixt__conv_axis_of(turned, v->kernel_h, v->stride, v->dilation_h, v->pad, p.in_h);
    p.x = mixt__conv_axis_of(turned, v->kernel_w, v->stride_w, v->dilation_w, v->pad_w, p.in_w);
    return p;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__conv v = mixt__conv_of(call);
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    if (p)
        *p = plan_of(&v);
    int64_t rows = p ? p->z.taps * p->y.taps : 0, most = p ? p->out_w / BLOCK + p->gap : 0; // blocks of a row
    block *blocks = p ? mixt__arena_alloc(arena, (size_t)most * sizeof *blocks) : NULL;
    column *columns = p ? mixt__arena_alloc(arena, (size_t)(most * v.kernel_w + 1) * sizeof *columns) : NULL;
    unit *units = p ? mixt__arena_alloc(arena, (size_t)p->out_c * sizeof *units) : NULL;
    if (!blocks || !columns || !units)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    p->blocks = blocks, p->columns = columns, p->units = units;
    p->widened = call->in[0].dtype != MIXT_DTYPE_FP32;
    cut_row(p);
    p->unit_count = cut_channels(&p->lanes, v.groups, p->taps * p->lanes.reads, units, &p->packed);
    p->wide_at = whole_lines(p->packed, sizeof(float));
    p->zeros_at = p->wide_at;
    if (call->in[1].dtype != MIXT_DTYPE_FP32)
        p->zeros_at += whole_lines(mixt__shape_count(&call->in[1].shape), sizeof(float));
    p->lines_at = p->zeros_at + whole_lines(p->lanes.reads + VEC_LANES, sizeof(float));
    p->lines_bytes = whole_lines(rows, sizeof(line));
    p->rows_at = p->lines_at + (size_t)mixt__threads_count() * p->lines_bytes;
    p->rows_bytes = p->widened ? whole_lines(rows * p->in_w * p->in_c, sizeof(float)) : 0;
    call->workspace_bytes = p->rows_at + (size_t)mixt__threads_count() * p->rows_bytes;
    call->state = p;
    return MIXT_OK;
}

/* ---- sums ---- */

/** The weight as units read it: (taps, read channels, vectors, lanes). */
static void pack_units(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    int64_t width = p->lanes.width, reads = p->lanes.reads, first[VECTORS * VEC_LANES];
    int64_t tap_step = p->turned ? width : reads, read_step = p->turned ? p->taps * width : 1;
    (void)thread;
    for (const unit *u = p->units + begin; u < p->units + end; u++) {
        float *packed = (float *)j->call->workspace + u->packed;
        int64_t size = u->vectors * VEC_LANES, used = size - VEC_LANES + u->last;
        memset(packed, 0, (size_t)(p->taps * reads * size) * sizeof *packed);
        for (int64_t lane = 0; lane < used; lane++) {
            int64_t channel = u->to + lane, group = channel / width;
            first[lane] = p->turned ? group * reads * read_step + channel % width : channel * p->taps * reads;
        }
        for (int64_t t = 0; t < p->taps; t++)
            for (int64_t n = 0; n < reads; n++, packed += size)
                for (int64_t lane = 0; lane < used; lane++)
                    packed[lane] = j->weight[first[lane] + t * tap_step + n * read_step];
    }
}

/** A row of the result: its first pixel, and the rows that it reads. */
typedef struct row {
    const job *job;
    int64_t to, count;
    const line *from;
} row;

VEC_INLINE void run_tile(spread form, int pixels, int vectors, const row *r, const block *b, const unit *u)
{
    const plan *p = r->job->plan;
    const mixt__call *call = r->job->call;
    const float *weight = (const float *)call->workspace + u->packed;
    const float *zeros = (const float *)((const char *)call->workspace + p->zeros_at);
    const column *columns = p->columns + b->first;
    const int64_t channels = form == SPREAD_QUADS ? 4 : p->lanes.reads;
    vec sums[BLOCK][VECTORS];
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < pixels; i++)
            sums[i][v] = call->in_count == 3 ? vec_get_part(call->in[2].data, MIXT_DTYPE_FP32, u->to + v * VEC_LANES,
                                                            v + 1 < vectors ? VEC_LANES : u->last)
                                             : vec_zero();
    for (int64_t f = 0; f < r->count; f++)
        for (const column *k = columns; k < columns + b->count; k++) {
            const float *w = weight + (r->from[f].tap + k->tap) * channels * vectors * VEC_LANES;
            const float *first = r->from[f].from + u->from, *from[BLOCK];
            vec read[BLOCK];
            for (int i = 0; i < pixels; i++) {
                from[i] = k->at[i] < 0 ? zeros : first + k->at[i] * p->in_c;
                read[i] = form == SPREAD_ONE ? vec_zero() : vec_get_part(from[i], MIXT_DTYPE_FP32, 0, u->reads);
            }
#pragma GCC unroll 4
            for (int64_t n = 0; n < channels; n++, w += vectors * VEC_LANES)
                for (int i = 0; i < pixels; i++) {
                    vec x = form == SPREAD_ONE ? vec_set(from[i][n]) : spread_lanes(form, &p->lanes, read[i], n);
                    for (int v = 0; v < vectors; v++)
                        sums[i][v] = vec_fma(x, vec_load(w + v * VEC_LANES), sums[i][v]);
                }
        }
    for (int i = 0; i < pixels; i++)
        for (int v = 0; v < vectors; v++)
            vec_put_part(call->out[0].data, call->out[0].dtype,
                         (r->to + b->x + i * p->gap) * p->out_c + u->to + v * VEC_LANES,
                         v + 1 < vectors ? VEC_LANES : u->last, sums[i][v]);
}

/** The blocks of a row, one function for each count of pixels. */
VEC_INLINE void run_unit(spread form, int vectors, const row *r, const unit *u)
{
    const plan *p = r->job->plan;
    for (const block *b = p->blocks; b < p->blocks + p->block_count; b++)
        switch (b->pixels) {
#define EACH(pixels)                                                                                                   \
    case pixels:                                                                                                       \
        run_tile(form, pixels, vectors, r, b, u);                                                                      \
        break;
            EACH(1) EACH(2) EACH(3) EACH(4) EACH(5) EACH(6) EACH(7) EACH(8)
#undef EACH
        }
}

static void run_row(const row *r)
{
    const plan *p = r->job->plan;
    for (const unit *u = p->units; u < p->units + p->unit_count; u++)
        if (p->lanes.form == SPREAD_QUADS)
            run_unit(SPREAD_QUADS, 1, r, u);
        else if (p->lanes.form == SPREAD_ANY)
            run_unit(SPREAD_ANY, 1, r, u);
        else if (u->vectors == 1)
            run_unit(SPREAD_ONE, 1, r, u);
        else
            run_unit(SPREAD_ONE, VECTORS, r, u);
}

/** The rows that row `at` of the result reads, in FP32. */
static void find_lines(row *r, int64_t at, line *lines, float *rows)
{
    const plan *p = r->job->plan;
    const mixt__tensor *in = &r->job->call->in[0];
    int64_t y = at % p->out_h, z = at / p->out_h % p->out_d, image = at / p->out_h / p->out_d, size = p->in_w * p->in_c;
    r->to = at * p->out_w;
    r->count = 0;
    for (int64_t l = 0; l < p->z.taps; l++)
        for (int64_t i = 0; i < p->y.taps; i++) {
            int64_t in_z = mixt__conv_reads(&p->z, z, l), in_y = mixt__conv_reads(&p->y, y, i);
            if (in_z < 0 || in_y < 0)
                continue;
            int64_t first = ((image * p->in_d + in_z) * p->in_h + in_y) * size;
            const float *from = (const float *)in->data + first;
            if (p->widened) {
                mixt__widen(in->dtype)(rows + r->count * size, (const uint16_t *)in->data + first, size);
                from = rows + r->count * size;
            }
            lines[r->count++] = (line){from, (l * p->y.taps + i) * p->x.taps};
        }
}

static void run_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    char *workspace = j->call->workspace;
    line *lines = (line *)(workspace + p->lines_at + (size_t)thread * p->lines_bytes);
    float *rows = (float *)(workspace + p->rows_at + (size_t)thread * p->rows_bytes);
    row r = {.job = j, .from = lines};
    for (int64_t at = begin; at < end; at++) {
        find_lines(&r, at, lines, rows);
        run_row(&r);
    }
}

static mixt_status run(const mixt__call *call)
{
    const plan *p = call->state;
    const mixt__tensor *weight = &call->in[1];
    float *wide = (float *)((char *)call->workspace + p->wide_at);
    bool lies = weight->dtype == MIXT_DTYPE_FP32;
    job j = {call, p, lies ? weight->data : wide};
    int64_t work = p->out_w * p->out_c * p->taps * p->lanes.reads;
    memset((char *)call->workspace + p->zeros_at, 0, p->lines_at - p->zeros_at);
    if (!lies)
        mixt__widen(weight->dtype)(wide, weight->data, mixt__shape_count(&weight->shape));
    mixt__parallel(p->unit_count, 16, pack_units, &j);
    mixt__parallel(mixt__shape_count(&call->out[0].shape) / (p->out_w * p->out_c), 32768 / (work + 1) + 1, run_rows,
                   &j);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__conv_groups) = {
    .name = "groups_" MIXT_AT_NAME, .supports = groups_supports, .prepare = prepare, .run = run};
