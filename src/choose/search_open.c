/* Opening a search: its options checked, data and model opened, groups found, what is on disk taken up; and how long a
 * trial is. Nothing is written before everything else has been found to be good.
 */
#include "choose/search.h"

#include "base/options.h"
#include "base/status.h"
#include "base/threads.h"
#include "mixt/machine.h"
#include "run/open/init.h"
#include "store/json.h"
#include "train/checkpoint.h"
#include "train/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MIN = 8, STEPS_MAX = 200, STEPS_ASKED_MAX = 1000000000, TRIALS_MIN = 2, TIMED = 5, PLANNED_TRIES = 24 };

static const double lose_most = 1;
static const char *const steps_names[MIXT_SEARCH_PARTS] = {"steps", "fresh_steps"}; // what is settled of them

static mixt_status check_formats(const char *formats)
{
    for (const char *at = formats ? formats : ""; *at; at += strcspn(at, ", ")) {
        const mixt__search_level *level = NULL;
        at += strspn(at, ", ");
        int length = (int)strcspn(at, ", ");
        for (int i = 0; (level = mixt__search_level_at(i)); i++)
            if ((int)strlen(level->name) == length && !strncmp(level->name, at, (size_t)length))
                break;
        if (!level && length)
            return mixt__fail(MIXT_ERROR_ARGUMENT,
                              "formats: '%.*s' is not a format: expected bf16, fp16, tf32, or with the format of kept "
                              "activations fp32/bf16, fp32/fp8_e4m3, bf16/fp8_e4m3, fp16/fp8_e4m3, separated by commas",
                              length, at);
    }
    return MIXT_OK;
}

/** Refuses what makes no sense. */
static mixt_status settle_options(mixt__search *s, const mixt_search_options *given)
{
    s->options = MIXT_OPTIONS(mixt_search_options);
    MIXT_TRY(mixt__options(mixt_search_options, &s->options, given));
    const mixt_search_options *o = &s->options;
    MIXT_TRY(mixt__need(o->write));
    if (!*o->write)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "write: the name of the policy's file is empty");
    if (!(o->lose > 0 && o->lose <= lose_most))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "lose %g: a share of the loss above 0, up to %g", o->lose, lose_most);
    if (!(o->budget >= 0 && isfinite(o->budget)))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "budget %g: seconds, 0 or above", o->budget);
    if (o->steps < 0 || o->steps > STEPS_ASKED_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "steps %lld: from 0 to %d", (long long)o->steps, STEPS_ASKED_MAX);
    if (o->trials < TRIALS_MIN || o->trials > MIXT_SEARCH_TRIALS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "trials %lld: from %d (to have a spread) to %d", (long long)o->trials,
                          TRIALS_MIN, MIXT_SEARCH_TRIALS_MAX);
    if (o->pairs && (o->pairs < MIXT_STATS_PAIRS_MIN || o->pairs > MIXT_SEARCH_PAIRS_MAX))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "pairs %lld: from %d to %d, or 0 for as many as they need",
                          (long long)o->pairs, MIXT_STATS_PAIRS_MIN, MIXT_SEARCH_PAIRS_MAX);
    MIXT_TRY(check_formats(o->formats));
    s->budget = o->budget;
    s->trials = o->trials;
    return MIXT_OK;
}

/** The configuration without what does not count. */
static mixt_status take_config(mixt__search *s, const mixt_config *config)
{
    char out[256];
    MIXT_TRY(mixt_config_copy(config, &s->config));
    snprintf(out, sizeof out, "out=%s", mixt__config_table[MIXT_KEY_OUT].fallback);
    MIXT_TRY(mixt_config_set(s->config, out, "search"));
    return mixt_config_set(s->config, "precision=fp32", "search");
}

