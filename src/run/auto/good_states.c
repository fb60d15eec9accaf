/* Taking the good state, and going back to it. */
#include "run/auto/good_states.h"

#include "data/data.h"
#include "policy/policy.h"
#include "run/bits.h"
#include "run/open/memory.h"
#include "run/open/phases.h"
#include "run/ranks.h"
#include "run/resume.h"
#include "run/run.h"
#include "store/json.h"
#include "train/integrity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

size_t mixt__good_states_bytes(const mixt_run *run)
{
    return mixt__steer_wanted(run) ? mixt__snapshots_bytes(run->experiment.trainer->inner,
                                                           mixt__config_int(run->config, MIXT_KEY_AUTO_SNAPSHOT_EVERY))
                                   : 0;
}

static const char *folder_of(const mixt_run *run, char folder[MIXT_CHECKPOINT_PATH - 32])
{
    snprintf(folder, MIXT_CHECKPOINT_PATH - 32, "%s/checkpoints", run->dir.path);
    return folder;
}

void mixt__good_states_open(mixt__good_states *g, mixt_run *run)
{
    int64_t every = mixt__config_int(run->config, MIXT_KEY_AUTO_SNAPSHOT_EVERY);
    *g = (mixt__good_states){.step = -1, .best = -1, .older = {.step = -1, .best = -1}};
    mixt_status mine = mixt__snapshots_open(&g->ring, run->experiment.trainer->inner, every);
    char folder[MIXT_CHECKPOINT_PATH - 32];
    if (mine == MIXT_OK && !run->group &&
        mixt__integrity_keep_frozen(run->experiment.trainer->inner, folder_of(run, folder)) != MIXT_OK)
        mixt__run_note(run, true, "frozen weights that change in memory cannot be restored: %s", mixt_error_text());
    g->open = mixt__run_agree_once(run, mine) == MIXT_OK;
    if (g->open)
        return;
    mixt__run_note(run, true, "auto.steer %s: %s", run->group ? "cannot go back" : "goes back to checkpoints only",
                   mixt_error_text());
    if (mine == MIXT_OK)
        mixt__snapshots_close(&g->ring);
}

void mixt__good_states_close(mixt__good_states *g)
{
    if (g->open)
        mixt__snapshots_close(&g->ring);
    json_decref(g->run);
    json_decref(g->older.run);
    *g = (mixt__good_states){.step = -1, .best = -1, .older = {.step = -1, .best = -1}};
}

const mixt__snapshot *mixt__good_states_snapshot(const mixt_run *run)
{
    const mixt__good_states *g = &run->steer.good;
    return g->open ? mixt__snapshots_state(&g->ring, g->step) : NULL;
}

void mixt__good_states_add(mixt_run *run)
{
    mixt__good_states *g = &run->steer.good;
    if (g->open && mixt__snapshots_add(&g->ring, &run->last) != MIXT_OK)
        mixt__run_note(run, true, "step %lld: cannot be computed again: %s", (long long)run->last.step,
                       mixt_error_text());
}

/** Whether two states were made under the same settings: updates since one can be computed from the other. */
static bool same_settings(const mixt__snapshot *a, const mixt__snapshot *b)
{
    return a && b && json_equal(json_object_get(a->scalars, "settings"), json_object_get(b->scalars, "settings"));
}

/** The newest becomes the older one, where its snapshot is still there and of use. @param run is taken over */
static void put_first(mixt__good_states *g, int64_t step, int64_t best, json_t *run)
{
    if (g->step != step) {
        json_decref(g->older.run);
        g->older.step = g->step;
        g->older.best = g->best;
        g->older.run = g->run;
    } else {
        json_decref(g->run);
    }
    if (!same_settings(mixt__snapshots_state(&g->ring, g->older.step), mixt__snapshots_state(&g->ring, step)))
        g->older.step = -1;
    g->step = step;
    g->best = best;
    g->run = run;
}

void mixt__good_states_choose(mixt_run *run, int64_t step)
{
    mixt__good_states *g = &run->steer.good;
    if (!g->open || step != g->older.step || step < 0)
        return;
    json_decref(g->run);
    g->step = step;
    g->best = g->older.best;
    g->run = g->older.run;
    g->older.run = NULL;
    g->older.step = -1;
}

