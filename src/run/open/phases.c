/* Entering phases, and telling of them. */
#include "run/open/phases.h"

#include "base/sizes.h"
#include "policy/policy.h"
#include "run/report/events.h"
#include "run/open/fit.h"
#include "run/open/memory.h"
#include "run/open/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- of an experiment ---- */

void mixt__phases_close(mixt__phases *phases)
{
    mixt_policy_free(phases->policy);
    mixt_config_free(phases->config);
    *phases = (mixt__phases){0};
}

/** What counts in a phase, and the configuration that goes with it. */
static mixt_status make(const mixt__experiment *e, const mixt_policy *all, int64_t index, mixt_policy **now,
                        mixt_config **config)
{
    *config = NULL;
    MIXT_TRY(mixt_policy_of_phase(all, index, now));
    mixt_status status = mixt__experiment_keep(e, *now);
    if (status == MIXT_OK)
        status = mixt__policy_config(e->config, all, *now, config);
    if (status != MIXT_OK) {
        mixt_policy_free(*now);
        *now = NULL;
    }
    return status;
}

static mixt_status take_one(mixt__experiment *e, const mixt_policy *policy, mixt_policy **now)
{
    MIXT_TRY(mixt_policy_copy(policy, now));
    mixt_status status = mixt__experiment_keep(e, *now);
    if (status == MIXT_OK)
        mixt__phases_close(&e->phases);
    else
        mixt_policy_free(*now);
    return status;
}

mixt_status mixt__phases_take(mixt__experiment *e, const mixt_policy *policy, int64_t update, mixt_policy **now)
{
    mixt__phases next = {0};
    *now = NULL;
    if (!mixt_policy_phases(policy))
        return take_one(e, policy, now);
    bool endless = e->total_steps >= INT64_MAX / mixt__config_int(e->config, MIXT_KEY_TRAIN_ACCUMULATE);
    MIXT_TRY(mixt_policy_resolve_phases(policy, endless ? 0 : e->total_steps, e->steps_per_epoch, &next.policy));
    next.current = mixt__policy_phase_at(next.policy, update);
    mixt_status status = make(e, next.policy, next.current, now, &next.config);
    mixt__phases_close(status == MIXT_OK ? &e->phases : &next);
    if (status == MIXT_OK)
        e->phases = next;
    return status;
}

bool mixt__phases_due(const mixt__experiment *e, int64_t update)
{
    return e->phases.policy && mixt__policy_phase_at(e->phases.policy, update) != e->phases.current;
}

bool mixt__phases_too_little(const mixt__experiment *e, mixt_status status)
{
    return status == MIXT_ERROR_MEMORY && e->phases.policy && e->trainer->options.recompute_budget &&
           mixt__trainer_recompute(e->trainer->inner)->least > e->trainer->options.recompute_budget;
}

mixt_status mixt__phases_enter(mixt__experiment *e, int64_t index)
{
    mixt_policy *now;
    mixt_config *config, *before = e->phases.config;
    mixt_trainer_options options = e->trainer->options;
    MIXT_TRY(make(e, e->phases.policy, index, &now, &config));
    e->phases.config = config;
    mixt__experiment_settings(e, &e->trainer->options);
    mixt_status status = mixt_trainer_set_policy(e->trainer, now);
    if (mixt__phases_too_little(e, status)) {
        e->trainer->options.recompute_budget = mixt__trainer_recompute(e->trainer->inner)->least;
        status = mixt_trainer_set_policy(e->trainer, now);
        e->trainer->options.recompute_budget = options.recompute_budget; // which may do for the phases to come
    }
    mixt_policy_free(now);
    if (status != MIXT_OK) {
        e->phases.config = before;
        e->trainer->options = options;
        mixt_config_free(config);
        return mixt__fail_context(status, "phase '%s'", e->phases.policy->phases[index].name);
    }
    mixt_config_free(before);
    e->phases.current = index;
    return MIXT_OK;
}

mixt_status mixt__phases_reach(mixt__experiment *e, int64_t update)
{
    if (!mixt__phases_due(e, update))
        return MIXT_OK;
    return mixt__phases_enter(e, mixt__policy_phase_at(e->phases.policy, update));
}

