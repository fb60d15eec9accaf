/* Looks without being asked, in a run: one after an update here and there; what it finds is measured before anything is
 * done about it, and told with that measurement.
 */
#include "run/auto/diagnose.h"
#include "run/auto/steer.h"
#include "base/log.h"
#include "policy/policy.h"
#include "run/run.h"
#include "steer/consensus.h"
#include "steer/decision.h"
#include "steer/pairs.h"
#include "steer/slow.h"

#include <math.h>
#include <stdio.h>

bool mixt__run_looks(const mixt_run *run)
{
    const mixt__steer *s = &run->steer;
    return s->controller && s->good.open && !s->look_off &&
           mixt__policy_lowers(&mixt__trainer_settings_of(run->experiment.trainer->inner)->policy);
}

bool mixt__run_look_due(const mixt_run *run, int64_t step)
{
    return mixt__run_looks(run) && mixt__looks_due(&run->steer.looks, step);
}

/** What rank 0 sees is what all see. */
static mixt_status look(mixt_run *run, bool *suspects)
{
    mixt__steer *s = &run->steer;
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__glance look = {0};
    double loss;
    MIXT_TRY(mixt__consensus_agree(t, mixt__trainer_ready(t, run->experiment.train)));
    mixt_status status = mixt__glance_open(&look, t, run->experiment.train, 0);
    if (status == MIXT_OK)
        status = mixt__glance_at(&look, &mixt__trainer_settings_of(t)->policy, mixt__glance_scale(t), &loss);
    status = mixt__consensus_agree(t, status);
    if (status == MIXT_OK)
        status = mixt__consensus_take(t, 0, look.layers, (size_t)look.count * sizeof *look.layers);
    if (status == MIXT_OK)
        status = mixt__looks_take(&s->looks, mixt__trainer_steps(t), &look, suspects);
    for (int64_t i = 0; i < look.count && status == MIXT_OK; i++)
        if (mixt__glance_lost(&look.layers[i]))
            MIXT_LOG(TRAIN, "look after update %lld: %s has %.3g of FP32's gradient left, odds %.3g",
                     (long long)mixt__trainer_steps(t), look.layers[i].name, look.layers[i].kept,
                     s->looks.layers[i].odds);
    mixt__glance_close(&look);
    return status;
}

/** The layers behind the first one, which the controller has taken: they are raised with it. */
static void ask_rest(mixt_run *run, const mixt_decision *first, const mixt__fragile *f)
{
    for (int i = 1; i < f->count && first->action == MIXT_ACTION_PRECISION && *first->layer; i++) {
        mixt_decision next = *first;
        next.back = -1; // the first one has gone
        next.layer = f->layers[i];
        (void)mixt_run_ask_decision(run, &next); // one that finds no place is found again
    }
}

static mixt_status decide(mixt_run *run, const mixt_diagnosis *d, const mixt__fragile *f, mixt_decision *decision,
                          bool *found)
{
    mixt__steer *s = &run->steer;
    mixt_decision said;
    char *judged;
    MIXT_TRY(mixt_judgement_text(&d->judged, &judged));
    s->trouble = (mixt_trouble){.step = d->step, .cause = d->symptom, .layer = "", .text = "FP32 does better"};
    mixt_finding finding = mixt__steer_signs(run);
    mixt__run_finding(run, d, &finding);
    snprintf(s->found.text, sizeof s->found.text, "%.200s", judged); // the diagnosis has said the rest
    mixt_free(judged);
    mixt_controller_report(s->controller, &s->trouble);
    *found = mixt_controller_decide(s->controller, &finding, &said);
    if (!*found)
        return MIXT_OK;
    ask_rest(run, &said, f);
    mixt__looks_restart(&s->looks, said.back >= 0 ? said.back : d->step);
    mixt__drift_restart(&s->drift);
    return mixt__decision_copy(&said, decision);
}

/** A suspicion is worth what FP32 makes of the same updates. @param suspects it is of looks, else of the loss alone */
static mixt_status measure(mixt_run *run, bool suspects, mixt_decision *decision, bool *found)
{
    mixt__steer *s = &run->steer;
    mixt__trainer *t = run->experiment.trainer->inner;
    const mixt__executable *before = mixt__trainer_compiled(t);
    mixt__fragile fragile;
    mixt_diagnosis d;
    mixt__slow_request request = {.ring = &s->good.ring, .data = run->experiment.train, .looks = &s->looks};
    request.began = run->events.monitor ? mixt__monitor_began(run->events.monitor) : (double)NAN;
    request.words = &s->diagnosed;
    request.fragile = &fragile;
    mixt_status status = mixt__slow_diagnose(&request, &d);
    mixt__run_replan(run, before);
    MIXT_TRY(status);
    s->spent += d.replayed;
    if (suspects)
        mixt__looks_measured(&s->looks, d.step, d.judged.updates, d.judged.high < MIXT_PAIRS_MARGIN);
    if (d.kind != MIXT_DIAGNOSIS_PRECISION)
        return MIXT_OK;
    mixt__run_tell_diagnosis(run, d.step, &d);
    return decide(run, &d, &fragile, decision, found);
}

mixt_status mixt__run_look(mixt_run *run, mixt_decision *decision, bool *found)
{
    mixt__steer *s = &run->steer;
    bool suspects = false;
    bool drifts = s->drifts;
    mixt_status status = s->look_due ? look(run, &suspects) : MIXT_OK;
    s->look_due = s->drifts = false;
    if (status == MIXT_OK && (suspects || drifts))
        status = measure(run, suspects, decision, found);
    if (drifts)
        mixt__drift_restart(&s->drift); // measured: what it is now is held against what comes
    if (status == MIXT_OK || mixt__trainer_is_broken(run->experiment.trainer->inner))
        return status;
    s->look_off = true;
    mixt__run_note(run, false, "step %lld: no looks at what FP32 would do: %s", (long long)run->last.step,
                   mixt_error_text());
    return MIXT_OK;
}
