/* Updates on the way to one that somebody wants to look at: as training makes them, but nothing is told or written. */
#include "run/phases.h"
#include "run/run.h"

/** The phase of the next update. */
static mixt_status enter_phase(mixt__experiment *e, int64_t update)
{
    if (!mixt__phases_due(e, update))
        return MIXT_OK;
    return mixt__phases_enter(e, mixt__policy_phase_at(e->phases.policy, update));
}

static mixt_status make_updates(mixt_run *run, int64_t step)
{
    mixt__experiment *e = &run->experiment;
    MIXT_TRY(mixt__run_begin(run));
    int64_t at = mixt_trainer_steps(e->trainer);
    if (step < at)
        return mixt__fail(MIXT_ERROR_STATE, "update %lld: the run has made %lld already", (long long)step,
                          (long long)at);
    for (; at < step; at++) {
        MIXT_TRY(enter_phase(e, at + 1));
        MIXT_TRY(mixt_trainer_step(e->trainer, e->train, NULL));
    }
    return enter_phase(e, step + 1);
}

mixt_status mixt_run_advance(mixt_run *run, int64_t step)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    if (run->started > 0)
        return mixt__fail(MIXT_ERROR_STATE, "the run has been trained: open it again to make updates by hand");
    if (!run->experiment.train)
        return mixt__fail(MIXT_ERROR_STATE, "the run was opened for its weights: resume it to make updates");
    mixt__account *before = mixt__account_use(run->account);
    mixt_status status = make_updates(run, step);
    mixt__account_use(before);
    return status;
}
