/* The recurrent part of a plain recurrent layer: h' = tanh(x + W h), or relu in place of tanh. The input product is an
 * ordinary linear layer before it, one for all steps.
 *
 * Forward: (gates_x (B, T, H), weight_hh (H, H)) → dst (B, T, H), which is all that the gradient needs.
 * Gradient: (weight_hh, dst, grad_dst) → (grad_gates_x, grad_weight_hh).
 * Cached, for generating: (gates_x, weight_hh, state (B, H)) → dst (B, T, H). The state is read before the first step
 * and written after the last, in place; it has no gradient.
 */
#include "ops/recurrent.h"

#include <stdio.h>

static const mixt__recurrent_kind rnn = {"rnn", "H", 1};

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape state;
    MIXT_TRY(mixt__recurrent_shapes(graph, node, &rnn, &state));
    mixt__set_out(r, 0, &state, mixt__in(graph, node, 0)->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return mixt__recurrent_flops(&rnn, &graph->values[node->out[0]].shape);
}

static void describe(const void *attrs, char *text, size_t size)
{
    snprintf(text, size, "%s", ((const mixt__rnn_attrs *)attrs)->relu ? "relu" : "tanh");
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    int32_t in[3] = {node->in[1], node->out[0], dy};
    return mixt__gradient_emit(g, &mixt__op_rnn_grad, node->attrs, in, 3, node->in);
}

const mixt__op mixt__op_rnn = {
    .name = "rnn",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .attrs_size = sizeof(mixt__rnn_attrs),
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .describe = describe,
};

/* ---- the gradient ---- */

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *w = mixt__in(graph, node, 0), *dst = mixt__in(graph, node, 1);
    mixt__set_out(r, 0, &dst->shape, dst->dtype);
    mixt__set_out(r, 1, &w->shape, w->dtype);
    return MIXT_OK;
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    return 2 * mixt__recurrent_flops(&rnn, &mixt__in(graph, node, 1)->shape);
}

const mixt__op mixt__op_rnn_grad = {
    .name = "rnn_grad",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .attrs_size = sizeof(mixt__rnn_attrs),
    .accumulate_outputs = 2,
    .matrix_work = true,
    .infer = grad_infer,
    .flops = grad_flops,
    .describe = describe,
};

/* ---- going on from earlier runs ---- */

static mixt_status cached_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape dst;
    MIXT_TRY(mixt__recurrent_cached_shapes(graph, node, &rnn, 2, false, &dst));
    mixt__set_out(r, 0, &dst, mixt__in(graph, node, 0)->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_rnn_cached = {
    .name = "rnn_cached",
    .acts_as = "rnn",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .attrs_size = sizeof(mixt__rnn_attrs),
    .written_inputs = 1u << 2,
    .matrix_work = true,
    .infer = cached_infer,
    .flops = flops,
    .describe = describe,
};

/* ---- the layer ---- */

MIXT_PLAY(mixt_rnn_with, out[0] = mixt_rnn_with(b, c->name, in[0], options))

mixt_value mixt_rnn_with(mixt_builder *b, const char *name, mixt_value x, const mixt_rnn_options *given)
{
    mixt_rnn_options own = MIXT_OPTIONS(mixt_rnn_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_rnn_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_rnn_with, .name = name, .in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own);
    mixt__recurrent_layer l;
    if (!mixt__recurrent_begin(b, name, x, o->features, &rnn, &l))
        return (mixt_value){0};
    mixt__rnn_attrs attrs = {.relu = o->relu};
    if (!mixt__builder_generating(b))
        return mixt__builder_node(b, &mixt__op_rnn, name, &attrs, (mixt_value[]){l.gates, l.weight_hh}, 2);
    mixt_value state = mixt__recurrent_cache(b, &l);
    return mixt__builder_node(b, &mixt__op_rnn_cached, name, &attrs, (mixt_value[]){l.gates, l.weight_hh, state}, 3);
}
