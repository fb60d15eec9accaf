/* Small ONNX files, written field by field. */
#ifndef MIXT_TESTS_ONNX_FILE_H
#define MIXT_TESTS_ONNX_FILE_H

#include "onnx/schema.h"
#include "onnx/wire.h"

#include <stdio.h>
#include <string.h>

/** A graph that is being written; its parts in any order. */
typedef struct onnx_graph {
    mixt__wire_out body;
} onnx_graph;

typedef struct onnx_int {
    const char *name;
    int64_t value;
} onnx_int;

static inline void onnx_raw(onnx_graph *g, const char *name, int type, int rank, const int64_t *dims, const void *raw,
                            size_t bytes)
{
    mixt__wire_out t = {0};
    for (int i = 0; i < rank; i++)
        mixt__wire_put_number(&t, MIXT_ONNX_TENSOR_DIMS, (uint64_t)dims[i]);
    mixt__wire_put_number(&t, MIXT_ONNX_TENSOR_DATA_TYPE, (uint64_t)type);
    mixt__wire_put_text(&t, MIXT_ONNX_TENSOR_NAME, name);
    mixt__wire_put_bytes(&t, MIXT_ONNX_TENSOR_RAW, raw, bytes);
    mixt__wire_put_message(&g->body, MIXT_ONNX_GRAPH_INITIALIZER, &t);
}

static inline void onnx_floats(onnx_graph *g, const char *name, int rank, const int64_t *dims, const float *values)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    onnx_raw(g, name, MIXT_ONNX_FLOAT, rank, dims, values, count * sizeof *values);
}

/** A float input or output; sizes below 0 are left open. */
static inline void onnx_value(onnx_graph *g, bool input, const char *name, int rank, const int64_t *dims)
{
    mixt__wire_out shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (int i = 0; i < rank; i++) {
        mixt__wire_out dim = {0};
        if (dims[i] < 0)
            mixt__wire_put_text(&dim, MIXT_ONNX_DIM_PARAM, "n");
        else
            mixt__wire_put_number(&dim, MIXT_ONNX_DIM_VALUE, (uint64_t)dims[i]);
        mixt__wire_put_message(&shape, MIXT_ONNX_SHAPE_DIM, &dim);
    }
    mixt__wire_put_number(&tensor, MIXT_ONNX_TYPE_ELEMENT, MIXT_ONNX_FLOAT);
    mixt__wire_put_message(&tensor, MIXT_ONNX_TYPE_SHAPE, &shape);
    mixt__wire_put_message(&type, MIXT_ONNX_TYPE_TENSOR, &tensor);
    mixt__wire_put_text(&value, MIXT_ONNX_VALUE_NAME, name);
    mixt__wire_put_message(&value, MIXT_ONNX_VALUE_TYPE, &type);
    mixt__wire_put_message(&g->body, input ? MIXT_ONNX_GRAPH_INPUT : MIXT_ONNX_GRAPH_OUTPUT, &value);
}

/** @param in names, separated by spaces @param attribute a whole number; NULL: none */
static inline void onnx_node(onnx_graph *g, const char *op, const char *in, const char *out, const onnx_int *attribute)
{
    mixt__wire_out n = {0};
    for (size_t length; *in; in += length + (in[length] == ' ')) {
        length = strcspn(in, " ");
        mixt__wire_put_bytes(&n, MIXT_ONNX_NODE_INPUT, in, length);
    }
    mixt__wire_put_text(&n, MIXT_ONNX_NODE_OUTPUT, out);
    mixt__wire_put_text(&n, MIXT_ONNX_NODE_OP_TYPE, op);
    if (attribute) {
        mixt__wire_out a = {0};
        mixt__wire_put_text(&a, MIXT_ONNX_ATTRIBUTE_NAME, attribute->name);
        mixt__wire_put_number(&a, MIXT_ONNX_ATTRIBUTE_I, (uint64_t)attribute->value);
        mixt__wire_put_number(&a, MIXT_ONNX_ATTRIBUTE_TYPE, MIXT_ONNX_IS_INT);
        mixt__wire_put_message(&n, MIXT_ONNX_NODE_ATTRIBUTE, &a);
    }
    mixt__wire_put_message(&g->body, MIXT_ONNX_GRAPH_NODE, &n);
}

/** The file, opset 18; frees the graph. For mixt__wire_out_free. */
static inline mixt__wire_out onnx_finish(onnx_graph *g)
{
    mixt__wire_out file = {0}, opset = {0};
    mixt__wire_put_number(&file, MIXT_ONNX_MODEL_IR_VERSION, 9);
    mixt__wire_put_message(&file, MIXT_ONNX_MODEL_GRAPH, &g->body);
    mixt__wire_put_text(&opset, MIXT_ONNX_OPSET_DOMAIN, "");
    mixt__wire_put_number(&opset, MIXT_ONNX_OPSET_VERSION, 18);
    mixt__wire_put_message(&file, MIXT_ONNX_MODEL_OPSET, &opset);
    return file;
}

#endif
