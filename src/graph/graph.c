/* Making values, nodes and parameters. Every array grows by doubling; ids are indices and stay valid. */
#include "graph/graph.h"

#include "graph/op.h"

#include <string.h>

mixt_status mixt__graph_new(mixt__graph **graph)
{
    *graph = mixt__alloc(sizeof **graph);
    if (!*graph)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a graph");
    mixt__shape none = {0};
    int32_t id; // 0: means "no value"
    mixt_status status = mixt__graph_value(*graph, MIXT_ROLE_ACTIVATION, MIXT_DTYPE_NONE, &none, "none", &id);
    if (status != MIXT_OK) {
        mixt__graph_free(*graph);
        *graph = NULL;
    }
    return status;
}

void mixt__graph_free(mixt__graph *graph)
{
    if (!graph)
        return;
    mixt__arena_free(&graph->arena);
    mixt__free(graph->values);
    mixt__free(graph->nodes);
    mixt__free(graph->params);
    mixt__free(graph);
}

mixt_status mixt__graph_value(mixt__graph *graph, mixt__role role, mixt_dtype dtype, const mixt__shape *shape,
                              const char *name, int32_t *id)
{
    *id = 0;
    MIXT_TRY(mixt__shape_check(shape));
    const char *kept = mixt__arena_strdup(&graph->arena, name);
    if (!kept ||
        !mixt__grow((void **)&graph->values, &graph->value_capacity, graph->value_count, sizeof *graph->values))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the graph");
    mixt__value *v = &graph->values[graph->value_count];
    *v = (mixt__value){
        .dtype = dtype, .gradient = dtype, .shape = *shape, .role = role, .producer = -1, .param = -1, .name = kept};
    mixt__shape_strides(shape, v->strides);
    *id = (int32_t)graph->value_count++;
    return MIXT_OK;
}

/** Makes the output values that the op inferred; gradients of parameters are wired by the caller instead. */
static mixt_status make_outputs(mixt__graph *graph, int64_t index, const mixt__inferred *inferred)
{
    for (int o = 0; o < inferred->count; o++) {
        const mixt__node *node = &graph->nodes[index];
        MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_ACTIVATION, inferred->out[o].dtype, &inferred->out[o].shape,
                                   node->layer, &node->out[o]));
        graph->values[node->out[o]].producer = (int32_t)index;
    }
    return MIXT_OK;
}

mixt_status mixt__graph_node(mixt__graph *graph, const mixt__op *op, const char *layer, const void *attrs,
                             const int32_t *in, int in_count, int64_t *node_index)
{
    if (!mixt__grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count, sizeof *graph->nodes))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for layer '%s'", layer);
    mixt__node node = {.op = op, .in_count = in_count, .rule = -1, .source = -1, .why = ""};
    node.layer = mixt__arena_strdup(&graph->arena, layer);
    node.in = mixt__arena_alloc(&graph->arena, (size_t)(in_count + 1) * sizeof *node.in);
    node.out = mixt__arena_alloc(&graph->arena, MIXT_MAX_OUTPUTS * sizeof *node.out);
    void *own = mixt__arena_alloc(&graph->arena, op->attrs_size + 1);
    if (!node.layer || !node.in || !node.out || !own)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for layer '%s'", layer);
    if (in_count)
        memcpy(node.in, in, (size_t)in_count * sizeof *in);
    if (op->attrs_size)
        memcpy(own, attrs, op->attrs_size);
    node.attrs = own;
    mixt__inferred inferred = {0};
    MIXT_TRY(op->infer(graph, &node, &inferred));
    node.out_count = inferred.count;
    node.arithmetic = node.gradient = mixt__node_arithmetic(graph, &node, MIXT_DTYPE_FP32);
    int64_t index = graph->node_count++;
    graph->nodes[index] = node;
    MIXT_TRY(make_outputs(graph, index, &inferred));
    if (node_index)
        *node_index = index;
    return MIXT_OK;
}

mixt_status mixt__graph_param(mixt__graph *graph, const mixt__param *param, int32_t *index)
{
    mixt_status status = mixt__shape_check(&param->shape);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "parameter '%s'", param->name);
    for (int64_t i = 0; i < graph->param_count; i++)
        if (!strcmp(graph->params[i].name, param->name))
            return mixt__fail(MIXT_ERROR_ARGUMENT,
                              "two parameters are called '%s': give layers different names or scopes", param->name);
    if (!mixt__grow((void **)&graph->params, &graph->param_capacity, graph->param_count, sizeof *graph->params))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", param->name);
    mixt__param *p = &graph->params[graph->param_count];
    *p = *param;
    p->name = mixt__arena_strdup(&graph->arena, param->name);
    if (!p->name)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", param->name);
    p->count = mixt__shape_count(&param->shape);
    *index = (int32_t)graph->param_count++;
    return MIXT_OK;
}

