/* The graph of a run: the file without the values of its parameters, which the run's checkpoints have. */
#include "onnx/onnx.h"

#include "base/status.h"

#include <string.h>

/** Whether only nodes use a value that give it another name. */
static bool is_copied(const mixt__onnx *o, int32_t value)
{
    const mixt__onnx_file *f = o->file;
    int32_t copies = 0;
    for (int64_t v = 1; v < f->value_count; v++) {
        const mixt__onnx_node *n = f->values[v].producer >= 0 ? &f->nodes[f->values[v].producer] : NULL;
        copies += n && n->in_count == 1 && n->in[0] == value && mixt__wire_is(n->op, "Identity");
    }
    return copies && copies == f->values[value].uses;
}

/** A tensor of which only name, type and shape are kept; or, of a constant in another file, all in this one. */
static mixt_status put_initializer(mixt__onnx *o, int64_t index, mixt__wire_out *graph)
{
    mixt__wire_span message = o->file->initializers[index];
    mixt__onnx_tensor t;
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field f;
    mixt__wire_out out = {0};
    MIXT_TRY(mixt__onnx_tensor_read(o->file, message, &t));
    bool keeps = false;
    for (int64_t v = 1; v < o->file->value_count; v++)
        keeps = keeps || (o->sources[v] == index && o->file->values[v].uses && o->roles[v] == MIXT_ONNX_CONSTANT &&
                          !is_copied(o, (int32_t)v));
    while (mixt__wire_next(&w, &f)) {
        bool shape = f.number == MIXT_ONNX_TENSOR_DIMS || f.number == MIXT_ONNX_TENSOR_DATA_TYPE ||
                     f.number == MIXT_ONNX_TENSOR_NAME;
        bool place = f.number == MIXT_ONNX_TENSOR_EXTERNAL || f.number == MIXT_ONNX_TENSOR_LOCATION;
        if (shape || (keeps && !place && f.number != MIXT_ONNX_TENSOR_RAW))
            mixt__wire_put_field(&out, &f);
    }
    if (keeps && t.data.at)
        mixt__wire_put_bytes(&out, MIXT_ONNX_TENSOR_RAW, t.data.at, t.data.bytes);
    mixt__wire_put_message(graph, MIXT_ONNX_GRAPH_INITIALIZER, &out);
    return MIXT_OK;
}

static mixt_status put_graph(mixt__onnx *o, mixt__wire_span from, mixt__wire_out *model)
{
    mixt__wire w = mixt__wire_read(from);
    mixt__wire_field f;
    mixt__wire_out graph = {0};
    mixt_status status = MIXT_OK;
    int64_t index = 0;
    while (status == MIXT_OK && mixt__wire_next(&w, &f)) {
        if (f.number == MIXT_ONNX_GRAPH_INITIALIZER && f.type == MIXT_WIRE_BYTES)
            status = put_initializer(o, index++, &graph);
        else if (f.number != MIXT_ONNX_GRAPH_VALUE_INFO)
            mixt__wire_put_field(&graph, &f);
    }
    mixt__wire_put_message(model, MIXT_ONNX_MODEL_GRAPH, &graph);
    return status;
}

mixt_status mixt__onnx_write_graph(const mixt__onnx *onnx, const char *path)
{
    mixt__onnx *o = (mixt__onnx *)(uintptr_t)onnx;
    mixt__wire w = mixt__wire_read((mixt__wire_span){o->file->map.data, o->file->map.bytes});
    mixt__wire_field f;
    mixt__wire_out model = {0}, mark = {0};
    mixt_status status = MIXT_OK;
    while (status == MIXT_OK && mixt__wire_next(&w, &f))
        if (f.number == MIXT_ONNX_MODEL_GRAPH && f.type == MIXT_WIRE_BYTES)
            status = put_graph(o, f.bytes, &model);
        else
            mixt__wire_put_field(&model, &f);
    if (!o->file->without_weights) {
        mixt__wire_put_text(&mark, MIXT_ONNX_PAIR_KEY, "mixt.without_weights");
        mixt__wire_put_text(&mark, MIXT_ONNX_PAIR_VALUE, "in the run's checkpoints");
        mixt__wire_put_message(&model, MIXT_ONNX_MODEL_METADATA, &mark);
    }
    if (status == MIXT_OK && model.short_of_memory)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to write %s", path);
    if (status == MIXT_OK)
        status = mixt__file_put(path, model.bytes, (size_t)model.count, false);
    mixt__wire_out_free(&model);
    return status;
}
