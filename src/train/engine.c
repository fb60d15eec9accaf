/* The loop over updates. */
#include "train/engine.h"

#include "base/threads.h"
#include "train/trainer_inside.h"

#include <math.h>

static mixt_status issue_once(const mixt__engine *g, int64_t turn)
{
    return g->resident ? mixt__resident_step(g->resident, turn, NULL) : mixt__trainer_step(g->trainer, g->data, NULL);
}

/** Makes an update; while a loss scaler skips it, once more with its smaller scale. */
static mixt_status issue(mixt__engine *g, int64_t turn)
{
    mixt__trainer *t = g->trainer;
    mixt_step step;
    MIXT_TRY(issue_once(g, turn));
    while (g->again_most) {
        MIXT_TRY(mixt__trainer_result(t, t->attempts, &step));
        g->taken = t->attempts - 1; // those that were skipped have no record
        if (!step.skipped || !isfinite(step.loss) || !t->settings.scaling.enabled || g->again++ == g->again_most)
            break;
        mixt__trainer_seek_again(t);
        MIXT_TRY(issue_once(g, turn));
    }
    return MIXT_OK;
}

/** Takes in the oldest result that is out. */
static mixt_status take(mixt__engine *g)
{
    const mixt__trainer *t = g->trainer;
    mixt__made made;
    MIXT_TRY(mixt__trainer_result(g->trainer, g->taken + 1, &made.step));
    double now = mixt__time_now();
    made.seconds = now - g->taken_at;
    made.position = t->next_batch - (t->attempts - g->taken) * t->settings.accumulate;
    g->taken_at = now;
    g->taken++;
    return g->made(g->user, &made);
}

static bool settles(const mixt__engine *g)
{
    bool now = g->at_once || g->again_most || g->trainer->device->backend->host_memory;
    return now || (g->settles && g->settles(g->user));
}

static mixt_status make_one(mixt__engine *g, int64_t turn)
{
    const mixt__trainer *t = g->trainer;
    int64_t at = t->attempts;
    if (g->before)
        MIXT_TRY(g->before(g->user, at + 1));
    if (t->attempts != at) // back in an earlier state, all of whose records were given
        g->taken = t->attempts;
    if (g->stop)
        return MIXT_OK;
    MIXT_TRY(issue(g, turn));
    if (g->issued)
        g->issued(g->user, t->attempts);
    if (!g->made)
        return MIXT_OK;
    while (g->taken < t->attempts - (settles(g) ? 0 : 1))
        MIXT_TRY(take(g));
    return g->settled && g->taken == t->attempts ? g->settled(g->user) : MIXT_OK;
}

mixt_status mixt__engine_make(mixt__engine *g, int64_t count)
{
    g->taken = g->trainer->attempts;
    g->taken_at = mixt__time_now();
    for (int64_t i = 0; i < count && !g->stop; i++)
        MIXT_TRY(make_one(g, i));
    while (g->made && g->taken < g->trainer->attempts)
        MIXT_TRY(take(g));
    return MIXT_OK;
}

mixt_status mixt__engine_make_one(mixt__engine *g, mixt_step *result)
{
    MIXT_TRY(mixt__engine_make(g, 1));
    return mixt__trainer_result(g->trainer, g->trainer->attempts, result);
}

void mixt__engine_set_aside(mixt__engine *g, double start)
{
    g->taken_at += mixt__time_now() - start;
}
