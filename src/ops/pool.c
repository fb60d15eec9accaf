/* Max and average pooling over (N, H, W, C) or (N, D, H, W, C), and the gradient. The maximum is found again from
 * source and result. */
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>

static int64_t dilation_of(const mixt__pool_axis *a)
{
    return a->dilation ? a->dilation : 1;
}

static const mixt__pool_axis *axis_of(const mixt__pool_attrs *at, const mixt__shape *x, int i)
{
    return i == x->rank - 2 ? &at->w : i == x->rank - 3 ? &at->h : &at->d;
}

/** Results along an axis, or a failure. */
static mixt_status out_size(const mixt__pool_attrs *at, const mixt__pool_axis *a, int64_t src, const char *text,
                            int64_t *out)
{
    const int64_t most = MIXT_ELEMENTS_MAX, dilation = dilation_of(a);
    if (a->size < 1 || a->size > most || a->stride < 1 || a->pad < 0 || a->pad_end < 0 || a->pad >= a->size ||
        a->pad_end >= a->size || dilation < 1 || dilation > most / a->size)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "pooling window %lld, stride %lld, pad %lld: sizes from 1 to 2^44, pad below the window",
                          (long long)a->size, (long long)a->stride,
                          (long long)(a->pad > a->pad_end ? a->pad : a->pad_end));
    int64_t room = src + a->pad + a->pad_end - (a->size - 1) * dilation - 1;
    if (room < 0)
        return mixt__fail(MIXT_ERROR_SHAPE, "a pooling window of %lld does not fit into %s", (long long)a->size, text);
    *out = room / a->stride + 1;
    if (at->ceil && room % a->stride && *out * a->stride < src + a->pad)
        ++*out;
    return MIXT_OK;
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__pool_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    char text[128];
    mixt__shape_text(&x->shape, text, sizeof text);
    if (x->shape.rank != 4 && x->shape.rank != 5)
        return mixt__fail(MIXT_ERROR_SHAPE, "pooling needs (N, H, W, C) or (N, D, H, W, C), got %s", text);
    if (x->shape.rank == 4 && (at->d.size || at->d.stride || at->d.pad || at->d.pad_end))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "pooling: %s has no depth: leave out size_d, stride_d and pad_d", text);
    mixt__shape out = x->shape;
    for (int i = 1; i < x->shape.rank - 1; i++)
        MIXT_TRY(out_size(at, axis_of(at, &x->shape, i), x->shape.dims[i], text, &out.dims[i]));
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__pool_attrs *at = node->attrs;
    double depth = at->d.size ? (double)at->d.size : 1.0;
    return depth * (double)at->h.size * (double)at->w.size *
           (double)mixt__shape_count(&graph->values[node->out[0]].shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[3] = {node->in[0], node->out[0], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_pool_grad, node->attrs, in, 3, node->in);
}

/** "max 3 stride 2 pad 1"; sizes of each axis where they differ. */
static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__pool_attrs *at = attrs;
    const mixt__pool_axis axes[3] = {at->d, at->h, at->w};
    bool even = !at->d.size && !memcmp(&at->h, &at->w, sizeof at->h);
    static const char *const words[] = {" ", " stride ", " pad ", " dilation "};
    size_t used = (size_t)snprintf(text, size, "%s", at->kind == MIXT_POOL_MAX ? "max" : "avg");
    for (int word = 0; word < 4; word++) {
        if (word == 3 && dilation_of(&at->h) * dilation_of(&at->w) * dilation_of(&at->d) == 1)
            break;
        for (int i = at->d.size ? 0 : 1; i < (even ? 2 : 3) && used < size; i++) {
            const mixt__pool_axis *a = &axes[i];
            int64_t number = word == 0 ? a->size : word == 1 ? a->stride : word == 2 ? a->pad : dilation_of(a);
            bool first = i == (at->d.size ? 0 : 1);
            used += (size_t)snprintf(text + used, size - used, "%s%lld", first ? words[word] : "x", (long long)number);
            if (word == 2 && a->pad != a->pad_end && used < size)
                used += (size_t)snprintf(text + used, size - used, "+%lld", (long long)a->pad_end);
        }
    }
    if (used < size)
        snprintf(text + used, size - used, "%s%s", at->ceil ? " ceil" : "", at->count_pad ? " padding counts" : "");
}

