/* A whole training step.
 *
 * batch → forward → loss → backward, once per micro-step, gradients in the flat arena; then statistics, step control,
 * optimizer. Nothing is allocated after the first step.
 */
#include "train/trainer_inside.h"

#include "base/log.h"
#include "base/rng.h"
#include "data/buckets.h"
#include "data/prefetch.h"
#include "train/dist/device_sums.h"
#include "train/faults.h"
#include "train/lengths.h"
#include "train/dist/local.h"
#include "train/pass_weights.h"
#include "train/dist/sharded.h"
#include "train/instrument.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    MIXT_TRY(check_fit("targets", spec.target_dtype, &spec.target, t->spec.target_dtype, &t->spec.target));
    if (!mixt__spec_equal(&spec, &t->spec))
        return mixt__fail(MIXT_ERROR_SHAPE, "the data's batches have other arrays than the model is compiled for");
    return MIXT_OK;
}

static void *take_host(void *device, size_t bytes)
{
    return mixt__device_alloc_host(device, bytes);
}

static void give_back_host(void *device, void *block)
{
    mixt__device_free_host(device, block);
}

static mixt__prefetch_form ring_form(const mixt__trainer *t)
{
    mixt__batch_spec fed = mixt__trainer_fed_spec(t);
    mixt__prefetch_form form = {.alloc = take_host, .free = give_back_host, .user = t->device};
    form.input = fed.input_dtype;
    form.parts = t->settings.split * t->settings.ranks;
    form.run = mixt__ranks_made(t);
    form.of = t->settings.accumulate;
    form.whole = !t->lengths.fed;
    for (int i = 0; i < fed.more_count && !fed.more[i].target; i++)
        form.more[i] = fed.more[i].dtype;
    return form;
}

size_t mixt__trainer_batches_ahead(const mixt__trainer *t, const mixt_data *data)
{
    mixt__prefetch_form form = ring_form(t);
    return mixt__prefetch_bytes(data, t->settings.batch, MIXT_PREFETCH_DEPTH, &form);
}

mixt_status mixt__trainer_ready(mixt__trainer *t, const mixt_data *data)
{
    if (!t->train)
        MIXT_TRY(mixt__trainer_compile_data(t, data));
    MIXT_TRY(mixt__trainer_allocate(t));
    return mixt__faults_prepare(t, data);
}

/** Moves the prefetch thread to another data set when that changes. */
static mixt_status read_ahead(mixt__trainer *t, const mixt_data *data)
{
    if (t->prefetched == data)
        return MIXT_OK;
    MIXT_TRY(check_data(t, data));
    mixt__trainer_stop_batches(t);
    t->lengths.fed = mixt__lengths_match(t, data);
    mixt__prefetch_form form = ring_form(t);
    MIXT_TRY(mixt__prefetch_start(data, t->settings.batch, MIXT_PREFETCH_DEPTH, t->next_batch + mixt__ranks_first(t),
                                  &form, &t->prefetch));
    t->prefetched = data;
    int64_t parts = t->settings.split * t->settings.ranks; // of a batch of the data
    t->batches_per_epoch =
        mixt__data_epoch_batches(data, t->settings.batch * parts, t->settings.accumulate / parts) * parts;
    return MIXT_OK;
}

/** Of pass number `index` of the coming update. */
static uint64_t key_of(const mixt__trainer *t, int64_t index)
{
    return mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)(t->runs + index));
}

/** Issues one forward and backward pass, its figures going to the step's result. */
static mixt_status micro_step(mixt__trainer *t, const mixt__run *run, int64_t index)
{
    mixt__executable *step = mixt__lengths_step(t);
    MIXT_TRY(mixt__faults_run(t, step, run));
    float *metrics = mixt__feed_result(&t->feed)->metrics[index];
    int64_t count = mixt__shape_count(&step->graph->values[step->graph->metrics].shape);
    return mixt__device_copy(t->device, metrics, mixt__executable_address(step, step->graph->metrics),
                             (size_t)count * sizeof *metrics);
}

/** The same as one of those that ranks share: what it does to running statistics is kept apart. */
static mixt_status ranked_pass(mixt__trainer *t, mixt__run *run, int64_t index)
{
    MIXT_TRY(mixt__ranks_before_pass(t, index, run));
    MIXT_TRY(micro_step(t, run, index));
    if (t->instrumenting && t->passed)
        MIXT_TRY(t->passed(t->passed_user, index));
    return mixt__ranks_after_pass(t, index);
}

