/* A model that is built by calls, without a callback: the calls are kept, and made again for each batch. */
#include "api/api.h"

#include "base/options.h"
#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

/** While it is built, values have shapes for this many samples. */
enum { SAMPLES = 2 };

struct mixt__kept_model {
    mixt_builder builder;
    mixt_context *context;
    mixt__tape tape;
    int64_t values;    // of the graph in which calls were made first
    mixt_value output; // in that graph
    mixt__kept_model *next;
};

static mixt__kept_model *kept_of(mixt_builder *b)
{
    return b->user;
}

/** As a model function: x is the first input, which the first call asked for. */
static mixt_value build_again(mixt_builder *b, mixt_value x)
{
    const mixt__kept_model *kept = b->user;
    (void)x;
    return mixt__tape_play(&kept->tape, b, kept->values, kept->output);
}

mixt_status mixt_builder_new(mixt_context *context, mixt_builder **builder)
{
    mixt__graph *graph;
    MIXT_TRY(mixt__need(builder));
    *builder = NULL;
    MIXT_TRY(mixt__need_context(context));
    mixt__kept_model *kept = mixt__arena_alloc(&context->arena, sizeof *kept);
    mixt_status status = kept ? mixt__graph_new(&graph) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to build a model");
    MIXT_TRY(mixt__context_note(context, status));
    graph->training = true; // what training alone does is kept, and left out elsewhere when calls are made again
    mixt__builder_start(&kept->builder, graph, kept);
    kept->builder.has_loss = true;
    kept->builder.tape = &kept->tape;
    kept->tape.arena = &context->arena;
    kept->context = context;
    kept->next = context->building;
    context->building = kept;
    *builder = &kept->builder;
    return MIXT_OK;
}

/** Frees the graph in which calls were made first; the calls stay. */
static void close_graph(mixt__kept_model *kept)
{
    for (mixt__kept_model **k = &kept->context->building; *k; k = &(*k)->next)
        if (*k == kept) {
            *k = kept->next;
            break;
        }
    mixt__graph_free(kept->builder.graph);
    kept->builder.graph = NULL;
}

void mixt__context_close_builders(mixt_context *context)
{
    while (context->building)
        close_graph(context->building);
}

/** Declares an array of a sample. */
static bool add_array(mixt_builder *b, const char *name, bool target, mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__graph *g = b->graph;
    const char *kind = target ? "target" : "input";
    mixt__array a = {.target = target, .dtype = dtype, .shape = {.rank = rank + 1, .dims = {SAMPLES}}};
    if (b->status != MIXT_OK)
        return false;
    if (b->tape == NULL || rank < 0 || rank >= MIXT_MAX_RANK || (rank && !dims) ||
        (dtype != MIXT_DTYPE_FP32 && dtype != MIXT_DTYPE_INT32) || strlen(name) >= sizeof a.name ||
        g->array_count == MIXT_ARRAYS_MAX) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                            "%s '%.40s': a builder of mixt_builder_new takes up to %d, fp32 or int32, of 0 to %d "
                            "dimensions",
                            kind, name, MIXT_ARRAYS_MAX, MIXT_MAX_RANK - 1);
        return false;
    }
    for (int i = 0; i < rank; i++)
        a.shape.dims[i + 1] = dims[i];
    if (!mixt__builder_ok(b, NULL, mixt__shape_check(&a.shape)))
        return false;
    snprintf(a.name, sizeof a.name, "%s", name);
    g->arrays[g->array_count++] = a;
    return true;
}

mixt_value mixt_builder_input(mixt_builder *b, const char *name, mixt_dtype dtype, int rank, const int64_t *dims)
{
    if (!b || !add_array(b, name ? name : "input", false, dtype, rank, dims))
        return (mixt_value){0};
    return mixt_input(b, name);
}

mixt_value mixt_builder_target(mixt_builder *b, const char *name, mixt_dtype dtype, int rank, const int64_t *dims)
{
    if (!b || !add_array(b, name ? name : "target", true, dtype, rank, dims))
        return (mixt_value){0};
    return mixt_target(b, name);
}

static mixt_status check(mixt__kept_model *kept, mixt_value output, const mixt_model_options *given,
                         mixt_model_options *options)
{
    mixt_builder *b = &kept->builder;
    MIXT_TRY(mixt__options(mixt_model_options, options, given));
    if (b->status == MIXT_OK)
        mixt__builder_ready(b, NULL, &output, 1);
    MIXT_TRY(mixt__builder_finish(b));
    if (b->scope_depth)
        return mixt__fail(MIXT_ERROR_STATE, "the model leaves scope '%s' open: a mixt_scope_pop is missing", b->scope);
    kept->values = b->graph->value_count;
    kept->output = output;
    return MIXT_OK;
}

mixt_status mixt_builder_finish(mixt_builder *builder, mixt_value output, mixt_loss loss,
                                const mixt_model_options *options, mixt_model **model)
{
    mixt_model_options own = MIXT_OPTIONS(mixt_model_options);
    MIXT_TRY(mixt__need(model));
    *model = NULL;
    MIXT_TRY(mixt__need(builder));
    if (!builder->tape || !builder->graph)
        return mixt__fail(MIXT_ERROR_STATE, "mixt_builder_finish: not a builder of mixt_builder_new, or finished");
    mixt__kept_model *kept = kept_of(builder);
    mixt_context *context = kept->context;
    mixt_status status = mixt__context_note(context, check(kept, output, options, &own));
    close_graph(kept);
    MIXT_TRY(status);
    own.user = kept;
    return mixt_model_new_with(context, build_again, loss, &own, model);
}

void mixt_builder_free(mixt_builder *builder)
{
    if (builder && builder->tape && builder->graph)
        close_graph(kept_of(builder));
}
