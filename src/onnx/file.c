/* Opening an ONNX file: its lists, and how values, nodes and initializers hang together. */
#include "onnx/file.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

bool mixt__onnx_is(const char *path)
{
    return mixt__path_has_extension(path, ".onnx");
}

const char *mixt__onnx_text(mixt__wire_span span, char *text, size_t size)
{
    size_t length = span.bytes < size ? span.bytes : size - 1;
    if (length)
        memcpy(text, span.at, length);
    text[length] = '\0';
    return text;
}

static mixt_status damaged(const mixt__onnx_file *f, const char *what)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is damaged: not an ONNX file, or a part of one", f->path, what);
}

static mixt_status no_memory(const mixt__onnx_file *f)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read its graph", f->path);
}

/* ---- values ---- */

static uint64_t hash(mixt__wire_span name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.bytes; i++)
        h = (h ^ name.at[i]) * 0x100000001b3u;
    return h;
}

/** Where a name stands in the table, or would. */
static int64_t slot_of(const mixt__onnx_file *f, mixt__wire_span name)
{
    int64_t mask = f->table_size - 1, slot = (int64_t)(hash(name) & (uint64_t)mask);
    while (f->table[slot] && !mixt__wire_equal(f->values[f->table[slot]].name, name))
        slot = (slot + 1) & mask;
    return slot;
}

int32_t mixt__onnx_find(const mixt__onnx_file *f, mixt__wire_span name)
{
    return f->table_size ? f->table[slot_of(f, name)] : 0;
}

static mixt_status grow_table(mixt__onnx_file *f)
{
    int64_t size = f->table_size ? 2 * f->table_size : 64;
    int32_t *table = mixt__alloc((size_t)size * sizeof *table);
    if (!table)
        return no_memory(f);
    mixt__free(f->table);
    f->table = table;
    f->table_size = size;
    for (int64_t v = 1; v < f->value_count; v++)
        f->table[slot_of(f, f->values[v].name)] = (int32_t)v;
    return MIXT_OK;
}

/** The value of a name, made where there is none; 0 for the name "". */
static mixt_status value_of(mixt__onnx_file *f, mixt__wire_span name, int32_t *id)
{
    *id = 0;
    if (!name.bytes)
        return MIXT_OK;
    if (!mixt__wire_is_text(name))
        return damaged(f, "the name of a value");
    if (2 * f->value_count >= f->table_size)
        MIXT_TRY(grow_table(f));
    int64_t slot = slot_of(f, name);
    if ((*id = f->table[slot]))
        return MIXT_OK;
    if (f->value_count == MIXT_ONNX_VALUES_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: more than %d values", f->path, MIXT_ONNX_VALUES_MAX);
    if (!mixt__grow((void **)&f->values, &f->value_capacity, f->value_count, sizeof *f->values))
        return no_memory(f);
    f->values[f->value_count] = (mixt__onnx_value){.name = name, .producer = -1, .initializer = -1, .user = -1};
    *id = f->table[slot] = (int32_t)f->value_count++;
    return MIXT_OK;
}

/* ---- the graph ---- */

/** How many fields of a number a message has. */
static int64_t count_fields(mixt__wire_span message, uint32_t number)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    int64_t count = 0;
    while (mixt__wire_next(&w, &field))
        count += field.number == number && field.type == MIXT_WIRE_BYTES;
    return count;
}

static mixt_status read_node(mixt__onnx_file *f, mixt__wire_span message, int32_t index)
{
    mixt__onnx_node *n = &f->nodes[index];
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    char text[128];
    *n = (mixt__onnx_node){.message = message};
    n->in_count = (int32_t)count_fields(message, MIXT_ONNX_NODE_INPUT);
    n->out_count = (int32_t)count_fields(message, MIXT_ONNX_NODE_OUTPUT);
    n->in = mixt__arena_alloc(&f->arena, (size_t)(n->in_count + n->out_count + 1) * sizeof *n->in);
    if (!n->in)
        return no_memory(f);
    n->out = n->in + n->in_count;
    n->in_count = n->out_count = 0;
    while (mixt__wire_next(&w, &field)) {
        if (field.type != MIXT_WIRE_BYTES)
            continue;
        if (field.number == MIXT_ONNX_NODE_INPUT)
            MIXT_TRY(value_of(f, field.bytes, &n->in[n->in_count++]));
        else if (field.number == MIXT_ONNX_NODE_OUTPUT)
            MIXT_TRY(value_of(f, field.bytes, &n->out[n->out_count++]));
        else if (field.number == MIXT_ONNX_NODE_NAME)
            n->name = field.bytes;
        else if (field.number == MIXT_ONNX_NODE_OP_TYPE)
            n->op = field.bytes;
        else if (field.number == MIXT_ONNX_NODE_DOMAIN)
            n->domain = field.bytes;
    }
    if (w.damaged || !n->op.bytes || !mixt__wire_is_text(n->op) || !mixt__wire_is_text(n->name) ||
        !mixt__wire_is_text(n->domain)) {
        snprintf(text, sizeof text, "node %d", (int)index);
        return damaged(f, text);
    }
    return MIXT_OK;
}

