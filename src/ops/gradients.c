/* Formats of what gradient rules read; adding contributions: in place for parameters, by pointwise additions for
 * activations. */
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

/* ---- formats ---- */

enum { INPUTS_MAX = 16 };

static mixt_status no_memory(const mixt__gradients *g)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the gradient of '%s'", g->node->layer);
}

/** Whether the forward node does nothing but change the format. */
static bool is_cast(const mixt__gradients *g)
{
    const mixt__pointwise_attrs *at = g->node->attrs;
    return g->node->op == &mixt__op_pointwise && at->instr_count == 1 && at->instrs[0].code == MIXT_PW_COPY;
}

static mixt_status add_node(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in, int in_count,
                            int64_t *index)
{
    MIXT_TRY(mixt__graph_node(g->graph, op, g->node->layer, attrs, in, in_count, index));
    mixt__node *node = &g->graph->nodes[*index];
    node->backward = true;
    node->source = g->node->source;
    node->arithmetic = mixt__node_arithmetic(g->graph, node, g->node->gradient);
    node->rule = op->matrix_work ? g->node->rule : -1;
    node->saves = g->node->saves;
    node->saves_why = g->node->saves_why;
    node->why = op->matrix_work ? g->node->why : mixt__class_reason(op);
    if (op == &mixt__op_pointwise && is_cast(g))
        node->why = mixt__arena_printf(&g->graph->arena, "gradient of a cast: %s", g->node->why);
    return node->why ? MIXT_OK : no_memory(g);
}

/** Why a value that the gradient of this node reads is cast; NULL when memory ends. */
static const char *cast_reason(mixt__gradients *g, const mixt__value *given, mixt_dtype wanted)
{
    return mixt__arena_printf(&g->graph->arena, "the gradient of %s%s%s wants %s, %s gives %s", g->node->op->name,
                              g->node->layer[0] ? " in " : "", g->node->layer, mixt_dtype_name(wanted), given->name,
                              mixt_dtype_name(given->dtype));
}

/** A value in another format: of a parameter the master or its working copy, else by a cast. */
static mixt_status value_as(mixt__gradients *g, int32_t value, mixt_dtype dtype, int32_t *out)
{
    const mixt__value *v = &g->graph->values[value];
    *out = value;
    if (v->dtype == dtype || !mixt_dtype_is_float(v->dtype) || v->scales.kind != MIXT_SCALE_NONE)
        return MIXT_OK; // numbers with scales are read as they are
    if (v->role == MIXT_ROLE_PARAM) {
        int32_t param = v->param;
        bool has = mixt__graph_param_has(g->graph, param, dtype);
        *out = value = mixt__graph_param_value(g->graph, param, has ? dtype : MIXT_DTYPE_FP32);
        if (!value)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", g->graph->params[param].name);
        if (has)
            return MIXT_OK;
    }
    mixt__pointwise_attrs cast = {.in_count = 1, .instr_count = 1, .out_count = 1, .outs = {1}, .out_dtypes = {dtype}};
    cast.instrs[0].code = MIXT_PW_COPY;
    int64_t index;
    MIXT_TRY(add_node(g, &mixt__op_pointwise, &cast, &value, 1, &index));
    mixt__node *made = &g->graph->nodes[index];
    *out = made->out[0];
    made->why = cast_reason(g, &g->graph->values[value], dtype);
    return made->why ? MIXT_OK : no_memory(g);
}

/** The one format in which a node takes its float inputs; NONE: each as it is. */
static mixt_dtype inputs_dtype(const mixt__gradients *g, const mixt__op *op, const int32_t *in, int in_count)
{
    if (g->node->op->matrix_work && (op->matrix_work || op->view))
        return mixt__dtype_carrier(g->node->gradient);
    mixt_dtype widest = MIXT_DTYPE_NONE;
    for (int i = 0; op != &mixt__op_pointwise && i < in_count; i++) { // a program reads any mixture
        const mixt__value *v = &g->graph->values[in[i]];
        if (v->role == MIXT_ROLE_ACTIVATION && mixt_dtype_is_float(v->dtype) &&
            !mixt__bit(op->fp32_inputs | op->given_inputs, i))
            widest = mixt__dtype_widest(widest, v->dtype);
    }
    return widest;
}

static mixt_status append(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in, int in_count,
                          int64_t *index)
{
    int32_t typed[INPUTS_MAX];
    mixt_dtype dtype = inputs_dtype(g, op, in, in_count);
    if (in_count > INPUTS_MAX)
        return mixt__fail(MIXT_ERROR_INTERNAL, "a gradient's node with %d inputs", in_count);
    for (int i = 0; i < in_count; i++) {
        bool fixed = dtype == MIXT_DTYPE_NONE || mixt__bit(op->fp32_inputs | op->given_inputs, i);
        MIXT_TRY(value_as(g, in[i], fixed ? g->graph->values[in[i]].dtype : dtype, &typed[i]));
    }
    return add_node(g, op, attrs, typed, in_count, index);
}

mixt_status mixt__gradients_begin(mixt__gradients *g, const mixt__node *node)
{
    g->node = node;
    for (int o = 0; node->op->matrix_work && o < node->out_count; o++) {
        int32_t *grad = &g->grad[node->out[o]];
        if (*grad)
            MIXT_TRY(value_as(g, *grad, mixt__dtype_carrier(node->gradient), grad));
    }
    return MIXT_OK;
}

/* ---- contributions ---- */

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
    add.out_dtypes[0] = v->gradient;
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
        if (target->role == MIXT_ROLE_PARAM && mixt__bit(op->accumulate_outputs, o))
            MIXT_TRY(write_param(g, index, o, target->param));
        else
            MIXT_TRY(mixt__gradient_add(g, targets[o], g->graph->nodes[index].out[o]));
    }
    return MIXT_OK;
}
