/* Scopes, sticky errors, parameters: what all op functions share. */
#include "graph/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mixt__builder_start(mixt_builder *b, mixt__graph *graph, void *user)
{
    *b = (mixt_builder){.graph = graph, .user = user};
}

mixt_status mixt__builder_finish(const mixt_builder *b)
{
    if (b->status != MIXT_OK)
        mixt__error_set(b->error);
    return b->status;
}

mixt_value mixt__builder_error(mixt_builder *b, mixt_status status, const char *layer, const char *format, ...)
{
    if (b->status != MIXT_OK)
        return (mixt_value){0};
    b->status = status;
    int used = 0; // stays far below the size: a name is cut so that the message has room
    if (layer)
        used = snprintf(b->error, sizeof b->error, "layer '%.256s': ", mixt__builder_path(b, layer));
    else if (b->scope[0])
        used = snprintf(b->error, sizeof b->error, "in '%.256s': ", b->scope);
    va_list args;
    va_start(args, format);
    vsnprintf(b->error + used, sizeof b->error - (size_t)used, format, args);
    va_end(args);
    return (mixt_value){0};
}

bool mixt__builder_ok(mixt_builder *b, const char *layer, mixt_status status)
{
    if (status != MIXT_OK)
        mixt__builder_error(b, status, layer, "%s", mixt_error_text());
    return status == MIXT_OK;
}

mixt_value mixt_builder_fail(mixt_builder *b, const char *message)
{
    return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "%s", message ? message : "the model function failed");
}

void *mixt_builder_user(mixt_builder *b)
{
    return b->user;
}

bool mixt_builder_training(const mixt_builder *b)
{
    return b->graph->training;
}

bool mixt__builder_generating(const mixt_builder *b)
{
    return b->graph->positions != 0;
}

mixt_value mixt__builder_cache(mixt_builder *b, const mixt__shape *shape)
{
    mixt_value cache = {0};
    if (b->status == MIXT_OK)
        mixt__builder_ok(b, NULL,
                         mixt__graph_value(b->graph, MIXT_ROLE_CACHE, MIXT_DTYPE_FP32, shape, "cache", &cache.id));
    return cache;
}

MIXT_PLAY(mixt_scope_push, mixt_scope_push(b, c->name))

void mixt_scope_push(mixt_builder *b, const char *name)
{
    MIXT_RECORD_VOID(b, mixt_scope_push, NULL, .name = name);
    size_t used = strlen(b->scope);
    if (!mixt__builder_ok(b, NULL, mixt__need(name)))
        return;
    if (used + strlen(name) + 2 > sizeof b->scope || b->scope_depth == MIXT_SCOPE_DEPTH) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "scopes nested too deep at '%s'", name);
        return;
    }
    b->scope_start[b->scope_depth++] = used;
    snprintf(b->scope + used, sizeof b->scope - used, "%s%s", used ? "." : "", name);
}

MIXT_PLAY(mixt_scope_pop, mixt_scope_pop(b))

void mixt_scope_pop(mixt_builder *b)
{
    MIXT_RECORD_VOID(b, mixt_scope_pop, NULL, .name = NULL);
    if (b->scope_depth == 0)
        mixt__builder_error(b, MIXT_ERROR_STATE, NULL, "mixt_scope_pop without a matching push");
    else
        b->scope[b->scope_start[--b->scope_depth]] = '\0';
}

const char *mixt__builder_path(mixt_builder *b, const char *name)
{
    const char *path = !b->scope[0] ? name
                       : !name      ? b->scope
                                    : mixt__arena_printf(&b->graph->arena, "%s.%s", b->scope, name);
    return path ? path : "";
}

bool mixt__builder_ready(mixt_builder *b, const char *layer, const mixt_value *values, int count)
{
    if (b->status != MIXT_OK)
        return false;
    for (int i = 0; i < count; i++)
        if (values[i].id <= 0 || values[i].id >= b->graph->value_count) {
            mixt__builder_error(b, MIXT_ERROR_ARGUMENT, layer, "operand %d is not a value of this model", i);
            return false;
        }
    return true;
}

bool mixt__builder_number(mixt_builder *b, const char *layer, const char *argument, float value)
{
    if (value >= 0 && isfinite(value))
        return true;
    mixt__builder_error(b, MIXT_ERROR_ARGUMENT, layer, "%s %g: must be finite and at least 0", argument, (double)value);
    return false;
}