static mixt_status open_experiment(mixt__search *s)
{
    s->e.teller = (mixt__teller){s->options.progress, s->options.user};
    MIXT_TRY(mixt__experiment_open(&s->e, s->config));
    MIXT_TRY(mixt__experiment_init(&s->e, false, NULL, NULL));
    if (!s->e.val || mixt_data_describe(s->e.val)->samples < 2)
        return mixt__fail(MIXT_ERROR_DATA, "a search needs a validation part of at least 2 samples, which this data "
                                           "does not have: data.val_fraction=0.1 takes it from the training part");
    MIXT_TRY(mixt_trainer_set_precision(s->e.trainer, "bf16")); // any lower format shows what is fused and shared
    MIXT_TRY(mixt__search_groups_find(mixt__trainer_compiled(s->e.trainer->inner)->graph, &s->groups));
    if (!s->groups.count)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "the model has no layer whose format a policy can choose");
    return MIXT_OK;
}

static int64_t updates_left(const mixt__search *s)
{
    return s->e.total_steps - s->from_step;
}

/** The newest checkpoint of the run that leaves enough updates for a trial. */
static mixt_status find_checkpoint(mixt__search *s)
{
    char folder[MIXT_CHECKPOINT_PATH], path[MIXT_CHECKPOINT_PATH];
    int64_t *steps, count;
    if (!s->options.folder)
        return MIXT_OK;
    if (snprintf(folder, sizeof folder, "%s/checkpoints", s->options.folder) >= (int)sizeof folder - 32)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", s->options.folder);
    MIXT_TRY(mixt__checkpoints_list(folder, &steps, &count));
    for (int64_t i = 0; i < count; i++)
        if (steps[i] > s->from_step && s->e.total_steps - steps[i] >= STEPS_MIN)
            s->from_step = steps[i];
    mixt__free(steps);
    if (!s->from_step)
        return mixt__fail(
            MIXT_ERROR_STATE,
            "%s: no checkpoint leaves %d of the run's %lld updates for a trial: train.steps=N asks for more", folder,
            STEPS_MIN, (long long)s->e.total_steps);
    s->from = mixt__strdup(mixt__checkpoint_path(folder, s->from_step, path));
    if (!s->from)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    if (s->options.steps > updates_left(s))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "steps %lld: after %s the run has %lld updates",
                          (long long)s->options.steps, s->from, (long long)updates_left(s));
    return MIXT_OK;
}

static void describe_device(mixt__search *s)
{
    mixt__device *device = s->e.context->device;
    mixt_gpu_info gpu;
    mixt_cpu_info cpu;
    if (!device->backend->host_memory) {
        bool known = mixt_gpu_describe(0, &gpu) == MIXT_OK;
        snprintf(s->device, sizeof s->device, "%s: %s", device->backend->name, known ? gpu.name : "unknown");
        return;
    }
    mixt_cpu_describe(&cpu);
    snprintf(s->device, sizeof s->device, "%s: %s, %s, %d thread%s", device->backend->name, cpu.name, cpu.isa,
             cpu.threads, cpu.threads == 1 ? "" : "s");
}

/** What a search that goes on must have been asked for too. */
static json_t *make_header(mixt__search *s)
{
    const uint64_t *sums = mixt__experiment_sums(&s->e);
    char data[40];
    describe_device(s);
    snprintf(data, sizeof data, "%016llx%016llx", (unsigned long long)sums[0], (unsigned long long)sums[1]);
    const mixt_search_options *o = &s->options;
    json_t *header =
        json_pack("{s:s, s:f, s:s, s:I, s:I, s:s, s:s}", "for", o->goal == MIXT_SEARCH_TIME ? "time" : "memory", "lose",
                  o->lose, "formats", o->formats ? o->formats : "all", "steps", (json_int_t)o->steps, "trials",
                  (json_int_t)s->trials, "device", s->device, "data", data);
    mixt__json_set_text(header, "from", s->from ? s->from : "");
    mixt__json_set(header, "groups", mixt__search_groups_json(&s->groups));
    return header;
}

/** Takes up what is on disk, or begins it. */
static mixt_status open_state(mixt__search *s)
{
    json_t *header = make_header(s);
    mixt_status status = header
                             ? mixt__search_state_open(&s->state, s->options.write, s->config, header, s->options.fresh)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    json_decref(header);
    MIXT_TRY(status);
    for (int part = 0; part < MIXT_SEARCH_PARTS; part++) {
        int64_t settled = json_integer_value(mixt__search_state_fact(&s->state, steps_names[part]));
        s->steps[part] = settled > 0 && settled <= STEPS_ASKED_MAX ? settled : s->options.steps;
    }
    return MIXT_OK;
}

