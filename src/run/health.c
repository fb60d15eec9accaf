/* Telling a run that has diverged from one whose loss scale is still finding its place. */
#include "run/health.h"

#include "base/c_locale.h"

#include <math.h>

/** Updates in a row that no change of the loss scale can make succeed, after which a run has failed. */
enum { STUCK_MAX = 10 };

mixt_status mixt__health_check(const mixt_run *run, const mixt_step *step, int64_t *stuck)
{
    const mixt__scaling *scaling = &mixt__trainer_settings_of(run->experiment.trainer->inner)->scaling;
    if (!isfinite(step->loss) && !step->skipped)
        return mixt__fail(MIXT_ERROR_DATA, "step %lld: the loss is not finite (%g): lower train.lr, or check the data",
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

mixt_status mixt__health_check_end(const mixt_run_result *r)
{
    if (!r->steps || r->skipped < r->steps || r->interrupted || r->stopped)
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_DATA,
        "none of the updates was applied (%lld skipped: gradients not finite): nothing was learned; train "
        "longer, so that a dynamic loss scale can fall, lower train.loss_scale or train.scale_init, or "
        "use another precision",
        (long long)r->steps);
}