void mixt__good_states_take(mixt_run *run, const mixt__loop_state *state)
{
    mixt__good_states *g = &run->steer.good;
    int64_t before = g->step;
    if (!g->open)
        return;
    g->step = state->steps; // which the scalars name
    json_t *scalars = json_pack("{s:o, s:o, s:o}", "loop", mixt__loop_state_pack(state), "watch",
                                mixt__events_pack(&run->events), "auto", mixt__steer_pack(run));
    g->step = before;
    mixt_status status = mixt__json_whole(scalars) ? mixt__snapshots_take(&g->ring)
                                                   : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a snapshot");
    status = mixt__run_agree_once(run, status);
    if (status != MIXT_OK) { // its copies may be half of the new state
        mixt__run_note(run, true, "step %lld: no snapshot: %s", (long long)state->steps, mixt_error_text());
        json_decref(scalars);
        mixt__snapshots_drop(&g->ring, state->steps); // of several ranks, this one may have it
        g->step = mixt__snapshots_state(&g->ring, before) ? before : -1;
        return;
    }
    put_first(g, state->steps, state->best_step, scalars);
}

/* ---- checkpoints ---- */

/** The newest checkpoint's update; -1: there is none. */
static int64_t newest(const mixt_run *run)
{
    char folder[MIXT_CHECKPOINT_PATH - 32];
    int64_t *steps = NULL, count = 0, step = -1;
    if (mixt__checkpoints_list(folder_of(run, folder), &steps, &count) == MIXT_OK && count)
        step = steps[0];
    mixt__free(steps);
    return step;
}

int64_t mixt__good_states_step(const mixt_run *run)
{
    const mixt__good_states *g = &run->steer.good;
    return g->open ? g->step : run->group ? -1 : newest(run); // which is there for rank 0 before the others see it
}

static mixt_status open_checkpoint(const mixt_run *run, int64_t step, mixt__checkpoint **checkpoint)
{
    char folder[MIXT_CHECKPOINT_PATH - 32], path[MIXT_CHECKPOINT_PATH];
    return mixt__checkpoint_open(mixt__checkpoint_path(folder_of(run, folder), step, path), checkpoint);
}

/** What lies beside the tensors: the loop's state and the monitor's memory. */
static mixt_status return_run(mixt_run *run, const json_t *scalars, mixt__loop_state *state)
{
    MIXT_TRY(mixt__loop_state_unpack(json_object_get(scalars, "loop"), state));
    return mixt__events_return(&run->events, run, json_object_get(scalars, "watch"));
}

/** The phase in which update `step` is made. */
static mixt_status enter_phase(mixt_run *run, int64_t step)
{
    mixt__experiment *e = &run->experiment;
    if (!mixt__phases_due(e, step))
        return MIXT_OK;
    int64_t phase = mixt__policy_phase_at(e->phases.policy, step);
    MIXT_TRY(mixt__phases_enter(e, phase));
    mixt__run_change_validation(run, run->fit.budget && run->phase_memory ? run->phase_memory[phase].eval_batch : 0);
    return MIXT_OK;
}

static mixt_status return_to_checkpoint(mixt_run *run, mixt__loop_state *state)
{
    mixt__checkpoint *checkpoint;
    MIXT_TRY(enter_phase(run, newest(run)));
    MIXT_TRY(open_checkpoint(run, newest(run), &checkpoint));
    mixt_status status = mixt__trainer_restore(run->experiment.trainer->inner, checkpoint, NULL);
    if (status == MIXT_OK)
        status = return_run(run, json_object_get(checkpoint->scalars, "run"), state);
    mixt__checkpoint_close(checkpoint);
    return status;
}

mixt_status mixt__good_states_return(mixt_run *run, mixt__loop_state *state)
{
    mixt__good_states *g = &run->steer.good;
    if (mixt__good_states_step(run) < 0)
        return mixt__fail(MIXT_ERROR_STATE, "there is no good state to go back to");
    if (!g->open)
        return return_to_checkpoint(run, state);
    MIXT_TRY(enter_phase(run, g->step + 1)); // that goes on from it: see mixt__run_next_phase
    MIXT_TRY(mixt__snapshots_go_back(&g->ring, g->step));
    return return_run(run, g->run, state);
}

/* ---- going on after a stop ---- */

/** A good state goes on in the phase of the update behind it. The checkpoint of its update may have been made before
 *  that phase was entered. */
static mixt_status restore_at(mixt_run *run, const mixt__checkpoint *checkpoint, int64_t step)
{
    MIXT_TRY(enter_phase(run, step + 1));
    if (mixt__resume_restore_from(run, checkpoint) == MIXT_OK)
        return MIXT_OK;
    MIXT_TRY(enter_phase(run, step));
    MIXT_TRY(mixt__resume_restore_from(run, checkpoint));
    return enter_phase(run, step + 1);
}