/* ---- of a run ---- */

const mixt_policy *mixt__run_policy(const mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    return e->phases.policy ? e->phases.policy : mixt_trainer_policy(e->trainer);
}

/** Of the device that the run trains on. */
static size_t bytes_of(const mixt_run *run, int64_t index)
{
    const mixt_bytes *total = &run->phase_memory[index].total;
    return run->experiment.context->device->backend->host_memory ? total->host : total->device;
}

static mixt_status count_phase(mixt_run *run, mixt_run_memory *memory)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    int64_t given = mixt__config_int(run->config, MIXT_KEY_TRAIN_EVAL_BATCH);
    mixt__fit_count c = {run, given ? given : mixt__config_int(run->config, MIXT_KEY_TRAIN_BATCH)};
    size_t bytes;
    double seconds;
    MIXT_TRY(mixt__fit_measure(&c, t, run->fit.budget ? run->fit.budget : SIZE_MAX, &bytes, &seconds));
    return mixt__run_count_plan(run, memory);
}

mixt_status mixt__run_plan_phases(mixt_run *run)
{
    mixt__experiment *e = &run->experiment;
    int64_t current = e->phases.current, count = e->phases.policy ? e->phases.policy->phase_count : 0;
    mixt__free(run->phase_memory);
    run->phase_memory = count ? mixt__alloc((size_t)count * sizeof *run->phase_memory) : NULL;
    if (count && !run->phase_memory)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the phases of a run");
    mixt_status status = MIXT_OK;
    for (int64_t i = 1; status == MIXT_OK && i <= count; i++) { // the one that counts is the last of them
        status = mixt__phases_enter(e, (current + i) % count);
        if (status == MIXT_OK)
            status = count_phase(run, &run->phase_memory[e->phases.current]);
    }
    return status;
}

int64_t mixt__run_largest_phase(const mixt_run *run)
{
    int64_t largest = 0;
    for (int64_t i = 1; run->phase_memory && i < run->experiment.phases.policy->phase_count; i++)
        largest = bytes_of(run, i) > bytes_of(run, largest) ? i : largest;
    return largest;
}

/** A phase to come that there is no room for would end the run when it begins: better to refuse it now. */
static mixt_status check_room(const mixt_run *run)
{
    char need[MIXT_SIZE_TEXT], room[MIXT_SIZE_TEXT];
    mixt__device *device = run->experiment.context->device;
    size_t free = mixt__device_available(device);
    size_t limit =
        free + (device->backend->host_memory ? mixt__account_bytes(run->account) : mixt__device_allocated(device));
    mixt_run_phase p;
    for (int64_t i = 0; free && run->phase_memory && mixt_run_get_phase(run, i, &p) == MIXT_OK; i++)
        if (p.first <= p.last && bytes_of(run, i) > limit)
            return mixt__fail(
                MIXT_ERROR_MEMORY,
                "phase '%s', from update %lld on, needs %s, and the run could hold %s: train.memory=%.0fM "
                "makes all phases fit",
                p.name, (long long)p.first, mixt__size_text(bytes_of(run, i), need), mixt__size_text(limit, room),
                floor((double)limit / 1048576.0 * 0.95));
    return MIXT_OK;
}

mixt_status mixt__run_first_phase(mixt_run *run)
{
    mixt__experiment *e = &run->experiment;
    int64_t update = run->resume.checkpoint ? run->resume.state.steps : 1;
    MIXT_TRY(check_room(run));
    return mixt__phases_reach(e, update);
}

mixt_status mixt__run_keep_phases(mixt_run *run)
{
    char path[1200];
    if (!run->experiment.phases.policy)
        return MIXT_OK;
    return mixt_policy_write(run->experiment.phases.policy, mixt__run_dir_file(&run->dir, MIXT_POLICY_FILE, path));
}

