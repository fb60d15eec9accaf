/* How much of a step is in which format. */
#include "inspect/debug.h"

#include "graph/op.h"
#include "num/num.h"
#include "ops/ops.h"

static void add_nodes(mixt_debug *d, const mixt__graph *g)
{
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        if (n->alias || n->op == &mixt__op_tensor_stats || !n->out_count)
            continue;
        mixt_dtype format = n->op->matrix_work ? n->arithmetic : g->values[n->out[0]].dtype;
        if (mixt_dtype_is_float(format))
            d->uses[format].ops++;
        for (int o = 0; o < n->out_count; o++) {
            const mixt__value *v = &g->values[n->out[o]];
            int64_t count = mixt__shape_count(&v->shape);
            if (!mixt_dtype_is_float(v->dtype) || mixt__bit(n->accumulates, o))
                continue;
            d->uses[v->dtype].values++;
            d->uses[v->dtype].numbers += count;
            d->uses[v->dtype].value_bytes += count * (int64_t)mixt_dtype_size(v->dtype);
        }
    }
}

static void add_parameters(mixt_debug *d, const mixt__params *p)
{
    d->uses[MIXT_DTYPE_FP32].parameters += p->total + p->state_total;
    for (int f = 0; f < MIXT_DTYPE_COUNT; f++) {
        d->uses[f].parameters += p->roles[MIXT_PARAM_COPY + f].elements + p->roles[MIXT_PARAM_FROZEN + f].elements;
        d->uses[f].parameter_bytes = d->uses[f].parameters * (int64_t)mixt_dtype_size((mixt_dtype)f);
    }
}

void mixt__debug_count_use(mixt_debug *d, const mixt__trainer *t)
{
    add_nodes(d, mixt__trainer_compiled(t)->graph);
    add_parameters(d, mixt__trainer_params(t));
    for (int f = 0; f < MIXT_DTYPE_COUNT; f++)
        if (d->uses[f].ops || d->uses[f].values || d->uses[f].parameters)
            d->uses[f].dtype = (mixt_dtype)f;
}