mixt_status mixt__graph_pair(mixt__graph *graph, int32_t value, mixt__role role, mixt__scale_kind kind, int64_t block)
{
    const mixt__value *v = &graph->values[value];
    mixt__shape shape = mixt__scale_shape(&v->shape, kind, block);
    const char *name = mixt__arena_printf(&graph->arena, "%s.scale", v->name);
    int32_t scales, param = v->param;
    if (!name)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the graph");
    MIXT_TRY(mixt__graph_value(graph, role, MIXT_DTYPE_FP32, &shape, name, &scales));
    graph->values[scales].param = param;
    graph->values[value].scales = (mixt__scales){kind, block, scales};
    return MIXT_OK;
}

bool mixt__graph_has_pair(const mixt__graph *graph, const int32_t *values, int count)
{
    for (int i = 0; i < count; i++)
        if (graph->values[values[i]].scales.kind != MIXT_SCALE_NONE)
            return true;
    return false;
}

bool mixt__graph_param_has(const mixt__graph *graph, int32_t param, mixt_dtype dtype)
{
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        if (dtype != MIXT_DTYPE_FP32 && graph->params[param].low[d] && d != (int)dtype)
            return false;
    return true;
}

int32_t mixt__graph_param_value(mixt__graph *graph, int32_t param, mixt_dtype dtype)
{
    mixt__param *p = &graph->params[param];
    int32_t *slot = dtype == MIXT_DTYPE_FP32 ? &p->value : &p->low[dtype];
    mixt__role role = p->trainable ? MIXT_ROLE_PARAM : MIXT_ROLE_STATE;
    if (!*slot && mixt__graph_value(graph, role, dtype, &p->shape, p->name, slot) == MIXT_OK)
        graph->values[*slot].param = param;
    return *slot;
}

int32_t mixt__graph_param_grad(mixt__graph *graph, int32_t param)
{
    mixt__param *p = &graph->params[param];
    if (!p->grad && mixt__graph_value(graph, MIXT_ROLE_GRAD, MIXT_DTYPE_FP32, &p->shape, p->name, &p->grad) == MIXT_OK)
        graph->values[p->grad].param = param;
    return p->grad;
}

int32_t mixt__value_base(const mixt__graph *graph, int32_t id)
{
    while (graph->values[id].base)
        id = graph->values[id].base;
    return id;
}

mixt_dtype mixt__node_arithmetic(const mixt__graph *graph, const mixt__node *node, mixt_dtype wanted)
{
    if (!node->op->matrix_work)
        return MIXT_DTYPE_FP32;
    mixt_dtype operands = graph->values[node->in[0]].dtype; // of matrix work, input 0 always is an operand
    bool takes = mixt__format_of(wanted)->scale == MIXT_SCALE_NONE || node->op->scaled_inputs;
    return takes && mixt__dtype_carrier(wanted) == operands ? wanted : operands;
}

void mixt__node_saves_join(mixt__node *node, const mixt__node *other)
{
    size_t size = mixt_dtype_size(node->saves), others = mixt_dtype_size(other->saves); // NONE has 0
    if (node->saves == other->saves || size == 0 || (others != 0 && others < size))
        return;
    bool either = others == size; // FP16 and BF16: neither holds the other's numbers
    node->saves = either ? MIXT_DTYPE_NONE : other->saves;
    node->saves_why = either ? NULL : other->saves_why;
}

double mixt__node_flops(const mixt__graph *graph, const mixt__node *node)
{
    if (node->alias)
        return 0;
    if (node->op->flops)
        return node->op->flops(graph, node);
    double total = 0;
    for (int o = 0; o < node->out_count; o++)
        total += (double)mixt__shape_count(&graph->values[node->out[o]].shape);
    return total;
}

double mixt__value_bytes(const mixt__value *value)
{
    double bytes = (double)mixt__format_bytes(value->dtype, mixt__shape_count(&value->shape));
    mixt__shape scales = mixt__scale_shape(&value->shape, value->scales.kind, value->scales.block);
    bool pair = value->scales.kind != MIXT_SCALE_NONE;
    return bytes + (pair ? (double)mixt__shape_count(&scales) * (double)sizeof(float) : 0);
}

/** A value that stands twice among the inputs is read once. */
static bool read_before(const mixt__node *node, int input)
{
    for (int k = 0; k < input; k++)
        if (node->in[k] == node->in[input])
            return true;
    return false;
}

double mixt__node_bytes(const mixt__graph *graph, const mixt__node *node)
{
    if (node->alias)
        return 0;
    if (node->op->bytes)
        return node->op->bytes(graph, node);
    double total = 0;
    for (int k = 0; k < node->in_count; k++)
        total += read_before(node, k) ? 0 : mixt__value_bytes(&graph->values[node->in[k]]);
    for (int o = 0; o < node->out_count; o++)
        total += mixt__value_bytes(&graph->values[node->out[o]]) * (mixt__bit(node->accumulates, o) ? 2 : 1);
    return total;
}

bool mixt__node_random(const mixt__node *node)
{
    return node->op->random && node->op->random(node);
}
