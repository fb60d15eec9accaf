/* Losses and their gradients in one pass over the logits, where the backend has that (MIXT_FUSED_LOSS): the forward
 * node goes to where its gradient is and both become one node, which may leave the gradient in the logits' place.
 *
 *   cross_entropy, cross_entropy_grad  →  cross_entropy_step
 *   kl, kl_grad                        →  kl_step
 *
 * In a sum of losses the scalars that follow from a loss stand between the two; they move behind. Gradients never read
 * them: what flows back into a loss depends on its weight alone. A loss whose gradient does read one, as of a product
 * of losses, stays as it is.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

/** A loss that has a fused form, and where its gradient finds the forward's inputs. */
typedef struct pair {
    const mixt__op *forward, *gradient, *step;
    int saved; // input of the gradient: what the forward node kept for it; metrics and seed follow
} pair;

static const pair *pair_of(const mixt__op *gradient)
{
    static const pair pairs[] = {
        {&mixt__op_cross_entropy, &mixt__op_cross_entropy_grad, &mixt__op_cross_entropy_step, 2},
        {&mixt__op_kl, &mixt__op_kl_grad, &mixt__op_kl_step, 2},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].gradient == gradient)
            return &pairs[i];
    return NULL;
}

/** The forward node of a gradient that may be joined with it; -1: there is none. */
static int64_t forward_of(const mixt__graph *graph, const mixt__node *g, const pair *p, const int32_t *uses)
{
    const mixt__value *saved = &graph->values[g->in[p->saved]], *logits = &graph->values[g->in[0]];
    if (saved->role != MIXT_ROLE_ACTIVATION || saved->producer < 0 || saved->output || logits->output)
        return -1;
    const mixt__node *f = &graph->nodes[saved->producer];
    if (f->op != p->forward || f->in[0] != g->in[0] || f->in[1] != g->in[1] || uses[g->in[p->saved]] != 1)
        return -1;
    for (int64_t i = 0; i < graph->node_count; i++) // who else reads the logits is a loss too: else they would live on
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            if (graph->nodes[i].in[k] == g->in[0] && graph->nodes[i].op->work != MIXT_WORK_LOSS)
                return -1;
    return saved->producer;
}

/** Marks nodes between `first` and `last` that follow from what `first` says of the loss. @return whether `last` does
 *  not read any of them */
static bool find_followers(const mixt__graph *graph, int64_t first, int64_t last, const pair *p, bool *follows,
                           bool *marked)
{
    const mixt__node *f = &graph->nodes[first], *g = &graph->nodes[last];
    memset(marked, 0, (size_t)graph->value_count * sizeof *marked);
    memset(follows, 0, (size_t)graph->node_count * sizeof *follows);
    marked[f->out[0]] = marked[f->out[1]] = true;
    for (int64_t i = first + 1; i < last; i++) {
        const mixt__node *n = &graph->nodes[i];
        for (int k = 0; k < n->in_count; k++)
            follows[i] = follows[i] || marked[n->in[k]];
        for (int o = 0; follows[i] && o < n->out_count; o++)
            marked[n->out[o]] = true;
    }
    for (int k = 0; k < g->in_count; k++)
        if (marked[g->in[k]] && k != p->saved + 1) // the metrics are the forward's own
            return false;
    return true;
}

/** (logits, labels, seed), or (logits, teacher, seed[, labels]). */
static int step_inputs(const mixt__node *g, const pair *p, int32_t *in)
{
    int count = 0;
    in[count++] = g->in[0];
    in[count++] = g->in[1];
    in[count++] = g->in[p->saved + 2];
    for (int k = p->saved + 3; k < g->in_count; k++)
        in[count++] = g->in[k];
    return count;
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to join losses with their gradients");
}

/** Makes the gradient node the fused one, moves the followers behind it and the forward node away. */
static mixt_status join(mixt__graph *graph, int64_t first, int64_t last, const pair *p, const bool *follows)
{
    mixt__node *g = &graph->nodes[last], f = graph->nodes[first];
    int32_t *in = mixt__arena_alloc(&graph->arena, 8 * sizeof *in);
    int32_t *out = mixt__arena_alloc(&graph->arena, 3 * sizeof *out);
    mixt__node *order = mixt__alloc((size_t)(last - first) * sizeof *order);
    if (!in || !out || !order) {
        mixt__free(order);
        return no_memory();
    }
    g->in_count = step_inputs(g, p, in);
    memcpy(out, (int32_t[]){g->out[0], f.out[0], f.out[1]}, 3 * sizeof *out);
    g->op = p->step;
    g->in = in;
    g->out = out;
    g->out_count = 3;
    int64_t count = 0;
    for (int64_t i = first + 1; i < last; i++)
        if (!follows[i])
            order[count++] = graph->nodes[i];
    order[count++] = *g;
    for (int64_t i = first + 1; i < last; i++)
        if (follows[i])
            order[count++] = graph->nodes[i];
    memcpy(graph->nodes + first, order, (size_t)count * sizeof *order);
    mixt__free(order);
    int64_t behind = graph->node_count - last - 1;
    memmove(graph->nodes + last, graph->nodes + last + 1, (size_t)behind * sizeof *graph->nodes);
    graph->node_count--;
    for (int64_t i = first; i < graph->node_count; i++)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            if (graph->values[graph->nodes[i].out[o]].role == MIXT_ROLE_ACTIVATION)
                graph->values[graph->nodes[i].out[o]].producer = (int32_t)i;
    return MIXT_OK;
}

static mixt_status join_all(mixt__graph *graph, int32_t *uses, bool *follows, bool *marked)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const pair *p = pair_of(graph->nodes[i].op);
        int64_t first = p ? forward_of(graph, &graph->nodes[i], p, uses) : -1;
        if (first < 0 || !find_followers(graph, first, i, p, follows, marked))
            continue;
        MIXT_TRY(join(graph, first, i, p, follows));
        i--; // a node less in front
    }
    return MIXT_OK;
}

mixt_status mixt__pass_losses(mixt__graph *graph)
{
    int32_t *uses = mixt__graph_use_counts(graph);
    bool *follows = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *follows);
    bool *marked = mixt__alloc((size_t)(graph->value_count + 1) * sizeof *marked);
    mixt_status status = uses && follows && marked ? join_all(graph, uses, follows, marked) : no_memory();
    mixt__free(uses);
    mixt__free(follows);
    mixt__free(marked);
    return status;
}
