/* A model from an ONNX file: which nodes its output needs, which layer is the last, and the model function. */
#include "onnx/onnx.h"

#include "onnx/import.h"

#include <stdio.h>
#include <string.h>

/* ---- the output, and the last layer ---- */

static mixt_status find_output(mixt__onnx *o)
{
    const mixt__onnx_file *f = o->file;
    char names[256] = "", text[128];
    size_t used = 0;
    o->output = f->outputs[0];
    if (!o->options.output || !*o->options.output)
        return MIXT_OK;
    for (int64_t i = 0; i < f->output_count; i++) {
        o->output = f->outputs[i];
        mixt__wire_span name = f->values[o->output].name;
        if (mixt__wire_is(name, o->options.output))
            return MIXT_OK;
        if (used < sizeof names - 1)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                     mixt__onnx_text(name, text, sizeof text));
    }
    return mixt__fail(MIXT_ERROR_CONFIG, "%s has no output '%s': it has %s", f->path, o->options.output, names);
}

static const mixt__onnx_node *maker_of(const mixt__onnx *o, int32_t value)
{
    int32_t producer = o->file->values[value].producer;
    return producer >= 0 ? &o->file->nodes[producer] : NULL;
}

static bool is_one_of(const mixt__onnx_node *n, const char *const *ops)
{
    for (; n && *ops; ops++)
        if (mixt__wire_is(n->op, *ops) && !n->domain.bytes)
            return true;
    return false;
}

/** Behind the last layer there may be what the loss has in it. */
static void strip(mixt__onnx *o)
{
    static const char *const ends[] = {"Softmax", "LogSoftmax", "Sigmoid", "Identity", NULL};
    const mixt__onnx_node *n;
    while (o->options.logits && is_one_of(n = maker_of(o, o->output), ends) && n->in_count && n->in[0])
        o->output = n->in[0];
}

static bool has_weight(const mixt__onnx *o, const mixt__onnx_node *n)
{
    static const char *const layers[] = {"Gemm", "MatMul", "Conv", NULL};
    if (!is_one_of(n, layers) || n->in_count < 2)
        return false;
    int32_t weight = n->in[1];
    const mixt__onnx_node *turned = maker_of(o, weight);
    if (turned && mixt__wire_is(turned->op, "Transpose") && turned->in_count)
        weight = turned->in[0];
    return o->sources[weight] >= 0 && o->roles[weight] == MIXT_ONNX_PARAMETER;
}

/** The last layer with a weight, back from the output through what keeps its outputs apart. */
static mixt_status find_head(mixt__onnx *o)
{
    static const char *const between[] = {"Add",     "Softmax", "LogSoftmax", "Sigmoid", "Identity",
                                          "Reshape", "Squeeze", "Flatten",    "Cast",    NULL};
    char text[128];
    int32_t value = o->output;
    o->head = -1;
    if (!o->options.head)
        return MIXT_OK;
    for (const mixt__onnx_node *n; (n = maker_of(o, value));) {
        if (has_weight(o, n)) {
            o->head = o->file->values[value].producer;
            return MIXT_OK;
        }
        if (!is_one_of(n, between) || !n->in_count)
            break;
        int32_t next = n->in[0];
        if (n->in_count > 1 && o->file->values[next].initializer >= 0)
            next = n->in[1];
        value = next;
    }
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "model.head: the output '%s' of %s is not made by a linear layer whose outputs could be others",
                      mixt__onnx_text(o->file->values[o->output].name, text, sizeof text), o->file->path);
}

static void mark(mixt__onnx *o, int32_t value)
{
    int32_t producer = value ? o->file->values[value].producer : -1;
    if (producer >= 0)
        o->needed[producer] = true;
}

static mixt_status find_needed(mixt__onnx *o)
{
    const mixt__onnx_file *f = o->file;
    o->needed = mixt__arena_alloc(&o->arena, (size_t)f->node_count + 1);
    if (!o->needed)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", f->path);
    mark(o, o->output);
    for (int64_t i = f->node_count; i-- > 0;)
        for (int k = 0; o->needed[i] && k < f->nodes[i].in_count; k++)
            mark(o, f->nodes[i].in[k]);
    return MIXT_OK;
}

/* ---- opening ---- */

static mixt_status prepare(mixt__onnx *o)
{
    MIXT_TRY(find_output(o));
    MIXT_TRY(mixt__onnx_find_roles(o));
    strip(o);
    MIXT_TRY(find_head(o));
    return find_needed(o);
}

