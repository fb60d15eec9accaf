/* The gradient of a depthwise convolution's weight, with channels in vectors; compiled for AVX2 and AVX-512.
 *
 * A tile holds some taps of one kernel row for two vectors of channels in registers and goes along a row of grad_dst;
 * the taps that lie outside at the row's ends are left out there. Rows' sums are added to those of a thread, and the
 * threads' in their order: the bits depend on their number.
 */
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/core/vec.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

enum { TILE = 5, LINE = 64 };

typedef struct plan {
    mixt__conv conv;
    int64_t lanes; // channels up to whole vectors
    int threads;
    size_t sums_bytes; // (taps, lanes) of a thread
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
} job;

/** A row of grad_dst and one of the source that a row of the kernel brings together: their first pixels. */
typedef struct pair {
    const job *job;
    int64_t grad, src;
    float *sums; // of the kernel row's first tap
} pair;

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    p->conv = mixt__conv_of(call);
    p->lanes = (p->conv.c + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    p->threads = mixt__threads_count();
    p->sums_bytes = ((size_t)(mixt__conv_taps(&p->conv) * p->lanes) * sizeof(float) + LINE - 1) / LINE * LINE;
    call->workspace_bytes = p->sums_bytes * (size_t)p->threads;
    call->state = p;
    return MIXT_OK;
}

/** The columns [*begin, *end) of grad_dst for which tap t of a row lies in the source. */
static void inside(const mixt__conv *v, int64_t t, int64_t *begin, int64_t *end)
{
    int64_t first = t * v->dilation_w - v->pad_w; // that column 0 reads
    *begin = first < 0 ? (-first + v->stride_w - 1) / v->stride_w : 0;
    *end = first < v->w ? (v->w - 1 - first) / v->stride_w + 1 : 0;
    *end = *end < v->out_w ? *end : v->out_w;
    *begin = *begin < *end ? *begin : *end;
}

/** Adds columns [begin, end) to `taps` sums from tap t; all of them lie inside. */
VEC_INLINE void add_columns(mixt_dtype dtype, int taps, int vectors, int64_t lanes, const pair *r, int64_t t, int64_t c,
                            int64_t begin, int64_t end)
{
    const mixt__conv *v = &r->job->plan->conv;
    const void *src = r->job->call->in[0].data, *grad = r->job->call->in[1].data;
    int64_t size = r->job->plan->lanes, at = (r->src + begin * v->stride_w + t * v->dilation_w - v->pad_w) * v->c + c;
    vec sums[TILE][2];
    for (int k = 0; k < taps; k++)
        for (int i = 0; i < vectors; i++)
            sums[k][i] = vec_zero();
    for (int64_t x = begin; x < end; x++, at += v->stride_w * v->c)
        for (int i = 0; i < vectors; i++) {
            int64_t part = i + 1 < vectors ? VEC_LANES : lanes;
            vec g = vec_get_part(grad, dtype, (r->grad + x) * v->c + c + i * VEC_LANES, part);
            for (int k = 0; k < taps; k++)
                sums[k][i] = vec_fma(vec_get_part(src, dtype, at + k * v->dilation_w * v->c + i * VEC_LANES, part), g,
                                     sums[k][i]);
        }
    for (int k = 0; k < taps; k++)
        for (int i = 0; i < vectors; i++) {
            float *to = r->sums + (t + k) * size + c + i * VEC_LANES;
            vec_store(to, vec_add(vec_load(to), sums[k][i]));
        }
}

/** `taps` taps from t over a whole row: together where all lie inside, one by one at the ends. */
VEC_INLINE void add_taps(mixt_dtype dtype, int taps, int vectors, int64_t lanes, const pair *r, int64_t t, int64_t c)
{
    const mixt__conv *v = &r->job->plan->conv;
    int64_t low, high, begin, end, unused;
    inside(v, t, &low, &unused); // the first tap is the last to come in
    inside(v, t + taps - 1, &unused, &high);
    if (taps > 1 && low < high)
        add_columns(dtype, taps, vectors, lanes, r, t, c, low, high);
    else
        low = high = 0;
    for (int k = 0; k < taps; k++) {
        inside(v, t + k, &begin, &end);
        if (taps == 1 || low == high) {
            add_columns(dtype, 1, vectors, lanes, r, t + k, c, begin, end);
            continue;
        }
        if (begin < low)
            add_columns(dtype, 1, vectors, lanes, r, t + k, c, begin, low);
        if (high < end)
            add_columns(dtype, 1, vectors, lanes, r, t + k, c, high, end);
    }
}

