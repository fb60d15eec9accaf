/* Compiling a shadow, giving it memory, running it. */
#include "train/shadow.h"

#include "base/threads.h"
#include "num/num.h"
#include "train/finetune.h"
#include "train/trainer_inside.h"

static mixt__compile_options options_of(const mixt__trainer *t, const mixt__shadow_options *o)
{
    mixt__compile_options options = mixt__trainer_compile_options(t, o->policy);
    options.no_fusion |= o->no_fusion;
    options.twins = o->twins;
    options.instrument = o->instrument;
    options.typed_input = o->like_step;
    options.activation_budget = o->like_step ? t->settings.recompute_budget : 0;
    return options;
}

static mixt_status build(const mixt__trainer *t, const mixt__batch_spec *spec, const mixt__shadow_options *o,
                         mixt__graph **source)
{
    MIXT_TRY(mixt__model_build(&t->model, spec, true, source));
    (*source)->values[(*source)->logits].output |= o->keep_logits;
    mixt_status status = mixt__freeze(*source, t->settings.freeze, t->settings.frozen);
    if (status != MIXT_OK)
        mixt__graph_free(*source);
    return status;
}

static mixt_status compile(mixt__shadow *s, const mixt__shadow_options *o)
{
    const mixt__trainer *t = s->trainer;
    mixt__graph *source;
    s->spec = o->spec ? *o->spec : t->spec;
    if (o->batch)
        mixt__spec_resize(&s->spec, o->batch);
    MIXT_TRY(build(t, &s->spec, o, &source));
    mixt__compile_options options = options_of(t, o);
    return mixt__compile_take(source, &options, t->device, &s->executable);
}

/** A batch as the graph reads it. */
static mixt__batch_spec fed_spec(const mixt__shadow *s)
{
    return mixt__spec_fed(&s->spec, s->executable->graph);
}

static size_t input_bytes(const mixt__shadow *s)
{
    mixt__batch_spec fed = fed_spec(s);
    return mixt__spec_input_bytes(&fed);
}

static size_t target_bytes(const mixt__shadow *s)
{
    return mixt__spec_target_bytes(&s->spec);
}

/** Where targets begin behind the inputs. */
static size_t input_room(const mixt__shadow *s)
{
    return (input_bytes(s) + MIXT_MEMORY_ALIGNMENT - 1) / MIXT_MEMORY_ALIGNMENT * MIXT_MEMORY_ALIGNMENT;
}

/** Refused here, with figures, rather than by the system, without. */
static mixt_status check_room(const mixt__shadow *s)
{
    mixt__params_bytes p = mixt__params_bytes_of(s->params);
    size_t need = p.copies + p.gradients + p.state + s->executable->plan.arena_bytes + s->executable->workspace_bytes;
    size_t room = mixt__device_available(s->trainer->device);
    const double gib = 1073741824.0;
    if (!room || need <= room)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_MEMORY,
                      "a second pass over the model needs %.2f GiB, %s has %.2f GiB free: use a smaller train.batch",
                      (double)need / gib, s->trainer->device->backend->name, (double)room / gib);
}

static mixt_status take_memory(mixt__shadow *s)
{
    mixt__device *device = s->trainer->device;
    MIXT_TRY(check_room(s));
    s->key = mixt__device_alloc(device, sizeof *s->key);
    s->seed = mixt__device_alloc(device, sizeof *s->seed);
    if (!device->backend->host_memory)
        s->batch = mixt__device_alloc(device, input_room(s) + target_bytes(s));
    mixt__batch_spec fed = fed_spec(s);
    bool rounds = mixt__spec_rounds(&s->spec, &fed);
    if (rounds)
        s->rounded = mixt__alloc_uninit(input_bytes(s));
    if (!s->key || !s->seed || (!device->backend->host_memory && !s->batch) || (rounds && !s->rounded))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for a batch", device->backend->name);
    MIXT_TRY(mixt__params_share(s->params, s->trainer->params));
    MIXT_TRY(mixt__executable_allocate(s->executable));
    mixt__executable_bind(s->executable, s->params, s->seed);
    return MIXT_OK;
}

static mixt_status make(mixt__shadow *s, const mixt__shadow_options *options)
{
    if (!mixt__trainer_has_weights(s->trainer))
        return mixt__fail(MIXT_ERROR_STATE, "a shadow needs a trainer that has its weights");
    MIXT_TRY(compile(s, options));
    MIXT_TRY(mixt__params_new(s->executable->graph, s->trainer->device, true, 0, MIXT_DTYPE_FP32, &s->params));
    MIXT_TRY(mixt__params_match(s->trainer->params, s->executable->graph));
    return take_memory(s);
}

mixt_status mixt__shadow_new(const mixt__trainer *trainer, const mixt__shadow_options *options, mixt__shadow **shadow)
{
    mixt__shadow *s = mixt__alloc(sizeof *s);
    *shadow = NULL;
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a shadow");
    s->trainer = trainer;
    mixt_status status = make(s, options);
    if (status == MIXT_OK)
        *shadow = s;
    else
        mixt__shadow_free(s);
    return status;
}

