/* Telling a run that has diverged from one whose loss scale is still finding its place. */
#include "run/health.h"

#include "base/c_locale.h"
#include "train/integrity.h"

#include <math.h>
#include <stdio.h>

/** Updates in a row that no change of the loss scale can make succeed, after which a run has failed. */
enum { STUCK_MAX = 10 };

mixt_status mixt__health_check(const mixt_run *run, const mixt_step *step, int64_t *stuck)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    const mixt__scaling *scaling = &mixt__trainer_settings_of(t)->scaling;
    const mixt__integrity_finding *damage = mixt__trainer_damage(t);
    if (damage)
        return mixt__fail(MIXT_ERROR_DATA,
                          "step %lld: %s. Nothing was saved since: resume from the last checkpoint (--resume), on "
                          "another machine if it happens again",
                          (long long)damage->step, damage->text);
    if (!isfinite(step->loss) && !step->skipped)
        return mixt__fail(MIXT_ERROR_DATA, "step %lld: the loss is NaN or Inf (%g): lower train.lr, or check the data",
                          (long long)step->step, step->loss);
    bool can_fall = scaling->enabled && scaling->dynamic && step->scale > (double)scaling->floor;
    bool lost = step->skipped && (!isfinite(step->loss) || !can_fall);
    bool last = step->step == run->experiment.total_steps && !isfinite(step->loss);
    *stuck = lost ? *stuck + 1 : 0;
    if (*stuck < STUCK_MAX && !last)
        return MIXT_OK;
    char scale[48] = "";
    if (scaling->enabled)
        mixt__print_number(scale, sizeof scale, ", loss scale %g", step->scale);
    return mixt__fail(MIXT_ERROR_DATA,
                      "step %lld: the last %lld updates were skipped (loss %g, first bad gradient in %s%s): training "
                      "has diverged; lower train.lr, set train.clip, or use another precision",
                      (long long)step->step, (long long)*stuck, isnan(step->loss) ? (double)NAN : step->loss,
                      step->overflow_layer ? step->overflow_layer : "no layer", scale);
}

/** The last word of the monitor, whether or not it was asked to look. */
static mixt_status tell_diverged(mixt_run *run, double began, double ended)
{
    mixt_run_result *r = &run->result;
    mixt_alert a = {.step = r->steps, .severity = MIXT_SEVERITY_CRITICAL, .cause = MIXT_CAUSE_LOSS_ANOMALY};
    a.value = ended;
    a.usual = began;
    a.deviations = a.limit = NAN;
    r->diverged = true;
    a.layer = "";
    a.text = run->events.end;
    snprintf(run->events.end, sizeof run->events.end,
             "diverged: the run ends worse than it started: the loss is %.4g over the last updates and was %.4g at the "
             "first; lower train.lr, or see its alerts and diagnoses",
             ended, began);
    return mixt__events_tell(run, &a, 1, mixt__run_seconds(run));
}

/** The loss of a model that finds all classes equally likely; 0: targets are no classes. */
static double guess_of(const mixt_run *run)
{
    int64_t classes = run->experiment.facts ? mixt_data_describe(run->experiment.facts)->classes : 0;
    return classes > 1 && !isnan(run->last.accuracy) ? log((double)classes) : 0;
}

mixt_status mixt__health_check_end(mixt_run *run, const mixt__course *course)
{
    const mixt_run_result *r = &run->result;
    double ended;
    if (!r->steps || r->interrupted || r->stopped)
        return MIXT_OK;
    if (r->skipped >= r->steps)
        return mixt__fail(MIXT_ERROR_DATA,
                          "no update was applied (%lld skipped: gradients are NaN or Inf): nothing was learned; train "
                          "longer, so that the dynamic loss scale can fall, lower train.loss_scale or "
                          "train.scale_init, or use another precision",
                          (long long)r->steps);
    if (!mixt__course_worse(course, mixt__config_bool(run->config, MIXT_KEY_DATA_IN_ORDER), guess_of(run), &ended))
        return MIXT_OK;
    return tell_diverged(run, course->first, ended);
}
