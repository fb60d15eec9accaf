/* Max and average pooling over (N, H, W, C) or (N, D, H, W, C), and the gradient. The maximum is found again from
 * source and result. */
#include "ops/rules.h"

#include <stdio.h>

/** A window along one axis. */
typedef struct axis {
    int64_t size, stride, pad;
} axis;

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__pool_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    const axis plane = {at->size, at->stride, at->pad}, depth = {at->size_d, at->stride_d, at->pad_d};
    char text[128];
    mixt__shape_text(&x->shape, text, sizeof text);
    if (x->shape.rank != 4 && x->shape.rank != 5)
        return mixt__fail(MIXT_ERROR_SHAPE, "pooling needs (N, H, W, C) or (N, D, H, W, C), got %s", text);
    if (x->shape.rank == 4 && (at->size_d || at->stride_d || at->pad_d))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "pooling: %s has no depth: leave out size_d, stride_d and pad_d", text);
    mixt__shape out = x->shape;
    for (int i = 1; i < x->shape.rank - 1; i++) {
        const axis *a = x->shape.rank == 5 && i == 1 ? &depth : &plane;
        if (a->size < 1 || a->size > MIXT_ELEMENTS_MAX || a->stride < 1 || a->pad < 0 || a->pad >= a->size)
            return mixt__fail(MIXT_ERROR_ARGUMENT,
                              "pooling window %lld, stride %lld, pad %lld: sizes from 1 to 2^44, pad below the window",
                              (long long)a->size, (long long)a->stride, (long long)a->pad);
        if (x->shape.dims[i] + 2 * a->pad < a->size)
            return mixt__fail(MIXT_ERROR_SHAPE, "a pooling window of %lld does not fit into %s", (long long)a->size,
                              text);
        out.dims[i] = (x->shape.dims[i] + 2 * a->pad - a->size) / a->stride + 1;
    }
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__pool_attrs *at = node->attrs;
    double depth = at->size_d ? (double)at->size_d : 1.0;
    return depth * (double)at->size * (double)at->size * (double)mixt__shape_count(&graph->values[node->out[0]].shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[3] = {node->in[0], node->out[0], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_pool_grad, node->attrs, in, 3, node->in);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__pool_attrs *at = attrs;
    const char *kind = at->kind == MIXT_POOL_MAX ? "max" : "avg";
    if (at->size_d)
        snprintf(text, size, "%s %lldx%lldx%lld stride %lldx%lld pad %lldx%lld", kind, (long long)at->size_d,
                 (long long)at->size, (long long)at->size, (long long)at->stride_d, (long long)at->stride,
                 (long long)at->pad_d, (long long)at->pad);
    else
        snprintf(text, size, "%s %lld stride %lld pad %lld", kind, (long long)at->size, (long long)at->stride,
                 (long long)at->pad);
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
    bool flat = b->graph->values[x.id].shape.rank != 5; // then sizes of a depth are none, and those given are refused
    mixt__pool_attrs at = {.kind = kind, .size = o->size, .pad = o->pad, .pad_d = o->pad_d};
    at.stride = o->stride == MIXT_AUTO ? o->size : o->stride;
    at.size_d = o->size_d != MIXT_AUTO ? o->size_d : flat ? 0 : o->size;
    at.stride_d = o->stride_d != MIXT_AUTO ? o->stride_d : flat ? 0 : at.size_d;
    return mixt__builder_node(b, &mixt__op_pool, NULL, &at, &x, 1);
}

mixt_value mixt_max_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o)
{
    return pool(b, x, o, MIXT_POOL_MAX);
}

mixt_value mixt_avg_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o)
{
    return pool(b, x, o, MIXT_POOL_AVG);
}
