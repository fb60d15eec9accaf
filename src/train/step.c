/* A whole training step, and evaluation.
 *
 * batch → forward → loss → backward, once per micro-step, gradients in the flat arena; then statistics, step control,
 * optimizer. Nothing is allocated after the first step.
 */
#include "train/trainer.h"

#include "base/log.h"
#include "base/rng.h"
#include "data/prefetch.h"
#include "train/pass_weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool same_batches(const mixt__batch_spec *a, const mixt__batch_spec *b)
{
    return a->input_dtype == b->input_dtype && a->target_dtype == b->target_dtype &&
           mixt__shape_equal(&a->input, &b->input) && mixt__shape_equal(&a->target, &b->target);
}

static mixt_status check_fit(const char *what, mixt_dtype dtype, const mixt__shape *shape, mixt_dtype compiled_dtype,
                             const mixt__shape *compiled)
{
    char now[128], before[128];
    if (dtype == compiled_dtype && mixt__shape_equal(shape, compiled))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE, "the data's batches have %s %s %s, the model is compiled for %s %s", what,
                      mixt_dtype_name(dtype), mixt__shape_text(shape, now, sizeof now), mixt_dtype_name(compiled_dtype),
                      mixt__shape_text(compiled, before, sizeof before));
}

static mixt_status check_data(const mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.batch);
    MIXT_TRY(check_fit("inputs", spec.input_dtype, &spec.input, t->spec.input_dtype, &t->spec.input));
    return check_fit("targets", spec.target_dtype, &spec.target, t->spec.target_dtype, &t->spec.target);
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
    mixt__trainer_stop_batches(t);
    mixt__prefetch_form form = {t->backend->alloc_host, t->backend->free_host, mixt__trainer_fed_dtype(t)};
    MIXT_TRY(mixt__prefetch_start(data, t->settings.batch, MIXT_PREFETCH_DEPTH, t->next_batch, &form, &t->prefetch));
    t->prefetched = data;
    t->batches_per_epoch = mixt_data_batches(data, t->settings.batch);
    return MIXT_OK;
}

static uint64_t next_key(mixt__trainer *t)
{
    return mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)t->runs++);
}

/** Issues one forward and backward pass, its figures going to the step's result. */
static mixt_status micro_step(mixt__trainer *t, const mixt__run *run, int64_t index)
{
    MIXT_TRY(mixt__executable_run(t->train, run));
    float *metrics = mixt__feed_result(&t->feed)->metrics[index];
    return t->backend->copy(metrics, mixt__executable_address(t->train, t->train->graph->metrics), 3 * sizeof *metrics);
}

/** Statistics, control, update: what follows the last micro-step.
 *  @param factor what the sum of its gradients is to be multiplied with */
static mixt_status update(mixt__trainer *t, double factor)
{
    mixt__update u = t->update;
    u.control_follows = true;
    u.gradient_factor = factor;
    MIXT_TRY(t->backend->gradient_stats(&u));
    MIXT_TRY(t->backend->step_control(&u));
    MIXT_TRY(t->backend->optimizer_step(&u));
    return t->backend->copy(&mixt__feed_result(&t->feed)->control, t->control, sizeof *t->control);
}

/** The whole step on batches that lie in the feed's slot: what is recorded. */
static mixt_status issue(void *argument)
{
    mixt__trainer *t = argument;
    int64_t passes = t->settings.accumulate;
    float *seeds = passes > 1 ? mixt__feed_seeds(&t->feed) : NULL;
    if (seeds)
        MIXT_TRY(t->backend->multiply(seeds, mixt__feed_weights(&t->feed), &t->control->seed, passes));
    for (int64_t i = 0; i < passes; i++) {
        mixt__run run = {.input = mixt__feed_input(&t->feed, i), .target = mixt__feed_target(&t->feed, i)};
        run.rng_key = mixt__feed_key(&t->feed, i);
        run.accumulate = i > 0;
        run.seed = seeds ? seeds + i : NULL;
        MIXT_TRY(micro_step(t, &run, i));
    }
    return update(t, 1);
}

