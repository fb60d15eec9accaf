/* Adapters put into a graph: which layers get one, the nodes of each, names for messages. */
#include "model/lora.h"

#include "base/globs.h"
#include "graph/builder.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 1500 }; // bytes of a list of names in a message

typedef struct adapting {
    mixt_builder *b;
    const mixt__lora *lora;
    mixt__globs layers, also;
    bool all;         // linear layers but the head
    int64_t head;     // the node that makes the outputs; -1: none
    int64_t nodes;    // of the model as it was built
    int64_t *anchors; // of the nodes that were added
    int64_t anchor_count, anchor_capacity;
    int64_t adapted;
} adapting;

float mixt__lora_scale(const mixt__lora *lora)
{
    float alpha = lora->alpha > 0 ? lora->alpha : 2 * (float)lora->rank;
    return alpha / (lora->rslora ? sqrtf((float)lora->rank) : (float)lora->rank);
}

mixt_status mixt__lora_check(const mixt__lora *lora)
{
    if (lora->rank < 0 || lora->rank > 65536)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "lora.rank %lld: must be from 1 to 65536, or 0 for no adapters",
                          (long long)lora->rank);
    if (!(lora->alpha >= 0) || !isfinite(lora->alpha))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "lora.alpha %g: must be finite and above 0, or 0 for twice the rank",
                          (double)lora->alpha);
    if (!(lora->dropout >= 0 && lora->dropout < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "lora.dropout %g: must be from 0 to below 1", (double)lora->dropout);
    if (!lora->rank && ((lora->layers && *lora->layers) || (lora->also && *lora->also) || lora->alpha > 0 ||
                        lora->dropout > 0 || lora->rslora))
        return mixt__fail(MIXT_ERROR_CONFIG, "adapters are described, but lora.rank is 0: say it, as in lora.rank=16");
    return MIXT_OK;
}

/* ---- names ---- */

/** The name of a layer: its weight's without ".weight". */
static void layer_name(const mixt__param *weight, char name[MIXT_SCOPE_SIZE])
{
    snprintf(name, MIXT_SCOPE_SIZE, "%s", weight->name);
    char *end = strrchr(name, '.');
    if (end && !strcmp(end, ".weight"))
        *end = '\0';
}

/** Adds a name to a list once, numbers in it as '*'. */
static void list_name(char list[NAMES], const char *name)
{
    char general[MIXT_SCOPE_SIZE + 8];
    size_t used = 0;
    for (const char *c = name; *c && used + 1 < sizeof general; c++) {
        bool begins = c == name || c[-1] == '.';
        if (begins && isdigit((unsigned char)*c) && strchr(c, '.')) {
            general[used++] = '*';
            while (isdigit((unsigned char)c[1]))
                c++;
        } else {
            general[used++] = *c;
        }
    }
    general[used] = '\0';
    for (const char *at = strstr(list, general); at; at = strstr(at + 1, general)) {
        char after = at[used];
        if ((at == list || at[-1] == ' ') && (after == ',' || !after))
            return;
    }
    size_t length = strlen(list);
    if (length + used + 3 < NAMES)
        snprintf(list + length, NAMES - length, "%s%s", length ? ", " : "", general);
}

/** The weight that a node multiplies by as a linear layer does; NULL: it is none. */
static const mixt__param *weight_of(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__matmul_attrs *at = node->attrs;
    if (node->op != &mixt__op_matmul || at->trans_a || !at->trans_b)
        return NULL;
    const mixt__value *w = &graph->values[node->in[1]];
    return w->role == MIXT_ROLE_PARAM && w->shape.rank == 2 ? &graph->params[w->param] : NULL;
}

static mixt_status no_layer(const adapting *a, const char *pattern)
{
    char list[NAMES] = "", name[MIXT_SCOPE_SIZE], part[MIXT_SCOPE_SIZE + 16];
    const mixt__graph *graph = a->b->graph;
    for (int64_t i = 0; i < a->nodes; i++) {
        const mixt__param *weight = weight_of(graph, &graph->nodes[i]);
        if (!weight)
            continue;
        layer_name(weight, name);
        for (int k = 0; k < weight->part_count; k++) {
            snprintf(part, sizeof part, "%s.%d", name, k);
            list_name(list, part);
        }
        if (!weight->part_count)
            list_name(list, name);
    }
    return *list ? mixt__fail(MIXT_ERROR_CONFIG,
                              "lora.layers: '%s' matches no linear layer of this model, which has %s", pattern, list)
                 : mixt__fail(MIXT_ERROR_CONFIG, "lora: this model has no linear layer");
}