VEC_INLINE void add_row(mixt_dtype dtype, int vectors, int64_t lanes, const pair *r, int64_t c)
{
    int64_t taps = r->job->plan->conv.kernel_w, t = 0;
    for (; t + TILE <= taps; t += TILE)
        add_taps(dtype, TILE, vectors, lanes, r, t, c);
    if (taps - t >= 3) {
        add_taps(dtype, 3, vectors, lanes, r, t, c);
        t += 3;
    }
    for (; t < taps; t++)
        add_taps(dtype, 1, vectors, lanes, r, t, c);
}

VEC_INLINE void add_channels(mixt_dtype dtype, const pair *r)
{
    int64_t c = 0, channels = r->job->plan->conv.c;
    for (; c + 2 * VEC_LANES <= channels; c += 2 * VEC_LANES)
        add_row(dtype, 2, VEC_LANES, r, c);
    if (c + VEC_LANES <= channels) {
        add_row(dtype, 1, VEC_LANES, r, c);
        c += VEC_LANES;
    }
    if (c < channels)
        add_row(dtype, 1, channels - c, r, c);
}

static void add_pair(const pair *r)
{
    switch (r->job->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        add_channels(MIXT_DTYPE_FP32, r);
        break;
    case MIXT_DTYPE_BF16:
        add_channels(MIXT_DTYPE_BF16, r);
        break;
    default:
        add_channels(MIXT_DTYPE_FP16, r);
    }
}

static void run_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    const mixt__conv *v = &p->conv;
    int64_t rows = v->n * v->out_d * v->out_h;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        float *sums = (float *)((char *)j->call->workspace + (size_t)part * p->sums_bytes);
        memset(sums, 0, p->sums_bytes);
        for (int64_t at = rows * part / p->threads; at < rows * (part + 1) / p->threads; at++) {
            int64_t y = at % v->out_h, z = at / v->out_h % v->out_d, image = at / v->out_h / v->out_d;
            for (int64_t l = 0; l < v->kernel_d; l++)
                for (int64_t i = 0; i < v->kernel_h; i++) {
                    int64_t from_z = z * v->stride_d + l * v->dilation_d - v->pad_d,
                            from_y = y * v->stride + i * v->dilation_h - v->pad;
                    pair r = {j, at * v->out_w, ((image * v->d + from_z) * v->h + from_y) * v->w,
                              sums + (l * v->kernel_h + i) * v->kernel_w * p->lanes};
                    if (from_z >= 0 && from_z < v->d && from_y >= 0 && from_y < v->h)
                        add_pair(&r);
                }
        }
    }
}

/** Adds the threads' sums, turns them to (channel, tap) and stores them. */
static void finish(const job *j)
{
    const plan *p = j->plan;
    const mixt__tensor *out = &j->call->out[0];
    int64_t taps = mixt__conv_taps(&p->conv);
    for (int64_t c = 0; c < p->conv.c; c++)
        for (int64_t t = 0; t < taps; t++) {
            float sum = 0;
            for (int part = 0; part < p->threads; part++)
                sum += ((const float *)((const char *)j->call->workspace +
                                        (size_t)part * p->sums_bytes))[t * p->lanes + c];
            if (j->call->accumulate & 1u)
                sum += mixt__load(out->data, out->dtype, c * taps + t);
            mixt__store(out->data, out->dtype, c * taps + t, sum);
        }
}

static mixt_status run(const mixt__call *call)
{
    job j = {call, call->state};
    mixt__parallel(j.plan->threads, 1, run_parts, &j);
    finish(&j);
    return MIXT_OK;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__conv v = mixt__conv_of(call);
    if (!vec_supports(call, reason) || !mixt__conv_is_ordinary(call, reason))
        return false;
    if (v.groups == 1 || v.groups != v.c || v.o != v.c)
        *reason = "only depthwise: a group for each channel, one output each";
    else if (call->in[0].dtype != call->in[1].dtype)
        *reason = "only operands of one format";
    return !*reason;
}

const mixt__kernel MIXT_AT(mixt__conv_depthwise_weight) = {
    .name = "depthwise_" MIXT_AT_NAME, .supports = supports, .prepare = prepare, .run = run};