/** Statistics, control, update: what follows the last micro-step.
 *  @param factor what the sum of its gradients is to be multiplied with */
static mixt_status update(mixt__trainer *t, double factor)
{
    mixt__update u = t->update;
    u.control_follows = !mixt__sharded_gradients(&t->ranks) && !t->ranks.local.local; // else ranks agree in between
    u.optimizer.others = t->ranks.local.local ? (float)(t->settings.ranks - 1) : 0;
    u.gradient_factor = factor;
    MIXT_TRY(mixt__ranks_measure(t, &u));
    MIXT_TRY(mixt__ranks_control(t, &u));
    MIXT_TRY(mixt__integrity_read(t, &u));
    MIXT_TRY(mixt__ranks_apply(t, &u));
    MIXT_TRY(mixt__integrity_judge(t, &u));
    mixt__segment_stats *kept = t->kept_stats[t->feed.turn % MIXT_STAGE_SLOTS];
    if (kept)
        MIXT_TRY(mixt__device_copy(t->device, kept, t->stats, mixt__trainer_kept_stats_bytes(t) / MIXT_STAGE_SLOTS));
    if (t->instrumenting)
        MIXT_TRY(mixt__trainer_keep_instrumented(t));
    MIXT_TRY(mixt__integrity_report(t));
    return mixt__device_copy(t->device, &mixt__feed_result(&t->feed)->control, t->control, sizeof *t->control);
}

/** One part of an update on a device with memory of its own. */
typedef struct part {
    mixt__trainer *trainer;
    int64_t first; // of its passes
    bool whole;    // it is all of the update, which ends with it: no rank puts anything to it in between
} part;

/** Its passes on batches that lie in the feed's slot, and what follows them on the device: what is recorded. */
static mixt_status run_held(void *argument)
{
    const part *p = argument;
    mixt__trainer *t = p->trainer;
    int64_t place = p->first - mixt__ranks_first(t), passes = mixt__ranks_passes(t);
    float *seeds = t->settings.accumulate > 1 ? mixt__feed_seeds(&t->feed) + place : NULL;
    const float *weights = mixt__feed_weights(&t->feed) + place;
    if (seeds)
        MIXT_TRY(mixt__device_multiply(t->device, seeds, weights, &t->control->seed, passes));
    for (int64_t i = 0; i < passes; i++) {
        mixt__run run = {.input = mixt__feed_input(&t->feed, place + i)};
        run.target = mixt__feed_target(&t->feed, place + i);
        run.rng_key = mixt__feed_key(&t->feed, place + i);
        run.accumulate = i > 0;
        run.seed = seeds ? seeds + i : NULL;
        MIXT_TRY(ranked_pass(t, &run, p->first + i));
    }
    if (!p->whole || t->ranks.discrete.sums)
        MIXT_TRY(mixt__device_sums_finish(t));
    return p->whole ? update(t, 1) : MIXT_OK;
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
    if (t->lengths.fed)
        mixt__lengths_select(t, batch->bucket);
    *input = batch->input;
    *target = batch->target;
    return MIXT_OK;
}

/** Targets of a batch that count; -1: nobody asks, or they lie where the host cannot read them. */
static int64_t count_targets(const mixt__trainer *t, const source *s, const void *target)
{
    if (t->settings.accumulate == 1 || (s->resident && !t->device->backend->host_memory))
        return -1;
    const mixt__batch_spec *spec = mixt__lengths_spec(t);
    return mixt__targets_count(target, spec->target_dtype, mixt__shape_count(&spec->target));
}

