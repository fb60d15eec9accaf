/* The public trainer: precision by name or file, failures noted in the context, weights to and from files. */
#include "api/api.h"

#include "base/options.h"
#include "machine/machine.h"
#include "num/num.h"
#include "store/safetensors.h"
#include "train/integrity.h"

#include <stdio.h>
#include <string.h>

/** Copies the options, strings included: they are read again when the precision changes. */
static mixt_status take_options(mixt_trainer *t, const mixt_trainer_options *options)
{
    t->options = *options;
    t->options.policy = NULL; // the trainer has its own
    const char **strings[] = {
        &t->options.precision, &t->options.optimizer, &t->options.schedule,     &t->options.settings.loss_scale,
        &t->options.freeze,    &t->options.lr_groups, &t->options.decay_groups, &t->options.faults,
        &t->options.moments,   &t->options.frozen};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (*strings[i]) {
            *strings[i] = mixt__arena_strdup(&t->context->arena, *strings[i]);
            if (!*strings[i])
                return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a trainer");
        }
    return MIXT_OK;
}

/** What a trainer's `precision` asks for; "auto" is chosen for its device. */
static mixt_status choose_policy(const mixt_context *context, const char *precision, const mixt_policy *given,
                                 mixt_policy **policy)
{
    mixt_dtype format;
    char why[MIXT_PICK_TEXT];
    bool automatic = precision && !strcmp(precision, "auto");
    if (automatic)
        MIXT_TRY(mixt__precision_pick(context->device, &format, why));
    return mixt__policy_choose(automatic ? mixt_dtype_name(format) : precision, given, policy);
}

mixt_status mixt__trainer_open(mixt_context *context, const mixt__model *model, const mixt_trainer_options *options,
                               mixt_trainer **trainer)
{
    *trainer = NULL;
    mixt_trainer *t = mixt__arena_alloc(&context->arena, sizeof *t);
    if (!t || !mixt__grow((void **)&context->trainers, &context->trainer_capacity, context->trainer_count,
                          sizeof *context->trainers))
        return mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a trainer"));
    t->context = context;
    mixt__trainer_settings settings;
    mixt_status status = take_options(t, options);
    if (status == MIXT_OK)
        status = choose_policy(context, options->precision, options->policy, &t->policy);
    if (status == MIXT_OK)
        status = mixt__trainer_settings_parse(&t->options, t->policy, &settings);
    t->inner = status == MIXT_OK ? mixt__trainer_new(model, context->device, &settings) : NULL;
    if (status == MIXT_OK && !t->inner)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a trainer");
    if (mixt__context_note(context, status) != MIXT_OK) {
        mixt_policy_free(t->policy);
        return status;
    }
    context->trainers[context->trainer_count++] = t;
    mixt__handle_add(&t->handle, t, "trainer", context);
    *trainer = t;
    return MIXT_OK;
}

void mixt__trainer_close(mixt_trainer *t)
{
    if (!t)
        return;
    mixt_context *context = t->context;
    mixt__handle_remove(t);
    for (int64_t i = 0; i < context->trainer_count; i++)
        if (context->trainers[i] == t)
            context->trainers[i] = context->trainers[--context->trainer_count];
    mixt__trainer_free(t->inner);
    mixt_policy_free(t->policy);
}

mixt_status mixt_trainer_new_with(mixt_model *model, const mixt_trainer_options *options, mixt_trainer **trainer)
{
    MIXT_TRY(mixt__need(trainer));
    *trainer = NULL;
    MIXT_TRY(mixt__need_made(model, "model"));
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options);
    MIXT_TRY(mixt__context_note(model->context, mixt__options(mixt_trainer_options, &o, options)));
    return mixt__trainer_open(model->context, &model->model, &o, trainer);
}

mixt_status mixt_trainer_step(mixt_trainer *t, mixt_data *data, mixt_step *result)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__context_note(t->context, mixt__need_made(data, "data")));
    return mixt__context_note(t->context, mixt__trainer_step(t->inner, data, result));
}

mixt_status mixt_trainer_step_on(mixt_trainer *t, const void *input, const void *target, mixt_step *result)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, input));
    MIXT_TRY(mixt__need_in(t->context, target));
    return mixt__context_note(t->context, mixt__trainer_step_on(t->inner, input, target, false, result));
}

int64_t mixt_trainer_steps(const mixt_trainer *t)
{
    return mixt__need_made(t, "trainer") == MIXT_OK ? mixt__trainer_steps(t->inner) : 0;
}

int64_t mixt_trainer_epoch(const mixt_trainer *t)
{
    return mixt__need_made(t, "trainer") == MIXT_OK && mixt__trainer_epoch_passes(t->inner)
               ? mixt__trainer_position(t->inner) / mixt__trainer_epoch_passes(t->inner)
               : 0;
}

