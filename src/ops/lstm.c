/* The recurrent part of an LSTM layer; the input product is an ordinary linear layer before it, one for all steps.
 *
 * Forward: (gates_x (B, T, 4H), weight_hh (4H, H)) → (dst (B, T, H), gates (B, T, 4H), cell (B, T, H)), gates in the
 * order input, forget, cell, output after their nonlinearity, cell state FP32.
 * Gradient: (weight_hh, dst, gates, cell, grad_dst) → (grad_gates_x, grad_weight_hh).
 * Cached, for generating: (gates_x, weight_hh, state (B, H), cell (B, H)) → dst (B, T, H). State and cell, FP32 the
 * latter, are read before the first step and written after the last, in place; it has no gradient.
 */
#include "ops/recurrent.h"

static const mixt__recurrent_kind lstm = {"lstm", "4H", 4};

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape state;
    MIXT_TRY(mixt__recurrent_shapes(graph, node, &lstm, &state));
    mixt__set_out(r, 0, &state, x->dtype);
    mixt__set_out(r, 1, &x->shape, x->dtype);
    mixt__set_out(r, 2, &state, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return mixt__recurrent_flops(&lstm, &graph->values[node->out[0]].shape);
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

/* ---- the gradient ---- */

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *w = mixt__in(graph, node, 0), *gates = mixt__in(graph, node, 2);
    mixt__set_out(r, 0, &gates->shape, gates->dtype);
    mixt__set_out(r, 1, &w->shape, w->dtype);
    return MIXT_OK;
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    return 2 * mixt__recurrent_flops(&lstm, &mixt__in(graph, node, 1)->shape);
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

/* ---- going on from earlier runs ---- */

static mixt_status cached_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape dst;
    MIXT_TRY(mixt__recurrent_cached_shapes(graph, node, &lstm, 2, true, &dst));
    mixt__set_out(r, 0, &dst, mixt__in(graph, node, 0)->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_lstm_cached = {
    .name = "lstm_cached",
    .acts_as = "lstm",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 1u << 3,
    .written_inputs = 3u << 2,
    .matrix_work = true,
    .infer = cached_infer,
    .flops = flops,
};

/* ---- the layer ---- */

MIXT_PLAY(mixt_lstm_with, out[0] = mixt_lstm_with(b, c->name, in[0], options))

mixt_value mixt_lstm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_lstm_options *given)
{
    mixt_lstm_options own = MIXT_OPTIONS(mixt_lstm_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_lstm_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_lstm_with, .name = name, .in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own);
    mixt__recurrent_layer l;
    if (!mixt__recurrent_begin(b, name, x, o->features, &lstm, &l))
        return (mixt_value){0};
    if (!mixt__builder_generating(b))
        return mixt__builder_node(b, &mixt__op_lstm, name, NULL, (mixt_value[]){l.gates, l.weight_hh}, 2);
    mixt_value state = mixt__recurrent_cache(b, &l), cell = mixt__recurrent_cache(b, &l);
    return mixt__builder_node(b, &mixt__op_lstm_cached, name, NULL, (mixt_value[]){l.gates, l.weight_hh, state, cell},
                              4);
}
