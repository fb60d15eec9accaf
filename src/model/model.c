/* Runs the model function on a fresh builder and puts the loss on top. */
#include "model/model.h"

#include "graph/builder.h"
#include "ops/attrs.h"
#include "ops/ops.h"

static mixt_status add_loss(mixt_builder *b, const mixt__model *model, mixt_value logits)
{
    static const mixt__op *const ops[] = {
        [MIXT_LOSS_CROSS_ENTROPY] = &mixt__op_cross_entropy,
        [MIXT_LOSS_MSE] = &mixt__op_mse,
        [MIXT_LOSS_BCE] = &mixt__op_bce,
    };
    mixt__loss_attrs at = {.smoothing = model->label_smoothing, .classes = model->classes};
    mixt_value out[MIXT_MAX_OUTPUTS];
    mixt_value in[2] = {logits, {b->graph->target}};
    if (!mixt__builder_node_outputs(b, ops[model->loss], "loss", &at, in, 2, out))
        return mixt__builder_finish(b);
    b->graph->logits = logits.id;
    b->graph->of_values = model->loss != MIXT_LOSS_CROSS_ENTROPY;
    b->graph->loss = out[0].id;
    b->graph->metrics = out[1].id;
    return MIXT_OK;
}

/** The layers over graph->input; *logits is what the model function returns. */
static mixt_status build_layers(mixt_builder *b, const mixt__model *model, mixt__graph *graph, mixt_value *logits)
{
    mixt__builder_start(b, graph, model->user);
    *logits = model->fn(b, (mixt_value){graph->input});
    MIXT_TRY(mixt__builder_finish(b));
    if (b->scope_depth)
        return mixt__fail(MIXT_ERROR_STATE, "the model leaves scope '%s' open: a mixt_scope_pop is missing", b->scope);
    return MIXT_OK;
}

static mixt_status build(const mixt__model *model, const mixt__batch_spec *spec, mixt__graph *graph)
{
    mixt_builder b;
    mixt_value logits;
    MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_INPUT, spec->input_dtype, &spec->input, "input", &graph->input));
    MIXT_TRY(build_layers(&b, model, graph, &logits));
    MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_TARGET, spec->target_dtype, &spec->target, "target", &graph->target));
    return add_loss(&b, model, logits);
}

static mixt_status build_outputs(const mixt__model *model, mixt_dtype dtype, const mixt__shape *input,
                                 int64_t cache_rows, mixt__graph *graph)
{
    mixt_builder b;
    mixt_value logits;
    MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_INPUT, dtype, input, "input", &graph->input));
    if (cache_rows) {
        mixt__shape places = {1, {input->dims[input->rank - 1]}};
        MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_INPUT, MIXT_DTYPE_INT32, &places, "positions", &graph->positions));
        graph->cache_rows = cache_rows;
    }
    MIXT_TRY(build_layers(&b, model, graph, &logits));
    logits = mixt_cast(&b, logits, MIXT_DTYPE_FP32); // a value of its own: never a view, never an input
    MIXT_TRY(mixt__builder_finish(&b));
    graph->logits = logits.id;
    graph->of_values = model->loss != MIXT_LOSS_CROSS_ENTROPY;
    graph->values[logits.id].keep = true;
    return MIXT_OK;
}

/** Frees a graph whose building failed. */
static mixt_status settle(mixt_status status, mixt__graph **graph)
{
    if (status != MIXT_OK) {
        mixt__graph_free(*graph);
        *graph = NULL;
    }
    return status;
}

mixt_status mixt__model_build(const mixt__model *model, const mixt__batch_spec *spec, bool training,
                              mixt__graph **graph)
{
    MIXT_TRY(mixt__graph_new(graph));
    (*graph)->training = training;
    return settle(build(model, spec, *graph), graph);
}

mixt_status mixt__model_build_outputs(const mixt__model *model, mixt_dtype dtype, const mixt__shape *input,
                                      int64_t cache_rows, mixt__graph **graph)
{
    MIXT_TRY(mixt__graph_new(graph));
    return settle(build_outputs(model, dtype, input, cache_rows, *graph), graph);
}