mixt_status mixt__shadow_graph(const mixt__trainer *t, const mixt__shadow_options *o, mixt__graph **graph)
{
    mixt__graph *source;
    *graph = NULL;
    MIXT_TRY(build(t, o->spec ? o->spec : &t->spec, o, &source));
    mixt__compile_options options = options_of(t, o);
    options.activation_budget = 0; // what is computed again comes behind all values of before
    mixt_status status = mixt__passes_run(source, &options, graph);
    mixt__graph_free(source);
    return status;
}

void mixt__shadow_free(mixt__shadow *s)
{
    if (!s)
        return;
    mixt__device *device = s->trainer->device;
    mixt__executable_free(s->executable);
    mixt__params_free(s->params);
    mixt__device_free(device, s->batch);
    mixt__free(s->rounded);
    mixt__device_free(device, s->key);
    mixt__device_free(device, s->seed);
    mixt__free(s);
}

mixt_status mixt__shadow_refresh(mixt__shadow *s)
{
    return mixt__params_refresh_copies(s->params);
}

/** The batch where the device reads it. */
static mixt_status put_batch(mixt__shadow *s, const mixt__shadow_batch *b, mixt__run *run)
{
    mixt__device *device = s->trainer->device;
    *run = (mixt__run){.input = b->input, .target = b->target, .rng_key = s->key};
    if (s->rounded) {
        mixt__batch_spec fed = fed_spec(s);
        mixt__spec_round(&s->spec, &fed, b->input, s->rounded);
        run->input = s->rounded;
    }
    MIXT_TRY(mixt__device_upload(device, s->key, &b->key, sizeof b->key));
    MIXT_TRY(mixt__device_upload(device, s->seed, &b->scale, sizeof b->scale));
    if (!s->batch)
        return MIXT_OK;
    MIXT_TRY(mixt__device_upload(device, s->batch, run->input, input_bytes(s)));
    run->input = s->batch;
    run->target = s->batch + input_room(s);
    return mixt__device_upload(device, s->batch + input_room(s), b->target, target_bytes(s));
}

mixt_status mixt__shadow_begin(mixt__shadow *s, const mixt__shadow_batch *batch, mixt__run *run)
{
    MIXT_TRY(mixt__params_follow(s->params, s->trainer->params)); // a pass moves the running statistics
    return put_batch(s, batch, run);
}

mixt_status mixt__shadow_run(mixt__shadow *s, const mixt__shadow_batch *batch, double *loss)
{
    mixt__device *device = s->trainer->device;
    mixt__run run;
    float value;
    MIXT_TRY(mixt__shadow_begin(s, batch, &run));
    MIXT_TRY(mixt__executable_run(s->executable, &run));
    MIXT_TRY(mixt__device_download(device, &value, mixt__executable_address(s->executable, s->executable->graph->loss),
                                   sizeof value));
    *loss = (double)value;
    return MIXT_OK;
}

int64_t mixt__shadow_logit_count(const mixt__shadow *s)
{
    return mixt__shape_count(&s->executable->graph->values[s->executable->graph->logits].shape);
}

/** Numbers on their way to FP32. */
typedef struct widened {
    mixt_dtype dtype;
    const char *from;
    float *to;
} widened;

static void widen_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const widened *w = argument;
    (void)thread;
    mixt__widen(w->dtype)(w->to + begin, w->from + (size_t)begin * mixt_dtype_size(w->dtype), end - begin);
}

mixt_status mixt__shadow_logits(const mixt__shadow *s, float *values)
{
    const mixt__graph *graph = s->executable->graph;
    const mixt__value *logits = &graph->values[graph->logits];
    int64_t count = mixt__shape_count(&logits->shape);
    size_t bytes = (size_t)count * mixt_dtype_size(logits->dtype);
    const void *address = mixt__executable_address(s->executable, graph->logits);
    if (!logits->output || !address || !mixt__value_contiguous(logits))
        return mixt__fail(MIXT_ERROR_STATE, "this shadow does not keep its outputs");
    if (logits->dtype == MIXT_DTYPE_FP32)
        return mixt__device_download(s->trainer->device, values, address, bytes);
    void *low = mixt__alloc_uninit(bytes);
    mixt_status status = low ? mixt__device_download(s->trainer->device, low, address, bytes)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the outputs of a batch");
    if (status == MIXT_OK)
        mixt__parallel(count, 1 << 14, widen_range, &(widened){logits->dtype, low, values});
    mixt__free(low);
    return status;
}

mixt_status mixt__shadow_gradients(const mixt__shadow *s, int64_t first, int64_t count, float *values)
{
    return mixt__device_download(s->trainer->device, values, mixt__params_gradients(s->params) + first,
                                 (size_t)count * sizeof *values);
}