mixt_status mixt_trainer_evaluate(mixt_trainer *t, const mixt_data *data, mixt_evaluation *result)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__context_note(t->context, mixt__need_made(data, "data")));
    MIXT_TRY(mixt__need_in(t->context, result));
    return mixt__context_note(t->context, mixt__trainer_evaluate(t->inner, data, NULL, result));
}

mixt_status mixt_trainer_outputs(mixt_trainer *t, int64_t *outputs)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, outputs));
    return mixt__context_note(t->context, mixt__trainer_outputs(t->inner, outputs));
}

mixt_status mixt_trainer_predict(mixt_trainer *t, const void *input, int64_t count, float *output)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    if (count < 0 || (count && (!input || !output)))
        return mixt__context_note(t->context,
                                  mixt__fail(MIXT_ERROR_ARGUMENT,
                                             "prediction of %lld samples: expected a count from 0, an input "
                                             "and room for the outputs",
                                             (long long)count));
    return mixt__context_note(t->context, mixt__trainer_predict(t->inner, input, count, output));
}

mixt_status mixt_trainer_compile(mixt_trainer *t, const mixt_data *data)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__context_note(t->context, mixt__need_made(data, "data")));
    return mixt__context_note(t->context, mixt__trainer_compile_data(t->inner, data));
}

static mixt_status check_sample(const mixt_sample_shape *shape)
{
    if (shape->input_rank < 0 || shape->input_rank >= MIXT_MAX_RANK || shape->targets < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a sample has 0 to %d dimensions and at least 1 target",
                          MIXT_MAX_RANK - 1);
    for (int i = 0; i < shape->input_rank; i++)
        if (shape->input_dims[i] < 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "dimension %d of a sample is %lld: must be at least 1", i,
                              (long long)shape->input_dims[i]);
    if (shape->input_dtype != MIXT_DTYPE_FP32 && shape->input_dtype != MIXT_DTYPE_INT32)
        return mixt__fail(MIXT_ERROR_DTYPE, "a sample is fp32 or int32, not %s", mixt_dtype_name(shape->input_dtype));
    return MIXT_OK;
}

mixt_status mixt_trainer_compile_for(mixt_trainer *t, const mixt_sample_shape *shape)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, shape));
    MIXT_TRY(mixt__context_note(t->context, check_sample(shape)));
    if (mixt__trainer_model(t->inner)->loss == MIXT_LOSS_CUSTOM)
        return mixt__context_note(
            t->context, mixt__fail(MIXT_ERROR_UNSUPPORTED,
                                   "a model with losses of its own is compiled for data: use mixt_trainer_compile"));
    int64_t batch = mixt__trainer_settings_of(t->inner)->batch;
    mixt__batch_spec spec = {.input_dtype = shape->input_dtype, .input = {shape->input_rank + 1, {batch}}};
    memcpy(spec.input.dims + 1, shape->input_dims, (size_t)shape->input_rank * sizeof shape->input_dims[0]);
    bool labels =
        mixt__trainer_model(t->inner)->loss == MIXT_LOSS_CROSS_ENTROPY; // as mixt__trainer_spec_of has it for data
    spec.target_dtype = labels ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32;
    spec.target = labels && shape->targets == 1 ? (mixt__shape){1, {batch}} : (mixt__shape){2, {batch, shape->targets}};
    return mixt__context_note(t->context, mixt__trainer_compile(t->inner, &spec));
}

/** Compiles for a policy that becomes the trainer's own, and is freed where that fails. */
static mixt_status take_policy(mixt_trainer *t, mixt_policy *next)
{
    mixt__trainer_settings before = *mixt__trainer_settings_of(t->inner), settings = before;
    mixt_status status = mixt__policy_need_one(next);
    if (status == MIXT_OK)
        status = mixt__trainer_settings_parse(&t->options, next, &settings);
    settings.eval_batch = before.eval_batch;
    if (status == MIXT_OK) {
        mixt__trainer_set(t->inner, &settings);
        status = mixt__trainer_recompile(t->inner);
    }
    if (status != MIXT_OK) {
        mixt__trainer_set(t->inner, &before);
        mixt_policy_free(next);
        return status;
    }
    mixt_policy_free(t->policy);
    t->policy = next;
    return MIXT_OK;
}

mixt_status mixt_trainer_set_policy(mixt_trainer *t, const mixt_policy *policy)
{
    mixt_policy *next;
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, policy));
    MIXT_TRY(mixt__context_note(t->context, mixt_policy_copy(policy, &next)));
    return mixt__context_note(t->context, take_policy(t, next));
}

mixt_status mixt_trainer_set_precision(mixt_trainer *t, const char *precision)
{
    mixt_policy *next;
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, precision));
    MIXT_TRY(mixt__context_note(t->context, choose_policy(t->context, precision, NULL, &next)));
    return mixt__context_note(t->context, take_policy(t, next));
}

