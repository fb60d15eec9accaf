/* Contexts, models, data sets: making and freeing the public handles. */
#include "api/api.h"

#include "backend/cpu/discrete.h"
#include "base/env.h"
#include "base/log.h"
#include "base/options.h"
#include "base/signal_at.h"
#include "base/threads.h"
#include "data/data.h"
#include "runtime/candidates.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static _Thread_local mixt__device *assumed;
static _Thread_local bool roughly;

void mixt__device_assume(mixt__device *device)
{
    assumed = device;
}

void mixt__device_open_roughly(bool on)
{
    roughly = on;
}

static mixt_status open_cpu(int threads, mixt__device **device)
{
    bool discrete;
    MIXT_TRY(mixt__signal_check());
    MIXT_TRY(mixt__env_on(MIXT_ENV_DISCRETE, &discrete));
    const mixt__backend *cpu = discrete ? mixt__device_cpu_discrete()->backend : &mixt__backend_cpu;
    return cpu->open(0, threads, device);
}

static mixt_status open_cuda(int number, mixt__device **device)
{
    const mixt__backend *cuda;
    MIXT_TRY(mixt__backend_cuda(&cuda));
    return cuda->open(number, 0, device);
}

bool mixt__device_is_gpu(const char *name, int *number)
{
    char rest;
    *number = 0;
    return !strcmp(name, "cuda") || (!strncmp(name, "cuda:", 5) && isdigit((unsigned char)name[5]) &&
                                     strlen(name) < 8 && sscanf(name + 5, "%2d%c", number, &rest) == 1);
}

static mixt_status open_device(const char *name, int threads, mixt__device **device)
{
    *device = assumed;
    if (assumed)
        return MIXT_OK;
    int number;
    const char *from = "device";
    if ((!name || !strcmp(name, "auto")) && *mixt__env_get(MIXT_ENV_DEVICE)) {
        name = mixt__env_get(MIXT_ENV_DEVICE);
        from = "MIXT_DEVICE: device";
    }
    name = name ? name : "auto";
    if (!strcmp(name, "cpu"))
        return open_cpu(threads, device);
    if (mixt__device_is_gpu(name, &number)) {
        mixt_status status = open_cuda(number, device);
        return status == MIXT_OK ? status : mixt__fail_context(status, "%s '%s'", from, name);
    }
    if (strcmp(name, "auto"))
        return mixt__fail(MIXT_ERROR_DEVICE, "%s '%s': must be auto, cpu, cuda or cuda:N", from, name);
    const mixt__backend *cuda;
    if (mixt__backend_gpu(&cuda) == MIXT_OK && cuda->open(0, 0, device) == MIXT_OK)
        return MIXT_OK;
    MIXT_LOG(PLAN, "on the CPU: %s", mixt_error_text());
    mixt__error_set(""); // not a failure: `mixt info` says why no GPU is used
    return mixt__backend_cpu.open(0, threads, device);
}

mixt_status mixt__device_open(const char *name, int threads, mixt__device **device)
{
    MIXT_TRY(open_device(name, threads, device));
    (*device)->rough = roughly;
    return MIXT_OK;
}

static mixt_status open_on(mixt__device *device, mixt_context **context)
{
    MIXT_TRY(mixt__candidates_check(device));
    mixt_context *made = mixt__alloc(sizeof *made);
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a context");
    made->device = device;
    mixt__handle_add(&made->handle, made, "context", NULL);
    *context = made;
    return MIXT_OK;
}

mixt_status mixt_open_with(const mixt_context_options *given, mixt_context **context)
{
    mixt__device *device;
    mixt_context_options o = MIXT_OPTIONS(mixt_context_options);
    MIXT_TRY(mixt__need(context));
    *context = NULL;
    MIXT_TRY(mixt__options(mixt_context_options, &o, given));
    if (o.threads < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "threads %d: must be 0 (all cores) or more", o.threads);
    MIXT_TRY(mixt__device_open(o.device, o.threads, &device));
    mixt_status status = open_on(device, context);
    if (status != MIXT_OK) {
        mixt__device_close(device);
        return status;
    }
    mixt__team_use(device->team);
    if (!device->team)
        mixt__threads_set(o.threads); // beside a device that has none
    return MIXT_OK;
}

void mixt_close(mixt_context *context)
{
    if (!context || mixt__need_context(context) != MIXT_OK)
        return;
    mixt__handle_remove_owned(context);
    mixt__handle_remove(context);
    for (int64_t i = 0; i < context->trainer_count; i++) { // before the data that their threads read
        mixt__trainer_free(context->trainers[i]->inner);
        mixt_policy_free(context->trainers[i]->policy);
    }
    for (int64_t i = 0; i < context->generator_count; i++) {
        mixt__generator_close(&context->generators[i]->inner);
        mixt_policy_free(context->generators[i]->policy);
    }
    for (int64_t i = 0; i < context->data_count; i++)
        mixt__data_drop(context->data[i]);
    mixt__context_close_builders(context);
    mixt__context_close_files(context);
    mixt__free(context->trainers);
    mixt__free(context->generators);
    mixt__free(context->data);
    mixt__arena_free(&context->arena);
    mixt__device_close(context->device);
    mixt__free(context);
}

