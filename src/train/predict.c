/* Predictions: the model without its loss, in evaluation mode, over samples in host memory.
 *
 * Takes the weights and a forward plan, nothing of training. Compiled at the first use for batches of the evaluation's
 * size, halved where there is no room; the last batch is filled up with zeros, whose outputs nobody sees. Outputs leave
 * the graph as FP32 whatever format made them.
 */
#include "train/trainer_inside.h"

#include "base/block.h"
#include "num/num.h"

#include <string.h>

static size_t bytes_of(const mixt__executable *e, int32_t value)
{
    const mixt__value *v = &e->graph->values[value];
    return (size_t)mixt__shape_count(&v->shape) * mixt_dtype_size(v->dtype);
}

/** A batch of predictions. */
static mixt__batch_spec predict_spec(const mixt__trainer *t)
{
    mixt__batch_spec spec = t->spec;
    mixt__spec_resize(&spec, t->settings.eval_batch);
    return spec;
}

static size_t input_bytes(const mixt__trainer *t)
{
    mixt__batch_spec spec = predict_spec(t);
    return mixt__spec_input_bytes(&spec);
}

static mixt_status plan(mixt__trainer *t)
{
    mixt__batch_spec spec = predict_spec(t);
    mixt__graph *source;
    MIXT_TRY(mixt__model_build_outputs(&t->model, &spec, 0, &source));
    mixt__frozen_mark(t->params, source);
    mixt__compile_options options = {.policy = t->settings.policy, .no_fusion = t->settings.no_fusion};
    options.fused = t->device->backend->fused;
    MIXT_TRY(mixt__compile_take(source, &options, t->device, &t->predict));
    return mixt__params_match(t->params, t->predict->graph);
}

mixt_status mixt__trainer_plan_prediction(mixt__trainer *t)
{
    mixt_status status = t->predict ? MIXT_OK : plan(t);
    if (status != MIXT_OK)
        mixt__trainer_free_predict(t);
    return status;
}

mixt__trainer_bytes mixt__trainer_prediction_bytes(const mixt__trainer *t)
{
    if (!t->predict)
        return (mixt__trainer_bytes){0};
    const mixt__graph *graph = t->predict->graph;
    size_t input = input_bytes(t), output = bytes_of(t->predict, graph->logits);
    size_t own = t->predict->plan.arena_bytes + t->predict->workspace_bytes;
    if (t->device->backend->host_memory)
        return (mixt__trainer_bytes){.host = own + input + output};
    return (mixt__trainer_bytes){.host = input + output, .device = own + input};
}

/** All or, on failure, some of it. */
static bool take_buffers(mixt__trainer *t)
{
    const mixt__graph *graph = t->predict->graph;
    size_t input = input_bytes(t), output = bytes_of(t->predict, graph->logits);
    t->predict_input = mixt__alloc(input);
    t->predict_output = mixt__alloc(output);
    if (t->device->backend->host_memory)
        return t->predict_input && t->predict_output;
    t->predict_device = mixt__device_alloc(t->device, input);
    return t->predict_input && t->predict_output && t->predict_device;
}

static mixt_status take(mixt__trainer *t)
{
    mixt__trainer_bytes bytes = mixt__trainer_prediction_bytes(t);
    size_t own = t->device->backend->host_memory ? bytes.host : bytes.device, room = mixt__device_available(t->device);
    if (t->params->shard.masters)
        return mixt__fail(MIXT_ERROR_STATE,
                          "the weights are sharded between ranks (dist.zero=3): predict in one process");
    if ((room && own > room) || mixt__executable_allocate(t->predict) != MIXT_OK || !take_buffers(t))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to predict %lld sample%s at once: lower train.eval_batch",
                          (long long)t->settings.eval_batch, t->settings.eval_batch == 1 ? "" : "s");
    MIXT_TRY(mixt__frozen_check(t->params, t->predict->graph));
    mixt__executable_bind(t->predict, t->params, NULL); // it has no gradient
    return MIXT_OK;
}

void mixt__trainer_free_predict(mixt__trainer *t)
{
    mixt__executable_free(t->predict);
    mixt__free(t->predict_input);
    mixt__free(t->predict_output);
    if (t->predict_device)
        mixt__device_free(t->device, t->predict_device);
    t->predict = NULL;
    t->predict_input = t->predict_output = t->predict_device = NULL;
}

static mixt_status ready(mixt__trainer *t)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it does not know the shape of a sample");
    MIXT_TRY(mixt__trainer_take_weights(t));
    while (!t->predict_input) {
        MIXT_TRY(mixt__trainer_plan_prediction(t));
        mixt_status status = take(t);
        if (status == MIXT_OK)
            break;
        mixt__trainer_free_predict(t);
        if (t->settings.eval_batch == 1)
            return status;
        t->settings.eval_batch /= 2; // evaluation plans anew for it when it comes
    }
    return MIXT_OK;
}

mixt_status mixt__trainer_outputs(mixt__trainer *t, int64_t *outputs)
{
    *outputs = 0;
    MIXT_TRY(ready(t));
    const mixt__graph *g = t->predict->graph;
    *outputs = mixt__shape_count(&g->values[g->logits].shape) / t->settings.eval_batch;
    return MIXT_OK;
}

/** Samples [first, first + valid) of the caller's `count`, every input for itself; zeros fill up the batch. */
static void take_samples(const mixt__trainer *t, const void *input, int64_t count, int64_t first, int64_t valid)
{
    mixt__batch_spec spec = predict_spec(t);
    mixt__block from = {0}, to = {0};
    mixt__array a;
    int64_t batch = t->settings.eval_batch;
    for (int i = 0; mixt__spec_array(&spec, i, &a) && !a.target; i++) {
        size_t all = (size_t)mixt__shape_count(&a.shape) * mixt_dtype_size(a.dtype), sample = all / (size_t)batch;
        const char *source = (const char *)input + mixt__block_add(&from, (size_t)count * sample);
        char *place = (char *)t->predict_input + mixt__block_add(&to, all);
        memcpy(place, source + (size_t)first * sample, (size_t)valid * sample);
        memset(place + (size_t)valid * sample, 0, (size_t)(batch - valid) * sample);
    }
}

mixt_status mixt__trainer_predict(mixt__trainer *t, const void *input, int64_t count, float *output)
{
    int64_t outputs;
    MIXT_TRY(mixt__trainer_outputs(t, &outputs));
    int64_t batch = t->settings.eval_batch; // which making ready may have cut
    const mixt__graph *g = t->predict->graph;
    for (int64_t first = 0; first < count; first += batch) {
        int64_t valid = count - first < batch ? count - first : batch;
        take_samples(t, input, count, first, valid);
        mixt__run run = {.input = t->predict_input};
        if (!t->device->backend->host_memory) {
            MIXT_TRY(mixt__device_upload(t->device, t->predict_device, t->predict_input, input_bytes(t)));
            run.input = t->predict_device;
        }
        MIXT_TRY(mixt__executable_run(t->predict, &run));
        MIXT_TRY(mixt__device_download(t->device, t->predict_output, mixt__executable_address(t->predict, g->logits),
                                       bytes_of(t->predict, g->logits)));
        memcpy(output + first * outputs, t->predict_output, (size_t)(valid * outputs) * sizeof(float));
    }
    return MIXT_OK;
}
