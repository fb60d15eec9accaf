/* Evaluation: planned beside the training step, in batches that fit, then run. By itself it needs the weights only.
 *
 * Its plan is made before its memory is taken, and both can be done before the first step. Where there is no room, the
 * batch is halved until there is: a validation must never end a run that trains.
 */
#include "train/dist/sharded.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/signal_at.h"
#include "data/data.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Bytes of one batch: its inputs, its targets. */
static void batch_bytes(const mixt__batch_spec *spec, size_t bytes[2])
{
    bytes[0] = mixt__spec_input_bytes(spec);
    bytes[1] = mixt__spec_target_bytes(spec);
}

mixt__trainer_bytes mixt__trainer_evaluation_bytes(const mixt__trainer *t)
{
    size_t batch[2], plan;
    if (!t->eval)
        return (mixt__trainer_bytes){0};
    batch_bytes(&t->eval_spec, batch);
    plan = t->eval->plan.arena_bytes + t->eval->workspace_bytes + t->ranks.shards.gathers[MIXT_GATHER_EVAL].bytes;
    if (t->device->backend->host_memory)
        return (mixt__trainer_bytes){.host = plan + batch[0] + batch[1]};
    size_t gathered = mixt__sharded_host_bytes(t, MIXT_GATHER_EVAL);
    return (mixt__trainer_bytes){.host = batch[0] + batch[1] + gathered, .device = plan + batch[0] + batch[1]};
}

/** @param beside bytes of the training step that are still to be taken
 *  @param cut the batch is not the one asked for: then half of what is free is left to others */
static mixt_status check_room(const mixt__trainer *t, size_t beside, bool cut)
{
    mixt__trainer_bytes bytes = mixt__trainer_evaluation_bytes(t);
    size_t own = t->device->backend->host_memory ? bytes.host : bytes.device, room = mixt__device_available(t->device);
    const double gib = 1073741824.0;
    char training[64] = "";
    if (!room || beside > room || own <= (room - beside) / (cut ? 2 : 1))
        return MIXT_OK; // a step that has no room itself is told as such
    if (beside || t->control)
        snprintf(training, sizeof training, " besides training's %.2f", (double)mixt__trainer_memory(t).total / gib);
    return mixt__fail(MIXT_ERROR_MEMORY,
                      "evaluating %lld sample%s at once needs %.2f GiB%s, %s has %.2f GiB free: lower train.eval_batch",
                      (long long)t->settings.eval_batch, t->settings.eval_batch == 1 ? "" : "s", (double)own / gib,
                      training, t->device->backend->name, (double)room / gib);
}

static mixt_status plan(mixt__trainer *t, const mixt__batch_spec *spec)
{
    mixt__graph *source;
    mixt__model model = t->model;
    model.label_smoothing = 0; // a means of training: what predictions are worth is measured without
    MIXT_TRY(mixt__model_build(&model, spec, false, &source));
    mixt__frozen_mark(t->params, source);
    mixt__compile_options options = {.policy = t->settings.policy, .no_fusion = t->settings.no_fusion};
    options.fused = t->device->backend->fused;
    MIXT_TRY(mixt__compile_take(source, &options, t->device, &t->eval));
    t->eval_spec = *spec;
    MIXT_TRY(mixt__params_match(t->params, t->eval->graph));
    return mixt__sharded_plan_reading(t, t->eval, MIXT_GATHER_EVAL);
}

/** Where the host gathers weights that ranks share out, beside a device with memory of its own. */
static bool take_gathered(mixt__trainer *t)
{
    size_t bytes = mixt__sharded_host_bytes(t, MIXT_GATHER_EVAL);
    if (!bytes)
        return true;
    t->eval_gathered = mixt__device_alloc_host(t->device, bytes);
    if (t->eval_gathered)
        memset(t->eval_gathered, 0, bytes); // gaps between parameters travel too
    return t->eval_gathered;
}

/** All or, on failure, some of it. */
static bool take_buffers(mixt__trainer *t)
{
    size_t bytes[2];
    batch_bytes(&t->eval_spec, bytes);
    t->eval_input = mixt__alloc(bytes[0]);
    t->eval_target = mixt__alloc(bytes[1]);
    bool complete = t->eval_input && t->eval_target;
    size_t window = t->ranks.shards.gathers[MIXT_GATHER_EVAL].bytes;
    if (window)
        t->eval_window = mixt__device_alloc(t->device, window);
    complete = complete && (!window || t->eval_window);
    if (!t->device->backend->host_memory) {
        t->eval_device[0] = mixt__device_alloc(t->device, bytes[0]);
        t->eval_device[1] = mixt__device_alloc(t->device, bytes[1]);
        complete = complete && t->eval_device[0] && t->eval_device[1] && take_gathered(t);
    }
    return complete;
}

