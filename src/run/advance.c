/* Updates on the way to one that somebody wants to look at: as training makes them, but nothing is told or written.
 *
 * A decision of the controller is followed by a checkpoint, so that the newest one before an update has them all. Where
 * that one is gone, decisions between are not made again: it is said.
 */
#include "run/advance.h"

#include "base/status.h"
#include "run/open/phases.h"
#include "steer/decision.h"
#include "store/json.h"
#include "store/json_rows.h"
#include "train/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Decisions that count from an update on. */
typedef struct missed {
    int64_t from, before, count; // from -1: there is no checkpoint
} missed;

static mixt_status take_row(void *user, const char *text, int64_t line)
{
    missed *m = user;
    json_t *row;
    mixt_decision d;
    bool found = false;
    (void)line;
    MIXT_TRY(mixt__json_row(text, &row));
    if (row && mixt__decision_read(row, &d, &found) == MIXT_OK && found) {
        int64_t step = d.back >= 0 ? d.back : d.step;
        step = strcmp(d.from, "auto") ? step : -1; // the run began with that, and its configuration has it
        m->count += step > m->from && (step < m->before || m->from < 0);
        mixt__decision_free(&d);
    }
    json_decref(row);
    return MIXT_OK;
}

mixt_status mixt__advance_warn(mixt_run *run, int64_t before)
{
    char path[1100];
    missed m = {.from = run->resume.checkpoint ? run->resume.state.steps : -1, .before = before};
    snprintf(path, sizeof path, "%s/events.jsonl", run->resume.run);
    MIXT_TRY(mixt__json_lines_read(path, take_row, &m));
    if (m.count)
        mixt__run_note(run, true,
                       "%s: %lld decision%s of auto.steer cannot be repeated, because older checkpoints are gone "
                       "(train.keep): update %lld will have other bits than in the run",
                       run->resume.run, (long long)m.count, m.count == 1 ? "" : "s", (long long)before);
    return MIXT_OK;
}

/** The phase of the next update, and its batch. */
static mixt_status before(void *user, int64_t update)
{
    mixt_run *run = user;
    MIXT_TRY(mixt__phases_reach(&run->experiment, update));
    run->hooks->skip(run);
    return MIXT_OK;
}

mixt_status mixt__advance_to(mixt_run *run, int64_t step)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__engine engine = {.trainer = t, .data = run->experiment.train, .before = before, .user = run};
    MIXT_TRY(mixt__engine_make(&engine, step - mixt__trainer_steps(t)));
    return before(run, step + 1);
}

static mixt_status make_updates(mixt_run *run, int64_t step)
{
    mixt__experiment *e = &run->experiment;
    MIXT_TRY(mixt__run_begin(run));
    run->hooks->remember(run);
    int64_t at = mixt_trainer_steps(e->trainer);
    if (step < at)
        return mixt__fail(MIXT_ERROR_STATE, "update %lld: the run has done %lld already", (long long)step,
                          (long long)at);
    return mixt__advance_to(run, step);
}

mixt_status mixt_run_advance(mixt_run *run, int64_t step)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    if (run->started > 0)
        return mixt__fail(MIXT_ERROR_STATE, "the run is trained already: open it again to make single updates");
    if (!run->experiment.train)
        return mixt__fail(MIXT_ERROR_STATE, "the run was opened to read its weights: resume it to train");
    if (run->experiment.planned)
        return mixt__fail(MIXT_ERROR_STATE, "the run was opened to plan %lld ranks: it cannot train",
                          (long long)run->experiment.ranks);
    if (step > run->experiment.total_steps)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "update %lld: the run ends with update %lld (train.steps, train.epochs)",
                          (long long)step, (long long)run->experiment.total_steps);
    mixt__account *before = mixt__account_use(run->account);
    mixt_status status = make_updates(run, step);
    mixt__account_use(before);
    return status;
}