/** On the host: each batch is used where it lies, then given back. On a device: it is copied over, then given back. */
static mixt_status run_batch(mixt__trainer *t, const source *s, int64_t index, mixt__pass_weights *weights)
{
    const void *input, *target;
    MIXT_TRY(take_batch(t, s, index, &input, &target));
    uint64_t key = key_of(t, index);
    int64_t count = count_targets(t, s, target);
    mixt__run run = {.input = input, .target = target, .rng_key = &key};
    run.accumulate = index % mixt__ranks_passes(t) > 0;
    mixt_status status;
    if (t->device->backend->host_memory) {
        float seed = t->control->seed * (count >= 0 ? mixt__pass_weight(weights, count) : 1);
        run.seed = &seed;
        status = ranked_pass(t, &run, index);
    } else {
        int64_t place = index - mixt__ranks_first(t);
        if (t->settings.ranks > 1)
            t->feed.host_weights[place] = count >= 0 ? mixt__pass_weight(weights, count) : 1;
        status = mixt__feed_put(&t->feed, place, input, target, key, count, !s->resident);
    }
    if (!s->input)
        mixt__prefetch_release(t->prefetch);
    return status;
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
    double sums[MIXT_PASS_FIGURES] = {0};
    bool prefers = mixt__trainer_prefers(t->train->graph);
    for (int64_t m = 0; m < t->settings.accumulate; m++)
        for (int i = 0; i < MIXT_PASS_FIGURES - !prefers; i++)
            sums[i] += (double)found->metrics[m][i];
    t->control_copy = *c;
    MIXT_TRY(mixt__integrity_take_in(t, step, &found->damage));
    find_overflow(t, c, step);
    int64_t batches = t->next_batch - back * t->settings.accumulate;
    bool classes = t->train->graph->counts_correct;
    *result = (mixt_step){.step = step, .applied = c->step, .skipped = c->found_inf, .scale = (double)c->used_scale};
    result->epoch = t->batches_per_epoch && batches > 0 ? (batches - 1) / t->batches_per_epoch + 1 : 0;
    result->samples = t->settings.batch * t->settings.accumulate;
    result->loss = sums[2] > 0 ? sums[0] / sums[2] : 0;
    result->accuracy = classes && sums[2] > 0 ? sums[1] / sums[2] : NAN;
    result->margin = prefers && sums[2] > 0 ? sums[3] / sums[2] : NAN;
    result->lr = c->lr;
    result->grad_norm = c->grad_norm;
    result->overflow_layer = t->overflow_layer[0] ? t->overflow_layer : NULL;
    return MIXT_OK;
}

mixt_status mixt__trainer_stats_of(mixt__trainer *t, int64_t step, const mixt__segment_stats **stats)
{
    const mixt__step_result *waited;
    int64_t back = t->attempts - step;
    if (back < 0 || back >= MIXT_STAGE_SLOTS || step <= t->first_step || !t->kept_stats[0])
        return mixt__fail(MIXT_ERROR_STATE, "the statistics of step %lld are not kept", (long long)step);
    MIXT_TRY(mixt__feed_result_of(&t->feed, back, &waited));
    *stats = t->kept_stats[(t->feed.turn - 1 - back) % MIXT_STAGE_SLOTS];
    return MIXT_OK;
}

static mixt_status begin(mixt__trainer *t)
{
    if (t->hand_gradients)
        return mixt__fail(MIXT_ERROR_STATE,
                          "gradients are pending (mixt_trainer_backward): apply or discard them before a whole step");
    t->attempts++;
    return mixt__faults_begin(t);
}

/** What is instrumented for a single time is not worth a recording. */
static bool may_record(const mixt__trainer *t)
{
    return !t->train->seconds && !t->faults && t->rate == 1 && (!t->instrumenting || t->layers.running);
}

/** Takes the batches of some passes: on the host they run on them. */
static mixt_status take_batches(mixt__trainer *t, const source *s, int64_t first, int64_t count,
                                mixt__pass_weights *weights)
{
    for (int64_t i = first; i < first + count; i++)
        MIXT_TRY(run_batch(t, s, i, weights));
    return MIXT_OK;
}

/** Runs a part whose batches lie in the feed's slot. Several parts of one process are not worth recordings. */
static mixt_status issue_part(mixt__trainer *t, int64_t first)
{
    mixt__feed_kind kind = t->instrumenting ? MIXT_FEED_WATCHED : MIXT_FEED_PLAIN;
    part p = {.trainer = t, .first = first, .whole = t->settings.ranks == 1};
    bool record =
        p.whole || (t->ranks.group && (!t->params->shard.masters || t->ranks.discrete.sums)); // else the host gathers
    if (!p.whole)
        mixt__device_sums_expect(t);
    MIXT_TRY(mixt__feed_issue(&t->feed, kind, record && may_record(t), run_held, &p));
    return p.whole ? MIXT_OK : mixt__device_sums_wait(t);
}

