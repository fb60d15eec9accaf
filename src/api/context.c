/* Contexts, models, data sets: making and freeing the public handles. */
#include "api/api.h"

#include "base/threads.h"

#include <stdio.h>
#include <string.h>

mixt_context *mixt_open_with(const mixt_context_options *options)
{
    const char *device = options->device ? options->device : "auto";
    if (strcmp(device, "auto") && strcmp(device, "cpu")) {
        mixt__fail(MIXT_ERROR_DEVICE, "device '%s': this build has 'cpu' only", device);
        return NULL;
    }
    if (options->threads < 0) {
        mixt__fail(MIXT_ERROR_ARGUMENT, "threads %d: must be 0 (all cores) or more", options->threads);
        return NULL;
    }
    mixt_context *context = mixt__alloc(sizeof *context);
    if (!context) {
        mixt__fail(MIXT_ERROR_MEMORY, "no memory for a context");
        return NULL;
    }
    context->backend = &mixt__backend_cpu;
    mixt__threads_set(options->threads);
    return context;
}

void mixt_close(mixt_context *context)
{
    if (!context)
        return;
    for (int64_t i = 0; i < context->trainer_count; i++) { // before the data that their threads read
        mixt__trainer_free(&context->trainers[i]->core);
        mixt__policy_free(&context->trainers[i]->policy);
    }
    for (int64_t i = 0; i < context->data_count; i++)
        mixt_data_close(context->data[i]);
    mixt__free(context->trainers);
    mixt__free(context->data);
    mixt__arena_free(&context->arena);
    mixt__free(context);
}

mixt_status mixt__context_note(mixt_context *context, mixt_status status)
{
    if (status != MIXT_OK && status != MIXT_END && !context->error[0])
        snprintf(context->error, sizeof context->error, "%s", mixt_error_text());
    return status;
}

const char *mixt_error(const mixt_context *context)
{
    return context ? context->error : mixt_error_text();
}

mixt_data *mixt_data_new_with(mixt_context *context, const char *spec, const mixt_data_options *options)
{
    mixt_data *data = NULL;
    if (!context) {
        mixt__fail(MIXT_ERROR_ARGUMENT, "no context: mixt_open failed");
        return NULL;
    }
    if (!mixt__grow((void **)&context->data, &context->data_capacity, context->data_count, sizeof *context->data)) {
        mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a data set"));
        return NULL;
    }
    if (mixt__context_note(context, mixt_data_open_with(spec, options, &data)) == MIXT_OK)
        context->data[context->data_count++] = data;
    return data;
}

mixt_model *mixt_model_new_with(mixt_context *context, mixt_model_fn fn, mixt_loss loss,
                                const mixt_model_options *options)
{
    mixt_model *model = context ? mixt__arena_alloc(&context->arena, sizeof *model) : NULL;
    if (!model) {
        mixt__fail(MIXT_ERROR_MEMORY, "no memory for a model, or no context");
        return NULL;
    }
    model->context = context;
    model->model =
        (mixt__model){.fn = fn, .user = options->user, .loss = loss, .label_smoothing = options->label_smoothing};
    return model;
}
