/* Building the graph: node after node, and what handlers ask for. */
#include "onnx/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what handlers ask for ---- */

mixt_status mixt__import_refuse(mixt__import *m, const char *format, ...)
{
    char text[512];
    va_list args;
    (void)m;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s", text);
}

mixt_status mixt__import_check(const mixt__import *m)
{
    return mixt__builder_finish(m->b);
}

mixt__item *mixt__import_in(mixt__import *m, const mixt__onnx_node *n, int k)
{
    return k < n->in_count && n->in[k] ? &m->items[n->in[k]] : NULL;
}

mixt__item *mixt__import_out(mixt__import *m, const mixt__onnx_node *n, int k)
{
    return &m->items[k < n->out_count ? n->out[k] : 0];
}

const char *mixt__import_name(mixt__import *m, mixt__wire_span name)
{
    char *text = mixt__arena_alloc(&m->b->graph->arena, name.bytes + 1);
    return text ? mixt__onnx_text(name, text, name.bytes + 1) : "";
}

const char *mixt__import_layer(mixt__import *m, const mixt__onnx_node *n, const mixt__item *weight)
{
    char text[MIXT_SCOPE_SIZE - 8];
    static const char *const parts[] = {".weight", ".kernel", "/kernel", ".W"};
    if (weight && weight->initializer >= 0) {
        mixt__onnx_text(m->f->values[weight->owner].name, text, sizeof text);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            size_t length = strlen(text), part = strlen(parts[i]);
            if (length > part && !strcmp(text + length - part, parts[i]))
                return mixt__arena_text(&m->b->graph->arena, "%.*s", (int)(length - part), text);
        }
    }
    if (n->name.bytes)
        return mixt__arena_text(&m->b->graph->arena, "%s", mixt__onnx_text(n->name, text, sizeof text));
    return mixt__arena_text(&m->b->graph->arena, "%s.%d", mixt__onnx_text(n->op, text, sizeof text / 2),
                            (int)(n - m->f->nodes));
}

void mixt__import_enter(mixt__import *m, const mixt__onnx_node *n, const mixt__item *weight)
{
    mixt_scope_push(m->b, mixt__import_layer(m, n, weight));
}

void mixt__import_leave(mixt__import *m)
{
    mixt_scope_pop(m->b);
}