static mixt_status take(mixt__trainer *t)
{
    if (mixt__executable_allocate(t->eval) != MIXT_OK || !take_buffers(t))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to evaluate %lld sample%s at once: lower train.eval_batch",
                          (long long)t->settings.eval_batch, t->settings.eval_batch == 1 ? "" : "s");
    mixt__sharded_bind(t, t->eval, MIXT_GATHER_EVAL, t->eval_window, NULL); // it has no gradient
    return MIXT_OK;
}

/** Plans where there is no plan for these batches. */
static mixt_status plan_batches(mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.eval_batch);
    if (t->eval && mixt__spec_equal(&spec, &t->eval_spec))
        return MIXT_OK;
    mixt__trainer_free_eval(t);
    mixt_status status = plan(t, &spec);
    if (status != MIXT_OK)
        mixt__trainer_free_eval(t);
    return status;
}

/** In the largest batch that fits, of the one asked for and its halves; only in the one asked for where the loss
 *  compares samples of a batch. */
static mixt_status fit(mixt__trainer *t, const mixt_data *data, bool with_memory)
{
    int64_t asked = t->settings.eval_batch;
    size_t held = mixt__trainer_has_weights(t) ? mixt__trainer_weight_bytes(t) : 0;
    size_t beside = with_memory || t->control ? 0 : mixt__trainer_memory(t).total - held;
    while (true) {
        MIXT_TRY(plan_batches(t, data));
        if (t->eval_input)
            return MIXT_OK;
        mixt_status status = check_room(t, beside, t->settings.eval_batch < asked);
        if (status == MIXT_OK && with_memory)
            status = take(t);
        if (status == MIXT_OK)
            return MIXT_OK;
        mixt__trainer_free_eval(t);
        if (t->settings.eval_batch == 1 || t->model.compares)
            return status;
        t->settings.eval_batch /= 2;
        MIXT_LOG(MEMORY, "%s; trying %lld", mixt_error_text(), (long long)t->settings.eval_batch);
    }
}

mixt_status mixt__trainer_plan_evaluation(mixt__trainer *t, const mixt_data *data)
{
    return fit(t, data, false);
}

mixt_status mixt__trainer_prepare_evaluation(mixt__trainer *t, const mixt_data *data)
{
    if (!t->train) {
        mixt__batch_spec train = mixt__trainer_spec_of(data, t->settings.batch);
        MIXT_TRY(mixt__trainer_compile(t, &train));
    }
    MIXT_TRY(mixt__trainer_take_weights(t));
    return fit(t, data, true);
}

/** Marks the targets behind the last valid sample as not counting; inputs there are 0, their masks too. */
static void pad_samples(const mixt__trainer *t, const mixt_data *data, int64_t valid)
{
    const mixt_data_info *info = mixt_data_describe(data);
    for (int a = 0; a < info->array_count; a++) {
        int64_t each = info->arrays[a].elements, end = t->settings.eval_batch * each;
        bool target = info->arrays[a].target;
        char *at =
            (char *)(target ? t->eval_target : t->eval_input) + mixt_data_array_at(data, t->settings.eval_batch, a);
        for (int64_t i = valid * each; i < end; i++) {
            if (info->arrays[a].dtype == MIXT_DTYPE_INT32)
                ((int32_t *)(void *)at)[i] = target ? -1 : 0;
            else
                ((float *)(void *)at)[i] = target ? NAN : 0.0f;
        }
    }
}

/** One batch, where it lies or copied over. */
static mixt_status run_evaluation(mixt__trainer *t)
{
    mixt__run run = {.input = t->eval_input, .target = t->eval_target};
    if (!t->device->backend->host_memory) {
        size_t bytes[2];
        batch_bytes(&t->eval_spec, bytes);
        MIXT_TRY(mixt__device_upload(t->device, t->eval_device[0], t->eval_input, bytes[0]));
        MIXT_TRY(mixt__device_upload(t->device, t->eval_device[1], t->eval_target, bytes[1]));
        run = (mixt__run){.input = t->eval_device[0], .target = t->eval_device[1]};
    }
    MIXT_TRY(mixt__ranks_begin_reading(t, MIXT_GATHER_EVAL, &run));
    return mixt__ranks_end_reading(t, mixt__executable_run(t->eval, &run));
}

/** The figures of one pass: loss, hits and targets of `count` samples. */
static mixt_status read_pass(mixt__trainer *t, const mixt_data *data, int64_t first, int64_t count, float *metrics)
{
    int64_t valid;
    MIXT_TRY(mixt__data_read_some(data, first, count, t->settings.eval_batch, t->eval_input, t->eval_target, &valid));
    pad_samples(t, data, valid);
    MIXT_TRY(run_evaluation(t));
    int32_t value = t->eval->graph->metrics;
    memset(metrics, 0, MIXT_PASS_FIGURES * sizeof *metrics);
    return mixt__device_download(t->device, metrics, mixt__executable_address(t->eval, value),
                                 (size_t)mixt__shape_count(&t->eval->graph->values[value].shape) * sizeof *metrics);
}

/** Adds the figures of samples [first, end), in passes of at most the evaluation batch. Stops early where `interrupt`
 *  is set: *stopped says so. */