const mixt_policy *mixt_trainer_policy(const mixt_trainer *t)
{
    return mixt__need_made(t, "trainer") == MIXT_OK ? t->policy : NULL;
}

mixt_status mixt_trainer_memory(const mixt_trainer *t, mixt_memory *memory)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, memory));
    if (!mixt__trainer_compiled(t->inner))
        return mixt__context_note(
            t->context, mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: mixt_trainer_compile(trainer, data)"));
    *memory = mixt__trainer_memory(t->inner);
    return MIXT_OK;
}

/* ---- weights ---- */

/** Says in a file's metadata that it has what was trained alone. */
static const mixt__text_pair holds_trained = {MIXT_HOLDS, MIXT_HOLDS_TRAINED};

typedef struct fetcher {
    const mixt__params *params;
    const int32_t *index; // by tensor: its parameter
    float *buffer;
    const char *then; // what follows from a weight that is not finite
} fetcher;

static mixt_status fetch(void *argument, int64_t index, const void **data)
{
    fetcher *f = argument;
    int32_t param = f->index ? f->index[index] : (int32_t)index;
    const mixt__param *p = &f->params->table[param];
    *data = f->buffer;
    MIXT_TRY(mixt__params_get(f->params, param, f->buffer));
    return mixt__weights_finite(p->name, f->buffer, 0, p->count, f->then);
}

/** Elements of the largest parameter. */
static int64_t largest(const mixt__params *params)
{
    int64_t most = 1;
    for (int64_t i = 0; i < params->count; i++)
        most = params->table[i].count > most ? params->table[i].count : most;
    return most;
}

size_t mixt__weights_bytes(const mixt__params *params)
{
    return (size_t)(params->count + 1) * sizeof(mixt__file_tensor) + (size_t)largest(params) * sizeof(float);
}

/** Tensors of a file: all parameters, or those that are not frozen. @return how many */
static int64_t list_tensors(const mixt__params *params, bool trained, mixt__file_tensor *tensors, int32_t *index)
{
    int64_t count = 0;
    for (int32_t i = 0; i < params->count; i++) {
        const mixt__param *p = &params->table[i];
        if (trained && (p->frozen || !p->trainable))
            continue;
        tensors[count] = (mixt__file_tensor){.name = p->name, .dtype = MIXT_DTYPE_FP32, .rank = p->shape.rank};
        memcpy(tensors[count].dims, p->shape.dims, (size_t)p->shape.rank * sizeof p->shape.dims[0]);
        index[count++] = i;
    }
    return count;
}

/** @param of the update that the weights are of, `step` or one before it */
static mixt_status write_file(const mixt__params *params, int64_t step, int64_t of, bool trained, const char *path)
{
    char number[24], earlier[24];
    snprintf(number, sizeof number, "%lld", (long long)step);
    snprintf(earlier, sizeof earlier, "%lld", (long long)of);
    mixt__file_tensor *tensors = mixt__alloc((size_t)(params->count + 1) * sizeof *tensors);
    int32_t *index = mixt__alloc((size_t)(params->count + 1) * sizeof *index);
    int64_t count = tensors && index ? list_tensors(params, trained, tensors, index) : 0;
    fetcher f = {.params = params,
                 .index = index,
                 .then = "training failed, and these weights are not saved",
                 .buffer = mixt__alloc_uninit((size_t)largest(params) * sizeof *f.buffer)};
    mixt__text_pair pairs[4] = {{"format", "mixt"}, {"step", number}};
    mixt__metadata metadata = {.pairs = pairs, .count = 2};
    if (of != step)
        pairs[metadata.count++] = (mixt__text_pair){"weights_step", earlier};
    if (trained)
        pairs[metadata.count++] = holds_trained;
    mixt_status status = tensors && index && f.buffer
                             ? mixt__safetensors_write_from(path, tensors, count, &metadata, true, fetch, &f)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory to save %s", path);
    mixt__free(f.buffer);
    mixt__free(index);
    mixt__free(tensors);
    return status;
}

/** Before the first step: the weights as they are drawn. */
static mixt_status save(mixt__trainer *t, const char *path, int64_t of, bool trained)
{
    if (!mixt__trainer_compiled(t))
        return mixt__fail(MIXT_ERROR_STATE, "nothing to save yet: compile the trainer, or run a step first");
    MIXT_TRY(mixt__trainer_take_weights(t));
    if (mixt__trainer_has_memory(t))
        MIXT_TRY(mixt__integrity_verify(t));
    return write_file(mixt__trainer_params(t), mixt__trainer_steps(t), of, trained, path);
}

