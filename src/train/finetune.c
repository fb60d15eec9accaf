/* Frozen parameters, and settings by group of parameters. */
#include "train/finetune.h"

#include "base/globs.h"
#include "graph/op.h"
#include "train/trainer.h"

#include <string.h>

/** Whether a node writes what may no longer change. */
static bool writes_frozen(const mixt__graph *graph, const mixt__node *node)
{
    for (int k = 0; k < node->in_count; k++) {
        const mixt__value *v = &graph->values[node->in[k]];
        if (mixt__bit(node->op->written_inputs, k) && v->param >= 0 && graph->params[v->param].frozen)
            return true;
    }
    return false;
}

/** Running statistics that are frozen are read only. */
static mixt_status freeze_statistics(mixt__graph *graph)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        mixt__node *node = &graph->nodes[i];
        if (!node->op->freeze || !writes_frozen(graph, node))
            continue;
        void *own = mixt__arena_alloc(&graph->arena, node->op->attrs_size);
        if (!own)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to freeze '%s'", node->layer);
        node->op->freeze(memcpy(own, node->attrs, node->op->attrs_size));
        node->attrs = own;
    }
    return MIXT_OK;
}

/* ---- formats with scales ---- */

/** Whether a node reads an input, and its gradient does, as a pair where it is one. */
static bool takes_pair(const mixt__node *node, int input)
{
    return mixt__bit(node->op->pair_inputs, input) && (!node->op->pair_grad || node->op->pair_grad(node->attrs));
}

/** Whether a node is the product that makes the outputs, which stays in 16 bits where weights have 4. */
static bool is_head(const mixt__graph *graph, const mixt__node *node)
{
    int32_t value = graph->logits;
    while (value && graph->values[value].producer >= 0) {
        const mixt__node *n = &graph->nodes[graph->values[value].producer];
        if (n->op->matrix_work)
            return n == node;
        value = n->in_count && !n->teacher ? n->in[0] : 0;
    }
    return false;
}

/** Whether a format can hold what a node reads. */
static bool fits(const mixt__graph *graph, const mixt__node *node, const mixt__param *param, mixt_dtype format)
{
    mixt__nf4_matrix matrix = mixt__param_matrix(param);
    return format != MIXT_DTYPE_NF4 || (node->op->matrix_work && !is_head(graph, node) && mixt__nf4_fits(&matrix));
}

/** Sets the format of frozen matrices with a reader that takes a pair, or with one that does not. */
static void set_readers(mixt__graph *graph, bool takes, mixt_dtype wanted, mixt_dtype format)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++) {
            const mixt__value *v = &graph->values[graph->nodes[i].in[k]];
            mixt__param *p = v->role == MIXT_ROLE_PARAM ? &graph->params[v->param] : NULL;
            if (!p || !p->frozen || p->teacher || p->shape.rank != 2)
                continue;
            bool may = takes_pair(&graph->nodes[i], k) && fits(graph, &graph->nodes[i], p, wanted);
            if (may == takes)
                p->frozen_in = format;
        }
}

/** Frozen matrices that are read as pairs alone are kept in a format. @return how many */
static int64_t keep_in(mixt__graph *graph, mixt_dtype format)
{
    int64_t kept = 0;
    set_readers(graph, true, format, format);
    set_readers(graph, false, format, MIXT_DTYPE_NONE);
    for (int64_t i = 0; i < graph->param_count; i++)
        kept += graph->params[i].frozen_in != MIXT_DTYPE_NONE;
    return kept;
}

static bool has_adapters(const mixt__graph *graph)
{
    for (int64_t i = 0; i < graph->param_count; i++)
        if (graph->params[i].adapter)
            return true;
    return false;
}

/** Frozen parameters have been marked. */
static mixt_status keep_frozen(mixt__graph *graph, mixt_dtype format)
{
    if (format == MIXT_DTYPE_NF4 && !keep_in(graph, format))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "frozen=nf4 is for weights of linear layers whose inputs are a multiple of %d: none of the "
                          "frozen ones is such",
                          MIXT_NF4_BLOCK);
    if (format != MIXT_DTYPE_NONE && !keep_in(graph, format))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "frozen=%s is for weights of linear layers and embeddings: freeze names none of them",
                          mixt__format_of(format)->frozen);
    return freeze_statistics(graph);
}