/** Where the batches of a step come from: the prefetch thread, or the caller's memory. */
typedef struct source {
    const char *input, *target; // NULL: the prefetch thread
    size_t input_bytes, target_bytes;
    bool resident;
} source;

static mixt_status take_batch(mixt__trainer *t, const source *s, int64_t index, const void **input, const void **target)
{
    const mixt__batch *batch;
    if (s->input) {
        *input = s->input + (size_t)index * s->input_bytes;
        *target = s->target + (size_t)index * s->target_bytes;
        return s->resident ? MIXT_OK : mixt__feed_round(&t->feed, *input, input);
    }
    MIXT_TRY(mixt__prefetch_take(t->prefetch, &batch));
    *input = batch->input;
    *target = batch->target;
    return MIXT_OK;
}

/** Targets of a batch that count; -1: nobody asks, or they lie where the host cannot read them. */
static int64_t count_targets(const mixt__trainer *t, const source *s, const void *target)
{
    if (t->settings.accumulate == 1 || (s->resident && !t->backend->host_memory))
        return -1;
    return mixt__targets_count(target, t->spec.target_dtype, mixt__shape_count(&t->spec.target));
}

/** On the host: each batch is used where it lies, then given back. On a device: it is copied over, then given back. */
static mixt_status run_batch(mixt__trainer *t, const source *s, int64_t index, mixt__pass_weights *weights)
{
    const void *input, *target;
    MIXT_TRY(take_batch(t, s, index, &input, &target));
    uint64_t key = next_key(t);
    int64_t count = count_targets(t, s, target);
    mixt__run run = {.input = input, .target = target, .accumulate = index > 0, .rng_key = &key};
    mixt_status status;
    if (t->backend->host_memory) {
        float seed = t->control->seed * (count >= 0 ? mixt__pass_weight(weights, count) : 1);
        run.seed = &seed;
        status = micro_step(t, &run, index);
    } else {
        status = mixt__feed_put(&t->feed, index, input, target, key, count, !s->resident);
    }
    if (!s->input) {
        mixt__prefetch_release(t->prefetch);
        t->next_batch++;
    }
    return status;
}

static mixt_status inject_overflow(mixt__trainer *t)
{
    float infinite = INFINITY;
    return t->backend->upload(&t->control->seed, &infinite, sizeof infinite);
}

/** Names the first layer whose gradient was not finite. */
static void find_overflow(mixt__trainer *t, const mixt__control *c, int64_t step)
{
    t->overflow_layer[0] = '\0';
    if (!c->found_inf || c->bad_segment < 0)
        return;
    const char *name = t->params->table[t->params->segments[c->bad_segment].param].name;
    snprintf(t->overflow_layer, sizeof t->overflow_layer, "%s", name);
    MIXT_LOG(TRAIN, "step %lld skipped: first non-finite gradient in %s, scale %g -> %g", (long long)step, name,
             (double)c->used_scale, (double)c->scale);
}

mixt_status mixt__trainer_result(mixt__trainer *t, int64_t step, mixt_step *result)
{
    const mixt__step_result *found;
    int64_t back = t->attempts - step;
    if (back < 0 || back >= MIXT_STAGE_SLOTS || step <= t->first_step)
        return mixt__fail(MIXT_ERROR_STATE, "the result of step %lld is not kept: %lld steps were run", (long long)step,
                          (long long)t->attempts);
    MIXT_TRY(mixt__feed_result_of(&t->feed, back, &found));
    const mixt__control *c = &found->control;
    double sums[3] = {0};
    for (int64_t m = 0; m < t->settings.accumulate; m++)
        for (int i = 0; i < 3; i++)
            sums[i] += (double)found->metrics[m][i];
    t->control_copy = *c;
    find_overflow(t, c, step);
    int64_t batches = t->next_batch - back * t->settings.accumulate;
    bool classes = t->model.loss != MIXT_LOSS_MSE;
    *result = (mixt_step){.step = step, .applied = c->step, .skipped = c->found_inf, .scale = (double)c->used_scale};
    result->epoch = t->batches_per_epoch && batches > 0 ? (batches - 1) / t->batches_per_epoch : 0;
    result->samples = t->settings.batch * t->settings.accumulate;
    result->loss = sums[2] > 0 ? sums[0] / sums[2] : 0;
    result->accuracy = classes && sums[2] > 0 ? sums[1] / sums[2] : NAN;
    result->lr = c->lr;
    result->grad_norm = c->grad_norm;
    result->overflow_layer = t->overflow_layer[0] ? t->overflow_layer : NULL;
    return MIXT_OK;
}

