/* Adding contributions: in place for parameters, by pointwise additions for activations. */
#include "ops/gradients.h"

#include "ops/attrs.h"
#include "ops/ops.h"

int32_t mixt__gradient_of(const mixt__gradients *g, int32_t value)
{
    return value < g->capacity ? g->grad[value] : 0;
}

bool mixt__gradient_wanted(const mixt__gradients *g, int32_t value)
{
    return value < g->capacity && g->wanted[value];
}

static mixt_status append(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in, int in_count,
                          int64_t *index)
{
    MIXT_TRY(mixt__graph_node(g->graph, op, g->layer, attrs, in, in_count, index));
    mixt__node *node = &g->graph->nodes[*index];
    node->backward = true;
    node->arithmetic = mixt__node_arithmetic(g->graph, node, g->arithmetic);
    return MIXT_OK;
}

mixt_status mixt__gradient_node(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in,
                                int in_count, int32_t *out)
{
    int64_t index;
    MIXT_TRY(append(g, op, attrs, in, in_count, &index));
    *out = g->graph->nodes[index].out[0];
    return MIXT_OK;
}

/** Lets output o of a node write into the parameter's gradient itself. */
static mixt_status write_param(mixt__gradients *g, int64_t index, int o, int32_t param)
{
    int32_t grad = mixt__graph_param_grad(g->graph, param);
    if (!grad)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the gradient of '%s'", g->graph->params[param].name);
    mixt__node *node = &g->graph->nodes[index];
    node->out[o] = grad;
    if (g->written[param])
        node->accumulates |= 1u << o;
    g->written[param] = true;
    return MIXT_OK;
}

mixt_status mixt__gradient_add(mixt__gradients *g, int32_t target, int32_t contribution)
{
    const mixt__value *v = &g->graph->values[target];
    if (v->role == MIXT_ROLE_PARAM) {
        int64_t index;
        int32_t param = v->param;
        MIXT_TRY(append(g, &mixt__op_accumulate, NULL, &contribution, 1, &index));
        return write_param(g, index, 0, param);
    }
    if (!g->grad[target]) {
        g->grad[target] = contribution;
        return MIXT_OK;
    }
    mixt__pointwise_attrs add = {.in_count = 2, .instr_count = 1, .out_count = 1};
    add.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_ADD, .a = 0, .b = 1};
    add.outs[0] = 2;
    add.out_dtypes[0] = v->dtype;
    int32_t in[2] = {g->grad[target], contribution};
    return mixt__gradient_node(g, &mixt__op_pointwise, &add, in, 2, &g->grad[target]);
}

mixt_status mixt__gradient_emit(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in,
                                int in_count, const int32_t *targets)
{
    int64_t index;
    MIXT_TRY(append(g, op, attrs, in, in_count, &index));
    int count = g->graph->nodes[index].out_count;
    for (int o = 0; o < count; o++) {
        if (!targets[o] || !mixt__gradient_wanted(g, targets[o]))
            continue;
        const mixt__value *target = &g->graph->values[targets[o]];
        if (target->role == MIXT_ROLE_PARAM && op->accumulate_outputs >> o & 1)
            MIXT_TRY(write_param(g, index, o, target->param));
        else
            MIXT_TRY(mixt__gradient_add(g, targets[o], g->graph->nodes[index].out[o]));
    }
    return MIXT_OK;
}
