/* Softmax over the last dimension, in FP32, and its gradient (dst, grad_dst) → grad_src. */
#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    if (x->shape.rank < 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "softmax of a single number");
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 5.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[2] = {node->out[0], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_softmax_grad, NULL, in, 2, node->in);
}

const mixt__op mixt__op_softmax = {
    .name = "softmax",
    .precision = MIXT_CLASS_FULL,
    .work = MIXT_WORK_OTHER,
    .in_place_inputs = 1,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

const mixt__op mixt__op_softmax_grad = {
    .name = "softmax_grad",
    .precision = MIXT_CLASS_FULL,
    .work = MIXT_WORK_OTHER,
    .in_place_inputs = 3,
    .infer = infer,
    .flops = flops,
};

MIXT_PLAY(mixt_softmax, out[0] = mixt_softmax(b, in[0]))
mixt_value mixt_softmax(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_softmax, .in = {x}, .in_count = 1);
    return mixt__builder_node(b, &mixt__op_softmax, NULL, NULL, &x, 1);
}
