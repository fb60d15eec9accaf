/* Which layers are decided together: those that would pay for each other's format.
 *
 * A layer decides where it holds an op whose format the policy chooses: matrix work, embeddings. Two such layers are
 * one group where, in the compiled step,
 *   - they read the same value: one cast serves both, and with two formats there are two of them;
 *   - one reads the other's output as a view (attention reads q, k and v out of one product): with two formats the
 *     view becomes a copy, and so does its gradient;
 *   - one node reads the outputs of both: with two formats it cannot be fused without a cast.
 * Layers of the same name are one layer.
 */
#include "choose/search.h"

#include "graph/op.h"
#include "ops/ops.h"
#include "store/json.h"

#include <string.h>

/** Layers found so far, and what they are joined with: a forest whose roots are groups. */
typedef struct finder {
    const mixt__graph *graph;
    const char **layers;
    double *flops;
    int64_t *parent, count;
    int64_t *decides; // by node: the layer that it is of; -1: it decides nothing
} finder;

static int64_t root_of(const finder *f, int64_t layer)
{
    while (f->parent[layer] != layer)
        layer = f->parent[layer];
    return layer;
}

/** The earlier layer becomes the root: groups keep the order in which they run. */
static void join(finder *f, int64_t a, int64_t b)
{
    a = root_of(f, a);
    b = root_of(f, b);
    f->parent[a < b ? b : a] = a < b ? a : b;
}

static int64_t layer_index(const finder *f, const char *layer)
{
    for (int64_t i = 0; i < f->count; i++)
        if (!strcmp(f->layers[i], layer))
            return i;
    return -1;
}

/** Whether the policy's format is what this node computes in, rather than what its inputs bring. */
static bool is_decider(const mixt__node *node)
{
    return node->op == &mixt__op_head_step || (!node->backward && node->op->precision == MIXT_CLASS_LOW);
}

static void find_layers(finder *f)
{
    for (int64_t i = 0; i < f->graph->node_count; i++) {
        const mixt__node *node = &f->graph->nodes[i];
        f->decides[i] = -1;
        if (!is_decider(node))
            continue;
        f->decides[i] = layer_index(f, node->layer);
        if (f->decides[i] >= 0)
            continue;
        f->decides[i] = f->count;
        f->parent[f->count] = f->count;
        f->layers[f->count++] = node->layer;
    }
    for (int64_t i = 0; i < f->graph->node_count; i++) {
        const mixt__node *node = &f->graph->nodes[i];
        int64_t layer = node->op->matrix_work ? layer_index(f, node->layer) : -1;
        if (layer >= 0)
            f->flops[layer] += mixt__node_flops(f->graph, node);
    }
}

/** The value that a view is taken of; *viewed says that there was one between. */
static int32_t behind_views(const mixt__graph *graph, int32_t value, bool *viewed)
{
    while (graph->values[value].producer >= 0) {
        const mixt__node *node = &graph->nodes[graph->values[value].producer];
        if (!node->op->view || node->in_count != 1)
            break;
        *viewed = true;
        value = node->in[0];
    }
    return value;
}

static bool is_activation(const mixt__graph *graph, int32_t value)
{
    const mixt__value *v = &graph->values[value];
    return (v->role == MIXT_ROLE_ACTIVATION || v->role == MIXT_ROLE_INPUT) && mixt_dtype_is_float(v->dtype);
}

/** Joins what the inputs of one forward node tell. @param reader by value: the first layer that reads it, from 1 */
static void join_by(finder *f, int64_t index, int64_t *reader)
{
    const mixt__node *node = &f->graph->nodes[index];
    int64_t maker = -1; // of an input before
    for (int i = 0; i < node->in_count; i++) {
        bool viewed = false;
        int32_t value = behind_views(f->graph, node->in[i], &viewed);
        if (!is_activation(f->graph, value))
            continue;
        int32_t producer = f->graph->values[value].producer;
        int64_t made_by = producer >= 0 ? f->decides[producer] : -1;
        if (f->decides[index] >= 0) {
            if (made_by >= 0 && viewed)
                join(f, made_by, f->decides[index]);
            if (reader[value])
                join(f, reader[value] - 1, f->decides[index]);
            reader[value] = f->decides[index] + 1;
        } else if (made_by >= 0) {
            if (maker >= 0)
                join(f, maker, made_by);
            maker = made_by;
        }
    }
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for groups of layers");
}

/** The layers of one root; names are copied. */
static mixt_status collect_group(const finder *f, int64_t root, mixt__arena *arena, mixt__search_group *group)
{
    group->layers = mixt__arena_alloc(arena, (size_t)f->count * sizeof *group->layers);
    for (int64_t i = root; group->layers && i < f->count; i++) {
        if (root_of(f, i) != root)
            continue;
        group->flops += f->flops[i];
        group->layers[group->count] = mixt__arena_strdup(arena, f->layers[i]);
        if (!group->layers[group->count++])
            return no_memory();
    }
    return group->layers ? MIXT_OK : no_memory();
}

static mixt_status collect(const finder *f, mixt__search_groups *groups)
{
    groups->items = mixt__arena_alloc(&groups->arena, (size_t)(f->count + 1) * sizeof *groups->items);
    if (!groups->items)
        return no_memory();
    for (int64_t root = 0; root < f->count; root++) {
        if (root_of(f, root) != root)
            continue;
        MIXT_TRY(collect_group(f, root, &groups->arena, &groups->items[groups->count]));
        groups->flops += groups->items[groups->count++].flops;
    }
    return MIXT_OK;
}

mixt_status mixt__search_groups_find(const mixt__graph *graph, mixt__search_groups *groups)
{
    size_t nodes = (size_t)graph->node_count + 1;
    finder f = {.graph = graph};
    f.layers = mixt__alloc(nodes * sizeof *f.layers);
    f.flops = mixt__alloc(nodes * sizeof *f.flops);
    f.parent = mixt__alloc(nodes * sizeof *f.parent);
    f.decides = mixt__alloc(nodes * sizeof *f.decides);
    int64_t *reader = mixt__alloc((size_t)(graph->value_count + 1) * sizeof *reader);
    mixt_status status;
    *groups = (mixt__search_groups){0};
    if (f.layers && f.flops && f.parent && f.decides && reader) {
        find_layers(&f);
        for (int64_t i = 0; i < graph->node_count; i++)
            if (f.decides[i] >= 0 || !graph->nodes[i].backward)
                join_by(&f, i, reader);
        status = collect(&f, groups);
    } else {
        status = no_memory();
    }
    mixt__free((void *)f.layers);
    mixt__free(f.flops);
    mixt__free(f.parent);
    mixt__free(f.decides);
    mixt__free(reader);
    return status;
}

void mixt__search_groups_free(mixt__search_groups *groups)
{
    mixt__arena_free(&groups->arena);
    *groups = (mixt__search_groups){0};
}

json_t *mixt__search_groups_json(const mixt__search_groups *groups)
{
    json_t *list = json_array();
    for (int64_t g = 0; g < groups->count; g++) {
        json_t *names = json_array();
        for (int64_t i = 0; i < groups->items[g].count; i++)
            mixt__json_add(names, mixt__json_string(groups->items[g].layers[i]));
        mixt__json_add(list, names);
    }
    return list;
}