mixt_status mixt__context_note(mixt_context *context, mixt_status status)
{
    if (status != MIXT_OK && status != MIXT_END && !context->error[0])
        snprintf(context->error, sizeof context->error, "%s", mixt_error_text());
    return status;
}

/** Length of a function's name as the user writes it: without the _with of those behind a macro. */
static int named(const char *function)
{
    size_t length = strlen(function), tail = strlen("_with");
    return (int)(length > tail && !strcmp(function + length - tail, "_with") ? length - tail : length);
}

mixt_status mixt__need_context_at(const char *function, const mixt_context *context)
{
    if (!context)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%.*s: no context: mixt_open failed", named(function), function);
    return mixt__need_open_at(function, "context", context, "context");
}

const char *mixt_error(const mixt_context *context)
{
    return context && mixt__need_context(context) == MIXT_OK ? context->error : mixt_error_text();
}

mixt_status mixt__context_take_data(mixt_context *context, mixt_data *data)
{
    if (!mixt__grow((void **)&context->data, &context->data_capacity, context->data_count, sizeof *context->data)) {
        mixt_data_close(data);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a data set");
    }
    context->data[context->data_count++] = data;
    mixt__handle_give(data, context);
    return MIXT_OK;
}

mixt_status mixt_data_new_with(mixt_context *context, const char *spec, const mixt_data_options *options,
                               mixt_data **data)
{
    MIXT_TRY(mixt__need(data));
    *data = NULL;
    MIXT_TRY(mixt__need_context(context));
    mixt_status status = mixt_data_open_with(spec, options, data);
    if (status == MIXT_OK)
        status = mixt__context_take_data(context, *data);
    if (status != MIXT_OK)
        *data = NULL;
    return mixt__context_note(context, status);
}

mixt_model *mixt__context_add_model(mixt_context *context, const mixt__model *model)
{
    mixt_model *made = mixt__arena_alloc(&context->arena, sizeof *made);
    if (!made) {
        mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a model"));
        return NULL;
    }
    made->context = context;
    made->model = *model;
    mixt__handle_add(&made->handle, made, "model", context);
    return made;
}

static mixt_status check_model(mixt_model_fn fn, mixt_loss loss, const mixt_model_options *options)
{
    if (!fn)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: fn must not be NULL");
    if ((unsigned)loss > MIXT_LOSS_CUSTOM)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: loss %d is not a loss of mixt", (int)loss);
    if (!(options->label_smoothing >= 0 && options->label_smoothing < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_new: label_smoothing %g: must be from 0 to below 1",
                          (double)options->label_smoothing);
    return MIXT_OK;
}

mixt_status mixt_model_new_with(mixt_context *context, mixt_model_fn fn, mixt_loss loss,
                                const mixt_model_options *options, mixt_model **model)
{
    MIXT_TRY(mixt__need(model));
    *model = NULL;
    MIXT_TRY(mixt__need_context(context));
    mixt_model_options o = MIXT_OPTIONS(mixt_model_options);
    mixt_status status = mixt__options(mixt_model_options, &o, options);
    if (status == MIXT_OK)
        status = check_model(fn, loss, &o);
    MIXT_TRY(mixt__context_note(context, status));
    *model = mixt__context_add_model(
        context, &(mixt__model){.fn = fn, .user = o.user, .loss = loss, .label_smoothing = o.label_smoothing});
    return *model ? MIXT_OK : MIXT_ERROR_MEMORY;
}

/** A text of the caller's in the context's memory; "" for NULL. */
static mixt_status keep_text(mixt_context *context, const char *given, const char **kept)
{
    *kept = mixt__arena_strdup(&context->arena, given ? given : "");
    return *kept ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of layers");
}

static mixt_status take_lora(mixt_model *model, const mixt_lora_options *o)
{
    mixt__lora lora = {.rank = o->rank, .alpha = o->alpha, .dropout = o->dropout, .rslora = o->rslora};
    if (lora.rank < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_model_lora: rank %lld: must be at least 1", (long long)lora.rank);
    MIXT_TRY(mixt__lora_check(&lora));
    MIXT_TRY(keep_text(model->context, o->layers, &lora.layers));
    MIXT_TRY(keep_text(model->context, o->also, &lora.also));
    model->model.lora = lora;
    return MIXT_OK;
}

mixt_status mixt_model_lora(mixt_model *model, const mixt_lora_options *options)
{
    MIXT_TRY(mixt__need_made(model, "model"));
    mixt_lora_options o = MIXT_OPTIONS(mixt_lora_options);
    MIXT_TRY(mixt__context_note(model->context, mixt__options(mixt_lora_options, &o, options)));
    return mixt__context_note(model->context, take_lora(model, &o));
}
