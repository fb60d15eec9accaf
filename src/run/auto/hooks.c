/* The controller and the good states as what a run asks between its updates. */
#include "run/hooks.h"

#include "run/auto/register.h"
#include "run/run.h"

/** Recorded decisions are asked for where all others have been taken. */
static mixt_status next(mixt_run *run, int64_t step, mixt_decision *decision, bool *found)
{
    do
        MIXT_TRY(mixt__steer_next(run, decision, found));
    while (!*found && mixt__steer_replay(run, step));
    return MIXT_OK;
}

static bool waits(const mixt_run *run, int64_t step)
{
    return mixt__steer_due(run, step) || mixt__steer_recorded(run, step) || mixt__run_look_due(run, step);
}

static mixt__response response(const mixt_run *run)
{
    if (mixt__steer_returns(run))
        return MIXT_RESPONSE_GO_BACK;
    bool last = run->last.step >= run->experiment.total_steps; // nothing comes that could decide
    return run->steer.troubled && !last ? MIXT_RESPONSE_DECIDE : MIXT_RESPONSE_NONE;
}

static void keep(mixt_run *run, const mixt__loop_state *state, bool changed)
{
    if (changed)
        mixt__steer_renew(run, state);
    else if (mixt__steer_due(run, state->steps))
        mixt__steer_keep(run, state);
}

static bool states(const mixt_run *run, mixt__good_state list[MIXT_GOOD_STATES])
{
    const mixt__good_states *g = &run->steer.good;
    if (!g->open)
        return false;
    list[0] = (mixt__good_state){.step = g->older.step, .best = g->older.best, .run = g->older.run};
    list[1] = (mixt__good_state){.step = g->step, .best = g->best, .run = g->run};
    for (int i = 0; i < MIXT_GOOD_STATES; i++)
        list[i].snapshot = list[i].step >= 0 ? mixt__snapshots_state(&g->ring, list[i].step) : NULL;
    return true;
}

static void *trace(const mixt_run *run, int64_t step, size_t *bytes)
{
    const mixt__good_states *g = &run->steer.good;
    return g->open ? mixt__trace_pack(&g->ring.trace, step, bytes) : NULL;
}

static const mixt__hooks hooks = {
    .read = mixt__steer_read,
    .bytes = mixt__good_states_bytes,
    .open = mixt__steer_open,
    .remember = mixt__steer_remember,
    .next = next,
    .apply = mixt__steer_apply,
    .skip = mixt__steer_skip,
    .waits = waits,
    .response = response,
    .keep = keep,
    .go_back = mixt__good_states_return,
    .pack = mixt__steer_pack,
    .states = states,
    .trace = trace,
    .close = mixt__steer_close,
};

void mixt__auto_register(mixt_run *run)
{
    run->hooks = &hooks;
    run->observers[run->observer_count++].hear = mixt__steer_observe;
}