static mixt_status no_parameter(const adapting *a, const char *pattern)
{
    char list[NAMES] = "";
    for (int64_t i = 0; i < a->b->graph->param_count; i++)
        if (!a->b->graph->params[i].adapter)
            list_name(list, a->b->graph->params[i].name);
    return mixt__fail(MIXT_ERROR_CONFIG, "lora.also: '%s' matches no parameter of this model, which has %s", pattern,
                      list);
}

/* ---- which layers ---- */

/** Whether a node's outputs are those of its first input, seen otherwise: moved, computed element by element, or scored
 *  row by row and added up. */
static bool follows(const mixt__node *node)
{
    return node->op->view || node->op == &mixt__op_pointwise || node->op == &mixt__op_reduce ||
           node->op == &mixt__op_cross_entropy_rows;
}

/** The node whose products are the outputs; -1: none. */
static int64_t find_head(const mixt__graph *graph, int32_t value)
{
    while (value && graph->values[value].producer >= 0) {
        const mixt__node *node = &graph->nodes[graph->values[value].producer];
        if (node->op == &mixt__op_matmul)
            return graph->values[value].producer;
        value = node->in_count && follows(node) ? node->in[0] : 0;
    }
    return -1;
}

static mixt_status open(adapting *a, mixt_value logits)
{
    const char *layers = a->lora->layers && *a->lora->layers ? a->lora->layers : "all-linear";
    MIXT_TRY(mixt__globs_parse(&a->layers, layers, false, "lora.layers"));
    MIXT_TRY(mixt__globs_parse(&a->also, a->lora->also, false, "lora.also"));
    for (int64_t i = 0; i < a->layers.count; i++)
        a->all |= !strcmp(a->layers.items[i].pattern, "all-linear");
    a->nodes = a->b->graph->node_count;
    a->head = find_head(a->b->graph, logits.id);
    return MIXT_OK;
}

/** Which parts of a layer get an adapter, as bits; of a layer without parts bit 0 stands for it. */
static unsigned selected(adapting *a, int64_t node, const mixt__param *weight)
{
    unsigned bits = 0;
    char name[MIXT_SCOPE_SIZE], part[MIXT_SCOPE_SIZE + 16];
    bool all = a->all && node != a->head;
    layer_name(weight, name);
    for (int k = 0; k < weight->part_count; k++) {
        snprintf(part, sizeof part, "%s.%d", name, k);
        bits |= (unsigned)(mixt__globs_find(&a->layers, part) || all) << k;
    }
    if (!weight->part_count)
        bits = mixt__globs_find(&a->layers, name) || all;
    return bits;
}

/* ---- the nodes of one ---- */

/** A parameter of an adapter in the scope that is open; the one that is there where two layers share a weight. */
static mixt_value adapter_param(mixt_builder *b, const char *name, int64_t rows, int64_t columns, bool drawn)
{
    const char *path = mixt__builder_path(b, name);
    for (int64_t i = 0; i < b->graph->param_count; i++)
        if (!strcmp(b->graph->params[i].name, path))
            return (mixt_value){mixt__graph_param_value(b->graph, (int32_t)i, MIXT_DTYPE_FP32)};
    mixt__param p = {.shape = {2, {rows, columns}}, .trainable = true, .decay = true, .adapter = true};
    p.init = drawn ? MIXT_INIT_UNIFORM : MIXT_INIT_ZERO;
    p.init_scale = drawn ? 1.0f / sqrtf((float)columns) : 0; // Kaiming, uniform, a = sqrt(5)
    return mixt__builder_param(b, name, NULL, &p);
}

/** low (…, rank) · B^T, scaled. */
static mixt_value product(const adapting *a, mixt_value low, int64_t rows, const char *name)
{
    mixt_value weight = adapter_param(a->b, name, rows, a->lora->rank, false);
    return mixt_matmul(a->b, low, weight, .trans_b = true, .alpha = mixt__lora_scale(a->lora));
}

/** Several layers side by side: each part of the outputs gets what its adapter adds. */
static mixt_value add_parts(const adapting *a, const mixt__param *weight, unsigned bits, mixt_value low, mixt_value dst)
{
    mixt_value lows[MIXT_PARTS_MAX], parts[MIXT_PARTS_MAX];
    int64_t ranks[MIXT_PARTS_MAX];
    int count = __builtin_popcount(bits), next = 0;
    for (int k = 0; k < count; k++)
        ranks[k] = a->lora->rank;
    if (count > 1)
        mixt_split_at(a->b, low, count, ranks, lows);
    else
        lows[0] = low;
    mixt_split_at(a->b, dst, weight->part_count, weight->parts, parts);
    for (int k = 0; k < weight->part_count; k++) {
        char name[32];
        snprintf(name, sizeof name, MIXT_LORA_B ".%d", k);
        if (bits >> k & 1)
            parts[k] = mixt_add(a->b, parts[k], product(a, lows[next++], weight->parts[k], name));
    }
    return mixt_concat(a->b, parts, weight->part_count, -1);
}

