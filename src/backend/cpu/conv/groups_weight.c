/* The gradient of the weight of a convolution in groups of few channels; compiled for AVX2 and AVX-512.
 *
 * Units of output channels lie in vectors as in groups.c. A tile holds the sums of some taps of a kernel row for four
 * channels that are read and goes along a row of grad_dst, or some short ones; a tap that lies outside reads zeros.
 * Rows' sums are added to those of a thread, and the threads' in their order: the bits depend on their number.
 */
#include "backend/cpu/conv/groups.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

enum { TAPS = 3, READS = 4, ROWS = 8, PIXELS = 64 }; // ROWS: that a tile goes along at most, until it has PIXELS

typedef struct plan {
    mixt__conv conv;
    lanes lanes;
    int64_t unit_count, packed, rounded, rows; // packed: sums of a thread; rounded: read channels of a group in them
    unit *units;
    int64_t *at; // (columns, taps): the first element of the pixel that a tap reads in its row; −1: none
    int threads;
    size_t zeros_at, sums_bytes, rows_at, rows_bytes; // in the workspace; sums and rows: of a thread
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
} job;

/** Rows of grad_dst and those of the source that a row of the kernel brings to them. */
typedef struct pairs {
    const plan *plan;
    const float *grad[ROWS], *src[ROWS], *zeros;
    int64_t count, tap; // tap: the kernel row's first
    float *sums;
} pairs;

/** `size` elements from `first` in FP32: widened into `room` where they are not. */
static const float *row_of(const mixt__tensor *tensor, int64_t first, int64_t size, float *room)
{
    if (tensor->dtype == MIXT_DTYPE_FP32)
        return (const float *)tensor->data + first;
    mixt__widen(tensor->dtype)(room, (const uint16_t *)tensor->data + first, size);
    return room;
}

static void list_columns(plan *p)
{
    const mixt__conv *v = &p->conv;
    for (int64_t x = 0; x < v->out_w; x++)
        for (int64_t t = 0; t < v->kernel_w; t++) {
            int64_t at = x * v->stride_w + t * v->dilation_w - v->pad_w;
            p->at[x * v->kernel_w + t] = at < 0 || at >= v->w ? -1 : at * v->c;
        }
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__conv v = mixt__conv_of(call);
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    unit *units = mixt__arena_alloc(arena, (size_t)v.o * sizeof *units);
    int64_t *at = mixt__arena_alloc(arena, (size_t)(v.out_w * v.kernel_w) * sizeof *at);
    if (!p || !units || !at)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    *p = (plan){.conv = v, .lanes = lanes_of(v.o / v.groups, v.c / v.groups), .units = units, .at = at};
    p->threads = mixt__threads_count();
    p->rounded = (p->lanes.reads + READS - 1) / READS * READS;
    p->rows = PIXELS / v.out_w < 1 ? 1 : PIXELS / v.out_w < ROWS ? PIXELS / v.out_w : ROWS;
    p->unit_count = cut_channels(&p->lanes, v.groups, mixt__conv_taps(&v) * p->rounded, units, &p->packed);
    list_columns(p);
    p->sums_bytes = whole_lines(p->packed, sizeof(float));
    p->zeros_at = p->sums_bytes * (size_t)p->threads;
    p->rows_at = p->zeros_at + whole_lines(p->lanes.reads + VEC_LANES, sizeof(float));
    p->rows_bytes = whole_lines(p->rows * (v.out_w * v.o + v.w * v.c), sizeof(float));
    if (call->in[0].dtype == MIXT_DTYPE_FP32 && call->in[1].dtype == MIXT_DTYPE_FP32)
        p->rows_bytes = 0;
    call->workspace_bytes = p->rows_at + p->rows_bytes * (size_t)p->threads;
    call->state = p;
    return MIXT_OK;
}

