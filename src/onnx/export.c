/* A model as an ONNX file: its inputs and outputs, all its nodes, the file. */
#include "onnx/export.h"

#include "base/status.h"
#include "graph/op.h"
#include "mixt/version.h"
#include "store/file.h"

#include <stdio.h>
#include <string.h>

static const char OUTPUT[] = "output";

/** Both graphs must be the same but for sizes. */
static mixt_status check_same(const mixt__onnx_model_out *model, const char *source)
{
    const mixt__graph *a = model->graph, *b = model->other;
    bool same = a->node_count == b->node_count && a->value_count == b->value_count && a->logits == b->logits;
    for (int64_t i = 0; same && i < a->node_count; i++)
        same = a->nodes[i].op == b->nodes[i].op && a->nodes[i].in_count == b->nodes[i].in_count;
    for (int64_t i = 1; same && i < a->value_count; i++)
        same = a->values[i].shape.rank == b->values[i].shape.rank;
    return same ? MIXT_OK
                : mixt__fail(
                      MIXT_ERROR_UNSUPPORTED,
                      "%s: its model has other nodes for other numbers of samples, and an ONNX graph has the same",
                      source);
}

/** A value that the graph takes or gives: name, type and shape. */
static void put_info(mixt__export *m, uint32_t field, const char *name, mixt__onnx_type type, int rank,
                     const int64_t *dims)
{
    mixt__wire_out shape = {0}, tensor = {0}, kind = {0}, info = {0};
    for (int i = 0; i < rank; i++) {
        mixt__wire_out dim = {0};
        if (dims[i] < 0)
            mixt__wire_put_text(&dim, MIXT_ONNX_DIM_PARAM, "batch");
        else
            mixt__wire_put_number(&dim, MIXT_ONNX_DIM_VALUE, (uint64_t)dims[i]);
        mixt__wire_put_message(&shape, MIXT_ONNX_SHAPE_DIM, &dim);
    }
    mixt__wire_put_number(&tensor, MIXT_ONNX_TYPE_ELEMENT, (uint64_t)type);
    mixt__wire_put_message(&tensor, MIXT_ONNX_TYPE_SHAPE, &shape);
    mixt__wire_put_message(&kind, MIXT_ONNX_TYPE_TENSOR, &tensor);
    mixt__wire_put_text(&info, MIXT_ONNX_VALUE_NAME, name);
    mixt__wire_put_message(&info, MIXT_ONNX_VALUE_TYPE, &kind);
    mixt__wire_put_message(&m->graph, field, &info);
}

/** Images and clips have their channels in front, as other programs have them. */
static void put_inputs(mixt__export *m)
{
    for (int i = 0; i < m->g->array_count; i++) {
        const mixt__array *a = &m->g->arrays[i];
        int64_t dims[MIXT_MAX_RANK], sizes[MIXT_MAX_RANK];
        if (!a->value || a->target)
            continue;
        int rank = a->shape.rank;
        bool first = rank >= 4;
        mixt__export_dims(m, a->value, sizes);
        for (int k = 0; k < rank; k++)
            dims[k] = !first || k == 0 ? sizes[k] : k == 1 ? sizes[rank - 1] : sizes[k - 1];
        put_info(m, MIXT_ONNX_GRAPH_INPUT, a->name, a->dtype == MIXT_DTYPE_INT32 ? MIXT_ONNX_INT64 : MIXT_ONNX_FLOAT,
                 rank, dims);
        m->names[a->value][first ? MIXT_ONNX_FIRST : MIXT_ONNX_NATURAL] = a->name;
    }
}

/** Nodes that the output needs, from the last on. */
static void mark_needed(const mixt__graph *g, bool *needed, bool *values)
{
    values[g->logits] = true;
    for (int64_t i = g->node_count; i-- > 0;) {
        const mixt__node *n = &g->nodes[i];
        for (int k = 0; k < n->out_count; k++)
            needed[i] = needed[i] || values[n->out[k]];
        for (int k = 0; needed[i] && k < n->in_count; k++)
            values[n->in[k]] = true;
    }
}

