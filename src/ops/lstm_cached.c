/* The recurrent part of an LSTM layer that goes on from the state which the run before left.
 *
 * (gates_x (B, T, 4H), weight_hh (4H, H), state (B, H), cell (B, H)) → dst (B, T, H). State and cell, FP32 the latter,
 * are read before the first step and written after the last, in place. For generating only: it has no gradient.
 */
#include "ops/cached.h"
#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    mixt__shape dst = x->shape, state = {2, {x->shape.dims[0], x->shape.dims[2] / 4}};
    bool fits = x->shape.rank == 3 && w->shape.rank == 2 && w->shape.dims[0] == 4 * w->shape.dims[1] &&
                x->shape.dims[2] == w->shape.dims[0];
    for (int i = 2; i < 4; i++)
        fits = fits && mixt__shape_equal(&mixt__in(graph, node, i)->shape, &state);
    if (!fits) {
        char tx[128], tw[128];
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "lstm_cached needs gates (B, T, 4H), weight_hh (4H, H), state and cell (B, H), got %s and %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt__shape_text(&w->shape, tw, sizeof tw));
    }
    if (mixt__in(graph, node, 2)->dtype != x->dtype || mixt__in(graph, node, 3)->dtype != MIXT_DTYPE_FP32)
        return mixt__fail(MIXT_ERROR_DTYPE, "lstm_cached: the state has the gates' format, the cell is FP32");
    dst.dims[2] = w->shape.dims[1];
    mixt__set_out(r, 0, &dst, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *dst = &graph->values[node->out[0]].shape;
    return 8.0 * (double)mixt__shape_count(dst) * (double)mixt__last_dim(dst);
}

const mixt__op mixt__op_lstm_cached = {
    .name = "lstm_cached",
    .acts_as = "lstm",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_RECURRENT,
    .fp32_inputs = 1u << 3,
    .written_inputs = 3u << 2,
    .matrix_work = true,
    .infer = infer,
    .flops = flops,
};

mixt_value mixt__lstm_cached(mixt_builder *b, const char *name, mixt_value gates, mixt_value weight_hh)
{
    mixt__shape shape = {2, {mixt_value_dim(b, gates, 0), mixt_value_dim(b, weight_hh, 1)}};
    mixt_value state = mixt__builder_cache(b, &shape), cell = mixt__builder_cache(b, &shape);
    return mixt__builder_node(b, &mixt__op_lstm_cached, name, NULL, (mixt_value[]){gates, weight_hh, state, cell}, 4);
}
