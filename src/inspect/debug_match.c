/* Which nodes of two graphs compute the same thing.
 *
 * Both come from one model and were not fused: they have the same nodes in the same order, but for casts, and for what
 * policies add (formats in which activations are kept, nodes that run again). So a walk over both finds the partners.
 */
#include "inspect/debug.h"

#include "graph/op.h"
#include "ops/ops.h"

bool mixt__debug_is_cast(const mixt__graph *graph, const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    return n->op == &mixt__op_pointwise && at->instr_count == 1 && at->instrs[0].code == MIXT_PW_COPY &&
           graph->values[n->in[0]].dtype != graph->values[n->out[0]].dtype;
}

const char *mixt__debug_op(const mixt__graph *graph, const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    if (n->op != &mixt__op_pointwise || at->instr_count < 1)
        return n->op->name;
    if (mixt__debug_is_cast(graph, n))
        return "cast";
    return mixt__pw_names[at->instrs[at->instr_count - 1].code];
}

/** Whether both come from the same place and do the same. */
static bool is_partner(const mixt__graph *a, const mixt__node *x, const mixt__graph *b, const mixt__node *y)
{
    if (x->op != y->op || x->source != y->source || x->backward != y->backward || y->recomputed ||
        x->in_count != y->in_count || x->out_count != y->out_count)
        return false;
    if (x->op == &mixt__op_pointwise) {
        const mixt__pointwise_attrs *p = x->attrs, *q = y->attrs;
        if (p->instr_count != q->instr_count || p->instrs[0].code != q->instrs[0].code)
            return false;
    }
    for (int o = 0; o < x->out_count; o++) {
        const mixt__value *v = &a->values[x->out[o]], *w = &b->values[y->out[o]];
        if (v->role != w->role || v->param != w->param || !mixt__shape_equal(&v->shape, &w->shape))
            return false;
    }
    return true;
}

mixt_status mixt__debug_match(const mixt__graph *low, const mixt__graph *full, int32_t **matches)
{
    int32_t *partner = mixt__alloc((size_t)(low->node_count + 1) * sizeof *partner);
    *matches = partner;
    if (!partner)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare two passes");
    int64_t from = 0;
    for (int64_t i = 0; i < low->node_count; i++) {
        const mixt__node *n = &low->nodes[i];
        partner[i] = -1;
        if (n->source < 0 || n->recomputed)
            continue;
        for (int64_t j = from; j < full->node_count && partner[i] < 0; j++)
            if (is_partner(low, n, full, &full->nodes[j]))
                partner[i] = (int32_t)j;
        if (partner[i] >= 0)
            from = partner[i] + 1;
    }
    return MIXT_OK;
}
