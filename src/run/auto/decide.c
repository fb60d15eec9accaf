/* Doing what a decision says: one function an action. */
#include "run/auto/steer.h"

#include "base/c_locale.h"
#include "run/open/memory.h"
#include "run/open/phases.h"
#include "run/open/policy.h"
#include "run/auto/pressure.h"
#include "run/ranks.h"
#include "run/report/history.h"
#include "run/run.h"
#include "steer/decision.h"
#include "train/dist/rank0_first.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mixt_status change_policy(mixt_run *run, const mixt_decision *d)
{
    mixt_policy *policy;
    MIXT_TRY(mixt__decision_policy(d, mixt__run_policy(run), &policy));
    return mixt__run_adopt_policy(run, policy);
}

static mixt_status set(mixt_config *config, const char *key, const char *value)
{
    char assignment[192];
    snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return mixt_config_set(config, assignment, "auto.steer");
}

/** The lowest learning rate follows the highest. */
static mixt_status set_min_lr(mixt_config *config, const mixt_decision *d)
{
    char value[48];
    double from = strtod(d->from, NULL), to = strtod(d->to, NULL),
           least = mixt__config_float(config, MIXT_KEY_TRAIN_MIN_LR);
    mixt__print_number(value, sizeof value, "%.9g", from > 0 ? least * to / from : least);
    return set(config, mixt__config_table[MIXT_KEY_TRAIN_MIN_LR].name, value);
}

static mixt_status change_setting(mixt_run *run, const mixt_decision *d)
{
    mixt_config *next;
    MIXT_TRY(mixt_config_copy(run->config, &next));
    mixt_status status = set(next, d->key, d->to);
    if (status == MIXT_OK && d->action == MIXT_ACTION_LR)
        status = set_min_lr(next, d);
    if (status == MIXT_OK)
        status = mixt__run_adopt_config(run, next);
    if (status != MIXT_OK)
        mixt_config_free(next);
    return status;
}

static mixt_status change_memory(mixt_run *run, const mixt_decision *d)
{
    mixt_config *next;
    MIXT_TRY(mixt_config_copy(run->config, &next));
    mixt_status status = set(next, d->key, d->to);
    if (status == MIXT_OK)
        status = mixt__run_adopt_memory(run, next);
    if (status != MIXT_OK)
        mixt_config_free(next);
    return status;
}

/** Another sample of its batch stands in its place from here on. Updates before cannot be computed again then. */
static mixt_status leave_sample_out(mixt_run *run, const mixt_decision *d)
{
    mixt__steer *s = &run->steer;
    mixt__trainer *t = run->experiment.trainer->inner;
    int64_t sample = strtoll(d->to, NULL, 10);
    if (s->left_out_count == MIXT_LEFT_OUT_MAX)
        return mixt__fail(MIXT_ERROR_STATE, "%d samples have been skipped already", MIXT_LEFT_OUT_MAX);
    mixt__trainer_stop_batches(t);
    s->left_out[s->left_out_count++] = sample;
    mixt__data_leave_out(run->experiment.train, s->left_out, s->left_out_count);
    if (s->good.open)
        mixt__trace_start(&s->good.ring.trace, mixt__trainer_steps(t) + 1);
    mixt__history_add(run, json_pack("{s:s, s:I, s:I}", "event", "sample skipped", "sample", (json_int_t)sample, "step",
                                     (json_int_t)d->step));
    return MIXT_OK;
}

static mixt_status leave_out(mixt_run *run, const mixt_decision *d)
{
    mixt__steer *s = &run->steer;
    if (!strcmp(d->key, MIXT_SKIP_SAMPLE))
        return leave_sample_out(run, d);
    if (s->skip_count == MIXT_BATCHES_SKIPPED)
        return mixt__fail(MIXT_ERROR_STATE, "%d batches have been skipped already", MIXT_BATCHES_SKIPPED);
    s->skips[s->skip_count++] = strtoll(d->to, NULL, 10);
    return MIXT_OK;
}

static mixt_status change_nothing(mixt_run *run, const mixt_decision *d)
{
    (void)run;
    (void)d;
    return MIXT_OK;
}

static mixt_status (*const does[MIXT_ACTION_COUNT])(mixt_run *, const mixt_decision *) = {
    [MIXT_ACTION_NONE] = change_nothing,  [MIXT_ACTION_PRECISION] = change_policy,
    [MIXT_ACTION_SCALE] = change_setting, [MIXT_ACTION_ROLLBACK] = change_nothing,
    [MIXT_ACTION_SKIP] = leave_out,       [MIXT_ACTION_CLIP] = change_setting,
    [MIXT_ACTION_LR] = change_setting,    [MIXT_ACTION_MEMORY] = change_memory,
    [MIXT_ACTION_STOP] = change_nothing,
};

/** What the step holds, measured. */
static int64_t step_bytes(const mixt_run *run)
{
    return (int64_t)mixt__trainer_memory(run->experiment.trainer->inner).allocated;
}

/** What is to be done, for one rank after the other where kernels are chosen by the clock. */
typedef struct task {
    mixt_run *run;
    const mixt_decision *decision;
} task;

static mixt_status act(void *user)
{
    const task *t = user;
    return does[t->decision->action](t->run, t->decision);
}

mixt_status mixt__steer_apply(mixt_run *run, const mixt_decision *decision)
{
    char text[MIXT_DECISION_TEXT];
    mixt__steer *s = &run->steer;
    mixt_decision done = *decision, *d = &done;
    d->bytes_before = d->bytes_after = 0;
    int64_t before = step_bytes(run);
    task work = {run, d};
    mixt_status status = mixt__rank0_first(run->group, run->experiment.context->device, act, &work);
    if (d->action != MIXT_ACTION_ROLLBACK)
        mixt__snapshots_forget_former(&s->good.ring);
    if (mixt__run_agree_on(run, "answer to a decision", status == MIXT_OK ? "done" : "not done") != MIXT_OK)
        return mixt__run_agree(run, status); // some train otherwise from here on: the reason is of one that does not
    if (status != MIXT_OK)
        mixt__run_note(run, true, "step %lld: %s is not done: %s", (long long)d->step, mixt_action_name(d->action),
                       mixt_error_text());
    else if (d->action == MIXT_ACTION_MEMORY) {
        d->bytes_before = before;
        d->bytes_after = step_bytes(run);
    }
    s->decisions += d->action != MIXT_ACTION_STOP;
    s->rollbacks += d->back >= 0 && d->action != MIXT_ACTION_STOP;
    run->result.decisions = s->decisions;
    run->result.rollbacks = s->rollbacks;
    mixt_event event = {.kind = MIXT_EVENT_DECISION, .decision = d, .text = mixt__decision_text(d, text)};
    MIXT_TRY(mixt__rows_add(&run->dir.events, mixt__decision_row(d, mixt__run_seconds(run))));
    return mixt__run_tell(run, event);
}
