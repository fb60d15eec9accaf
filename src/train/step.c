/* A whole training step, and evaluation.
 *
 * batch → forward → loss → backward, once per micro-step, gradients in the flat arena; then statistics, step control,
 * optimizer. Nothing is allocated after the first step.
 */
#include "train/trainer.h"

#include "base/log.h"
#include "base/rng.h"
#include "data/prefetch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static mixt_status check_data(const mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.batch);
    if (spec.input_dtype != t->spec.input_dtype || spec.target_dtype != t->spec.target_dtype ||
        !mixt__shape_equal(&spec.input, &t->spec.input) || !mixt__shape_equal(&spec.target, &t->spec.target)) {
        char now[128], before[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "the data's batches are %s, the model is compiled for %s",
                          mixt__shape_text(&spec.input, now, sizeof now),
                          mixt__shape_text(&t->spec.input, before, sizeof before));
    }
    return MIXT_OK;
}

/** Compiles at the first step, and moves the prefetch thread to another data set when that changes. */
static mixt_status ready(mixt__trainer *t, const mixt_data *data)
{
    if (!t->train) {
        mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.batch);
        MIXT_TRY(mixt__trainer_compile(t, &spec));
    }
    MIXT_TRY(mixt__trainer_allocate(t));
    if (t->prefetched == data)
        return MIXT_OK;
    MIXT_TRY(check_data(t, data));
    mixt__prefetch_stop(t->prefetch);
    t->prefetch = NULL;
    t->prefetched = NULL;
    MIXT_TRY(mixt__prefetch_start(data, t->settings.batch, MIXT_PREFETCH_DEPTH, t->next_batch, MIXT_PREFETCH_TRAIN,
                                  &t->prefetch));
    t->prefetched = data;
    t->batches_per_epoch = mixt_data_batches(data, t->settings.batch);
    return MIXT_OK;
}

/** One forward and backward pass; adds loss sum, correct and count to `sums`. */
static mixt_status micro_step(mixt__trainer *t, const void *input, const void *target, bool first, double sums[3])
{
    uint64_t key = mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)t->runs++);
    mixt__run run = {.input = input, .target = target, .accumulate = !first, .rng_key = &key};
    MIXT_TRY(mixt__executable_run(t->train, &run));
    float metrics[3];
    MIXT_TRY(
        t->backend->download(metrics, mixt__executable_address(t->train, t->train->graph->metrics), sizeof metrics));
    for (int i = 0; i < 3; i++)
        sums[i] += metrics[i];
    t->next_batch++;
    return MIXT_OK;
}

/** The same on the prefetch thread's next batch. */
static mixt_status prefetched_step(mixt__trainer *t, bool first, double sums[3])
{
    const mixt__batch *batch;
    MIXT_TRY(mixt__prefetch_take(t->prefetch, &batch));
    mixt_status status = micro_step(t, batch->input, batch->target, first, sums);
    mixt__prefetch_release(t->prefetch);
    return status;
}

static mixt_status inject_overflow(mixt__trainer *t)
{
    t->seen.seed = INFINITY;
    return t->backend->upload(t->control, &t->seen, sizeof t->seen);
}

static void report(mixt__trainer *t, double scale, const double sums[3], mixt_step *result)
{
    const mixt__control *c = &t->seen;
    bool classes = t->model.loss != MIXT_LOSS_MSE;
    t->overflow_layer[0] = '\0';
    if (c->found_inf && c->bad_segment >= 0) {
        const char *name = t->params->table[t->params->segments[c->bad_segment].param].name;
        snprintf(t->overflow_layer, sizeof t->overflow_layer, "%s", name);
        MIXT_LOG(TRAIN, "step %lld skipped: first non-finite gradient in %s, scale %g -> %g", (long long)t->attempts,
                 name, scale, (double)c->scale);
    }
    if (!result)
        return;
    *result = (mixt_step){.step = t->attempts, .applied = c->step, .skipped = c->found_inf, .scale = scale};
    result->epoch = t->batches_per_epoch ? (t->next_batch - 1) / t->batches_per_epoch : 0;
    result->samples = t->settings.batch * t->settings.accumulate;
    result->loss = sums[2] > 0 ? sums[0] / sums[2] : 0;
    result->accuracy = classes && sums[2] > 0 ? sums[1] / sums[2] : NAN;
    result->lr = c->lr;
    result->grad_norm = c->grad_norm;
    result->overflow_layer = t->overflow_layer[0] ? t->overflow_layer : NULL;
}

static mixt_status begin(mixt__trainer *t)
{
    if (t->hand_gradients)
        return mixt__fail(MIXT_ERROR_STATE,
                          "gradients made by hand are waiting: apply or discard them before a whole step");
    t->attempts++;
    return t->attempts == t->settings.inject_overflow ? inject_overflow(t) : MIXT_OK;
}

/** Statistics, control, update: what follows the last micro-step. */
static mixt_status finish(mixt__trainer *t, double scale, const double sums[3], mixt_step *result)
{
    MIXT_TRY(t->backend->gradient_stats(&t->update));
    MIXT_TRY(t->backend->step_control(&t->update));
    MIXT_TRY(t->backend->optimizer_step(&t->update));
    MIXT_TRY(t->backend->download(&t->seen, t->control, sizeof t->seen));
    report(t, scale, sums, result);
    return MIXT_OK;
}