void mixt__run_tell_phases(mixt_run *run)
{
    char bytes[MIXT_SIZE_TEXT];
    mixt_run_phase p;
    for (int64_t i = 0; mixt_run_get_phase(run, i, &p) == MIXT_OK; i++)
        if (p.first > p.last)
            mixt__run_note(run, true,
                           "note: phase '%s' is never reached: it starts at update %lld, the run ends at %lld", p.name,
                           (long long)p.first, (long long)p.last);
        else
            mixt__run_note(run, false, "%-8s %s: updates %lld to %lld, in %s", i ? "" : "phases", p.name,
                           (long long)p.first, (long long)p.last,
                           run->phase_memory ? mixt__size_text(bytes_of(run, i), bytes) : "the same memory");
}

/** Why, in the words of the event's row, and what the step takes: the same again where the run goes on from before. */
static json_t *evidence_of(const mixt__experiment *e, int64_t from, int64_t to, const mixt_memory *before)
{
    char text[256];
    const mixt__policy_phase *phases = e->phases.policy->phases;
    mixt_memory after = mixt__trainer_memory(e->trainer->inner);
    snprintf(text, sizeof text, "phase '%.64s' ends with update %.0f: from the next on '%.64s'", phases[from].name,
             phases[from].until, phases[to].name);
    return json_pack("{s:s, s:I, s:I}", "text", text, "bytes_before", (json_int_t)before->allocated, "bytes_after",
                     (json_int_t)after.allocated);
}

mixt_status mixt__run_next_phase(mixt_run *run, int64_t update)
{
    mixt__experiment *e = &run->experiment;
    const mixt__policy_phase *phases = e->phases.policy->phases;
    int64_t from = e->phases.current, to = mixt__policy_phase_at(e->phases.policy, update);
    mixt_memory before = mixt__trainer_memory(e->trainer->inner);
    MIXT_TRY(mixt__phases_enter(e, to));
    mixt__run_change_validation(run, run->fit.budget && run->phase_memory ? run->phase_memory[to].eval_batch : 0);
    mixt__run_note(run, false, "from step %lld on in phase '%s'", (long long)update, phases[to].name);
    mixt__event_row row = {.kind = "decision", .severity = MIXT_SEVERITY_INFO, .cause = "phase", .action = "phase"};
    row.from = phases[from].name;
    row.to = phases[to].name;
    row.evidence = evidence_of(e, from, to, &before);
    return mixt__events_write(run, &row);
}

/* ---- for everyone ---- */

int64_t mixt_run_phases(const mixt_run *run)
{
    bool open = mixt__need_open(run, "run") == MIXT_OK;
    return open && run->experiment.phases.policy ? run->experiment.phases.policy->phase_count : 0;
}

static mixt_status check_index(const mixt_run *run, int64_t index)
{
    int64_t count = mixt_run_phases(run);
    return index >= 0 && index < count
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "no phase %lld among %lld", (long long)index, (long long)count);
}

mixt_status mixt_run_get_phase(const mixt_run *run, int64_t index, mixt_run_phase *phase)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(phase));
    MIXT_TRY(check_index(run, index));
    const mixt__policy_phase *p = &run->experiment.phases.policy->phases[index];
    int64_t total = run->experiment.total_steps;
    *phase = (mixt_run_phase){.name = p->name, .first = index ? (int64_t)p[-1].until + 1 : 1};
    phase->last = p->until > 0 && p->until < (double)total ? (int64_t)p->until : total;
    if (run->phase_memory)
        phase->memory = run->phase_memory[index];
    return MIXT_OK;
}

mixt_status mixt_run_plan_phase(mixt_run *run, int64_t index)
{
    mixt_run_memory memory;
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(check_index(run, index));
    const mixt__trainer *t = run->experiment.trainer->inner;
    if (mixt__trainer_has_memory(t) || mixt__trainer_has_weights(t))
        return mixt__fail(MIXT_ERROR_STATE,
                          "the run's memory is allocated already: ask for its phases before training");
    mixt__account *before = mixt__account_use(run->account);
    mixt_status status = mixt__phases_enter(&run->experiment, index);
    if (status == MIXT_OK)
        status = count_phase(run, &memory);
    mixt__account_use(before);
    return status;
}