int mixt__import_axis(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

int mixt__import_list(mixt__import *m, const mixt__onnx_node *n, const char *attribute, int input, int64_t *numbers,
                      int most)
{
    mixt__item *item = mixt__import_in(m, n, input);
    if (item)
        return mixt__item_ints(m, item, numbers, most);
    return mixt__onnx_ints(n, attribute, numbers, most);
}

const mixt__onnx_node *mixt__import_only_user(const mixt__import *m, int32_t value, const char *op)
{
    const mixt__onnx_value *v = &m->f->values[value];
    const mixt__onnx_node *n = value && v->uses == 1 && v->user >= 0 ? &m->f->nodes[v->user] : NULL;
    return n && mixt__wire_is(n->op, op) && !n->domain.bytes ? n : NULL;
}

const mixt__onnx_node *mixt__import_maker(const mixt__import *m, int32_t value, const char *op)
{
    const mixt__onnx_value *v = &m->f->values[value];
    const mixt__onnx_node *n = value && v->producer >= 0 ? &m->f->nodes[v->producer] : NULL;
    return n && mixt__wire_is(n->op, op) ? n : NULL;
}

void mixt__import_done(mixt__import *m, const mixt__onnx_node *n)
{
    m->done[n - m->f->nodes] = true;
}

/* ---- node after node ---- */

static mixt_status note(mixt__import *m, const char *text)
{
    const mixt__onnx_node *n = m->node;
    char name[128], op[64];
    if (!mixt__grow((void **)&m->problems, &m->problem_capacity, m->problem_count, sizeof *m->problems))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to say what is not supported");
    mixt__onnx_text(n->op, op, sizeof op);
    if (n->name.bytes)
        mixt__onnx_text(n->name, name, sizeof name);
    else
        snprintf(name, sizeof name, "number %d", (int)m->at);
    m->problems[m->problem_count++] =
        (mixt__onnx_problem){m->at, mixt__arena_text(&m->arena, "node '%s' (%s): %s", name, op, text)};
    return MIXT_OK;
}

/** Whether all inputs are there, and whether all are known. */
static bool look_at_inputs(mixt__import *m, const mixt__onnx_node *n, bool *known)
{
    *known = true;
    for (int k = 0; k < n->in_count; k++) {
        const mixt__item *item = mixt__import_in(m, n, k);
        if (item && item->kind == MIXT_ITEM_NONE)
            return false;
        *known = *known && (!item || item->kind == MIXT_ITEM_CONSTANT);
    }
    return true;
}

static mixt_status make_node(mixt__import *m, const mixt__onnx_node *n)
{
    bool known, there = look_at_inputs(m, n, &known);
    mixt__onnx_make *make = mixt__onnx_op_find(n->domain, n->op);
    char domain[64];
    if (!make && !there && mixt__onnx_folds(n)) // what it needs is not supported, and has been told
        return MIXT_OK;
    if (!make) {
        mixt_status folded = there && known && !n->domain.bytes ? mixt__onnx_fold(m, n) : MIXT_ERROR_UNSUPPORTED;
        if (folded != MIXT_ERROR_UNSUPPORTED)
            return folded;
        return mixt__import_refuse(m, "mixt has no op for it%s%s", n->domain.bytes ? ", of the domain " : "",
                                   mixt__onnx_text(n->domain, domain, sizeof domain));
    }
    if (!there) // what it needs is not supported, and has been told
        return MIXT_OK;
    if (known) {
        mixt_status status = mixt__onnx_fold(m, n);
        if (status != MIXT_ERROR_UNSUPPORTED)
            return status;
    }
    return make(m, n);
}

/** Nodes that hold a constant come first: what looks ahead finds them known. */
static bool is_constant(const mixt__onnx_node *n)
{
    return mixt__wire_is(n->op, "Constant") && !n->domain.bytes;
}

static mixt_status make_nodes(mixt__import *m, bool first)
{
    for (int32_t i = 0; i < m->f->node_count; i++) {
        if (!m->onnx->needed[i] || m->done[i] || is_constant(&m->f->nodes[i]) != first)
            continue;
        m->at = i;
        m->node = &m->f->nodes[i];
        mixt_status status = make_node(m, m->node);
        if (status == MIXT_OK)
            status = mixt__import_check(m);
        if (status == MIXT_OK)
            continue;
        if (status != MIXT_ERROR_UNSUPPORTED && status != MIXT_ERROR_SHAPE && status != MIXT_ERROR_ARGUMENT &&
            status != MIXT_ERROR_DTYPE)
            return status;
        MIXT_TRY(note(m, mixt_error_text()));
        if (m->b->status != MIXT_OK) // no more nodes can be made
            break;
    }
    return MIXT_OK;
}

/** One failure for all that is not supported. */
static mixt_status tell(mixt__import *m)
{
    char text[900];
    size_t used = 0;
    if (!m->problem_count)
        return MIXT_OK;
    for (int64_t i = 0; i < m->problem_count && used < sizeof text - 200; i++)
        used += (size_t)snprintf(text + used, 200, "%s%.180s", i ? "; " : "", m->problems[i].text);
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: %lld node%s not supported: %s%s", m->f->path,
                      (long long)m->problem_count, m->problem_count > 1 ? "s are" : " is", text,
                      used >= sizeof text - 200 ? "; … (mixt plan FILE --explain lists all)" : "");
}

/* ---- inputs ---- */

mixt_status mixt__item_begin(mixt__import *m, int32_t value)
{
    mixt__onnx_tensor t;
    mixt__item *item = &m->items[value];
    int32_t index = m->onnx->sources[value];
    MIXT_TRY(mixt__onnx_tensor_read(m->onnx->file, m->f->initializers[index], &t));
    *item = (mixt__item){.type = t.type, .rank = t.rank, .initializer = index, .owner = value};
    item->kind = m->onnx->roles[value] == MIXT_ONNX_CONSTANT ? MIXT_ITEM_CONSTANT : MIXT_ITEM_PARAMETER;
    memcpy(item->dims, t.dims, sizeof item->dims);
    for (int i = 0; i < MIXT_ONNX_RANK; i++)
        item->order[i] = i;
    return MIXT_OK;
}

/** Initializers that are constants are known; the others wait to be used. */
static mixt_status take_initializers(mixt__import *m)
{
    for (int64_t v = 1; v < m->f->value_count; v++)
        if (m->onnx->sources[v] >= 0 && m->f->values[v].uses)
            MIXT_TRY(mixt__item_begin(m, (int32_t)v));
    return MIXT_OK;
}

mixt_status mixt__import_run(mixt__import *m)
{
    size_t values = (size_t)m->f->value_count, nodes = (size_t)m->f->node_count;
    m->items = mixt__arena_alloc(&m->arena, (values + 1) * sizeof *m->items);
    m->done = mixt__arena_alloc(&m->arena, (nodes + 1) * sizeof *m->done);
    m->made = mixt__arena_alloc(&m->arena, (values + 1) * sizeof *m->made);
    if (!m->items || !m->done || !m->made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to build the graph of %s", m->f->path);
    MIXT_TRY(take_initializers(m));
    MIXT_TRY(mixt__import_inputs(m));
    MIXT_TRY(make_nodes(m, true));
    MIXT_TRY(make_nodes(m, false));
    return m->explains ? MIXT_OK : tell(m);
}

void mixt__import_free(mixt__import *m)
{
    mixt__arena_free(&m->arena);
    mixt__free(m->problems);
}