/** Who makes and who uses each value. */
static mixt_status connect(mixt__onnx_file *f)
{
    char text[128];
    for (int32_t i = 0; i < f->node_count; i++) {
        const mixt__onnx_node *n = &f->nodes[i];
        for (int32_t k = 0; k < n->in_count; k++) {
            mixt__onnx_value *v = &f->values[n->in[k]];
            if (!n->in[k])
                continue;
            if (v->producer < 0 && v->initializer < 0 && !v->input)
                return mixt__fail(MIXT_ERROR_FORMAT,
                                  "%s: node %d uses '%s' before anything makes it: nodes must stand in the order in "
                                  "which they are computed, without cycles",
                                  f->path, (int)i, mixt__onnx_text(v->name, text, sizeof text));
            v->user = v->uses++ ? v->user : i;
        }
        for (int32_t k = 0; k < n->out_count; k++) {
            mixt__onnx_value *v = &f->values[n->out[k]];
            if (!n->out[k])
                continue;
            if (v->producer >= 0 || v->initializer >= 0 || v->input)
                return mixt__fail(MIXT_ERROR_FORMAT, "%s: '%s' is made twice", f->path,
                                  mixt__onnx_text(v->name, text, sizeof text));
            v->producer = i;
        }
    }
    for (int64_t i = 0; i < f->output_count; i++) {
        mixt__onnx_value *v = &f->values[f->outputs[i]];
        if (v->producer < 0 && v->initializer < 0 && !v->input)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: nothing makes the output '%s'", f->path,
                              mixt__onnx_text(v->name, text, sizeof text));
        v->uses++;
    }
    return MIXT_OK;
}

/** An input or output of the graph: ValueInfoProto. */
static mixt_status read_value(mixt__onnx_file *f, mixt__wire_span message, bool input)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    mixt__wire_span name = {0}, type = {0};
    int32_t id;
    while (mixt__wire_next(&w, &field))
        if (field.type == MIXT_WIRE_BYTES && field.number == MIXT_ONNX_VALUE_NAME)
            name = field.bytes;
        else if (field.type == MIXT_WIRE_BYTES && field.number == MIXT_ONNX_VALUE_TYPE)
            type = field.bytes;
    MIXT_TRY(value_of(f, name, &id));
    if (w.damaged || !id)
        return damaged(f, input ? "an input of its graph" : "an output of its graph");
    mixt__onnx_value *v = &f->values[id];
    v->type = type;
    v->input = v->input || input;
    v->output = v->output || !input;
    if (!input)
        f->outputs[f->output_count++] = id;
    else if (v->initializer < 0) // older files list initializers among the inputs
        f->inputs[f->input_count++] = id;
    return MIXT_OK;
}

static mixt_status read_initializer(mixt__onnx_file *f, mixt__wire_span message)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    mixt__wire_span name = {0};
    int32_t id;
    while (mixt__wire_next(&w, &field))
        if (field.type == MIXT_WIRE_BYTES && field.number == MIXT_ONNX_TENSOR_NAME)
            name = field.bytes;
    MIXT_TRY(value_of(f, name, &id));
    if (w.damaged || !id || f->values[id].initializer >= 0)
        return damaged(f, "an initializer");
    f->values[id].initializer = (int32_t)f->initializer_count;
    f->initializers[f->initializer_count++] = message;
    return MIXT_OK;
}

/** Lists as long as the graph's. */
static mixt_status take_lists(mixt__onnx_file *f, mixt__wire_span graph)
{
    int64_t nodes = count_fields(graph, MIXT_ONNX_GRAPH_NODE);
    int64_t initializers = count_fields(graph, MIXT_ONNX_GRAPH_INITIALIZER);
    int64_t ends = count_fields(graph, MIXT_ONNX_GRAPH_INPUT) + count_fields(graph, MIXT_ONNX_GRAPH_OUTPUT);
    if (nodes > MIXT_ONNX_NODES_MAX || initializers > MIXT_ONNX_NODES_MAX || ends > MIXT_ONNX_NODES_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: more than %d nodes, initializers or inputs", f->path,
                          MIXT_ONNX_NODES_MAX);
    f->nodes = mixt__arena_alloc(&f->arena, (size_t)(nodes + 1) * sizeof *f->nodes);
    f->initializers = mixt__arena_alloc(&f->arena, (size_t)(initializers + 1) * sizeof *f->initializers);
    f->inputs = mixt__arena_alloc(&f->arena, (size_t)(ends + 1) * sizeof *f->inputs);
    f->outputs = mixt__arena_alloc(&f->arena, (size_t)(ends + 1) * sizeof *f->outputs);
    bool room = mixt__grow((void **)&f->values, &f->value_capacity, 0, sizeof *f->values);
    if (!f->nodes || !f->initializers || !f->inputs || !f->outputs || !room)
        return no_memory(f);
    f->values[0] = (mixt__onnx_value){.producer = -1, .initializer = -1, .user = -1};
    f->value_count = 1;
    return MIXT_OK;
}