mixt_status mixt__trainer_save_of(mixt_trainer *t, const char *path, int64_t of, bool trained)
{
    return mixt__context_note(t->context, save(t->inner, path, of, trained));
}

mixt_status mixt_trainer_save(mixt_trainer *t, const char *path)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, path));
    return mixt__context_note(t->context, save(t->inner, path, mixt__trainer_steps(t->inner), false));
}

static mixt_status all_finite(const mixt__params *params)
{
    const void *data;
    fetcher f = {.params = params,
                 .then = "the weights are damaged, or training failed",
                 .buffer = mixt__alloc_uninit((size_t)largest(params) * sizeof *f.buffer)};
    mixt_status status = f.buffer ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read the weights");
    for (int64_t i = 0; status == MIXT_OK && i < params->count; i++)
        status = fetch(&f, i, &data);
    mixt__free(f.buffer);
    return status;
}

mixt_status mixt_trainer_check_finite(mixt_trainer *t)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    mixt_status status = mixt__trainer_compiled(t->inner)
                             ? mixt__trainer_take_weights(t->inner)
                             : mixt__fail(MIXT_ERROR_STATE, "compile the trainer before reading weights");
    return mixt__context_note(t->context, status == MIXT_OK ? all_finite(mixt__trainer_params(t->inner)) : status);
}

static mixt_status check_tensor(const char *path, const mixt__param *p, const mixt__file_tensor *tensor)
{
    if (!tensor)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' is missing", path, p->name);
    bool same = tensor->rank == p->shape.rank && mixt_dtype_is_float(tensor->dtype);
    for (int i = 0; same && i < p->shape.rank; i++)
        same = tensor->dims[i] == p->shape.dims[i];
    if (same)
        return MIXT_OK;
    char wanted[128];
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' is %s %s, the model needs a float tensor %s", path, p->name,
                      mixt_dtype_name(tensor->dtype), mixt__dims_print(tensor->rank, tensor->dims).text,
                      mixt__shape_text(&p->shape, wanted, sizeof wanted));
}

static bool is_partial(const mixt__safetensors *file)
{
    const char *holds = mixt__safetensors_metadata(file, holds_trained.key);
    return holds && !strcmp(holds, holds_trained.value);
}

mixt_status mixt__weights_are_partial(const char *path, bool *partial)
{
    mixt__safetensors *file;
    MIXT_TRY(mixt__safetensors_open_weights(path, &file));
    *partial = is_partial(file);
    mixt__safetensors_close(file);
    return MIXT_OK;
}

static mixt_status check_tensors(const mixt__params *params, const mixt__safetensors *file, const char *path)
{
    bool partial = is_partial(file);
    for (int64_t i = 0; i < params->count; i++) {
        const mixt__param *p = &params->table[i];
        const mixt__file_tensor *tensor = mixt__safetensors_find(file, p->name);
        if (tensor || p->adapter || !partial)
            MIXT_TRY(check_tensor(path, p, tensor));
    }
    for (int64_t i = 0; partial && i < file->count; i++)
        if (mixt__params_find(params, file->tensors[i].name) < 0)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' is of no parameter here: it is of another model",
                              path, file->tensors[i].name);
    return MIXT_OK;
}

mixt_status mixt__weights_load(mixt__params *params, const char *path)
{
    mixt__safetensors *file;
    MIXT_TRY(mixt__safetensors_open_weights(path, &file));
    mixt_status status = check_tensors(params, file, path);
    float *values = mixt__alloc_uninit((size_t)largest(params) * sizeof *values);
    if (status == MIXT_OK && !values)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to load %s", path);
    for (int64_t i = 0; status == MIXT_OK && i < params->count; i++) {
        const mixt__file_tensor *tensor = mixt__safetensors_find(file, params->table[i].name);
        if (!tensor)
            continue;
        status = mixt_convert(values, MIXT_DTYPE_FP32, tensor->data, tensor->dtype, params->table[i].count, NULL);
        if (status == MIXT_OK)
            status = mixt__params_set(params, (int32_t)i, values);
    }
    mixt__free(values);
    if (status == MIXT_OK)
        status = mixt__safetensors_check(file);
    mixt__safetensors_close(file);
    return status == MIXT_OK ? mixt__params_refresh_copies(params) : status;
}

static mixt_status load(mixt__trainer *t, const char *path)
{
    if (!mixt__trainer_compiled(t))
        return mixt__fail(MIXT_ERROR_STATE,
                          "compile the trainer before loading weights: mixt_trainer_compile(trainer, data)");
    MIXT_TRY(mixt__trainer_take_weights(t));
    return mixt__weights_load(mixt__trainer_params(t), path);
}

mixt_status mixt_trainer_load(mixt_trainer *t, const char *path)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, path));
    return mixt__context_note(t->context, load(t->inner, path));
}
