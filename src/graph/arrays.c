/* The named arrays of a batch: how a model asks for what its data set offers. */
#include "base/block.h"
#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__graph_array_value(mixt__graph *graph, int index, int32_t *id)
{
    mixt__array *a = &graph->arrays[index];
    if (!a->value)
        MIXT_TRY(mixt__graph_value(graph, a->target ? MIXT_ROLE_TARGET : MIXT_ROLE_INPUT, a->dtype, &a->shape, a->name,
                                   &a->value));
    *id = a->value;
    return MIXT_OK;
}

void mixt__graph_place_arrays(mixt__graph *graph)
{
    mixt__block blocks[2] = {{0}, {0}}; // of inputs, of targets
    for (int i = 0; i < graph->array_count; i++) {
        const mixt__array *a = &graph->arrays[i];
        mixt__value *v = a->value ? &graph->values[a->value] : NULL;
        mixt_dtype dtype = v ? v->dtype : a->dtype;
        size_t place =
            mixt__block_add(&blocks[a->target], (size_t)mixt__shape_count(&a->shape) * mixt_dtype_size(dtype));
        if (v)
            v->place = place;
    }
}

/** The names of a batch's inputs or targets, for messages. */
static void list_names(const mixt__graph *graph, bool target, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < graph->array_count && used + MIXT_ARRAY_NAME + 4 < size; i++)
        if (graph->arrays[i].target == target)
            used += (size_t)snprintf(text + used, size - used, "%s'%s'", used ? ", " : "", graph->arrays[i].name);
}

static mixt_value find(mixt_builder *b, const char *name, bool target)
{
    const char *kind = target ? "target" : "input";
    mixt_value found = {0};
    char names[256];
    if (b->status != MIXT_OK)
        return found;
    for (int i = 0; i < b->graph->array_count; i++) {
        const mixt__array *a = &b->graph->arrays[i];
        if (a->target != target || (name && strcmp(a->name, name)))
            continue;
        mixt__builder_ok(b, NULL, mixt__graph_array_value(b->graph, i, &found.id));
        return found;
    }
    list_names(b->graph, target, names, sizeof names);
    if (!*names)
        return mixt__builder_error(
            b, MIXT_ERROR_STATE, NULL,
            "there is no %s here: a model that only makes outputs asks mixt_builder_has_loss first", kind);
    return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "the data has no %s '%s': it offers %s", kind,
                               name ? name : "", names);
}

MIXT_PLAY(mixt_input, out[0] = mixt_input(b, c->name))
mixt_value mixt_input(mixt_builder *b, const char *name)
{
    MIXT_RECORD(b, mixt_input, .name = name);
    return find(b, name, false);
}

MIXT_PLAY(mixt_target, out[0] = mixt_target(b, c->name))
mixt_value mixt_target(mixt_builder *b, const char *name)
{
    MIXT_RECORD(b, mixt_target, .name = name, .of_target = true);
    return find(b, name, true);
}

bool mixt_builder_has_input(const mixt_builder *b, const char *name)
{
    for (int i = 0; name && i < b->graph->array_count; i++)
        if (!b->graph->arrays[i].target && !strcmp(b->graph->arrays[i].name, name))
            return true;
    return false;
}

/** An array that stands beside another one: "NAME.length". */
static mixt_value beside(mixt_builder *b, const char *name, const char *what)
{
    char full[MIXT_ARRAY_NAME];
    if (!mixt__builder_ok(b, NULL, mixt__need(name)))
        return (mixt_value){0};
    snprintf(full, sizeof full, "%s.%s", name, what);
    return find(b, full, false);
}

MIXT_PLAY(mixt_input_lengths, out[0] = mixt_input_lengths(b, c->name))
mixt_value mixt_input_lengths(mixt_builder *b, const char *name)
{
    MIXT_RECORD(b, mixt_input_lengths, .name = name);
    return beside(b, name, "length");
}

MIXT_PLAY(mixt_input_mask, out[0] = mixt_input_mask(b, c->name))
mixt_value mixt_input_mask(mixt_builder *b, const char *name)
{
    MIXT_RECORD(b, mixt_input_mask, .name = name);
    return beside(b, name, "mask");
}

bool mixt_builder_has_loss(const mixt_builder *b)
{
    return b->has_loss;
}