/** Hands all fields of one number to a reader. */
static mixt_status read_part(mixt__onnx_file *f, mixt__wire_span graph, uint32_t number)
{
    mixt__wire w = mixt__wire_read(graph);
    mixt__wire_field field;
    while (mixt__wire_next(&w, &field)) {
        if (field.number != number || field.type != MIXT_WIRE_BYTES)
            continue;
        if (number == MIXT_ONNX_GRAPH_INITIALIZER)
            MIXT_TRY(read_initializer(f, field.bytes));
        else if (number == MIXT_ONNX_GRAPH_NODE)
            MIXT_TRY(read_node(f, field.bytes, (int32_t)f->node_count++));
        else
            MIXT_TRY(read_value(f, field.bytes, number == MIXT_ONNX_GRAPH_INPUT));
    }
    return w.damaged ? damaged(f, "its graph") : MIXT_OK;
}

static mixt_status read_graph(mixt__onnx_file *f, mixt__wire_span graph)
{
    static const uint32_t parts[] = {MIXT_ONNX_GRAPH_INITIALIZER, MIXT_ONNX_GRAPH_INPUT, MIXT_ONNX_GRAPH_NODE,
                                     MIXT_ONNX_GRAPH_OUTPUT};
    MIXT_TRY(take_lists(f, graph));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        MIXT_TRY(read_part(f, graph, parts[i]));
    if (count_fields(graph, MIXT_ONNX_GRAPH_SPARSE_INITIALIZER))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s has sparse initializers, which are not read", f->path);
    if (!f->node_count || !f->output_count)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its graph has no nodes or no outputs", f->path);
    return connect(f);
}

/* ---- the model ---- */

static void read_opset(mixt__onnx_file *f, mixt__wire_span message)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    mixt__wire_span domain = {0};
    int64_t version = 0;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_OPSET_DOMAIN && field.type == MIXT_WIRE_BYTES)
            domain = field.bytes;
        else if (field.number == MIXT_ONNX_OPSET_VERSION && field.type == MIXT_WIRE_VARINT)
            version = (int64_t)field.value;
    if (!domain.bytes || mixt__wire_is(domain, "ai.onnx"))
        f->opset = version;
}

static void read_metadata(mixt__onnx_file *f, mixt__wire_span message)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_PAIR_KEY && field.type == MIXT_WIRE_BYTES)
            f->without_weights |= mixt__wire_is(field.bytes, "mixt.without_weights");
}

static mixt_status read_model(mixt__onnx_file *f)
{
    mixt__wire w = mixt__wire_read((mixt__wire_span){f->map.data, f->map.bytes});
    mixt__wire_field field;
    mixt__wire_span graph = {0};
    while (mixt__wire_next(&w, &field)) {
        if (field.number == MIXT_ONNX_MODEL_IR_VERSION && field.type == MIXT_WIRE_VARINT)
            f->ir_version = (int64_t)field.value;
        if (field.type != MIXT_WIRE_BYTES)
            continue;
        if (field.number == MIXT_ONNX_MODEL_GRAPH)
            graph = field.bytes;
        else if (field.number == MIXT_ONNX_MODEL_OPSET)
            read_opset(f, field.bytes);
        else if (field.number == MIXT_ONNX_MODEL_PRODUCER)
            f->producer = field.bytes;
        else if (field.number == MIXT_ONNX_MODEL_METADATA)
            read_metadata(f, field.bytes);
    }
    if (w.damaged || !graph.at)
        return damaged(f, "the file");
    if (f->opset < 1 || f->opset > 1000)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s does not say which version of ONNX's ops it uses", f->path);
    return read_graph(f, graph);
}

mixt_status mixt__onnx_file_open(const char *path, mixt__onnx_file **file)
{
    *file = NULL;
    mixt__onnx_file *f = mixt__alloc(sizeof *f);
    if (!f)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    f->path = mixt__strdup(path);
    mixt_status status =
        f->path ? mixt__file_map_open(path, &f->map) : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    if (status == MIXT_OK)
        status = read_model(f);
    if (status == MIXT_OK) {
        *file = f;
        return MIXT_OK;
    }
    mixt__onnx_file_close(f);
    return status;
}

void mixt__onnx_file_close(mixt__onnx_file *f)
{
    if (!f)
        return;
    mixt__onnx_external_close(f);
    if (f->map.path)
        mixt__file_map_close(&f->map);
    mixt__free(f->values);
    mixt__free(f->table);
    mixt__arena_free(&f->arena);
    mixt__free(f->path);
    mixt__free(f);
}
