/* Sum or mean over some dimensions, in FP32 inside. Also the gradient of every broadcast and of every bias. */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__reduce_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape out = {0};
    for (int i = 0; i < x->shape.rank; i++) {
        if (!(at->axes >> i & 1))
            out.dims[out.rank++] = x->shape.dims[i];
        else if (at->keep_dims)
            out.dims[out.rank++] = 1;
    }
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

/** Spreads dy over the summed dimensions. */
static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__reduce_attrs *at = node->attrs;
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]);
    mixt__shape full = g->graph->values[x].shape, kept = full;
    double summed = 1;
    for (int i = 0; i < full.rank; i++)
        if (at->axes >> i & 1) {
            summed *= (double)full.dims[i];
            kept.dims[i] = 1;
        }
    MIXT_TRY(mixt__gradient_reshape(g, dy, &kept, &dy));
    mixt__pointwise_attrs spread = {
        .in_count = 1, .instr_count = 1, .out_count = 1, .has_domain = true, .domain = full};
    spread.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = at->mean ? (float)(1.0 / summed) : 1.0f};
    spread.outs[0] = 1;
    spread.out_dtypes[0] = g->graph->values[x].gradient;
    return mixt__gradient_emit(g, &mixt__op_pointwise, &spread, &dy, 1, &x);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__reduce_attrs *at = attrs;
    snprintf(text, size, "%s over axes 0x%x", at->mean ? "mean" : "sum", at->axes);
}

const mixt__op mixt__op_reduce = {
    .name = "reduce",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__reduce_attrs),
    .accumulate_outputs = 1,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .describe = describe,
};

/** One bit for each dimension that the options name, or for all. */
static mixt_status find_axes(const mixt_reduce_options *o, int rank, uint32_t *axes)
{
    *axes = o->axis_count == MIXT_AUTO ? (1u << rank) - 1 : 0;
    if (o->axis_count == MIXT_AUTO)
        return MIXT_OK;
    if (o->axis_count < 0 || o->axis_count > rank)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "cannot reduce %d dimensions of a value with %d", o->axis_count, rank);
    for (int i = 0; i < o->axis_count; i++) {
        int axis = o->axes[i] < 0 ? o->axes[i] + rank : o->axes[i];
        if (axis < 0 || axis >= rank)
            return mixt__fail(MIXT_ERROR_SHAPE, "cannot reduce dimension %d of a value with %d dimensions", o->axes[i],
                              rank);
        if (*axes >> axis & 1)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "cannot reduce dimension %d twice", axis);
        *axes |= 1u << axis;
    }
    return MIXT_OK;
}

MIXT_PLAY(mixt_sum_with, out[0] = mixt_sum_with(b, in[0], options))
MIXT_PLAY(mixt_mean_with, out[0] = mixt_mean_with(b, in[0], options))

static mixt_value reduce(mixt_builder *b, mixt_value x, const mixt_reduce_options *given, bool mean)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    mixt_reduce_options own = MIXT_OPTIONS(mixt_reduce_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_reduce_options, &own, given))
        return (mixt_value){0};
    mixt__kept_call call = {.in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own};
    call.play = mean ? play_mixt_mean_with : play_mixt_sum_with;
    if (mixt__tape_on(b))
        return mixt__tape_call(b, &call, NULL);
    mixt__reduce_attrs at = {.mean = mean, .keep_dims = o->keep_dims};
    if (!mixt__builder_ok(b, NULL, find_axes(o, b->graph->values[x.id].shape.rank, &at.axes)))
        return (mixt_value){0};
    return mixt__builder_node(b, &mixt__op_reduce, NULL, &at, &x, 1);
}

mixt_value mixt_sum_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o)
{
    return reduce(b, x, o, false);
}

mixt_value mixt_mean_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o)
{
    return reduce(b, x, o, true);
}

MIXT_PLAY(mixt_global_avg_pool, out[0] = mixt_global_avg_pool(b, in[0]))
mixt_value mixt_global_avg_pool(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_global_avg_pool, .in = {x}, .in_count = 1);
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    int rank = b->graph->values[x.id].shape.rank;
    if (rank != 4 && rank != 5)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL,
                                   "global pooling needs (N, H, W, C) or (N, D, H, W, C), got %d dimensions", rank);
    return reduce(b, x, MIXT_OPTIONS_AT(mixt_reduce_options, .axes = {1, 2, 3}, .axis_count = rank - 2), true);
}