static mixt_status begin(mixt__trainer *t)
{
    if (t->hand_gradients)
        return mixt__fail(MIXT_ERROR_STATE,
                          "gradients made by hand are waiting: apply or discard them before a whole step");
    t->attempts++;
    return t->attempts == t->settings.inject_overflow ? inject_overflow(t) : MIXT_OK;
}

/** All passes of a step and its update: on the host at once, on a device as one piece of work. */
static mixt_status run_passes(mixt__trainer *t, const source *s)
{
    mixt__pass_weights weights = {0};
    for (int64_t i = 0; i < t->settings.accumulate; i++)
        MIXT_TRY(run_batch(t, s, i, &weights));
    if (!t->backend->host_memory) {
        MIXT_TRY(mixt__feed_weigh(&t->feed));
        return mixt__feed_step(&t->feed, !t->train->seconds, issue, t);
    }
    MIXT_TRY(update(t, mixt__pass_weights_factor(&weights, t->settings.accumulate)));
    t->feed.turn++;
    return MIXT_OK;
}

static mixt_status run_step(mixt__trainer *t, const source *s, mixt_step *result)
{
    mixt_step unused;
    MIXT_TRY(begin(t));
    mixt_status status = run_passes(t, s);
    if (status != MIXT_OK) {
        (void)mixt__params_restore_statistics(t->params); // what failed first is what is told
        return status;
    }
    if (!result && !t->backend->host_memory)
        return MIXT_OK; // nobody waits for the device
    return mixt__trainer_result(t, t->attempts, result ? result : &unused);
}

mixt_status mixt__trainer_read_control(mixt__trainer *t)
{
    const mixt__step_result *newest;
    MIXT_TRY(t->backend->synchronize());
    if (t->attempts == t->first_step || !t->feed.turn)
        return MIXT_OK;
    MIXT_TRY(mixt__feed_result_of(&t->feed, 0, &newest));
    t->control_copy = newest->control;
    return MIXT_OK;
}

mixt_status mixt__trainer_step(mixt__trainer *t, const mixt_data *data, mixt_step *result)
{
    MIXT_TRY(ready(t, data));
    return run_step(t, &(source){0}, result);
}

mixt_status mixt__trainer_step_on(mixt__trainer *t, const void *input, const void *target, bool resident,
                                  mixt_step *result)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it does not know the shape of a batch");
    MIXT_TRY(mixt__trainer_allocate(t));
    source s = {.input = input, .target = target, .resident = resident};
    s.input_bytes = (size_t)t->feed.input_count * mixt_dtype_size(resident ? t->feed.fed : t->feed.given);
    s.target_bytes = t->feed.target_bytes;
    return run_step(t, &s, result);
}

/* ---- evaluation ---- */

/** Bytes of one evaluation batch: its inputs, its targets. */
static void batch_bytes(const mixt__batch_spec *spec, size_t bytes[2])
{
    bytes[0] = (size_t)mixt__shape_count(&spec->input) * mixt_dtype_size(spec->input_dtype);
    bytes[1] = (size_t)mixt__shape_count(&spec->target) * mixt_dtype_size(spec->target_dtype);
}

/** Evaluation beside the training step, whose memory may still be to be taken. */
static mixt_status check_room(const mixt__trainer *t, const mixt__batch_spec *spec)
{
    size_t batch[2], room = t->backend->available();
    batch_bytes(spec, batch);
    size_t need = t->eval->plan.arena_bytes + t->eval->workspace_bytes + batch[0] + batch[1];
    if (!t->control)
        need += mixt__trainer_memory(t).total;
    const double gib = 1073741824.0;
    if (!room || need <= room)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_MEMORY,
                      "evaluating %lld samples at once needs %.2f GiB, %s has %.2f GiB free: lower eval_batch",
                      (long long)t->settings.eval_batch, (double)need / gib, t->backend->name, (double)room / gib);
}

