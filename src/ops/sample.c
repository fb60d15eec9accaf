/* One dimension sampled: each position of the result is one of the source's, or lies between two of them. Slices with a
 * step, padding with what the source has, and resizing are such.
 *
 * sample (src) → dst, sample_grad (grad_dst) → grad_src.
 */
#include "ops/rules.h"

#include "mixt/ops.h"

#include <stdio.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__sample_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape out = x->shape;
    if (at->axis < 0 || at->axis >= out.rank || out.dims[at->axis] != at->full || at->size < 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "sample: dimension %d with %lld positions", at->axis, (long long)at->size);
    out.dims[at->axis] = at->size;
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]);
    return mixt__gradient_emit(g, &mixt__op_sample_grad, node->attrs, &dy, 1, &x);
}

static void describe(const void *attrs, char *text, size_t size)
{
    static const char *const kinds[] = {"step", "edge", "reflect", "wrap", "resize"};
    const mixt__sample_attrs *at = attrs;
    snprintf(text, size, "%s dimension %d, %lld to %lld", kinds[at->kind], at->axis, (long long)at->full,
             (long long)at->size);
}

const mixt__op mixt__op_sample = {
    .name = "sample",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__sample_attrs),
    .infer = infer,
    .grad = grad,
    .describe = describe,
};

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__sample_attrs *at = node->attrs;
    const mixt__value *dy = mixt__in(graph, node, 0);
    mixt__shape out = dy->shape;
    out.dims[at->axis] = at->full;
    mixt__set_out(r, 0, &out, dy->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_sample_grad = {
    .name = "sample_grad",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__sample_attrs),
    .infer = grad_infer,
    .describe = describe,
};

/* ---- the public functions ---- */

/** Finds the dimension and its size; false: an error has been recorded. */
static bool find_axis(mixt_builder *b, const char *what, mixt_value x, int axis, mixt__sample_attrs *at)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return false;
    const mixt__shape *s = &b->graph->values[x.id].shape;
    at->axis = axis < 0 ? axis + s->rank : axis;
    if (at->axis < 0 || at->axis >= s->rank) {
        mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "%s along dimension %d of a value with %d dimensions", what,
                            axis, s->rank);
        return false;
    }
    at->full = s->dims[at->axis];
    return true;
}

MIXT_PLAY(mixt_slice_step,
          out[0] = mixt_slice_step(b, in[0], (int)c->numbers[0], c->numbers[1], c->numbers[2], c->numbers[3]))
mixt_value mixt_slice_step(mixt_builder *b, mixt_value x, int axis, int64_t begin, int64_t count, int64_t step)
{
    MIXT_RECORD(b, mixt_slice_step, .in = {x}, .in_count = 1, .numbers = {axis, begin, count, step});
    mixt__sample_attrs at = {.kind = MIXT_SAMPLE_STEP, .size = count, .begin = begin, .step = step};
    if (!find_axis(b, "slice", x, axis, &at))
        return (mixt_value){0};
    bool fits = begin >= 0 && begin < at.full && count >= 1 && count <= at.full && step > -at.full && step < at.full;
    if (count == 1)
        fits = begin >= 0 && begin < at.full;
    int64_t last = fits && count > 1 ? begin + (count - 1) * step : begin;
    if (!fits || last < 0 || last >= at.full)
        return mixt__builder_error(
            b, MIXT_ERROR_SHAPE, NULL,
            "slice of %lld positions from %lld on, each %lld behind the last: dimension %d has %lld", (long long)count,
            (long long)begin, (long long)step, at.axis, (long long)at.full);
    if (step == 1)
        return mixt_slice(b, x, at.axis, begin, begin + count);
    return mixt__builder_node(b, &mixt__op_sample, NULL, &at, &x, 1);
}

/** Zeros around: what the gradient of a slice is. */
static mixt_value pad_zero(mixt_builder *b, mixt_value x, const mixt__sample_attrs *at)
{
    mixt__slice_attrs slice = {.axis = at->axis, .begin = at->begin, .end = at->begin + at->full, .full = at->size};
    return mixt__builder_node(b, &mixt__op_slice_grad, NULL, &slice, &x, 1);
}

MIXT_PLAY(mixt_pad,
          out[0] = mixt_pad(b, in[0], (int)c->numbers[0], c->numbers[1], c->numbers[2], (mixt_pad_mode)c->numbers[3]))
mixt_value mixt_pad(mixt_builder *b, mixt_value x, int axis, int64_t before, int64_t behind, mixt_pad_mode mode)
{
    MIXT_RECORD(b, mixt_pad, .in = {x}, .in_count = 1, .numbers = {axis, before, behind, mode});
    mixt__sample_attrs at = {.begin = before};
    if (!find_axis(b, "pad", x, axis, &at))
        return (mixt_value){0};
    int64_t most = mode == MIXT_PAD_REFLECT ? at.full - 1 : mode == MIXT_PAD_WRAP ? at.full : MIXT_ELEMENTS_MAX;
    if (before < 0 || behind < 0 || before > most || behind > most || (unsigned)mode > MIXT_PAD_WRAP || at.full < 1)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "pad of %lld and %lld around a dimension of %lld: must be from 0 to %lld",
                                   (long long)before, (long long)behind, (long long)at.full, (long long)most);
    if (!before && !behind)
        return x;
    at.size = before + at.full + behind;
    at.kind = mode == MIXT_PAD_EDGE      ? MIXT_SAMPLE_EDGE
              : mode == MIXT_PAD_REFLECT ? MIXT_SAMPLE_REFLECT
                                         : MIXT_SAMPLE_WRAP;
    return mode == MIXT_PAD_ZERO ? pad_zero(b, x, &at) : mixt__builder_node(b, &mixt__op_sample, NULL, &at, &x, 1);
}

/** With a scale, which numbers of a kept call cannot hold: in two halves. */
static void play_mixt_resize(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,
                             mixt_value *out)
{
    const double *scale = options;
    out[0] = mixt_resize(b, in[0], (int)c->numbers[0], c->numbers[1], (mixt_resize_mode)c->numbers[2],
                         (mixt_resize_place)c->numbers[3], *scale);
}

mixt_value mixt_resize(mixt_builder *b, mixt_value x, int axis, int64_t size, mixt_resize_mode mode,
                       mixt_resize_place place, double scale)
{
    MIXT_RECORD(b, mixt_resize, .in = {x}, .in_count = 1, .numbers = {axis, size, mode, place}, .options = &scale,
                .options_size = sizeof scale);
    mixt__sample_attrs at = {.kind = MIXT_SAMPLE_RESIZE, .size = size, .mode = (int)mode, .place = (int)place};
    if (!find_axis(b, "resize", x, axis, &at))
        return (mixt_value){0};
    if (size < 1 || size > MIXT_ELEMENTS_MAX || at.full < 1 || !(scale >= 0 && scale <= 1e12) ||
        (unsigned)mode > MIXT_RESIZE_LINEAR || (unsigned)place > MIXT_RESIZE_HALF_PIXEL_ONE)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "resize of %lld positions to %lld with scale %g: sizes of at least 1, a scale of at "
                                   "least 0 and a known mode and place",
                                   (long long)at.full, (long long)size, scale);
    at.scale = scale > 0 ? scale : (double)size / (double)at.full;
    if (size == at.full && at.scale == 1)
        return x;
    return mixt__builder_node(b, &mixt__op_sample, NULL, &at, &x, 1);
}