mixt_status mixt__onnx_open(const char *path, const mixt__onnx_options *options, mixt__onnx **onnx)
{
    *onnx = NULL;
    mixt__onnx *o = mixt__alloc(sizeof *o);
    if (!o)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to open %s", path);
    pthread_mutex_init(&o->lock, NULL);
    o->options = *options;
    mixt_status status = MIXT_OK;
    if (options->output && !(o->options.output = mixt__arena_strdup(&o->arena, options->output)))
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to open %s", path);
    if (status == MIXT_OK)
        status = mixt__onnx_file_open(path, &o->file);
    if (status == MIXT_OK)
        status = prepare(o);
    if (status == MIXT_OK)
        *onnx = o;
    else
        mixt__onnx_close(o);
    return status;
}

void mixt__onnx_close(mixt__onnx *o)
{
    if (!o)
        return;
    mixt__onnx_file_close(o->file);
    mixt__free(o->recipes);
    mixt__arena_free(&o->arena);
    pthread_mutex_destroy(&o->lock);
    mixt__free(o);
}

int64_t mixt__onnx_outputs(const mixt__onnx *o)
{
    int64_t dims[MIXT_ONNX_RANK];
    mixt__onnx_type type;
    int rank;
    if (o->options.head)
        return o->options.head;
    int32_t value = o->output;
    if (!o->file->values[value].output) // what was behind it has as many
        value = o->file->outputs[0];
    bool known = mixt__onnx_value_shape(&o->file->values[value], &type, &rank, dims);
    return known && rank && dims[rank - 1] > 0 ? dims[rank - 1] : 0;
}

/* ---- building ---- */

static mixt_status build(mixt__import *m, mixt_value x, mixt_value *out)
{
    m->batch = mixt_value_dim(m->b, x, 0);
    MIXT_TRY(mixt__import_run(m));
    mixt__item *item = &m->items[m->onnx->output];
    char text[128];
    if (item->kind != MIXT_ITEM_COMPUTED && !(m->onnx->options.any && item->kind))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: its output '%s' does not depend on the data", m->f->path,
                          mixt__onnx_text(m->f->values[m->onnx->output].name, text, sizeof text));
    return mixt__item_full(m, item, NULL, out);
}

mixt_value mixt__onnx_build_with(mixt_builder *b, mixt_value x, mixt__onnx *onnx)
{
    mixt__import m = {.onnx = onnx, .f = onnx->file, .b = b};
    mixt_value out = {0};
    mixt_status status = build(&m, x, &out);
    if (b->status == MIXT_OK)
        mixt__builder_ok(b, NULL, status);
    mixt__import_free(&m);
    return out;
}

mixt_value mixt__onnx_build(mixt_builder *b, mixt_value x)
{
    return mixt__onnx_build_with(b, x, mixt_builder_user(b));
}

/* ---- what is not supported ---- */

static mixt_status list_problems(mixt__onnx *o, mixt__graph *graph, char **text)
{
    mixt_builder b;
    mixt__import m = {.onnx = o, .f = o->file, .b = &b, .explains = true};
    size_t used = 0;
    MIXT_TRY(mixt__onnx_guess_arrays(o, graph));
    mixt__builder_start(&b, graph, o);
    m.batch = graph->values[graph->input].shape.dims[0];
    mixt_status status = mixt__import_run(&m);
    char *lines = status == MIXT_OK ? mixt__alloc((size_t)(m.problem_count + 1) * 768) : NULL;
    if (status == MIXT_OK && !lines)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to list what is not supported");
    for (int64_t i = 0; lines && i < m.problem_count; i++)
        used += (size_t)snprintf(lines + used, 768, "%.760s\n", m.problems[i].text);
    *text = lines;
    mixt__import_free(&m);
    return status;
}

mixt_status mixt__onnx_explain(const char *path, const mixt__onnx_options *options, char **text)
{
    mixt__onnx *o;
    mixt__graph *graph;
    *text = NULL;
    MIXT_TRY(mixt__onnx_open(path, options, &o));
    mixt_status status = mixt__graph_new(&graph);
    if (status == MIXT_OK) {
        status = list_problems(o, graph, text);
        mixt__graph_free(graph);
    }
    mixt__onnx_close(o);
    return status;
}
