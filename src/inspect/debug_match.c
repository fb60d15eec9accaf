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

mixt_status mixt__debug_writers(const mixt__graph *g, int32_t **last)
{
    *last = mixt__alloc((size_t)g->value_count * sizeof **last);
    if (!*last)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare two passes");
    for (int64_t v = 0; v < g->value_count; v++)
        (*last)[v] = -1;
    for (int64_t i = 0; i < g->node_count; i++)
        for (int o = 0; o < g->nodes[i].out_count; o++)
            (*last)[g->nodes[i].out[o]] = (int32_t)i;
    return MIXT_OK;
}

/** FP32's value for each value of a graph in which every op stands by itself. A cast has its input's. */
static void match_plain(const mixt__graph *plain, const mixt__graph *full, int32_t *partner)
{
    int64_t from = 0;
    for (int64_t i = 0; i < plain->node_count; i++) {
        const mixt__node *n = &plain->nodes[i];
        if (mixt__debug_is_cast(plain, n) && n->source < 0)
            partner[n->out[0]] = partner[n->in[0]];
        if (n->source < 0 || n->recomputed)
            continue;
        for (int64_t j = from; j < full->node_count; j++)
            if (is_partner(plain, n, full, &full->nodes[j])) {
                for (int o = 0; o < n->out_count; o++)
                    partner[n->out[o]] = full->nodes[j].out[o];
                from = j + 1;
                break;
            }
    }
}

mixt_status mixt__debug_match(const mixt__graph *pass, const mixt__graph *plain, const mixt__graph *full,
                              int32_t **partner)
{
    int64_t count = pass->value_count > plain->value_count ? pass->value_count : plain->value_count;
    *partner = mixt__alloc((size_t)count * sizeof **partner);
    if (!*partner)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare two passes");
    match_plain(plain, full, *partner);
    for (int64_t v = 1; v < count; v++) {
        bool common = pass == plain || (v < pass->plain_values && v < plain->plain_values &&
                                        mixt__shape_equal(&pass->values[v].shape, &plain->values[v].shape));
        if (!common)
            (*partner)[v] = 0;
    }
    return MIXT_OK;
}