/** Layers behind a node read another value in place of its own. */
static void replace(adapting *a, int64_t node, mixt_value by, mixt_value *logits)
{
    mixt__graph *graph = a->b->graph;
    int32_t old = graph->nodes[node].out[0];
    for (int64_t i = node + 1; i < a->nodes; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            if (graph->nodes[i].in[k] == old)
                graph->nodes[i].in[k] = by.id;
    if (logits->id == old)
        logits->id = by.id;
}

static mixt_status adapt(adapting *a, int64_t node, unsigned bits, mixt_value *logits)
{
    mixt_builder *b = a->b;
    mixt__graph *graph = b->graph;
    const mixt__param weight = *weight_of(graph, &graph->nodes[node]); // a copy: parameters are added
    mixt_value x = {graph->nodes[node].in[0]}, dst = {graph->nodes[node].out[0]};
    char name[MIXT_SCOPE_SIZE];
    layer_name(&weight, name);
    mixt_scope_push(b, name);
    mixt_value down =
        adapter_param(b, MIXT_LORA_A, a->lora->rank * __builtin_popcount(bits), weight.shape.dims[1], true);
    mixt_value low = mixt_matmul(b, mixt_dropout(b, x, a->lora->dropout), down, .trans_b = true);
    if (weight.part_count)
        dst = add_parts(a, &weight, bits, low, dst);
    else
        dst = mixt_add(b, dst, product(a, low, weight.shape.dims[0], MIXT_LORA_B));
    mixt_scope_pop(b);
    MIXT_TRY(mixt__builder_finish(b));
    replace(a, node, dst, logits);
    for (int64_t i = a->nodes + a->anchor_count; i < graph->node_count; i++) {
        if (!mixt__grow((void **)&a->anchors, &a->anchor_capacity, a->anchor_count, sizeof *a->anchors))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for adapters");
        a->anchors[a->anchor_count++] = node;
    }
    a->adapted++;
    return MIXT_OK;
}

/** What is trained beside the adapters. */
static mixt_status mark_beside(adapting *a)
{
    mixt__graph *graph = a->b->graph;
    char below[MIXT_SCOPE_SIZE + 16];
    for (int64_t i = 0; i < graph->param_count; i++) {
        mixt__param *p = &graph->params[i];
        p->beside = !p->adapter && mixt__globs_find(&a->also, p->name);
        if (!p->beside)
            continue;
        layer_name(p, below);
        strcat(below, "." MIXT_LORA_A);
        for (int64_t k = 0; k < graph->param_count; k++)
            if (p->shape.rank == 2 && !strcmp(graph->params[k].name, below))
                return mixt__fail(MIXT_ERROR_CONFIG,
                                  "lora.also: '%s' has an adapter, which trains it: name other parameters, or leave "
                                  "its layer out of lora.layers",
                                  p->name);
    }
    for (int64_t i = 0; i < a->also.count; i++)
        if (!a->also.items[i].used)
            return no_parameter(a, a->also.items[i].pattern);
    return MIXT_OK;
}

static mixt_status apply(adapting *a, mixt_value *logits)
{
    const mixt__graph *graph = a->b->graph;
    MIXT_TRY(open(a, *logits));
    for (int64_t i = 0; i < a->nodes; i++) {
        const mixt__param *weight = weight_of(graph, &graph->nodes[i]);
        unsigned bits = weight ? selected(a, i, weight) : 0;
        if (bits)
            MIXT_TRY(adapt(a, i, bits, logits));
    }
    for (int64_t i = 0; i < a->layers.count; i++)
        if (!a->layers.items[i].used && strcmp(a->layers.items[i].pattern, "all-linear"))
            return no_layer(a, a->layers.items[i].pattern);
    if (!a->adapted)
        return no_layer(a, "all-linear");
    MIXT_TRY(mark_beside(a));
    return mixt__graph_insert(a->b->graph, a->nodes, a->anchors);
}

mixt_status mixt__lora_apply(mixt_builder *b, const mixt__lora *lora, mixt_value *logits)
{
    adapting a = {.b = b, .lora = lora};
    if (!lora->rank)
        return MIXT_OK;
    mixt_status status = mixt__lora_check(lora);
    if (status == MIXT_OK)
        status = apply(&a, logits);
    mixt__globs_free(&a.layers);
    mixt__globs_free(&a.also);
    mixt__free(a.anchors);
    return status;
}