/** The passes that this process makes, part by part: on the host each on its batch where that lies, on a device once
 *  all batches of the step have come there. */
static mixt_status run_parts(mixt__trainer *t, const source *s, mixt__pass_weights *weights)
{
    bool host = t->device->backend->host_memory;
    int64_t first = mixt__ranks_first(t), passes = mixt__ranks_passes(t);
    if (!host) {
        MIXT_TRY(take_batches(t, s, first, mixt__ranks_made(t), weights));
        MIXT_TRY(t->settings.ranks == 1 ? mixt__feed_weigh(&t->feed) : mixt__feed_send_weights(&t->feed));
    }
    for (int64_t part = 0; part < mixt__ranks_parts(t); part++, first += passes) {
        MIXT_TRY(host ? take_batches(t, s, first, passes, weights) : issue_part(t, first));
        MIXT_TRY(mixt__ranks_end_part(t, part));
        MIXT_TRY(mixt__trainer_add_instrumented(t, part));
    }
    return MIXT_OK;
}

/** What a pass counts for is relative to the first that has targets; of ranks, which do not know each other's, to one
 *  whose targets all count. */
static mixt__pass_weights begin_weights(const mixt__trainer *t)
{
    return (mixt__pass_weights){.first = t->settings.ranks > 1 ? mixt__shape_count(&t->spec.target) : 0};
}

/** All passes of a step and its update: on the host at once, on a device as one piece of work, but for what ranks put
 *  together between the two. */
static mixt_status run_passes(mixt__trainer *t, const source *s)
{
    mixt__pass_weights weights = begin_weights(t);
    bool host = t->device->backend->host_memory;
    mixt_status status = run_parts(t, s, &weights);
    mixt__pass_weights own = weights;
    MIXT_TRY(mixt__ranks_join(t, status, &weights));
    t->runs += t->settings.accumulate;
    mixt__lengths_note(t);
    if (!s->input)
        t->next_batch += t->settings.accumulate;
    if (host || t->settings.ranks > 1) // else the update has gone to the device with its passes
        MIXT_TRY(update(t, mixt__pass_weights_factor(t->ranks.local.local ? &own : &weights, t->settings.accumulate)));
    if (!host)
        return mixt__feed_turn(&t->feed);
    t->feed.turn++;
    return MIXT_OK;
}

static mixt_status run_step(mixt__trainer *t, const source *s, mixt_step *result)
{
    mixt_step unused;
    MIXT_TRY(begin(t));
    mixt__trainer_mark_instrumented(t);
    mixt_status status = mixt__integrity_begin(t);
    if (status == MIXT_OK)
        status = mixt__local_begin(t);
    if (status == MIXT_OK)
        status = run_passes(t, s);
    t->instrumenting = false;
    if (status != MIXT_OK) {
        mixt__local_leave(t);
        (void)mixt__params_restore_statistics(t->params); // what failed first is what is told
        return status;
    }
    if (!result && !t->device->backend->host_memory)
        return MIXT_OK; // nobody waits for the device
    return mixt__trainer_result(t, t->attempts, result ? result : &unused);
}

mixt_status mixt__trainer_read_control(mixt__trainer *t)
{
    const mixt__step_result *newest;
    MIXT_TRY(mixt__device_synchronize(t->device));
    if (t->attempts == t->first_step || !t->feed.turn)
        return MIXT_OK;
    MIXT_TRY(mixt__feed_result_of(&t->feed, 0, &newest));
    t->control_copy = newest->control;
    return MIXT_OK;
}

mixt_status mixt__trainer_step(mixt__trainer *t, const mixt_data *data, mixt_step *result)
{
    MIXT_TRY(mixt__trainer_ready(t, data));
    MIXT_TRY(read_ahead(t, data));
    mixt__lengths_select_whole(t);
    return run_step(t, &(source){0}, result);
}

mixt_status mixt__trainer_step_on(mixt__trainer *t, const void *input, const void *target, bool resident,
                                  mixt_step *result)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it does not know the shape of a batch");
    MIXT_TRY(mixt__trainer_ready(t, NULL));
    mixt__lengths_select_whole(t);
    source s = {.input = input, .target = target, .resident = resident};
    s.input_bytes = resident ? t->feed.input_bytes : t->feed.given_bytes;
    s.target_bytes = t->feed.target_bytes;
    return run_step(t, &s, result);
}
