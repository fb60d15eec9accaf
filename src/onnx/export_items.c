/* Names, values, nodes and constants of a file that is being written. */
#include "onnx/export.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *fail_memory(mixt__export *m)
{
    if (m->status == MIXT_OK)
        m->status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to write the ONNX file");
    return NULL;
}

/* ---- names ---- */

static bool is_taken(const mixt__export *m, const char *name)
{
    for (int64_t i = m->taken_count; i-- > 0;)
        if (!strcmp(m->taken[i], name))
            return true;
    return false;
}

/** Takes a name that nothing has yet: `wanted`, else wanted_2, wanted_3, … */
static const char *take(mixt__export *m, const char *wanted)
{
    const char *name = mixt__arena_strdup(&m->arena, wanted);
    for (int i = 2; name && is_taken(m, name); i++)
        name = mixt__arena_printf(&m->arena, "%s_%d", wanted, i);
    if (!name || !mixt__grow((void **)&m->taken, &m->taken_capacity, m->taken_count, sizeof *m->taken)) {
        fail_memory(m);
        return "";
    }
    return m->taken[m->taken_count++] = name;
}

void mixt__export_refuse(mixt__export *m, const char *format, ...)
{
    char text[512], line[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s%.256s: %s", m->problem_bytes ? "; " : "",
             *m->node->layer ? m->node->layer : "(no layer)", text);
    size_t length = strlen(line);
    if (m->problem_bytes && strstr(m->problems, line)) // the layer has several such
        return;
    if (m->more_problems || m->problem_bytes + length >= sizeof m->problems) {
        m->more_problems++;
        return;
    }
    memcpy(m->problems + m->problem_bytes, line, length + 1);
    m->problem_bytes += length;
}

/* ---- nodes ---- */

static void put_attribute(mixt__wire_out *node, const mixt__onnx_give *give)
{
    mixt__wire_out a = {0};
    mixt__wire_put_text(&a, MIXT_ONNX_ATTRIBUTE_NAME, give->name);
    if (give->type == MIXT_ONNX_IS_INT)
        mixt__wire_put_number(&a, MIXT_ONNX_ATTRIBUTE_I, (uint64_t)give->i);
    else if (give->type == MIXT_ONNX_IS_FLOAT)
        mixt__wire_put_float(&a, MIXT_ONNX_ATTRIBUTE_F, give->f);
    else if (give->type == MIXT_ONNX_IS_STRING)
        mixt__wire_put_text(&a, MIXT_ONNX_ATTRIBUTE_S, give->s);
    else if (give->type == MIXT_ONNX_IS_STRINGS)
        mixt__wire_put_text(&a, MIXT_ONNX_ATTRIBUTE_STRINGS, give->s);
    for (int i = 0; i < give->count; i++)
        mixt__wire_put_number(&a, MIXT_ONNX_ATTRIBUTE_INTS, (uint64_t)give->ints[i]);
    mixt__wire_put_number(&a, MIXT_ONNX_ATTRIBUTE_TYPE, (uint64_t)give->type);
    mixt__wire_put_message(node, MIXT_ONNX_NODE_ATTRIBUTE, &a);
}

/** The layer's own name for what does its work, else that with the op behind it. */
static const char *node_name(mixt__export *m, const char *op)
{
    static const char *const work[] = {"Gemm", "MatMul", "Conv", "BatchNormalization", "LayerNormalization", "Gather",
                                       "LSTM", "GRU",    "RNN"};
    const char *layer = m->node ? m->node->layer : "";
    for (size_t i = 0; *layer && i < sizeof work / sizeof work[0]; i++)
        if (!strcmp(op, work[i]) && !is_taken(m, layer))
            return take(m, layer);
    const char *both = *layer ? mixt__arena_printf(&m->arena, "%s/%s", layer, op) : op;
    return both ? take(m, both) : (const char *)fail_memory(m);
}

void mixt__export_nodes(mixt__export *m, const char *op, const char *const *in, const mixt__onnx_give *gives,
                        const char **out, int out_count)
{
    mixt__wire_out node = {0};
    const char *name = node_name(m, op);
    for (; *in; in++)
        mixt__wire_put_text(&node, MIXT_ONNX_NODE_INPUT, *in);
    for (int k = 0; k < out_count; k++) {
        const char *wanted = out_count > 1 ? mixt__arena_printf(&m->arena, "%s.out%d", name ? name : "", k)
                                           : mixt__arena_printf(&m->arena, "%s.out", name ? name : "");
        out[k] = wanted ? take(m, wanted) : "";
        mixt__wire_put_text(&node, MIXT_ONNX_NODE_OUTPUT, out[k]);
    }
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_NAME, name ? name : "");
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_OP_TYPE, op);
    for (; gives && gives->name; gives++)
        put_attribute(&node, gives);
    mixt__wire_put_message(&m->graph, MIXT_ONNX_GRAPH_NODE, &node);
    m->written.nodes++;
}

const char *mixt__export_node(mixt__export *m, const char *op, const char *const *in, const mixt__onnx_give *gives)
{
    const char *out;
    mixt__export_nodes(m, op, in, gives, &out, 1);
    return out;
}

/* ---- constants and parameters ---- */

