/* Reverse-mode differentiation: walks the nodes backwards and lets each op's rule emit nodes. */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/gradients.h"

static void find_wanted(mixt__gradients *g)
{
    mixt__graph *graph = g->graph;
    for (int64_t v = 1; v < graph->value_count; v++) {
        const mixt__value *value = &graph->values[v];
        g->wanted[v] = value->role == MIXT_ROLE_PARAM && !graph->params[value->param].frozen;
    }
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        bool wanted = false;
        for (int k = 0; k < n->in_count; k++)
            wanted |= g->wanted[n->in[k]];
        for (int o = 0; o < n->out_count; o++)
            g->wanted[n->out[o]] = wanted && n->op->grad;
    }
}

static mixt_status differentiate(mixt__gradients *g)
{
    mixt__graph *graph = g->graph;
    for (int64_t i = graph->node_count - 1; i >= 0; i--) {
        mixt__node node = graph->nodes[i]; // a copy: rules append to the array
        bool flows = false;
        for (int o = 0; o < node.out_count; o++)
            flows |= g->wanted[node.out[o]] && g->grad[node.out[o]];
        if (!flows)
            continue;
        mixt_status status = mixt__gradients_begin(g, &node);
        if (status == MIXT_OK)
            status = node.op->grad(g, &node);
        if (status != MIXT_OK)
            return mixt__fail_context(status, "gradient of %s in layer '%s'", node.op->name, node.layer);
    }
    return MIXT_OK;
}

mixt_status mixt__pass_autodiff(mixt__graph *graph, int32_t **gradients)
{
    if (!graph->loss)
        return mixt__fail(MIXT_ERROR_STATE, "a graph without a loss has no gradients");
    mixt__shape scalar = {.rank = 0};
    MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_SEED, MIXT_DTYPE_FP32, &scalar, "seed", &graph->seed));
    mixt__gradients g = {.graph = graph, .capacity = graph->value_count};
    g.grad = mixt__alloc((size_t)g.capacity * sizeof *g.grad);
    g.wanted = mixt__alloc((size_t)g.capacity * sizeof *g.wanted);
    g.written = mixt__alloc((size_t)(graph->param_count + 1) * sizeof *g.written);
    mixt_status status;
    if (g.grad && g.wanted && g.written) {
        find_wanted(&g);
        g.grad[graph->loss] = graph->seed;
        status = differentiate(&g);
    } else {
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to differentiate the graph");
    }
    if (gradients && status == MIXT_OK)
        *gradients = g.grad;
    else
        mixt__free(g.grad);
    mixt__free(g.wanted);
    mixt__free(g.written);
    return status;
}