static mixt_status freeze(mixt__graph *graph, mixt__globs *globs, mixt_dtype format)
{
    int64_t left = 0;
    for (int64_t i = 0; i < graph->param_count; i++) {
        mixt__param *p = &graph->params[i];
        if (p->teacher)
            continue;
        p->frozen = p->constant || mixt__globs_find(globs, p->name) != NULL;
        left += p->trainable && !p->frozen;
    }
    MIXT_TRY(mixt__globs_check(globs, "freeze", ""));
    if (!left)
        return mixt__fail(MIXT_ERROR_CONFIG, "freeze leaves no parameter to train");
    return keep_frozen(graph, format);
}

/** Of a model with adapters all else is frozen, but for what is trained beside. */
static mixt_status freeze_base(mixt__graph *graph, const char *list, mixt_dtype format)
{
    if (list && *list)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "freeze '%s': a model with adapters (lora.rank) is frozen without it, and lora.also names "
                          "what is trained beside them",
                          list);
    for (int64_t i = 0; i < graph->param_count; i++) {
        mixt__param *p = &graph->params[i];
        p->frozen = p->teacher || !(p->adapter || p->beside);
    }
    return keep_frozen(graph, format);
}

mixt_status mixt__freeze(mixt__graph *graph, const char *list, mixt_dtype format)
{
    mixt__globs globs;
    if (has_adapters(graph))
        return freeze_base(graph, list, format);
    if (format == MIXT_DTYPE_NF4)
        return mixt__fail(MIXT_ERROR_CONFIG, "frozen=nf4 is for what stands below adapters: say lora.rank too");
    if ((!list || !*list) && format != MIXT_DTYPE_NONE)
        return mixt__fail(MIXT_ERROR_CONFIG, "frozen=%s says how frozen parameters are kept, and freeze names none",
                          mixt__format_of(format)->frozen);
    if (!list || !*list)
        return MIXT_OK;
    MIXT_TRY(mixt__globs_parse(&globs, list, false, "freeze"));
    mixt_status status = freeze(graph, &globs, format);
    mixt__globs_free(&globs);
    return status;
}

mixt_status mixt__adapters_check(const mixt__graph *graph)
{
    for (int32_t i = 0; i < graph->param_count; i++) {
        const mixt__param *p = &graph->params[i];
        if ((p->adapter || p->beside) && p->trainable && mixt__trainer_last_writer(graph, i) < 0)
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "'%s' gets no gradient: the loss does not depend on its layer. Name other layers "
                              "(lora.layers, lora.also)",
                              p->name);
    }
    return MIXT_OK;
}

mixt_status mixt__groups_apply(mixt__params *params, const char *lr_groups, const char *decay_groups)
{
    mixt__globs rates, decays;
    MIXT_TRY(mixt__globs_parse(&rates, lr_groups, true, "lr_groups"));
    mixt_status status = mixt__globs_parse(&decays, decay_groups, true, "decay_groups");
    for (int64_t s = 0; status == MIXT_OK && s < params->segment_count; s++) {
        mixt__segment *segment = &params->segments[s];
        const mixt__param *p = &params->table[segment->param];
        const mixt__glob *rate = mixt__globs_find(&rates, p->name);
        const mixt__glob *decay = p->decay ? mixt__globs_find(&decays, p->name) : NULL;
        if (rate)
            segment->lr_scale = (float)rate->value;
        if (decay)
            segment->weight_decay = (float)decay->value;
    }
    if (status == MIXT_OK)
        status = mixt__globs_check(&rates, "lr_groups", "");
    if (status == MIXT_OK)
        status = mixt__globs_check(&decays, "decay_groups", "with weight decay ");
    mixt__globs_free(&rates);
    mixt__globs_free(&decays);
    return status;
}

mixt_status mixt__trainer_begin_with(mixt__params *p, const mixt__model *model)
{
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < p->count; i++) {
        bool given = false;
        float *values = mixt__alloc_uninit((size_t)p->table[i].count * sizeof *values);
        status = values ? model->begin(model->begin_user, &p->table[i], values, &given)
                        : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the first values of '%s'", p->table[i].name);
        if (status == MIXT_OK && given)
            status = mixt__params_set(p, (int32_t)i, values);
        mixt__free(values);
    }
    return status == MIXT_OK ? mixt__params_refresh_copies(p) : status;
}