/** The layer a node belongs to: its own name, else the scope, else that of the layer whose result it takes up. */
static const char *layer_of(mixt_builder *b, const char *name, const int32_t *in, int in_count)
{
    const char *layer = mixt__builder_path(b, name);
    int32_t producer = in_count ? b->graph->values[in[0]].producer : -1;
    return *layer || producer < 0 ? layer : b->graph->nodes[producer].layer;
}

bool mixt__builder_node_outputs(mixt_builder *b, const mixt__op *op, const char *name, const void *attrs,
                                const mixt_value *in, int in_count, mixt_value *out)
{
    int32_t ids[64];
    if (in_count > 64)
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "%d operands: 64 at most", in_count);
    if (!mixt__builder_ready(b, name, in, in_count))
        return false;
    for (int i = 0; i < in_count; i++)
        ids[i] = in[i].id;
    int64_t index;
    mixt_status status = mixt__graph_node(b->graph, op, layer_of(b, name, ids, in_count), attrs, ids, in_count, &index);
    if (status != MIXT_OK) {
        mixt__builder_error(b, status, name, "%s: %s", op->name, mixt_error_text());
        return false;
    }
    for (int o = 0; o < b->graph->nodes[index].out_count; o++)
        out[o].id = b->graph->nodes[index].out[o];
    return true;
}

mixt_value mixt__builder_node(mixt_builder *b, const mixt__op *op, const char *name, const void *attrs,
                              const mixt_value *in, int in_count)
{
    mixt_value out[MIXT_MAX_OUTPUTS] = {{0}};
    mixt__builder_node_outputs(b, op, name, attrs, in, in_count, out);
    return out[0];
}

mixt_value mixt__builder_param(mixt_builder *b, const char *layer, const char *part, const mixt__param *param)
{
    if (b->status != MIXT_OK)
        return (mixt_value){0};
    mixt__param p = *param;
    const char *path = mixt__builder_path(b, layer);
    if (!*path)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "parameter '%s' has no name: name its layer, or open a scope", part ? part : "");
    p.name = part ? mixt__arena_printf(&b->graph->arena, "%s.%s", path, part) : path;
    for (int i = 0; p.name && i < p.shape.rank; i++)
        if (p.shape.dims[i] <= 0) {
            char text[128];
            return mixt__builder_error(b, MIXT_ERROR_SHAPE, layer,
                                       "parameter '%.256s' would have shape %s: every size must be at least 1", p.name,
                                       mixt__shape_text(&p.shape, text, sizeof text));
        }
    int32_t index, id = 0;
    mixt_status status = p.name ? mixt__graph_param(b->graph, &p, &index)
                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the name of a parameter");
    if (status == MIXT_OK)
        id = mixt__graph_param_value(b->graph, index, MIXT_DTYPE_FP32);
    mixt__builder_ok(b, layer, status == MIXT_OK && !id ? MIXT_ERROR_MEMORY : status);
    return (mixt_value){id};
}

MIXT_PLAY(mixt_param_with, out[0] = mixt_param_with(b, c->name, options))

mixt_value mixt_param_with(mixt_builder *b, const char *name, const mixt_param_options *given)
{
    mixt_param_options own = MIXT_OPTIONS(mixt_param_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_param_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_param_with, .name = name, .options = &own, .options_size = sizeof own);
    if (o->rank < 0 || o->rank > MIXT_MAX_RANK)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, name, "rank %d: 0 to %d", o->rank, MIXT_MAX_RANK);
    if (!mixt__builder_number(b, name, ".normal", o->normal) || !mixt__builder_number(b, name, ".uniform", o->uniform))
        return (mixt_value){0};
    mixt__param p = {.shape = mixt__shape_of(o->rank, o->dims), .trainable = true, .decay = !o->no_decay};
    p.init = o->ones          ? MIXT_INIT_ONE
             : o->normal > 0  ? MIXT_INIT_NORMAL
             : o->uniform > 0 ? MIXT_INIT_UNIFORM
                              : MIXT_INIT_ZERO;
    p.init_scale = o->normal > 0 ? o->normal : o->uniform;
    return mixt__builder_param(b, name, NULL, &p);
}

int mixt_value_rank(mixt_builder *b, mixt_value x)
{
    return mixt__builder_ready(b, NULL, &x, 1) ? b->graph->values[x.id].shape.rank : 0;
}

int64_t mixt_value_dim(mixt_builder *b, mixt_value x, int axis)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return 0;
    const mixt__shape *shape = &b->graph->values[x.id].shape;
    if (axis < 0)
        axis += shape->rank;
    return axis >= 0 && axis < shape->rank ? shape->dims[axis] : 0;
}