static void put_tensor(mixt__export *m, const char *name, mixt__onnx_type type, int rank, const int64_t *dims,
                       const void *numbers, size_t bytes)
{
    mixt__wire_out t = {0};
    for (int i = 0; i < rank; i++)
        mixt__wire_put_number(&t, MIXT_ONNX_TENSOR_DIMS, (uint64_t)dims[i]);
    mixt__wire_put_number(&t, MIXT_ONNX_TENSOR_DATA_TYPE, (uint64_t)type);
    mixt__wire_put_text(&t, MIXT_ONNX_TENSOR_NAME, name);
    mixt__wire_put_bytes(&t, MIXT_ONNX_TENSOR_RAW, numbers, bytes);
    mixt__wire_put_message(&m->graph, MIXT_ONNX_GRAPH_INITIALIZER, &t);
    m->written.tensors++;
}

const char *mixt__export_named(mixt__export *m, const char *wanted, int rank, const int64_t *dims, const float *numbers)
{
    const char *name = take(m, wanted);
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    put_tensor(m, name, MIXT_ONNX_FLOAT, rank, dims, numbers, count * sizeof *numbers);
    return name;
}

const char *mixt__export_floats(mixt__export *m, int rank, const int64_t *dims, const float *numbers)
{
    return mixt__export_named(m, "/Constant", rank, dims, numbers);
}

const char *mixt__export_float(mixt__export *m, float number)
{
    return mixt__export_floats(m, 0, NULL, &number);
}

const char *mixt__export_ints(mixt__export *m, const int64_t *numbers, int count)
{
    const char *name = take(m, "/Constant");
    int64_t dims[1] = {count};
    put_tensor(m, name, MIXT_ONNX_INT64, 1, dims, numbers, (size_t)count * sizeof *numbers);
    return name;
}

/** (N, …, C) as (N, C, …): of each entry of the first dimension, a matrix turned. */
static void turn(const float *from, float *to, const mixt__shape *s)
{
    int64_t channels = s->dims[s->rank - 1], places = 1;
    for (int i = 1; i < s->rank - 1; i++)
        places *= s->dims[i];
    for (int64_t n = 0; n < s->dims[0]; n++)
        for (int64_t p = 0; p < places; p++)
            for (int64_t c = 0; c < channels; c++)
                to[(n * channels + c) * places + p] = from[(n * places + p) * channels + c];
}

static const char *put_param(mixt__export *m, int32_t index, mixt__onnx_order order)
{
    const mixt__param *p = &m->g->params[index];
    const char *name = take(m, p->name);
    float *values = mixt__alloc_uninit((size_t)p->count * sizeof *values + 1), *turned = NULL;
    int64_t dims[MIXT_MAX_RANK];
    memcpy(dims, p->shape.dims, sizeof dims);
    if (order == MIXT_ONNX_FIRST)
        turned = mixt__alloc_uninit((size_t)p->count * sizeof *turned + 1);
    if (!values || (order == MIXT_ONNX_FIRST && !turned))
        fail_memory(m);
    else if (m->status == MIXT_OK)
        m->status = m->model->values(m->model->user, index, values);
    if (m->status == MIXT_OK && turned) {
        turn(values, turned, &p->shape);
        dims[1] = p->shape.dims[p->shape.rank - 1];
        for (int i = 2; i < p->shape.rank; i++)
            dims[i] = p->shape.dims[i - 1];
    }
    if (m->status == MIXT_OK)
        put_tensor(m, name, MIXT_ONNX_FLOAT, p->shape.rank, dims, turned ? turned : values,
                   (size_t)p->count * sizeof *values);
    mixt__free(values);
    mixt__free(turned);
    return name;
}

/* ---- values ---- */

const char *mixt__export_value(mixt__export *m, int32_t value, mixt__onnx_order order)
{
    const mixt__value *v = &m->g->values[value];
    const char **names = m->names[value];
    int64_t perm[MIXT_MAX_RANK];
    if (names[order])
        return names[order];
    const char *other = names[order == MIXT_ONNX_FIRST ? MIXT_ONNX_NATURAL : MIXT_ONNX_FIRST];
    if (!other && v->param >= 0)
        return names[order] = put_param(m, v->param, order);
    if (!other) // what makes it was refused
        return "";
    for (int i = 0; i < v->shape.rank; i++)
        perm[i] = i == 0                     ? 0
                  : order == MIXT_ONNX_FIRST ? (i == 1 ? v->shape.rank - 1 : i - 1)
                                             : (i == v->shape.rank - 1 ? 1 : i + 1);
    return names[order] = mixt__export_node(m, "Transpose", MIXT_TAKES(other),
                                            MIXT_GIVES(MIXT_GIVE_INTS("perm", perm, v->shape.rank)));
}

const char *mixt__export_in(mixt__export *m, int k, mixt__onnx_order order)
{
    return mixt__export_value(m, m->node->in[k], order);
}

bool mixt__export_is_first(const mixt__export *m, int32_t value)
{
    return m->names[value][MIXT_ONNX_FIRST] && !m->names[value][MIXT_ONNX_NATURAL];
}

void mixt__export_give(mixt__export *m, int k, mixt__onnx_order order, const char *name)
{
    m->names[m->node->out[k]][order] = name;
}

bool mixt__export_dims(const mixt__export *m, int32_t value, int64_t dims[MIXT_MAX_RANK])
{
    const mixt__shape *a = &m->g->values[value].shape, *b = &m->model->other->values[value].shape;
    int open = 0;
    for (int i = 0; i < a->rank; i++) {
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : -1;
        open += dims[i] < 0;
    }
    return open <= 1;
}