static mixt_status add_samples(mixt__trainer *t, const mixt_data *data, int64_t first, int64_t end,
                               const volatile sig_atomic_t *interrupt, double sums[MIXT_PASS_FIGURES], bool *stopped)
{
    for (; first < end; first += t->settings.eval_batch) {
        int64_t count = end - first < t->settings.eval_batch ? end - first : t->settings.eval_batch;
        float metrics[MIXT_PASS_FIGURES];
        mixt__signal_at(MIXT_PLACE_VALIDATION);
        *stopped = interrupt && *interrupt;
        if (*stopped)
            return MIXT_OK;
        MIXT_TRY(read_pass(t, data, first, count, metrics));
        for (int i = 0; i < MIXT_PASS_FIGURES; i++)
            sums[i] += metrics[i];
    }
    return MIXT_OK;
}

static mixt_status make_result(const mixt__trainer *t, const mixt_data *data, const double sums[MIXT_PASS_FIGURES],
                               mixt_evaluation *result)
{
    const mixt_data_info *info = mixt_data_describe(data);
    if (sums[2] <= 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s (%s): no samples to evaluate", info->path, info->split);
    *result = (mixt_evaluation){.loss = sums[0] / sums[2], .count = (int64_t)sums[2]};
    result->accuracy = t->eval->graph->counts_correct ? sums[1] / sums[2] : NAN;
    result->margin = mixt__trainer_prefers(t->eval->graph) ? sums[3] / sums[2] : NAN;
    return MIXT_OK;
}

mixt_status mixt__trainer_evaluate(mixt__trainer *t, const mixt_data *data, const volatile sig_atomic_t *interrupt,
                                   mixt_evaluation *result)
{
    double sums[MIXT_PASS_FIGURES] = {0};
    bool stopped = false;
    MIXT_TRY(mixt__trainer_prepare_evaluation(t, data));
    MIXT_TRY(add_samples(t, data, 0, mixt_data_describe(data)->samples, interrupt, sums, &stopped));
    if (!stopped)
        return make_result(t, data, sums, result);
    *result = (mixt_evaluation){.loss = NAN, .accuracy = NAN, .count = -1, .margin = NAN};
    return MIXT_OK;
}

/** The smallest batch for which all ranks have room. */
static mixt_status agree_on_batch(mixt__trainer *t, const mixt_data *data)
{
    mixt__group *g = t->ranks.group;
    int64_t *all = (int64_t *)(void *)g->words, least = t->settings.eval_batch;
    MIXT_TRY(mixt__group_gather(g, &t->settings.eval_batch, sizeof *all, all, 1));
    for (int rank = 0; rank < g->size; rank++)
        least = all[rank] < least ? all[rank] : least;
    if (least == t->settings.eval_batch)
        return MIXT_OK;
    mixt__trainer_free_eval(t);
    t->settings.eval_batch = least;
    return mixt__trainer_prepare_evaluation(t, data);
}

mixt_status mixt__trainer_evaluate_ranks(mixt__trainer *t, const mixt_data *data, mixt_evaluation *result)
{
    mixt__group *g = t->ranks.group;
    double sums[MIXT_PASS_FIGURES] = {0};
    MIXT_TRY(mixt__trainer_prepare_evaluation(t, data));
    MIXT_TRY(agree_on_batch(t, data));
    int64_t samples = mixt_data_describe(data)->samples, batch = t->settings.eval_batch;
    int64_t batches = (samples + batch - 1) / batch;
    for (int64_t first = 0; first < batches; first += g->size) {
        float metrics[MIXT_PASS_FIGURES], *all = (float *)(void *)g->words;
        // Behind the last there is none: it is passed again for nothing, as weights may be gathered for it by all.
        int64_t mine = first + g->rank < batches ? first + g->rank : batches - 1, left = samples - mine * batch;
        MIXT_TRY(read_pass(t, data, mine * batch, left < batch ? left : batch, metrics));
        MIXT_TRY(mixt__group_gather(g, metrics, sizeof metrics, all, 1));
        for (int rank = 0; rank < g->size && first + rank < batches; rank++)
            for (int i = 0; i < MIXT_PASS_FIGURES; i++)
                sums[i] += all[MIXT_PASS_FIGURES * rank + i];
    }
    return make_result(t, data, sums, result);
}

mixt_status mixt__trainer_evaluate_blocks(mixt__trainer *t, const mixt_data *data, const mixt__trainer_blocks *blocks,
                                          mixt_evaluation *result)
{
    int64_t samples = mixt_data_describe(data)->samples;
    double sums[MIXT_PASS_FIGURES] = {0};
    bool stopped = false;
    MIXT_TRY(mixt__trainer_prepare_evaluation(t, data));
    for (int64_t i = 0; i < blocks->count; i++) {
        int64_t first = blocks->first + i * blocks->stride, end = first + blocks->size;
        MIXT_TRY(add_samples(t, data, first, end < samples ? end : samples, NULL, sums, &stopped));
    }
    return make_result(t, data, sums, result);
}