const mixt__op mixt__op_pool = {
    .name = "pool",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__pool_attrs),
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .describe = describe,
};

/** (src, dst, grad_dst) → grad_src; of equal maxima the first in row order gets it all. */
static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_pool_grad = {
    .name = "pool_grad",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__pool_attrs),
    .exact_inputs = 3,
    .infer = grad_infer,
    .describe = describe,
};

MIXT_PLAY(mixt_max_pool_with, out[0] = mixt_max_pool_with(b, in[0], options))
MIXT_PLAY(mixt_avg_pool_with, out[0] = mixt_avg_pool_with(b, in[0], options))

static int64_t chosen(int64_t own, int64_t otherwise)
{
    return own == MIXT_AUTO ? otherwise : own;
}

/** A window along height or width from the options of that axis, and those of both. */
static mixt__pool_axis window_of(const mixt_pool_options *o, int64_t size, int64_t stride, int64_t dilation,
                                 int64_t pad, int64_t pad_end)
{
    mixt__pool_axis a = {.size = chosen(size, o->size), .dilation = chosen(dilation, o->dilation)};
    a.stride = chosen(stride, chosen(o->stride, a.size));
    a.pad = chosen(pad, o->pad);
    a.pad_end = chosen(pad_end, o->pad);
    return a;
}

static mixt_value pool(mixt_builder *b, mixt_value x, const mixt_pool_options *given, mixt__pool_kind kind)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    mixt_pool_options own = MIXT_OPTIONS(mixt_pool_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_pool_options, &own, given))
        return (mixt_value){0};
    mixt__kept_call call = {.in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own};
    call.play = kind == MIXT_POOL_MAX ? play_mixt_max_pool_with : play_mixt_avg_pool_with;
    if (mixt__tape_on(b))
        return mixt__tape_call(b, &call, NULL);
    mixt__shape s = b->graph->values[x.id].shape;
    bool flat = s.rank != 5; // then sizes of a depth are none, and those given are refused
    mixt__pool_attrs at = {.kind = kind, .ceil = o->ceil, .count_pad = o->count_pad};
    at.h = window_of(o, o->size_h, o->stride_h, o->dilation_h, o->pad_top, o->pad_bottom);
    at.w = window_of(o, o->size_w, o->stride_w, o->dilation_w, o->pad_left, o->pad_right);
    at.d.size = chosen(o->size_d, flat ? 0 : o->size);
    at.d.stride = chosen(o->stride_d, flat ? 0 : at.d.size);
    at.d.dilation = chosen(o->dilation_d, o->dilation);
    at.d.pad = chosen(o->pad_front, o->pad_d);
    at.d.pad_end = chosen(o->pad_back, o->pad_d);
    if (s.rank != 3)
        return mixt__builder_node(b, &mixt__op_pool, NULL, &at, &x, 1);
    at.h = (mixt__pool_axis){.size = 1, .stride = 1}; // a sequence is a plane of one row
    x = mixt_reshape(b, x, 4, (int64_t[]){s.dims[0], 1, s.dims[1], s.dims[2]});
    x = mixt__builder_node(b, &mixt__op_pool, NULL, &at, &x, 1);
    return mixt_reshape(b, x, 3, (int64_t[]){s.dims[0], mixt_value_dim(b, x, 2), s.dims[2]});
}

mixt_value mixt_max_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o)
{
    return pool(b, x, o, MIXT_POOL_MAX);
}

mixt_value mixt_avg_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o)
{
    return pool(b, x, o, MIXT_POOL_AVG);
}
