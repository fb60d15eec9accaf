/* Max and average pooling over (N, H, W, C), and the gradient. The maximum is found again from source and result. */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__pool_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    char text[128];
    mixt__shape_text(&x->shape, text, sizeof text);
    if (x->shape.rank != 4)
        return mixt__fail(MIXT_ERROR_SHAPE, "pooling needs (N, H, W, C), got %s", text);
    if (at->size < 1 || at->size > MIXT_ELEMENTS_MAX || at->stride < 1 || at->pad < 0 || at->pad >= at->size)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "pooling window %lld, stride %lld, pad %lld: sizes from 1 to 2^44, pad below the window",
                          (long long)at->size, (long long)at->stride, (long long)at->pad);
    mixt__shape out = x->shape;
    for (int i = 1; i <= 2; i++) {
        if (x->shape.dims[i] + 2 * at->pad < at->size)
            return mixt__fail(MIXT_ERROR_SHAPE, "a pooling window of %lld does not fit into %s", (long long)at->size,
                              text);
        out.dims[i] = (x->shape.dims[i] + 2 * at->pad - at->size) / at->stride + 1;
    }
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__pool_attrs *at = node->attrs;
    return (double)at->size * (double)at->size * (double)mixt__shape_count(&graph->values[node->out[0]].shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[3] = {node->in[0], node->out[0], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_pool_grad, node->attrs, in, 3, node->in);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__pool_attrs *at = attrs;
    snprintf(text, size, "%s %lld stride %lld pad %lld", at->kind == MIXT_POOL_MAX ? "max" : "avg", (long long)at->size,
             (long long)at->stride, (long long)at->pad);
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

static mixt_value pool(mixt_builder *b, mixt_value x, const mixt_pool_options *o, mixt__pool_kind kind)
{
    o = o ? o : &(mixt_pool_options){0};
    mixt__pool_attrs at = {.kind = kind, .size = o->size, .stride = o->stride ? o->stride : o->size, .pad = o->pad};
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
