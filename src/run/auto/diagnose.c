/* Asking for a diagnosis and passing it on. */
#include "run/auto/diagnose.h"

#include "monitor/monitor.h"
#include "run/open/memory.h"
#include "steer/diagnosis.h"

#include <math.h>
#include <stdio.h>

/** What evaluation was planned with is gone where the trainer was compiled for FP32 meanwhile. */
void mixt__run_replan(mixt_run *run, const mixt__executable *before)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    if (mixt__trainer_compiled(t) != before)
        mixt__run_change_validation(run, mixt__trainer_settings_of(t)->eval_batch);
}

static mixt_status ask(mixt_run *run, int64_t step, mixt_cause symptom, mixt_diagnosis *d)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__diagnose_request request = {.ring = &run->steer.good.ring, .data = run->experiment.train, .step = step};
    const mixt__executable *before = mixt__trainer_compiled(t);
    request.symptom = symptom;
    const mixt_monitor *monitor = run->events.monitor;
    request.healthy = monitor ? mixt__monitor_healthy(monitor) : (double)NAN;
    request.began = monitor ? mixt__monitor_began(monitor) : (double)NAN;
    request.stay = true;
    request.words = &run->steer.diagnosed;
    mixt_status status = mixt__diagnose(&request, d);
    mixt__run_replan(run, before);
    return status;
}

void mixt__run_tell_diagnosis(mixt_run *run, int64_t step, const mixt_diagnosis *d)
{
    if (mixt__rows_add(&run->dir.events, mixt__diagnosis_row(d, step, mixt__run_seconds(run))) != MIXT_OK)
        mixt__run_note(run, true, "a diagnosis cannot be written: %s", mixt_error_text());
    (void)mixt__run_tell(run, (mixt_event){.kind = MIXT_EVENT_DIAGNOSIS, .diagnosis = d, .text = d->text});
}

bool mixt__run_diagnose(mixt_run *run, int64_t step, mixt_cause symptom, mixt_diagnosis *d)
{
    if (!run->steer.good.open)
        return false;
    if (ask(run, step, symptom, d) != MIXT_OK) {
        mixt__run_note(run, false, "step %lld: no diagnosis: %s", (long long)step, mixt_error_text());
        if (run->group)
            mixt__group_give_up(run->group); // unless all ranks know: else they would wait for this one
        if (run->group)
            run->group->settled = false;
        return false;
    }
    mixt__run_tell_diagnosis(run, step, d);
    return true;
}

/** The update's batch as skips name it: updates from 0, were none left out. */
static int64_t batch_of(const mixt_run *run, int64_t step)
{
    const mixt__trace_row *row = mixt__trace_row_of(&run->steer.good.ring.trace, step);
    return row ? row->batch / mixt__trainer_settings_of(run->experiment.trainer->inner)->accumulate : -1;
}

/** The number that a machine has got wrong; "": not known. */
static void name_place(const mixt_diagnosis *d, char *place, size_t size)
{
    char rank[32] = "";
    if (d->rank >= 0)
        snprintf(rank, sizeof rank, " of rank %d", d->rank);
    *place = '\0';
    if (d->kind == MIXT_DIAGNOSIS_HARDWARE && d->element >= 0)
        snprintf(place, size, "%s[%lld]%s", d->parameter, (long long)d->element, rank);
}

void mixt__run_finding(mixt_run *run, const mixt_diagnosis *d, mixt_finding *f)
{
    if (d->kind == MIXT_DIAGNOSIS_PRECISION && *d->op)
        snprintf(run->steer.found.text, sizeof run->steer.found.text, "%.40s of %.80s made it", d->op, d->layers[0]);
    else
        snprintf(run->steer.found.text, sizeof run->steer.found.text, "%s", d->text);
    f->replayed = d->kind == MIXT_DIAGNOSIS_UNKNOWN;
    if (d->kind == MIXT_DIAGNOSIS_UNKNOWN || d->kind == MIXT_DIAGNOSIS_MEMORY)
        return;
    f->certain = true;
    f->cause = d->cause;
    f->calm_lr = d->lr > 0 ? f->lr * (d->calm_lr / d->lr) : 0;
    f->persists = d->persists;
    f->has_sample = d->kind == MIXT_DIAGNOSIS_BATCH && d->sample >= 0;
    f->sample = d->sample;
    name_place(d, run->steer.found.place, sizeof run->steer.found.place);
    f->place = run->steer.found.place;
    f->batch = d->kind == MIXT_DIAGNOSIS_BATCH || d->kind == MIXT_DIAGNOSIS_PRECISION ? batch_of(run, d->step) : -1;
    f->layer_count = 0;
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS && *d->layers[i]; i++)
        f->layers[f->layer_count++] = d->layers[i];
    mixt__good_states_choose(run, d->good);
    if (f->good >= 0)
        f->good = mixt__good_states_step(run);
}