mixt_status mixt__search_open(mixt__search *s, const mixt_config *config, const mixt_search_options *options)
{
    s->started = mixt__time_now();
    s->state.lock = s->state.rows = -1;
    MIXT_TRY(settle_options(s, options));
    MIXT_TRY(take_config(s, config));
    MIXT_TRY(open_experiment(s));
    MIXT_TRY(find_checkpoint(s));
    return open_state(s);
}

void mixt__search_close(mixt__search *s)
{
    mixt__search_state_close(&s->state);
    mixt__search_groups_free(&s->groups);
    mixt__experiment_close(&s->e);
    mixt_config_free(s->config);
    mixt__free(s->from);
}

/* ---- the length of a trial ---- */

/** Updates that are timed. */
typedef struct timing {
    mixt__search *s;
    mixt__engine engine;
    double fastest;
} timing;

static mixt_status take_time(void *user, const mixt__made *made)
{
    timing *now = user;
    double start = mixt__time_now();
    now->fastest = fmin(now->fastest, made->seconds);
    mixt__search_tell(now->s, MIXT_PROGRESS_STEP, "");
    mixt__engine_set_aside(&now->engine, start);
    now->engine.stop = mixt__search_halted(now->s);
    return MIXT_OK;
}

/** Seconds of an FP32 step with its batch, the fastest of a few; INFINITY: halted before the first. */
static mixt_status time_step(mixt__search *s, double *seconds)
{
    mixt_policy *fp32;
    mixt_trainer *t = NULL;
    s->phase = "timing a step";
    MIXT_TRY(mixt__search_policy(&s->groups, s->fp32->levels, &fp32));
    mixt_status status = mixt__search_trainer(s, fp32, 0, true, &t);
    timing now = {.s = s, .engine = {.data = s->e.train, .at_once = true, .made = take_time}, .fastest = INFINITY};
    now.engine.user = &now;
    now.engine.stop = mixt__search_halted(s);
    if (status == MIXT_OK) {
        now.engine.trainer = t->inner;
        status = mixt__engine_make(&now.engine, TIMED);
    }
    *seconds = now.fastest;
    mixt__trainer_close(t);
    mixt_policy_free(fp32);
    return status;
}

/** Settles the updates of a trial once: `wanted`, within limits and the length of the run. */
static mixt_status settle_steps(mixt__search *s, mixt__search_part part, double wanted, int64_t least)
{
    int64_t most = updates_left(s) < STEPS_MAX ? updates_left(s) : STEPS_MAX;
    int64_t steps = wanted < STEPS_MAX ? (int64_t)wanted : STEPS_MAX;
    steps = steps < most ? steps : most;
    s->steps[part] = steps > least ? steps : least;
    return mixt__search_state_settle(&s->state, steps_names[part], json_integer(s->steps[part]));
}

mixt_status mixt__search_settle_seen(mixt__search *s)
{
    double seconds;
    if (s->steps[MIXT_SEARCH_SEEN])
        return MIXT_OK;
    MIXT_TRY(time_step(s, &seconds));
    if (mixt__search_halted(s))
        return MIXT_OK;
    int64_t least = updates_left(s) < STEPS_MIN ? updates_left(s) : STEPS_MIN;
    return settle_steps(s, MIXT_SEARCH_SEEN, 0.6 * s->budget / (1.4 * PLANNED_TRIES * (double)s->trials * seconds),
                        least);
}

mixt_status mixt__search_settle_fresh(mixt__search *s, int64_t pairs)
{
    double left = s->budget - (mixt__time_now() - s->started);
    double update = fmax(s->fp32->ms, s->best->ms) / 1e3;
    if (s->steps[MIXT_SEARCH_FRESH])
        return MIXT_OK;
    return settle_steps(s, MIXT_SEARCH_FRESH, update > 0 ? 0.35 * left / (1.4 * 2 * (double)pairs * update) : 0,
                        s->steps[MIXT_SEARCH_SEEN]);
}
