/* Contexts, models, data sets: making and freeing the public handles. */
#include "api/api.h"

#include "base/env.h"
#include "base/log.h"
#include "base/threads.h"
#include "runtime/candidates.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__device_open(const char *device, const mixt__backend **backend)
{
    *backend = &mixt__backend_cpu;
    const char *from = "device";
    if ((!device || !strcmp(device, "auto")) && *mixt__env_get(MIXT_ENV_DEVICE)) {
        device = mixt__env_get(MIXT_ENV_DEVICE);
        from = "MIXT_DEVICE: device";
    }
    device = device ? device : "auto";
    if (!strcmp(device, "cpu"))
        return MIXT_OK;
    if (!strcmp(device, "cuda")) {
        mixt_status status = mixt__backend_cuda(backend);
        return status == MIXT_OK ? status : mixt__fail_context(status, "%s 'cuda'", from);
    }
    if (strcmp(device, "auto"))
        return mixt__fail(MIXT_ERROR_DEVICE, "%s '%s': must be auto, cpu or cuda", from, device);
    const mixt__backend *cuda;
    if (mixt__backend_gpu(&cuda) == MIXT_OK) {
        *backend = cuda;
        return MIXT_OK;
    }
    MIXT_LOG(PLAN, "on the CPU: %s", mixt_error_text());
    mixt__error_set(""); // not a failure: `mixt info` says why no GPU is used
    return MIXT_OK;
}

mixt_context *mixt_open_with(const mixt_context_options *options)
{
    const mixt__backend *backend;
    options = options ? options : &(mixt_context_options){0};
    if (options->threads < 0) {
        mixt__fail(MIXT_ERROR_ARGUMENT, "threads %d: must be 0 (all cores) or more", options->threads);
        return NULL;
    }
    if (mixt__device_open(options->device, &backend) != MIXT_OK || mixt__candidates_check(backend) != MIXT_OK)
        return NULL;
    mixt_context *context = mixt__alloc(sizeof *context);
    if (!context) {
        mixt__fail(MIXT_ERROR_MEMORY, "no memory for a context");
        return NULL;
    }
    context->backend = backend;
    mixt__threads_set(options->threads);
    return context;
}

void mixt_close(mixt_context *context)
{
    if (!context)
        return;
    for (int64_t i = 0; i < context->trainer_count; i++) { // before the data that their threads read
        mixt__trainer_free(&context->trainers[i]->core);
        mixt_policy_free(context->trainers[i]->policy);
    }
    for (int64_t i = 0; i < context->generator_count; i++) {
        mixt__generator_close(&context->generators[i]->core);
        mixt_policy_free(context->generators[i]->policy);
    }
    for (int64_t i = 0; i < context->data_count; i++)
        mixt_data_close(context->data[i]);
    mixt__free(context->trainers);
    mixt__free(context->generators);
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

mixt_status mixt__need_made_at(const char *function, const void *handle, const char *kind)
{
    return handle ? MIXT_OK
                  : mixt__fail(MIXT_ERROR_ARGUMENT, "%s: no %s: making it failed, see mixt_error(context)", function,
                               kind);
}

const char *mixt_error(const mixt_context *context)
{
    return context ? context->error : mixt_error_text();
}

mixt_data *mixt_data_new_with(mixt_context *context, const char *spec, const mixt_data_options *options)
{
    mixt_data *data = NULL;
    if (!context) {
        mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_data_new: no context: mixt_open failed");
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

static mixt_status check_model(mixt_model_fn fn, mixt_loss loss, const mixt_model_options *options)
{
    if (!fn)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: fn must not be NULL");
    if ((unsigned)loss > MIXT_LOSS_BCE)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: loss %d is none of mixt's", (int)loss);
    if (!(options->label_smoothing >= 0 && options->label_smoothing < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: label_smoothing %g: must be from 0 to below 1",
                          (double)options->label_smoothing);
    return MIXT_OK;
}

mixt_model *mixt_model_new_with(mixt_context *context, mixt_model_fn fn, mixt_loss loss,
                                const mixt_model_options *options)
{
    if (!context) {
        mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: no context: mixt_open failed");
        return NULL;
    }
    options = options ? options : &(mixt_model_options){0};
    if (mixt__context_note(context, check_model(fn, loss, options)) != MIXT_OK)
        return NULL;
    mixt_model *model = mixt__arena_alloc(&context->arena, sizeof *model);
    if (!model) {
        mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a model"));
        return NULL;
    }
    model->context = context;
    model->model =
        (mixt__model){.fn = fn, .user = options->user, .loss = loss, .label_smoothing = options->label_smoothing};
    return model;
}
