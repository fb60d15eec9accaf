/* One dimension sampled, and the gradient. Along that dimension a tensor is (outer, size, inner).
 *
 * Forward: threads split rows of `inner` elements of the result; one that is a row of the source is copied, one between
 * two is blended in FP32. Gradient: threads split (outer, strip of inner) and add up all rows of a strip in FP32, in
 * order: the bits do not depend on their number.
 */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "mixt/ops.h"
#include "num/num.h"

#include <math.h>

enum { STRIP = 64, TILE = 512 };

/** Positions of the source, and what the second of them weighs. */
typedef struct place {
    int64_t first, second;
    float weight;
} place;

typedef struct job {
    const mixt__call *call;
    const mixt__sample_attrs *at;
    int64_t outer, inner;
} job;

static int64_t clamp(int64_t x, int64_t high)
{
    return x < 0 ? 0 : x > high ? high : x;
}

static double resize_at(const mixt__sample_attrs *at, int64_t i)
{
    switch ((mixt_resize_place)at->place) {
    case MIXT_RESIZE_ASYMMETRIC:
        return (double)i / at->scale;
    case MIXT_RESIZE_ALIGN_CORNERS:
        return at->size > 1 ? (double)i * (double)(at->full - 1) / (double)(at->size - 1) : 0;
    case MIXT_RESIZE_HALF_PIXEL_ONE:
        return at->size > 1 ? ((double)i + 0.5) / at->scale - 0.5 : 0;
    default:
        return ((double)i + 0.5) / at->scale - 0.5;
    }
}

static place resized(const mixt__sample_attrs *at, int64_t i)
{
    double last = (double)(at->full - 1), x = resize_at(at, i), r;
    x = x < 0 ? 0 : x > last ? last : x; // what lies outside is what stands at the edge
    switch ((mixt_resize_mode)at->mode) {
    case MIXT_RESIZE_NEAREST:
        r = ceil(x - 0.5);
        break;
    case MIXT_RESIZE_NEAREST_UP:
        r = floor(x + 0.5);
        break;
    case MIXT_RESIZE_CEIL:
        r = ceil(x);
        break;
    default:
        r = floor(x);
    }
    int64_t first = clamp((int64_t)r, at->full - 1);
    if (at->mode != MIXT_RESIZE_LINEAR)
        return (place){first, first, 0};
    return (place){first, clamp(first + 1, at->full - 1), (float)(x - r)};
}

static place place_of(const mixt__sample_attrs *at, int64_t i)
{
    int64_t p = i - at->begin, last = at->full - 1;
    switch (at->kind) {
    case MIXT_SAMPLE_RESIZE:
        return resized(at, i);
    case MIXT_SAMPLE_STEP:
        p = at->begin + i * at->step;
        break;
    case MIXT_SAMPLE_EDGE:
        p = clamp(p, last);
        break;
    case MIXT_SAMPLE_REFLECT:
        p = p < 0 ? -p : p > last ? 2 * last - p : p;
        break;
    case MIXT_SAMPLE_WRAP:
        p = p < 0 ? p + at->full : p > last ? p - at->full : p;
        break;
    }
    return (place){p, p, 0};
}

static job job_of(const mixt__call *call)
{
    job j = {.call = call, .at = call->attrs, .outer = 1, .inner = 1};
    const mixt__shape *s = &call->out[0].shape;
    for (int i = 0; i < s->rank; i++)
        if (i != j.at->axis)
            *(i < j.at->axis ? &j.outer : &j.inner) *= s->dims[i];
    return j;
}

static const void *element(const mixt__tensor *t, int64_t index)
{
    return (const char *)t->data + (size_t)index * mixt_dtype_size(t->dtype);
}

/** dst = a + weight · (b - a), all rows of `inner` elements. */
static void blend(const job *j, int64_t a, int64_t b, float weight, int64_t dst)
{
    const mixt__tensor *src = &j->call->in[0], *out = &j->call->out[0];
    float first[TILE], second[TILE];
    for (int64_t c = 0; c < j->inner; c += TILE) {
        int64_t width = j->inner - c < TILE ? j->inner - c : TILE;
        mixt__widen(src->dtype)(first, element(src, a + c), width);
        mixt__widen(src->dtype)(second, element(src, b + c), width);
        for (int64_t i = 0; i < width; i++)
            first[i] = (1.0f - weight) * first[i] + weight * second[i];
        mixt__narrow(out->dtype)((void *)element(out, dst + c), first, width);
    }
}

static void sample_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *src = &j->call->in[0], *out = &j->call->out[0];
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        place p = place_of(j->at, row % j->at->size);
        int64_t base = row / j->at->size * j->at->full;
        if (p.weight != 0)
            blend(j, (base + p.first) * j->inner, (base + p.second) * j->inner, p.weight, row * j->inner);
        else
            memcpy((void *)element(out, row * j->inner), element(src, (base + p.first) * j->inner),
                   (size_t)j->inner * mixt_dtype_size(src->dtype));
    }
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call);
    mixt__parallel(j.outer * j.at->size, 8192 / (j.inner + 1) + 1, sample_rows, &j);
    return MIXT_OK;
}

/* ---- gradient ---- */

static int64_t strip_width(const job *j)
{
    return j->inner < STRIP ? j->inner : STRIP;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    job j = job_of(call);
    (void)arena;
    call->workspace_bytes = (size_t)(j.at->full * strip_width(&j) * mixt__threads_count()) * sizeof(float);
    return MIXT_OK;
}

static void add_strips(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *grad_dst = &j->call->in[0], *out = &j->call->out[0];
    int64_t strip = strip_width(j), strips = (j->inner + strip - 1) / strip;
    float *sums = (float *)j->call->workspace + thread * j->at->full * strip, row[STRIP];
    for (int64_t item = begin; item < end; item++) {
        int64_t outer = item / strips, c = item % strips * strip, width = j->inner - c < strip ? j->inner - c : strip;
        memset(sums, 0, (size_t)(j->at->full * strip) * sizeof(float));
        for (int64_t i = 0; i < j->at->size; i++) {
            place p = place_of(j->at, i);
            float *first = sums + p.first * strip, *second = sums + p.second * strip;
            mixt__widen(grad_dst->dtype)(row, element(grad_dst, (outer * j->at->size + i) * j->inner + c), width);
            for (int64_t k = 0; k < width; k++)
                first[k] += (1.0f - p.weight) * row[k];
            for (int64_t k = 0; k < width && p.weight != 0; k++)
                second[k] += p.weight * row[k];
        }
        for (int64_t i = 0; i < j->at->full; i++)
            mixt__narrow(out->dtype)((void *)element(out, (outer * j->at->full + i) * j->inner + c), sums + i * strip,
                                     width);
    }
}

static mixt_status grad_run(const mixt__call *call)
{
    job j = job_of(call);
    int64_t strip = strip_width(&j), strips = j.inner ? (j.inner + strip - 1) / strip : 0;
    mixt__parallel(j.outer * strips, 8192 / (j.at->size * strip + 1) + 1, add_strips, &j);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = run};
static const mixt__kernel plain_grad = {.name = "plain", .prepare = grad_prepare, .run = grad_run};

const mixt__kernel *const mixt__cpu_sample_kernels[] = {&plain, NULL};
const mixt__kernel *const mixt__cpu_sample_grad_kernels[] = {&plain_grad, NULL};
