/* The recurrent part of a GRU layer as cuDNN and PyTorch define it: the reset gate acts on the product with the state,
 * which has a bias of its own. The input product is an ordinary linear layer before it, one for all steps.
 *
 *   r = σ(x_r + W_r h),  z = σ(x_z + W_z h),  q = W_n h + bias_hn,  n = tanh(x_n + r q),  h' = (1 - z) n + z h
 *
 * Forward: (gates_x (B, T, 3H), weight_hh (3H, H), bias_hn (H)) → (dst (B, T, H), saved (B, T, 4H), state (B, T, H)),
 * gates_x in the order r, z, n; saved: r, z, n, q. The state is FP32: what a step adds to it may be far below the
 * roundoff of a low format. dst is the state rounded, and what weight_hh is multiplied with.
 * Gradient: (weight_hh, dst, saved, state, grad_dst) → (grad_gates_x, grad_weight_hh, grad_bias_hn).
 * Cached, for generating: (gates_x, weight_hh, bias_hn, state (B, H)) → dst (B, T, H). The state, FP32, is read before
 * the first step and written after the last, in place; it has no gradient.
 */
#include "ops/recurrent.h"

static const mixt__recurrent_kind gru = {"gru", "3H", 3};

static mixt_status check_bias(const mixt__graph *graph, const mixt__node *node, const mixt__shape *state)
{
    const mixt__value *bias = mixt__in(graph, node, 2);
    char text[128];
    if (bias->shape.rank == 1 && bias->shape.dims[0] == state->dims[2])
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE, "gru needs bias_hn (H) with H %lld, got %s", (long long)state->dims[2],
                      mixt__shape_text(&bias->shape, text, sizeof text));
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape state, saved;
    MIXT_TRY(mixt__recurrent_shapes(graph, node, &gru, &state));
    MIXT_TRY(check_bias(graph, node, &state));
    saved = state;
    saved.dims[2] = 4 * state.dims[2];
    mixt__set_out(r, 0, &state, x->dtype);
    mixt__set_out(r, 1, &saved, x->dtype);
    mixt__set_out(r, 2, &state, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return mixt__recurrent_flops(&gru, &graph->values[node->out[0]].shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    int32_t in[5] = {node->in[1], node->out[0], node->out[1], node->out[2], dy};
    return mixt__gradient_emit(g, &mixt__op_gru_grad, NULL, in, 5, node->in);
}

const mixt__op mixt__op_gru = {
    .name = "gru",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 1u << 2,
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

/* ---- the gradient ---- */

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *w = mixt__in(graph, node, 0), *dst = mixt__in(graph, node, 1);
    mixt__shape gates = dst->shape, bias = mixt__vector_shape(w->shape.dims[1]);
    gates.dims[2] = w->shape.dims[0];
    mixt__set_out(r, 0, &gates, dst->dtype);
    mixt__set_out(r, 1, &w->shape, w->dtype);
    mixt__set_out(r, 2, &bias, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    return 2 * mixt__recurrent_flops(&gru, &mixt__in(graph, node, 1)->shape);
}

const mixt__op mixt__op_gru_grad = {
    .name = "gru_grad",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 1u << 3,
    .accumulate_outputs = 3u << 1,
    .matrix_work = true,
    .infer = grad_infer,
    .flops = grad_flops,
};

/* ---- going on from earlier runs ---- */

static mixt_status cached_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape dst;
    MIXT_TRY(mixt__recurrent_cached_shapes(graph, node, &gru, 3, true, &dst));
    MIXT_TRY(check_bias(graph, node, &dst));
    mixt__set_out(r, 0, &dst, mixt__in(graph, node, 0)->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_gru_cached = {
    .name = "gru_cached",
    .acts_as = "gru",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 3u << 2,
    .written_inputs = 1u << 3,
    .matrix_work = true,
    .infer = cached_infer,
    .flops = flops,
};

/* ---- the layer ---- */

MIXT_PLAY(mixt_gru_with, out[0] = mixt_gru_with(b, c->name, in[0], options))

mixt_value mixt_gru_with(mixt_builder *b, const char *name, mixt_value x, const mixt_gru_options *given)
{
    mixt_gru_options own = MIXT_OPTIONS(mixt_gru_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_gru_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_gru_with, .name = name, .in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own);
    mixt__recurrent_layer l;
    if (!mixt__recurrent_begin(b, name, x, o->features, &gru, &l))
        return (mixt_value){0};
    mixt_value bias = mixt__recurrent_param(b, name, "bias_hn", o->features, mixt__vector_shape(o->features));
    if (!mixt__builder_generating(b))
        return mixt__builder_node(b, &mixt__op_gru, name, NULL, (mixt_value[]){l.gates, l.weight_hh, bias}, 3);
    mixt_value state = mixt__recurrent_cache(b, &l);
    return mixt__builder_node(b, &mixt__op_gru_cached, name, NULL, (mixt_value[]){l.gates, l.weight_hh, bias, state},
                              4);
}