static mixt_status put_nodes(mixt__export *m)
{
    const mixt__graph *g = m->g;
    bool *needed = mixt__arena_alloc(&m->arena, (size_t)g->node_count + 1);
    bool *values = mixt__arena_alloc(&m->arena, (size_t)g->value_count + 1);
    if (!needed || !values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to write the ONNX file");
    mark_needed(g, needed, values);
    for (int64_t i = 0; m->status == MIXT_OK && i < g->node_count; i++) {
        if (!needed[i])
            continue;
        m->node = &g->nodes[i];
        mixt__onnx_put *put = mixt__onnx_put_find(m->node->op);
        if (put)
            put(m, m->node);
        else
            mixt__export_refuse(m, "%s is not written yet", m->node->op->name);
    }
    return m->status;
}

/** The output has a name of its own. */
static void put_output(mixt__export *m)
{
    int64_t dims[MIXT_MAX_RANK];
    mixt__wire_out node = {0};
    const char *name = mixt__export_value(m, m->g->logits, MIXT_ONNX_NATURAL);
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_INPUT, name);
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_OUTPUT, OUTPUT);
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_NAME, OUTPUT);
    mixt__wire_put_text(&node, MIXT_ONNX_NODE_OP_TYPE, "Identity");
    mixt__wire_put_message(&m->graph, MIXT_ONNX_GRAPH_NODE, &node);
    m->written.nodes++;
    mixt__export_dims(m, m->g->logits, dims);
    put_info(m, MIXT_ONNX_GRAPH_OUTPUT, OUTPUT, MIXT_ONNX_FLOAT, m->g->values[m->g->logits].shape.rank, dims);
}

static void put_pair(mixt__wire_out *file, const mixt__onnx_pair *pair)
{
    mixt__wire_out entry = {0};
    mixt__wire_put_text(&entry, MIXT_ONNX_PAIR_KEY, pair->key);
    mixt__wire_put_text(&entry, MIXT_ONNX_PAIR_VALUE, pair->value);
    mixt__wire_put_message(file, MIXT_ONNX_MODEL_METADATA, &entry);
}

static mixt_status put_file(mixt__export *m, const char *path, bool overwrite)
{
    mixt__wire_out file = {0}, opset = {0};
    mixt__wire_put_text(&m->graph, MIXT_ONNX_GRAPH_NAME, m->model->name);
    mixt__wire_put_number(&file, MIXT_ONNX_MODEL_IR_VERSION, MIXT_ONNX_IR);
    mixt__wire_put_text(&file, MIXT_ONNX_MODEL_PRODUCER, "mixt");
    mixt__wire_put_text(&file, MIXT_ONNX_MODEL_PRODUCER_VERSION, MIXT_VERSION);
    mixt__wire_put_message(&file, MIXT_ONNX_MODEL_GRAPH, &m->graph);
    mixt__wire_put_text(&opset, MIXT_ONNX_OPSET_DOMAIN, "");
    mixt__wire_put_number(&opset, MIXT_ONNX_OPSET_VERSION, MIXT_ONNX_OPSET);
    mixt__wire_put_message(&file, MIXT_ONNX_MODEL_OPSET, &opset);
    for (int i = 0; i < m->model->pair_count; i++)
        put_pair(&file, &m->model->pairs[i]);
    mixt_status status = MIXT_OK;
    if (file.short_of_memory)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to write %s", path);
    else if (file.count > INT32_MAX)
        status = mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: would have %lld bytes, and an ONNX file has 2 GB at most",
                            path, (long long)file.count);
    m->written.bytes = file.count;
    if (status == MIXT_OK)
        status = mixt__file_put(path, file.bytes, (size_t)file.count, overwrite);
    mixt__wire_out_free(&file);
    return status;
}

static mixt_status write_model(mixt__export *m, const char *source, const char *path, bool overwrite)
{
    m->names = mixt__arena_alloc(&m->arena, (size_t)(m->g->value_count + 1) * sizeof *m->names);
    if (!m->names)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to write %s", path);
    put_inputs(m);
    MIXT_TRY(put_nodes(m));
    if (m->problem_bytes) {
        char more[48] = "";
        if (m->more_problems)
            snprintf(more, sizeof more, "; and %lld more", (long long)m->more_problems);
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%.300s: not all of its layers can be written as ONNX yet: %s%s",
                          source, m->problems, more);
    }
    put_output(m);
    MIXT_TRY(m->status);
    return put_file(m, path, overwrite);
}

mixt_status mixt__onnx_write_model(const mixt__onnx_model_out *model, const char *source, const char *path,
                                   bool overwrite, mixt__onnx_written *written)
{
    mixt__export m = {.model = model, .g = model->graph};
    MIXT_TRY(check_same(model, source));
    mixt_status status = write_model(&m, source, path, overwrite);
    *written = m.written;
    mixt__wire_out_free(&m.graph);
    mixt__free(m.taken);
    mixt__arena_free(&m.arena);
    return status;
}
