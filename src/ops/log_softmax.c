/* Logarithm of the softmax over the last dimension, in FP32. The gradient is grad_dst - e^dst · sum(grad_dst). */
#include "ops/rules.h"

#include "mixt/ops.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    if (x->shape.rank < 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "log_softmax of a single number");
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 5.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]), share, sum;
    mixt__reduce_attrs rows = {.axes = 1u << (g->graph->values[x].shape.rank - 1), .keep_dims = true};
    if (!mixt__gradient_wanted(g, x))
        return MIXT_OK;
    MIXT_TRY(mixt__gradient_node(g, &mixt__op_reduce, &rows, &dy, 1, &sum));
    MIXT_TRY(
        mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_EXP}, &node->out[0], 1, MIXT_DTYPE_NONE, &share));
    MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_MUL}, (int32_t[]){share, sum}, 2,
                                      MIXT_DTYPE_NONE, &share));
    MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_SUB}, (int32_t[]){dy, share}, 2,
                                      g->graph->values[x].gradient, &share));
    return mixt__gradient_add(g, x, share);
}

const mixt__op mixt__op_log_softmax = {
    .name = "log_softmax",
    .precision = MIXT_CLASS_FULL,
    .work = MIXT_WORK_OTHER,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

/** Moves dimension `axis` to the end, and back: the order that does both. False where there is no such dimension, which
 *  has been recorded. */
static bool order_of(mixt_builder *b, mixt_value x, int axis, int order[MIXT_MAX_RANK])
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return false;
    int rank = b->graph->values[x.id].shape.rank, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) {
        mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "softmax over dimension %d of a value with %d dimensions", axis,
                            rank);
        return false;
    }
    for (int i = 0; i < rank; i++)
        order[i] = i == at ? rank - 1 : i == rank - 1 ? at : i;
    return true;
}

static mixt_value over(mixt_builder *b, mixt_value x, int axis, const mixt__op *op)
{
    int order[MIXT_MAX_RANK];
    if (!order_of(b, x, axis, order))
        return (mixt_value){0};
    bool last = order[b->graph->values[x.id].shape.rank - 1] == b->graph->values[x.id].shape.rank - 1;
    x = last ? x : mixt_transpose(b, x, order);
    x = mixt__builder_node(b, op, NULL, NULL, &x, 1);
    return last ? x : mixt_transpose(b, x, order);
}

MIXT_PLAY(mixt_log_softmax, out[0] = mixt_log_softmax(b, in[0], (int)c->numbers[0]))
mixt_value mixt_log_softmax(mixt_builder *b, mixt_value x, int axis)
{
    MIXT_RECORD(b, mixt_log_softmax, .in = {x}, .in_count = 1, .numbers = {axis});
    return over(b, x, axis, &mixt__op_log_softmax);
}

MIXT_PLAY(mixt_softmax_over, out[0] = mixt_softmax_over(b, in[0], (int)c->numbers[0]))
mixt_value mixt_softmax_over(mixt_builder *b, mixt_value x, int axis)
{
    MIXT_RECORD(b, mixt_softmax_over, .in = {x}, .in_count = 1, .numbers = {axis});
    return over(b, x, axis, &mixt__op_softmax);
}
