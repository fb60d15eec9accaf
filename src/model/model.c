/* Runs the model function on a fresh builder and puts the loss on top. */
#include "model/model.h"

#include "graph/builder.h"
#include "mixt/loss.h"

/** The loss that was chosen by its name, on the first target. */
static void add_loss(mixt_builder *b, const mixt__model *model, mixt_value logits)
{
    mixt_value target = mixt_target(b, NULL), loss = {0};
    mixt_cross_entropy_options options =
        MIXT_OPTIONS(mixt_cross_entropy_options, .smoothing = model->label_smoothing, .classes = model->classes);
    if (model->target_scale > 0)
        target = mixt_affine(b, target, 1 / model->target_scale, -model->target_mean / model->target_scale);
    if (model->loss == MIXT_LOSS_CROSS_ENTROPY)
        loss = mixt_loss_cross_entropy_with(b, logits, target, &options);
    else
        loss = model->loss == MIXT_LOSS_MSE ? mixt_loss_mse(b, logits, target) : mixt_loss_bce(b, logits, target);
    mixt_loss_add(b, loss, 1);
}

/** The arrays of a batch as the graph's; values of inputs are made at once, those of targets when they are asked for.
 */
static mixt_status take_arrays(mixt__graph *graph, const mixt__batch_spec *spec)
{
    mixt__array a;
    int32_t unused;
    for (int i = 0; mixt__spec_array(spec, i, &a); i++) {
        if (i == MIXT_ARRAYS_MAX)
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a batch of more than %d arrays", MIXT_ARRAYS_MAX);
        a.value = 0;
        graph->arrays[graph->array_count++] = a;
        if (!a.target)
            MIXT_TRY(mixt__graph_array_value(graph, i, &unused));
    }
    graph->input = graph->arrays[0].value;
    return MIXT_OK;
}

/** The layers over graph->input, adapters among them; *logits is what the model function returns. */
static mixt_status build_layers(mixt_builder *b, const mixt__model *model, mixt_value *logits)
{
    *logits = model->fn(b, (mixt_value){b->graph->input});
    MIXT_TRY(mixt__builder_finish(b));
    if (b->scope_depth)
        return mixt__fail(MIXT_ERROR_STATE, "the model leaves scope '%s' open: a mixt_scope_pop is missing", b->scope);
    return mixt__lora_apply(b, &model->lora, logits);
}

static mixt_status build(const mixt__model *model, const mixt__batch_spec *spec, mixt__graph *graph)
{
    mixt_builder b;
    mixt_value logits;
    MIXT_TRY(take_arrays(graph, spec));
    mixt__builder_start(&b, graph, model->user);
    b.has_loss = true;
    MIXT_TRY(build_layers(&b, model, &logits));
    if (model->teacher && graph->training)
        MIXT_TRY(mixt__teacher_build(&b, model, logits));
    else if (model->loss != MIXT_LOSS_CUSTOM)
        add_loss(&b, model, logits);
    else if (mixt__builder_ready(&b, NULL, &logits, 1) && !graph->loss)
        return mixt__fail(MIXT_ERROR_STATE, "the model adds no loss: a model of MIXT_LOSS_CUSTOM calls mixt_loss_add");
    graph->logits = logits.id;
    graph->target = mixt_target(&b, NULL).id;
    return mixt__builder_finish(&b);
}

static mixt_status build_outputs(const mixt__model *model, const mixt__batch_spec *spec, int64_t cache_rows,
                                 mixt__graph *graph)
{
    mixt_builder b;
    mixt_value logits;
    MIXT_TRY(take_arrays(graph, spec));
    if (cache_rows) {
        mixt__shape places = {1, {spec->input.dims[spec->input.rank - 1]}};
        MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_INPUT, MIXT_DTYPE_INT32, &places, "positions", &graph->positions));
        graph->cache_rows = cache_rows;
    }
    mixt__builder_start(&b, graph, model->user);
    MIXT_TRY(build_layers(&b, model, &logits));
    logits = mixt_cast(&b, logits, MIXT_DTYPE_FP32); // a value of its own: never a view, never an input
    if (model->target_scale > 0)
        logits = mixt_affine(&b, logits, model->target_scale, model->target_mean);
    MIXT_TRY(mixt__builder_finish(&b));
    graph->logits = logits.id;
    if (model->loss != MIXT_LOSS_CUSTOM) // else its loss has said so
        graph->of_values = model->loss != MIXT_LOSS_CROSS_ENTROPY;
    graph->values[logits.id].output = true;
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

mixt_status mixt__model_build_outputs(const mixt__model *model, const mixt__batch_spec *spec, int64_t cache_rows,
                                      mixt__graph **graph)
{
    MIXT_TRY(mixt__graph_new(graph));
    return settle(build_outputs(model, spec, cache_rows, *graph), graph);
}