/** The checkpoint of the good state of then, which lies beside the one that the run goes on from. */
static mixt_status take_from(mixt_run *run, const mixt__checkpoint *checkpoint)
{
    mixt__good_states *g = &run->steer.good;
    mixt__loop_state state;
    json_t *scalars = json_object_get(checkpoint->scalars, "run");
    MIXT_TRY(mixt__loop_state_unpack(json_object_get(scalars, "loop"), &state));
    MIXT_TRY(restore_at(run, checkpoint, state.steps));
    MIXT_TRY(mixt__snapshots_take(&g->ring));
    json_t *kept = json_pack("{s:O, s:O, s:O}", "loop", json_object_get(scalars, "loop"), "watch",
                             json_object_get(scalars, "watch"), "auto", json_object_get(scalars, "auto"));
    if (!kept)
        return mixt__fail(MIXT_ERROR_FORMAT, "checkpoint %s: is of a run without auto.steer", checkpoint->folder);
    put_first(g, state.steps, state.best_step, kept);
    return MIXT_OK;
}

/** One of the good states of then; not the one that the run goes on from. @return false: it is gone, which is said */
static bool resume_state(mixt_run *run, int64_t step)
{
    mixt__checkpoint *checkpoint = NULL;
    mixt_status status = mixt__run_agree_once(run, open_checkpoint(run, step, &checkpoint));
    if (status == MIXT_OK)
        status = take_from(run, checkpoint);
    mixt__checkpoint_close(checkpoint);
    status = mixt__run_agree_once(run, status);
    if (status != MIXT_OK)
        mixt__run_note(run, true, "the snapshot of step %lld is gone: %s; auto.steer goes back to a later one",
                       (long long)step, mixt_error_text());
    return status == MIXT_OK;
}

/** What updates before the checkpoint have left; without it, nothing before can be computed again. */
static void resume_trace(mixt_run *run, const mixt__checkpoint *now)
{
    char path[MIXT_CHECKPOINT_PATH + sizeof MIXT_TRACE_FILE];
    mixt__trace *trace = &run->steer.good.ring.trace;
    mixt__bytes file = {0};
    snprintf(path, sizeof path, "%s/%s", now->folder, MIXT_TRACE_FILE);
    mixt_status status =
        access(path, F_OK) ? mixt__fail(MIXT_ERROR_FILE, "%s: is not there", path) : mixt__bytes_read(path, &file);
    if (status == MIXT_OK)
        status = mixt__trace_unpack(trace, file.bytes, (size_t)file.size);
    if (status == MIXT_OK && trace->first + trace->count != run->resume.state.steps + 1)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: is of another update", path);
    if (mixt__run_agree_once(run, status) != MIXT_OK)
        mixt__trace_start(trace, run->resume.state.steps + 1);
    mixt__bytes_free(&file);
}

/** A step that a checkpoint names; -1: none. */
static int64_t named_step(const mixt__checkpoint *c, const char *name)
{
    const json_t *kept = json_object_get(json_object_get(json_object_get(c->scalars, "run"), "auto"), name);
    return json_is_integer(kept) ? json_integer_value(kept) : -1;
}

/** Whether updates before the checkpoint can be computed again as they were. */
static bool same_bits(mixt_run *run, const mixt__checkpoint *c)
{
    char hash[MIXT_BITS_TEXT];
    const json_t *kept = json_object_get(json_object_get(json_object_get(c->scalars, "run"), "auto"), "bits");
    mixt__run_bits(run, hash);
    return json_is_string(kept) && !strcmp(json_string_value(kept), hash);
}

void mixt__good_states_resume(mixt_run *run)
{
    const mixt__checkpoint *now = run->resume.checkpoint;
    int64_t at = run->resume.state.steps, newest = named_step(now, "good"), older = named_step(now, "older");
    if (!run->steer.good.open)
        return;
    if (!same_bits(run, now)) { // what came before would give other bits, and look like a machine that errs
        mixt__good_states_take(run, &run->resume.state);
        mixt__trace_start(&run->steer.good.ring.trace, at + 1);
        return;
    }
    bool has_older = older >= 0 && older != newest && older != at, has_newest = newest >= 0 && newest != at;
    if (has_older)
        (void)resume_state(run, older);
    bool there = has_newest && resume_state(run, newest);
    if ((has_older || has_newest) && enter_phase(run, at) == MIXT_OK)
        (void)mixt__resume_restore_from(run, now); // as it was a moment ago
    if (!there)
        mixt__good_states_take(run, &run->resume.state);
    resume_trace(run, now);
}
