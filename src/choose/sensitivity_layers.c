/* The layers of a model that a policy can type, and which of them belong together.
 *
 * Two layers share a cast where the matrix work of both reads one value: lowered alone, each would need that cast for
 * itself. A layer without matrix work that alone reads what another makes is fused into it. Such layers are one group.
 */
#include "choose/sensitivity.h"

#include "passes/passes.h"
#include "train/finetune.h"

#include <string.h>

int64_t mixt__sense_layer_find(const mixt__sense_layers *l, const char *name)
{
    for (int64_t i = 0; i < l->count; i++)
        if (!strcmp(l->layers[i].name, name))
            return i;
    return -1;
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the list of layers");
}

static mixt_status add(mixt__sense_layers *l, const char *name)
{
    if (!name[0] || mixt__sense_layer_find(l, name) >= 0)
        return MIXT_OK;
    if (!mixt__grow((void **)&l->layers, &l->capacity, l->count, sizeof *l->layers))
        return no_memory();
    mixt__sense_layer *layer = &l->layers[l->count];
    *layer = (mixt__sense_layer){.name = mixt__arena_strdup(&l->arena, name), .group = l->count};
    l->count++;
    return layer->name ? MIXT_OK : no_memory();
}

/** Whether the format of a node of the graph that is all low shows in what it makes. */
static bool is_low(const mixt__graph *graph, const mixt__node *node)
{
    if (node->op->view)
        return false;
    for (int o = 0; o < node->out_count; o++)
        if (mixt__format_low(graph->values[node->out[o]].dtype))
            return true;
    return mixt__format_low(node->arithmetic);
}

static int64_t top(const mixt__sense_layers *l, int64_t i)
{
    while (l->layers[i].group != i)
        i = l->layers[i].group;
    return i;
}

static void join(mixt__sense_layers *l, int64_t a, int64_t b)
{
    a = top(l, a);
    b = top(l, b);
    if (a != b)
        l->layers[a > b ? a : b].group = a > b ? b : a;
}

/** Marks the parameters that the layers' nodes read, and joins layers whose matrix work reads one value. */
static mixt_status read_nodes(mixt__sense_layers *l, const mixt__graph *source, const mixt__params *params)
{
    int64_t *reader = mixt__alloc((size_t)source->value_count * sizeof *reader); // 1 + layer; 0: none
    if (!reader)
        return no_memory();
    for (int64_t i = 0; i < source->node_count; i++) {
        const mixt__node *n = &source->nodes[i];
        int64_t at = mixt__sense_layer_find(l, n->layer);
        for (int k = 0; at >= 0 && k < n->in_count; k++) {
            const mixt__value *v = &source->values[n->in[k]];
            int32_t segment = v->role == MIXT_ROLE_PARAM ? params->segment_of[v->param] : -1;
            if (segment >= 0)
                l->layers[at].own_params = l->layers[at].own[segment] = true;
            if (v->role == MIXT_ROLE_PARAM || !n->op->matrix_work)
                continue;
            if (reader[n->in[k]])
                join(l, reader[n->in[k]] - 1, at);
            reader[n->in[k]] = at + 1;
        }
        if (at >= 0 && n->op->matrix_work) {
            l->layers[at].matrix = true;
            l->layers[at].flops += mixt__node_flops(source, n);
            l->flops += mixt__node_flops(source, n);
        }
    }
    mixt__free(reader);
    return MIXT_OK;
}

/** A layer without matrix work that is the only reader of what another layer makes belongs to it. */
static mixt_status join_fused(mixt__sense_layers *l, const mixt__graph *source)
{
    int32_t *uses = mixt__graph_use_counts(source);
    if (!uses)
        return no_memory();
    for (int64_t i = 0; i < source->node_count; i++) {
        const mixt__node *n = &source->nodes[i];
        int64_t at = mixt__sense_layer_find(l, n->layer);
        for (int k = 0; at >= 0 && !l->layers[at].matrix && k < n->in_count; k++) {
            int32_t producer = source->values[n->in[k]].producer;
            int64_t from = producer >= 0 ? mixt__sense_layer_find(l, source->nodes[producer].layer) : -1;
            if (from >= 0 && from != at && uses[n->in[k]] == 1 && n->op->precision == MIXT_CLASS_FOLLOW)
                join(l, from, at);
        }
    }
    mixt__free(uses);
    return MIXT_OK;
}

static mixt_status describe(mixt__sense_layers *l, const mixt__graph *source, const mixt__params *params)
{
    for (int64_t i = 0; i < l->count; i++) {
        l->layers[i].own = mixt__arena_alloc(&l->arena, (size_t)params->segment_count + 1);
        if (!l->layers[i].own)
            return no_memory();
    }
    MIXT_TRY(read_nodes(l, source, params));
    MIXT_TRY(join_fused(l, source));
    int64_t *members = mixt__alloc((size_t)(l->count + 1) * sizeof *members);
    if (!members)
        return no_memory();
    for (int64_t i = 0; i < l->count; i++)
        members[l->layers[i].group = top(l, i)]++;
    for (int64_t i = 0; i < l->count; i++) {
        mixt__sense_layer *layer = &l->layers[i];
        if (!layer->own_params)
            memset(layer->own, true, (size_t)params->segment_count);
        layer->shown = (mixt_sensitivity_layer){.name = layer->name, .recommend = "fp32"};
        layer->shown.group = members[layer->group] > 1 ? l->layers[layer->group].name : NULL;
        layer->shown.share = l->flops > 0 ? layer->flops / l->flops : 0;
    }
    mixt__free(members);
    return MIXT_OK;
}

/** Those whose nodes a low policy changes. */
static mixt_status list(mixt__sense_layers *l, const mixt__graph *source, const mixt__params *params)
{
    mixt__policy low = mixt__policy_of(mixt__format_lower(0));
    mixt__graph *typed;
    MIXT_TRY(mixt__pass_precision(source, &low, NULL, false, &typed));
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < typed->node_count; i++)
        if (is_low(typed, &typed->nodes[i]))
            status = add(l, typed->nodes[i].layer);
    mixt__graph_free(typed);
    return status == MIXT_OK ? describe(l, source, params) : status;
}

mixt_status mixt__sense_layers_find(const mixt__trainer *t, mixt__sense_layers *l)
{
    mixt__graph *source;
    mixt__model model = *mixt__trainer_model(t);
    model.teacher = NULL; // whose formats nobody asks about
    MIXT_TRY(mixt__model_build(&model, mixt__trainer_spec(t), true, &source));
    const mixt__trainer_settings *s = mixt__trainer_settings_of(t);
    mixt_status status = mixt__freeze(source, s->freeze, s->frozen);
    if (status == MIXT_OK)
        status = list(l, source, mixt__trainer_params(t));
    mixt__graph_free(source);
    if (status == MIXT_OK && !l->count)
        return mixt__fail(MIXT_ERROR_STATE, "this model has no layer whose format a policy can change");
    return status;
}

void mixt__sense_layers_free(mixt__sense_layers *l)
{
    mixt__free(l->layers);
    mixt__arena_free(&l->arena);
    *l = (mixt__sense_layers){0};
}
