/* Moving nodes that were appended to where they belong. */
#include "graph/graph.h"

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to put nodes into the graph");
}

/** Order of the new nodes: by their anchors, and among those of one anchor as they were made. A counting sort.
 *  @param ends by old node, counted from 1: where its part of the order ends; [0]: that of those in front of all */
static void sort(const int64_t *anchors, int64_t old, int64_t added, int64_t *ends, int64_t *order)
{
    for (int64_t k = 0; k < added; k++)
        ends[anchors[k] + 2]++;
    for (int64_t i = 0; i <= old; i++)
        ends[i + 1] += ends[i];
    for (int64_t k = 0; k < added; k++)
        order[ends[anchors[k] + 1]++] = k;
}

mixt_status mixt__graph_insert(mixt__graph *g, int64_t first, const int64_t *anchors)
{
    int64_t added = g->node_count - first, next = 0;
    mixt__node *nodes = mixt__alloc((size_t)g->node_capacity * sizeof *nodes);
    int64_t *ends = mixt__alloc((size_t)(first + 2) * sizeof *ends);
    int64_t *order = mixt__alloc((size_t)(added + 1) * sizeof *order);
    bool complete = nodes && ends && order;
    if (complete) {
        sort(anchors, first, added, ends, order);
        for (int64_t i = -1, k = 0; i < first; i++) {
            if (i >= 0)
                nodes[next++] = g->nodes[i];
            for (; k < ends[i + 1]; k++)
                nodes[next++] = g->nodes[first + order[k]];
        }
        for (int64_t i = 0; i < g->node_count; i++)
            for (int o = 0; o < nodes[i].out_count; o++)
                if (g->values[nodes[i].out[o]].role == MIXT_ROLE_ACTIVATION)
                    g->values[nodes[i].out[o]].producer = (int32_t)i;
        mixt__free(g->nodes);
        g->nodes = nodes;
    } else {
        mixt__free(nodes);
    }
    mixt__free(ends);
    mixt__free(order);
    return complete ? MIXT_OK : no_memory();
}
