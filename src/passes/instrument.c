/* Putting statistics behind the nodes that make the wanted values. */
#include "passes/instrument.h"

#include "graph/op.h"
#include "ops/ops.h"

/** Whether this node is the last that writes the value: several may add to a parameter's gradient. */
static bool writes_last(const mixt__graph *graph, int64_t count, int64_t node, int32_t value)
{
    for (int64_t i = node + 1; i < count && graph->values[value].role == MIXT_ROLE_GRAD; i++)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            if (graph->nodes[i].out[o] == value)
                return false;
    return true;
}

/** @param layers by value, where only those that stand for layers are wanted; NULL: it is the caller's choice */
static bool is_wanted(const mixt__graph *graph, const mixt__instrument *instrument, const char *const *layers,
                      int64_t count, int64_t node, int o)
{
    const mixt__node *n = &graph->nodes[node];
    const mixt__value *v = &graph->values[n->out[o]];
    if (layers && !layers[n->out[o]])
        return false;
    bool parts = layers && n->alias && !v->base; // a concat whose producers wrote it: it is complete behind that
    if ((n->alias && !parts) || !mixt_dtype_is_float(v->dtype) || v->dtype == MIXT_DTYPE_FP64 ||
        !writes_last(graph, count, node, n->out[o]))
        return false;
    if (v->scales.kind != MIXT_SCALE_NONE) // numbers without their scale say nothing: what was rounded is looked at
        return false;
    return !instrument->wanted || instrument->wanted(instrument->user, graph, n, o);
}

/** @param layer that the value is of
 *  @param anchors grows with the nodes that are made */
static mixt_status look_at(mixt__graph *graph, const mixt__instrument *instrument, const char *layer, int64_t first,
                           int64_t node, int o, int64_t **anchors, int64_t *capacity)
{
    mixt__tensor_stats_attrs at = {.tag = (int32_t)(graph->node_count - first)};
    int32_t value = graph->nodes[node].out[o];
    bool backward = graph->nodes[node].backward;
    int64_t made;
    for (int t = 0; t < MIXT_STATS_TARGETS; t++)
        at.targets[t] = instrument->targets[t];
    MIXT_TRY(mixt__graph_node(graph, &mixt__op_tensor_stats, layer, &at, &value, 1, &made));
    if (!mixt__grow((void **)anchors, capacity, made - first, sizeof **anchors))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of values");
    (*anchors)[made - first] = node;
    mixt__node *n = &graph->nodes[made];
    n->backward = backward;
    n->why = "inspects a value";
    graph->values[n->out[0]].output = graph->values[n->out[1]].output = true;
    return MIXT_OK;
}

/** @param layers as is_wanted takes them */
static mixt_status look(mixt__graph *graph, const mixt__instrument *instrument, const char *const *layers)
{
    int64_t first = graph->node_count, *anchors = NULL, capacity = 0;
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < first; i++)
        for (int o = 0; status == MIXT_OK && o < graph->nodes[i].out_count; o++)
            if (is_wanted(graph, instrument, layers, first, i, o)) {
                const char *layer = layers ? layers[graph->nodes[i].out[o]] : graph->nodes[i].layer;
                status = look_at(graph, instrument, layer, first, i, o, &anchors, &capacity);
            }
    if (status == MIXT_OK)
        status = mixt__graph_insert(graph, first, anchors);
    mixt__free(anchors);
    return status;
}

/** Which values stand for layers, by value; for mixt__free. */
static mixt_status find_layers(const mixt__graph *graph, const char ***layers)
{
    *layers = mixt__alloc((size_t)(graph->value_count + 1) * sizeof **layers);
    if (!*layers)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of layers");
    mixt__instrument_layers(graph, *layers);
    return MIXT_OK;
}

mixt_status mixt__instrument_count_layers(const mixt__graph *graph, int64_t *values, int64_t *largest)
{
    const mixt__instrument instrument = {.layers = true};
    const char **layers;
    MIXT_TRY(find_layers(graph, &layers));
    *values = *largest = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            if (is_wanted(graph, &instrument, layers, graph->node_count, i, o)) {
                int64_t count = mixt__shape_count(&graph->values[graph->nodes[i].out[o]].shape);
                *largest = count > *largest ? count : *largest;
                ++*values;
            }
    mixt__free(layers);
    return MIXT_OK;
}

mixt_status mixt__pass_instrument(mixt__graph *graph, const mixt__instrument *instrument)
{
    const char **layers;
    if (!instrument->layers)
        return look(graph, instrument, NULL);
    MIXT_TRY(find_layers(graph, &layers));
    mixt_status status = look(graph, instrument, layers);
    mixt__free(layers);
    for (int64_t i = 0; i < graph->node_count; i++) // the values of the step lie as they do without
        for (int o = 0; graph->nodes[i].op == &mixt__op_tensor_stats && o < graph->nodes[i].out_count; o++)
            graph->values[graph->nodes[i].out[o]].role = MIXT_ROLE_SIDE;
    return status;
}