/** Adds rows to the sums of `taps` taps from `t` and of `reads` read channels from n. */
VEC_INLINE void add_tile(spread form, int taps, int reads, int vectors, const pairs *r, const unit *u, int64_t t,
                         int64_t n)
{
    const plan *p = r->plan;
    const int64_t kernel_w = p->conv.kernel_w, columns = p->conv.out_w, step = p->conv.o;
    vec sums[TAPS][READS][VECTORS];
#pragma GCC unroll 4
    for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
        for (int i = 0; i < reads; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sums[k][i][v] = vec_zero();
    for (int64_t f = 0; f < r->count; f++) {
        const int64_t *at = p->at + t;
        const float *grad = r->grad[f] + u->to, *first = r->src[f] + u->from;
        for (int64_t x = 0; x < columns; x++, at += kernel_w, grad += step) {
            vec g[VECTORS];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                g[v] = vec_get_part(grad, MIXT_DTYPE_FP32, v * VEC_LANES, v + 1 < vectors ? VEC_LANES : u->last);
#pragma GCC unroll 4
            for (int k = 0; k < taps; k++) {
                const float *from = at[k] < 0 ? r->zeros : first + at[k];
                vec read = form == SPREAD_ONE ? vec_zero() : vec_get_part(from, MIXT_DTYPE_FP32, 0, u->reads);
#pragma GCC unroll 4
                for (int i = 0; i < reads; i++) {
                    vec value = form == SPREAD_ONE     ? vec_set(from[n + i])
                                : form == SPREAD_QUADS ? spread_lanes(form, &p->lanes, read, i)
                                                       : spread_lanes(form, &p->lanes, read, n + i);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++)
                        sums[k][i][v] = vec_fma(value, g[v], sums[k][i][v]);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int k = 0; k < taps; k++)
#pragma GCC unroll 4
        for (int i = 0; i < reads; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                float *to = r->sums + u->packed + (((r->tap + t + k) * p->rounded + n + i) * vectors + v) * VEC_LANES;
                vec_store(to, vec_add(vec_load(to), sums[k][i][v]));
            }
}

VEC_INLINE void add_taps(spread form, int taps, int vectors, const pairs *r, const unit *u, int64_t t)
{
    int64_t n = 0, reads = form == SPREAD_ONE ? r->plan->lanes.reads : r->plan->rounded;
    for (; n + READS <= reads; n += READS)
        add_tile(form, taps, READS, vectors, r, u, t, n);
    if (form == SPREAD_ONE)
        for (; n < reads; n++)
            add_tile(form, taps, 1, vectors, r, u, t, n);
}

VEC_INLINE void add_unit(spread form, int vectors, const pairs *r, const unit *u)
{
    int64_t taps = r->plan->conv.kernel_w, t = 0;
    for (; t + TAPS <= taps; t += TAPS)
        add_taps(form, TAPS, vectors, r, u, t);
    if (taps - t == 2)
        add_taps(form, 2, vectors, r, u, t);
    else if (taps - t == 1)
        add_taps(form, 1, vectors, r, u, t);
}

static void add_pairs(const pairs *r)
{
    const plan *p = r->plan;
    for (const unit *u = p->units; u < p->units + p->unit_count; u++)
        if (p->lanes.form == SPREAD_QUADS)
            add_unit(SPREAD_QUADS, 1, r, u);
        else if (p->lanes.form == SPREAD_ANY)
            add_unit(SPREAD_ANY, 1, r, u);
        else if (u->vectors == 1)
            add_unit(SPREAD_ONE, 1, r, u);
        else
            add_unit(SPREAD_ONE, VECTORS, r, u);
}

/** `rows` rows of grad_dst from `at` with each row of the source that the kernel brings to them; `room`: for what is
 *  widened. */
static void add_rows(const job *j, int64_t at, int64_t rows, pairs *r, float *room)
{
    const mixt__conv *v = &j->plan->conv;
    const int64_t grad_size = v->out_w * v->o, src_size = v->w * v->c;
    const float *grad = row_of(&j->call->in[1], at * grad_size, rows * grad_size, room);
    float *src_room = room + j->plan->rows * grad_size;
    for (int64_t l = 0; l < v->kernel_d; l++)
        for (int64_t i = 0; i < v->kernel_h; i++) {
            r->count = 0;
            r->tap = (l * v->kernel_h + i) * v->kernel_w;
            for (int64_t f = 0; f < rows; f++) {
                int64_t y = (at + f) % v->out_h, plane = (at + f) / v->out_h, image = plane / v->out_d;
                int64_t from_z = plane % v->out_d * v->stride_d + l * v->dilation_d - v->pad_d;
                int64_t from_y = y * v->stride + i * v->dilation_h - v->pad;
                if (from_z < 0 || from_z >= v->d || from_y < 0 || from_y >= v->h)
                    continue;
                r->grad[r->count] = grad + f * grad_size;
                r->src[r->count] = row_of(&j->call->in[0], ((image * v->d + from_z) * v->h + from_y) * src_size,
                                          src_size, src_room + f * src_size);
                r->count++;
            }
            if (r->count)
                add_pairs(r);
        }
}

static void run_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    int64_t rows = p->conv.n * p->conv.out_d * p->conv.out_h;
    char *workspace = j->call->workspace;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        float *sums = (float *)(workspace + (size_t)part * p->sums_bytes);
        pairs r = {.plan = p, .sums = sums, .zeros = (const float *)(workspace + p->zeros_at)};
        memset(sums, 0, p->sums_bytes);
        for (int64_t at = rows * part / p->threads, end_row = rows * (part + 1) / p->threads; at < end_row;
             at += p->rows)
            add_rows(j, at, end_row - at < p->rows ? end_row - at : p->rows, &r,
                     (float *)(workspace + p->rows_at + (size_t)part * p->rows_bytes));
    }
}

/** Adds the threads' sums of one output channel, in lane `lane` of a unit, and stores them. */
static void finish_lane(const job *j, const unit *u, int64_t lane)
{
    const plan *p = j->plan;
    const mixt__tensor *out = &j->call->out[0];
    int64_t taps = mixt__conv_taps(&p->conv), step = u->vectors * VEC_LANES,
            to = (u->to + lane) * taps * p->lanes.reads;
    size_t part_size = p->sums_bytes / sizeof(float);
    bool plain = out->dtype == MIXT_DTYPE_FP32, more = j->call->accumulate & 1u;
    for (int64_t t = 0; t < taps; t++) {
        const float *from = (const float *)j->call->workspace + u->packed + t * p->rounded * step + lane;
        for (int64_t n = 0; n < p->lanes.reads; n++, from += step, to++) {
            float sum = from[0];
            for (int part = 1; part < p->threads; part++)
                sum += from[(size_t)part * part_size];
            if (more)
                sum += mixt__load(out->data, out->dtype, to);
            if (plain)
                ((float *)out->data)[to] = sum;
            else
                mixt__store(out->data, out->dtype, to, sum);
        }
    }
}

static void finish_units(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    (void)thread;
    for (const unit *u = j->plan->units + begin; u < j->plan->units + end; u++)
        for (int64_t lane = 0; lane < (u->vectors - 1) * VEC_LANES + u->last; lane++)
            finish_lane(j, u, lane);
}

static mixt_status run(const mixt__call *call)
{
    job j = {call, call->state};
    memset((char *)call->workspace + j.plan->zeros_at, 0, j.plan->rows_at - j.plan->zeros_at);
    mixt__parallel(j.plan->threads, 1, run_parts, &j);
    mixt__parallel(j.plan->unit_count, 4, finish_units, &j);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__conv_groups_weight) = {
    .name = "groups_" MIXT_AT_NAME, .supports = groups_supports, .prepare = prepare, .run = run};