static mixt_status plan_evaluation(mixt__trainer *t, const mixt__batch_spec *spec)
{
    mixt__graph *source;
    mixt__model model = t->model;
    model.label_smoothing = 0; // a means of training: what predictions are worth is measured without
    MIXT_TRY(mixt__model_build(&model, spec, false, &source));
    mixt__compile_options options = {.policy = t->settings.policy, .no_fusion = t->settings.no_fusion};
    options.fused = t->backend->fused;
    MIXT_TRY(mixt__compile_take(source, &options, t->backend, &t->eval));
    t->eval_spec = *spec;
    return mixt__params_match(t->params, t->eval->graph);
}

mixt_status mixt__trainer_check_evaluation(mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.eval_batch);
    mixt_status status = plan_evaluation(t, &spec);
    if (status == MIXT_OK)
        status = check_room(t, &spec);
    if (status != MIXT_OK)
        mixt__trainer_free_eval(t);
    return status;
}

static mixt_status compile_evaluation(mixt__trainer *t, const mixt_data *data)
{
    size_t bytes[2];
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.eval_batch);
    if (!t->eval)
        MIXT_TRY(plan_evaluation(t, &spec));
    MIXT_TRY(mixt__executable_allocate(t->eval));
    mixt__executable_bind(t->eval, t->params, &t->control->seed);
    batch_bytes(&spec, bytes);
    t->eval_input = mixt__alloc(bytes[0]);
    t->eval_target = mixt__alloc(bytes[1]);
    bool complete = t->eval_input && t->eval_target;
    if (!t->backend->host_memory) {
        t->eval_device[0] = t->backend->alloc(bytes[0]);
        t->eval_device[1] = t->backend->alloc(bytes[1]);
        complete = complete && t->eval_device[0] && t->eval_device[1];
    }
    return complete ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for an evaluation batch");
}

static mixt_status ready_to_evaluate(mixt__trainer *t, const mixt_data *data)
{
    if (!t->train) {
        mixt__batch_spec train = mixt__trainer_spec_of(data, t->settings.batch);
        MIXT_TRY(mixt__trainer_compile(t, &train));
    }
    MIXT_TRY(mixt__trainer_allocate(t));
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.eval_batch);
    bool planned = t->eval && same_batches(&spec, &t->eval_spec);
    if (planned && t->eval_input)
        return MIXT_OK;
    if (!planned)
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

/** One batch, where it lies or copied over. */
static mixt_status run_evaluation(mixt__trainer *t)
{
    mixt__run run = {.input = t->eval_input, .target = t->eval_target};
    if (!t->backend->host_memory) {
        const mixt__graph *g = t->eval->graph;
        const mixt__value *input = &g->values[g->input], *target = &g->values[g->target];
        MIXT_TRY(t->backend->upload(t->eval_device[0], t->eval_input,
                                    (size_t)mixt__shape_count(&input->shape) * mixt_dtype_size(input->dtype)));
        MIXT_TRY(t->backend->upload(t->eval_device[1], t->eval_target,
                                    (size_t)mixt__shape_count(&target->shape) * mixt_dtype_size(target->dtype)));
        run = (mixt__run){.input = t->eval_device[0], .target = t->eval_device[1]};
    }
    return mixt__executable_run(t->eval, &run);
}

mixt_status mixt__trainer_evaluate(mixt__trainer *t, const mixt_data *data, const volatile sig_atomic_t *interrupt,
                                   mixt_evaluation *result)
{
    MIXT_TRY(ready_to_evaluate(t, data));
    const mixt_data_info *info = mixt_data_describe(data);
    double sums[3] = {0};
    for (int64_t first = 0; first < info->samples; first += t->settings.eval_batch) {
        int64_t valid;
        if (interrupt && *interrupt) {
            *result = (mixt_evaluation){.loss = NAN, .accuracy = NAN, .count = -1};
            return MIXT_OK;
        }
        MIXT_TRY(mixt_data_read(data, first, t->settings.eval_batch, t->eval_input, t->eval_target, &valid));
        pad_targets(t, info, valid);
        MIXT_TRY(run_evaluation(t));
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
