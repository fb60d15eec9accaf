/* Updates on the way to one that somebody wants to look at: as training makes them, but nothing is told or written.
 *
 * A decision of the controller is followed by a checkpoint, so that the newest one before an update has them all. Where
 * that one is gone, decisions between are not made again: it is said.
 */
#include "run/advance.h"

#include "base/files.h"
#include "run/open/phases.h"
#include "steer/decision.h"
#include "train/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The update after which a decision of a row counts; -1: the row is no decision of the controller. */
static int64_t counts_after(const char *text)
{
    json_t *row = json_loads(text, 0, NULL);
    mixt_decision d;
    bool found = false;
    int64_t step = -1;
    if (row && mixt__decision_read(row, &d, &found) == MIXT_OK && found) {
        step = d.back >= 0 ? d.back : d.step;
        step = strcmp(d.from, "auto") ? step : -1; // the run began with that, and its configuration has it
        mixt__decision_free(&d);
    }
    json_decref(row);
    return step;
}

void mixt__advance_warn(mixt_run *run, int64_t before)
{
    char path[1100], *text = NULL;
    size_t room = 0;
    int64_t from = run->resume.checkpoint ? run->resume.state.steps : -1, missed = 0;
    snprintf(path, sizeof path, "%s/events.jsonl", run->resume.run);
    FILE *file = mixt__file_open_stream(path);
    while (file && getline(&text, &room, file) > 0) {
        int64_t step = counts_after(text);
        missed += step > from && (step < before || !run->resume.checkpoint);
    }
    if (file)
        fclose(file);
    free(text);
    if (missed)
        mixt__run_note(
            run, true,
            "%s: %lld decision%s of its controller cannot be made again, for the checkpoints behind are gone "
            "(train.keep): update %lld will not have the bits that it had",
            run->resume.run, (long long)missed, missed == 1 ? "" : "s", (long long)before);
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
        return mixt__fail(MIXT_ERROR_STATE, "update %lld: the run has made %lld already", (long long)step,
                          (long long)at);
    return mixt__advance_to(run, step);
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
