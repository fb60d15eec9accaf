/* Shapes, cost and parameters of the recurrent ops. */
#include "ops/recurrent.h"

#include <math.h>

mixt_status mixt__recurrent_shapes(const mixt__graph *graph, const mixt__node *node, const mixt__recurrent_kind *kind,
                                   mixt__shape *state)
{
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    if (x->shape.rank != 3 || w->shape.rank != 2 || w->shape.dims[0] != kind->gates * w->shape.dims[1] ||
        x->shape.dims[2] != w->shape.dims[0]) {
        char tx[128], tw[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "%s needs gates (B, T, %s) and weight_hh (%s, H), got %s and %s",
                          kind->name, kind->rows, kind->rows, mixt__shape_text(&x->shape, tx, sizeof tx),
                          mixt__shape_text(&w->shape, tw, sizeof tw));
    }
    *state = x->shape;
    state->dims[2] = w->shape.dims[1];
    return MIXT_OK;
}

mixt_status mixt__recurrent_cached_shapes(const mixt__graph *graph, const mixt__node *node,
                                          const mixt__recurrent_kind *kind, int first, bool whole, mixt__shape *state)
{
    MIXT_TRY(mixt__recurrent_shapes(graph, node, kind, state));
    const mixt__shape cache = {2, {state->dims[0], state->dims[2]}};
    for (int i = first; i < node->in_count; i++) {
        const mixt__value *v = mixt__in(graph, node, i);
        bool fp32 = whole && i + 1 == node->in_count;
        char text[128];
        if (!mixt__shape_equal(&v->shape, &cache))
            return mixt__fail(MIXT_ERROR_SHAPE, "%s needs caches (B, H), got %s", kind->name,
                              mixt__shape_text(&v->shape, text, sizeof text));
        if (v->dtype != (fp32 ? MIXT_DTYPE_FP32 : mixt__in(graph, node, 0)->dtype))
            return mixt__fail(MIXT_ERROR_DTYPE, "%s needs a cache %s", kind->name,
                              fp32 ? "in FP32" : "in the gates' format");
    }
    return MIXT_OK;
}

double mixt__recurrent_flops(const mixt__recurrent_kind *kind, const mixt__shape *states)
{
    return 2.0 * (double)kind->gates * (double)mixt__shape_count(states) * (double)mixt__last_dim(states);
}

mixt_value mixt__recurrent_param(mixt_builder *b, const char *name, const char *part, int64_t features,
                                 mixt__shape shape)
{
    mixt__param p = {.trainable = true,
                     .decay = shape.rank > 1,
                     .init = MIXT_INIT_UNIFORM,
                     .init_scale = 1.0f / sqrtf((float)features),
                     .shape = shape};
    return mixt__builder_param(b, name, part, &p);
}

bool mixt__recurrent_begin(mixt_builder *b, const char *name, mixt_value x, int64_t features,
                           const mixt__recurrent_kind *kind, mixt__recurrent_layer *layer)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return false;
    if (features < 1 || features > MIXT_ELEMENTS_MAX) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "%s needs .features from 1 to 2^44, got %lld", kind->name,
                            (long long)features);
        return false;
    }
    int64_t rows = kind->gates * features, inputs = mixt__last_dim(&b->graph->values[x.id].shape);
    mixt_value weight_ih = mixt__recurrent_param(b, name, "weight_ih", features, (mixt__shape){2, {rows, inputs}});
    layer->weight_hh = mixt__recurrent_param(b, name, "weight_hh", features, (mixt__shape){2, {rows, features}});
    mixt_value bias = mixt__recurrent_param(b, name, "bias", features, mixt__vector_shape(rows));
    mixt__matmul_attrs product = {.trans_b = true, .bias = true, .alpha = 1.0f};
    layer->gates = mixt__builder_node(b, &mixt__op_matmul, name, &product, (mixt_value[]){x, weight_ih, bias}, 3);
    return true;
}

mixt_value mixt__recurrent_cache(mixt_builder *b, const mixt__recurrent_layer *layer)
{
    mixt__shape shape = {2, {mixt_value_dim(b, layer->gates, 0), mixt_value_dim(b, layer->weight_hh, 1)}};
    return mixt__builder_cache(b, &shape);
}
