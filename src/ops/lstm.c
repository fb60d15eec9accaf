/* The recurrent part of an LSTM layer; the input product is an ordinary linear layer before it, one for all steps.
 *
 * Forward: (gates_x (B, T, 4H), weight_hh (4H, H)) → (dst (B, T, H), gates (B, T, 4H), cell (B, T, H)), gates in the
 * order input, forget, cell, output after their nonlinearity, cell state FP32.
 * Gradient: (weight_hh, dst, gates, cell, grad_dst) → (grad_gates_x, grad_weight_hh).
 */
#include "ops/cached.h"
#include "ops/rules.h"

#include <math.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    if (x->shape.rank != 3 || w->shape.rank != 2 || w->shape.dims[0] != 4 * w->shape.dims[1] ||
        x->shape.dims[2] != w->shape.dims[0]) {
        char tx[128], tw[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "lstm needs gates (B, T, 4H) and weight_hh (4H, H), got %s and %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt__shape_text(&w->shape, tw, sizeof tw));
    }
    mixt__shape state = x->shape;
    state.dims[2] = w->shape.dims[1];
    mixt__set_out(r, 0, &state, x->dtype);
    mixt__set_out(r, 1, &x->shape, x->dtype);
    mixt__set_out(r, 2, &state, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *dst = &graph->values[node->out[0]].shape;
    return 8.0 * (double)mixt__shape_count(dst) * (double)mixt__last_dim(dst);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    int32_t in[5] = {node->in[1], node->out[0], node->out[1], node->out[2], dy};
    return mixt__gradient_emit(g, &mixt__op_lstm_grad, NULL, in, 5, node->in);
}

const mixt__op mixt__op_lstm = {
    .name = "lstm",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *w = mixt__in(graph, node, 0), *gates = mixt__in(graph, node, 2);
    mixt__set_out(r, 0, &gates->shape, gates->dtype);
    mixt__set_out(r, 1, &w->shape, w->dtype);
    return MIXT_OK;
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *dst = &mixt__in(graph, node, 1)->shape;
    return 16.0 * (double)mixt__shape_count(dst) * (double)mixt__last_dim(dst);
}

const mixt__op mixt__op_lstm_grad = {
    .name = "lstm_grad",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 1u << 3,
    .accumulate_outputs = 2,
    .matrix_work = true,
    .infer = grad_infer,
    .flops = grad_flops,
};

mixt_value mixt_lstm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_lstm_options *o)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    o = o ? o : &(mixt_lstm_options){0};
    if (o->features < 1 || o->features > MIXT_ELEMENTS_MAX)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "lstm needs .features from 1 to 2^44, got %lld",
                                   (long long)o->features);
    int64_t h = o->features, inputs = mixt__last_dim(&b->graph->values[x.id].shape);
    mixt__param p = {.trainable = true, .decay = true, .init = MIXT_INIT_UNIFORM, .init_scale = 1.0f / sqrtf((float)h)};
    p.shape = (mixt__shape){2, {4 * h, inputs}};
    mixt_value weight_ih = mixt__builder_param(b, name, "weight_ih", &p);
    p.shape.dims[1] = h;
    mixt_value weight_hh = mixt__builder_param(b, name, "weight_hh", &p);
    p.shape = mixt__vector_shape(4 * h);
    p.decay = false;
    mixt_value bias = mixt__builder_param(b, name, "bias", &p);
    mixt__matmul_attrs product = {.trans_b = true, .bias = true, .alpha = 1.0f};
    mixt_value gates = mixt__builder_node(b, &mixt__op_matmul, name, &product, (mixt_value[]){x, weight_ih, bias}, 3);
    if (mixt__builder_generating(b))
        return mixt__lstm_cached(b, name, gates, weight_hh);
    return mixt__builder_node(b, &mixt__op_lstm, name, NULL, (mixt_value[]){gates, weight_hh}, 2);
}
