/* Which values of a graph stand for its layers: the output of a layer's last matrix work, and the gradient that flows
 * back into it.
 *
 * These are where numbers are rounded to a low format and where they overflow; norms and pointwise nodes in between
 * follow from them. Two values a layer, each read once, is also what an update every now and then can afford.
 */
#include "passes/instrument.h"

#include "graph/op.h"

#include <string.h>

/** Whether the node is the last of its layer to do matrix work in the forward pass. */
static bool is_last(const mixt__graph *graph, int64_t node)
{
    const mixt__node *n = &graph->nodes[node];
    if (!n->op->matrix_work || n->backward || n->recomputed || n->teacher)
        return false;
    for (int64_t i = node + 1; i < graph->node_count; i++) {
        const mixt__node *later = &graph->nodes[i];
        if (later->op->matrix_work && !later->backward && !later->recomputed && !strcmp(later->layer, n->layer))
            return false;
    }
    return true;
}

/** The value that owns the memory which `value` shows all of; 0: it shows a part. */
static int32_t whole(const mixt__graph *graph, int32_t value)
{
    int64_t count = mixt__shape_count(&graph->values[value].shape);
    while (graph->values[value].base)
        value = graph->values[value].base;
    return mixt__shape_count(&graph->values[value].shape) == count ? value : 0;
}

/** The gradient of the node's first output: what a node of the backward pass that is its gradient reads and that pass
 *  made; 0: none is found. */
static int32_t gradient_of(const mixt__graph *graph, const mixt__node *node)
{
    int64_t count = mixt__shape_count(&graph->values[node->out[0]].shape);
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        if (!n->backward || n->recomputed || n->alias || n->source < 0 || n->source != node->source)
            continue;
        for (int k = 0; k < n->in_count; k++) {
            int32_t value = whole(graph, n->in[k]), maker = value ? graph->values[value].producer : -1;
            if (maker >= 0 && graph->nodes[maker].backward && !graph->nodes[maker].recomputed &&
                mixt__shape_count(&graph->values[value].shape) == count)
                return value;
        }
    }
    return 0;
}

void mixt__instrument_layers(const mixt__graph *graph, const char **layers)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        if (!is_last(graph, i) || graph->values[n->out[0]].base)
            continue;
        int32_t gradient = gradient_of(graph, n);
        layers[n->out[0]] = n->layer;
        if (gradient && !layers[gradient]) // branches that are added share one: it is the first's
            layers[gradient] = n->layer;
    }
}
