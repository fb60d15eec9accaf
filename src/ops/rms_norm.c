/* Root-mean-square norm over the last dimension: dst = src · rstd · weight, rstd = 1 / sqrt(mean(src²) + eps).
 *
 * Takes and gives the format of its source and computes in FP32 inside; rstd and weight are FP32.
 * Forward: (src, weight) → (dst, rstd). Gradient: (src, weight, rstd, grad_dst[, addend]) → (grad_src, grad_weight).
 */
#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    mixt__shape stat = x->shape;
    if (x->shape.rank < 1 || w->shape.rank != 1 || w->shape.dims[0] != mixt__last_dim(&x->shape)) {
        char tx[128], tw[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "rms_norm of %s with a weight of shape %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt__shape_text(&w->shape, tw, sizeof tw));
    }
    stat.rank--;
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &stat, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 5.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[4] = {node->in[0], node->in[1], node->out[1], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_rms_norm_grad, node->attrs, in, 4, node->in);
}

const mixt__op mixt__op_rms_norm = {
    .name = "rms_norm",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 1u << 1,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *last = mixt__in(graph, node, node->in_count - 1);
    const mixt__norm_attrs *at = node->attrs;
    if (at->addend && (last->dtype != x->dtype || !mixt__shape_equal(&last->shape, &x->shape)))
        return mixt__fail(MIXT_ERROR_SHAPE, "rms_norm_grad: an addend must be as its source is");
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &mixt__in(graph, node, 1)->shape, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

const mixt__op mixt__op_rms_norm_grad = {
    .name = "rms_norm_grad",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 3u << 1,
    .accumulate_outputs = 1u << 1,
    .infer = grad_infer,
    .flops = flops,
};

MIXT_PLAY(mixt_rms_norm_with, out[0] = mixt_rms_norm_with(b, c->name, in[0], options))

mixt_value mixt_rms_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *given)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt_norm_options own = MIXT_OPTIONS(mixt_norm_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_norm_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_rms_norm_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    if (!mixt__builder_number(b, name, ".eps", o->eps))
        return (mixt_value){0};
    mixt__norm_attrs at = {.eps = o->eps};
    mixt__param weight = {.shape = mixt__vector_shape(mixt__last_dim(&b->graph->values[x.id].shape)),
                          .trainable = true};
    weight.init = o->zero || o->from_one ? MIXT_INIT_ZERO : MIXT_INIT_ONE;
    mixt_value in[2] = {x, mixt__builder_param(b, name, "weight", &weight)};
    if (o->from_one)
        in[1] = mixt_affine(b, in[1], 1, 1);
    return mixt__builder_node(b, &mixt__op_rms_norm, name, &at, in, 2);
}