mixt_status mixt__trainer_step(mixt__trainer *t, const mixt_data *data, mixt_step *result)
{
    MIXT_TRY(ready(t, data));
    double sums[3] = {0}, scale = t->seen.scale;
    MIXT_TRY(begin(t));
    for (int64_t i = 0; i < t->settings.accumulate; i++)
        MIXT_TRY(prefetched_step(t, i == 0, sums));
    return finish(t, scale, sums, result);
}

mixt_status mixt__trainer_step_on(mixt__trainer *t, const void *input, const void *target, mixt_step *result)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it does not know the shape of a batch");
    MIXT_TRY(mixt__trainer_allocate(t));
    double sums[3] = {0}, scale = t->seen.scale;
    size_t input_bytes = (size_t)mixt__shape_count(&t->spec.input) * mixt_dtype_size(t->spec.input_dtype);
    size_t target_bytes = (size_t)mixt__shape_count(&t->spec.target) * mixt_dtype_size(t->spec.target_dtype);
    MIXT_TRY(begin(t));
    for (int64_t i = 0; i < t->settings.accumulate; i++)
        MIXT_TRY(micro_step(t, (const char *)input + (size_t)i * input_bytes,
                            (const char *)target + (size_t)i * target_bytes, i == 0, sums));
    return finish(t, scale, sums, result);
}

/* ---- evaluation ---- */

static mixt_status compile_evaluation(mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.eval_batch);
    mixt__graph *source, *graph;
    MIXT_TRY(mixt__model_build(&t->model, &spec, false, &source));
    mixt__compile_options options = {.policy = t->settings.policy, .no_fusion = t->settings.no_fusion};
    mixt_status status = mixt__passes_run(source, &options, &graph);
    mixt__graph_free(source);
    MIXT_TRY(status);
    MIXT_TRY(mixt__executable_take(graph, t->backend, &t->eval));
    MIXT_TRY(mixt__params_match(t->params, graph));
    MIXT_TRY(mixt__executable_allocate(t->eval));
    mixt__executable_bind(t->eval, t->params, &t->control->seed);
    t->eval_input = mixt__alloc((size_t)mixt__shape_count(&spec.input) * mixt_dtype_size(spec.input_dtype));
    t->eval_target = mixt__alloc((size_t)mixt__shape_count(&spec.target) * mixt_dtype_size(spec.target_dtype));
    return t->eval_input && t->eval_target ? MIXT_OK
                                           : mixt__fail(MIXT_ERROR_MEMORY, "no memory for an evaluation batch");
}

static mixt_status ready_to_evaluate(mixt__trainer *t, const mixt_data *data)
{
    if (!t->train) {
        mixt__batch_spec train = mixt__trainer_spec_of(data, t->settings.batch);
        MIXT_TRY(mixt__trainer_compile(t, &train));
    }
    MIXT_TRY(mixt__trainer_allocate(t));
    mixt__shape shape = mixt__trainer_spec_of(data, t->settings.eval_batch).input;
    if (t->eval && mixt__shape_equal(&t->eval->graph->values[t->eval->graph->input].shape, &shape))
        return MIXT_OK;
    mixt__trainer_free_eval(t);
    mixt_status status = compile_evaluation(t, data);
    if (status != MIXT_OK)
        mixt__trainer_free_eval(t);
    return status;
}

/** Marks the targets behind the last valid sample as not counting. */
static void pad_targets(const mixt__trainer *t, const mixt_data_info *info, int64_t valid)
{
    int64_t end = t->settings.eval_batch * info->target_elements;
    for (int64_t i = valid * info->target_elements; i < end; i++) {
        if (info->target_dtype == MIXT_DTYPE_INT32)
            ((int32_t *)t->eval_target)[i] = -1;
        else
            ((float *)t->eval_target)[i] = NAN;
    }
}

mixt_status mixt__trainer_evaluate(mixt__trainer *t, const mixt_data *data, mixt_evaluation *result)
{
    MIXT_TRY(ready_to_evaluate(t, data));
    const mixt_data_info *info = mixt_data_describe(data);
    double sums[3] = {0};
    for (int64_t first = 0; first < info->samples; first += t->settings.eval_batch) {
        int64_t valid;
        MIXT_TRY(mixt_data_read(data, first, t->settings.eval_batch, t->eval_input, t->eval_target, &valid));
        pad_targets(t, info, valid);
        mixt__run run = {.input = t->eval_input, .target = t->eval_target};
        MIXT_TRY(mixt__executable_run(t->eval, &run));
        float metrics[3];
        MIXT_TRY(
            t->backend->download(metrics, mixt__executable_address(t->eval, t->eval->graph->metrics), sizeof metrics));
        for (int i = 0; i < 3; i++)
            sums[i] += metrics[i];
    }
    if (sums[2] <= 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s (%s): no samples to evaluate", info->path, info->split);
    *result = (mixt_evaluation){.loss = sums[0] / sums[2], .count = (int64_t)sums[2]};
    result->accuracy = t->model.loss == MIXT_LOSS_MSE ? NAN : sums[1] / sums[2];
    return MIXT_OK;
}
