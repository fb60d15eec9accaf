/* Removes what costs memory traffic and changes nothing: no-op copies, repeated casts, nodes nobody reads. */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

int32_t *mixt__graph_use_counts(const mixt__graph *graph)
{
    int32_t *uses = mixt__alloc((size_t)graph->value_count * sizeof *uses);
    if (!uses)
        return NULL;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            uses[graph->nodes[i].in[k]]++;
    for (int64_t v = 1; v < graph->value_count; v++)
        if (graph->values[v].output || v == graph->loss || v == graph->metrics)
            uses[v]++;
    return uses;
}

void mixt__graph_compact(mixt__graph *graph, const bool *keep)
{
    int64_t next = 0;
    for (int64_t i = 0; i < graph->node_count; i++) {
        if (!keep[i])
            continue;
        graph->nodes[next] = graph->nodes[i];
        for (int o = 0; o < graph->nodes[next].out_count; o++)
            if (graph->values[graph->nodes[next].out[o]].role == MIXT_ROLE_ACTIVATION)
                graph->values[graph->nodes[next].out[o]].producer = (int32_t)next;
        next++;
    }
    graph->node_count = next;
}

static bool is_copy(const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    return n->op == &mixt__op_pointwise && at->instr_count == 1 && at->instrs[0].code == MIXT_PW_COPY;
}

/** A COPY whose result is its input: same shape, same format. */
static bool changes_nothing(const mixt__graph *graph, const mixt__node *n)
{
    const mixt__value *in = &graph->values[n->in[0]], *out = &graph->values[n->out[0]];
    return is_copy(n) && !out->output && in->dtype == out->dtype && mixt__shape_equal(&in->shape, &out->shape);
}

/** An earlier cast of the same value to the same format; -1: none. */
static int64_t same_cast(const mixt__graph *graph, int64_t index)
{
    const mixt__node *n = &graph->nodes[index];
    for (int64_t i = index - 1; is_copy(n) && i >= 0; i--) {
        const mixt__node *other = &graph->nodes[i];
        if (is_copy(other) && other->in[0] == n->in[0] &&
            graph->values[other->out[0]].dtype == graph->values[n->out[0]].dtype &&
            mixt__shape_equal(&graph->values[other->out[0]].shape, &graph->values[n->out[0]].shape))
            return i;
    }
    return -1;
}

/** Replaces results by the values they equal; nodes made useless are swept by remove_dead. */
static mixt_status replace_copies(mixt__graph *graph)
{
    int32_t *same = mixt__alloc((size_t)graph->value_count * sizeof *same);
    if (!same)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to simplify the graph");
    for (int32_t v = 0; v < graph->value_count; v++)
        same[v] = v;
    for (int64_t i = 0; i < graph->node_count; i++) {
        mixt__node *n = &graph->nodes[i];
        for (int k = 0; k < n->in_count; k++)
            n->in[k] = same[n->in[k]];
        if (changes_nothing(graph, n)) {
            same[n->out[0]] = n->in[0];
            continue;
        }
        int64_t twin = same_cast(graph, i);
        if (twin >= 0 && !graph->values[n->out[0]].output)
            same[n->out[0]] = graph->nodes[twin].out[0];
    }
    mixt__free(same);
    return MIXT_OK;
}

static mixt_status remove_dead(mixt__graph *graph)
{
    int32_t *uses = mixt__graph_use_counts(graph);
    bool *keep = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *keep);
    mixt_status status = uses && keep ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to simplify the graph");
    for (int64_t i = graph->node_count - 1; status == MIXT_OK && i >= 0; i--) {
        const mixt__node *n = &graph->nodes[i];
        for (int o = 0; o < n->out_count; o++)
            keep[i] |= uses[n->out[o]] > 0 || graph->values[n->out[o]].role == MIXT_ROLE_GRAD;
        for (int k = 0; !keep[i] && k < n->in_count; k++)
            uses[n->in[k]]--;
    }
    if (status == MIXT_OK)
        mixt__graph_compact(graph, keep);
    mixt__free(uses);
    mixt__free(keep);
    return status;
}

mixt_status mixt__pass_simplify(mixt__graph *graph)
{
    MIXT_TRY(replace_copies(graph));
    return remove_dead(graph);
}
