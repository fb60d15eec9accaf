/* Saving while a run trains. */
#include "run/saves.h"

#include "base/isa.h"
#include "base/threads.h"
#include "data/data.h"
#include "dist/keepalive.h"
#include "run/order.h"
#include "run/open/adapter.h"
#include "run/open/phases.h"
#include "run/ranks.h"
#include "store/checksum.h"
#include "store/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *mixt__run_conditions(mixt__experiment *e)
{
    char data[96];
    bool cpu = e->context->device->backend->host_memory;
    const uint64_t *sums = mixt__experiment_sums(e);
    snprintf(data, sizeof data, "%lld samples, checksum %016llx", (long long)mixt_data_describe(e->train)->samples,
             (unsigned long long)mixt__checksum(sums, 2 * sizeof *sums));
    json_t *conditions =
        json_pack("{s:I, s:s, s:s, s:i, s:s, s:o}", "ranks", (json_int_t)(e->ranks ? e->ranks : 1), "device",
                  e->context->device->backend->name, "data", data, "threads", cpu ? mixt__threads_count() : 0,
                  "instructions", cpu ? mixt__isa_name(mixt__isa_level()) : "", "order", mixt__run_order_pack(e));
    if (mixt__adapter_only(e->config)) // which checkpoints do not hold
        mixt__json_set(conditions, "base", mixt__adapter_base_sum(e));
    return conditions;
}

void mixt__saves_open(mixt__saves *c, mixt_run *run, int64_t resumed)
{
    *c = (mixt__saves){.run = run, .newest = resumed};
    c->every = mixt__config_int(run->config, MIXT_KEY_TRAIN_CHECKPOINT_EVERY);
    c->keep = mixt__config_int(run->config, MIXT_KEY_TRAIN_KEEP);
    c->interval = 60 * mixt__config_float(run->config, MIXT_KEY_TRAIN_CHECKPOINT_MINUTES);
    c->last = mixt__time_now();
    mixt__saves_refresh(c);
}

void mixt__saves_wait(mixt__saves *c)
{
    if (c->saver)
        mixt__saver_wait(c->saver);
}

void mixt__saves_refresh(mixt__saves *c)
{
    const mixt_config *config = c->run->config;
    mixt__saves_wait(c); // it may be writing what is replaced here
    free(c->config);
    free(c->policy);
    c->config = c->policy = NULL;
    FILE *stream = open_memstream(&c->config, &c->config_bytes);
    if (stream && mixt__config_print(config, stream, false) == MIXT_OK)
        fclose(stream);
    if (!mixt__policy_is_word(mixt__config_string(config, MIXT_KEY_PRECISION)))
        (void)mixt_policy_print(mixt__run_policy(c->run), &c->policy);
}

/** Whether every rank saves its part, all together. */
static bool by_parts(const mixt__saves *c)
{
    return c->run->group && mixt__ranks_save_parts(c->run->experiment.trainer->inner);
}

void mixt__saves_prepare(mixt__saves *c)
{
    bool parts = by_parts(c);
    if (c->saver || c->impossible || (c->run->dir.silent && !parts))
        return;
    mixt_status status = mixt__saver_start(c->run->experiment.trainer->inner, &c->saver);
    if (parts)
        status = mixt__group_agree_soon(c->run->group, status);
    if (c->run->group)
        c->run->group->settled = false; // the run goes on: what fails next is something else
    if (status == MIXT_OK) {
        c->conditions = c->run->dir.silent ? NULL : mixt__run_conditions(&c->run->experiment);
        return;
    }
    mixt__saver_stop(c->saver);
    c->saver = NULL;
    c->impossible = true;
    mixt__run_note(c->run, true, "no checkpoints will be saved: %s", mixt_error_text());
}

bool mixt__saves_late(const mixt__saves *c)
{
    return !c->impossible && !c->run->dir.silent && c->interval > 0 && mixt__time_now() - c->last >= c->interval;
}

bool mixt__saves_due(const mixt__saves *c, int64_t step)
{
    bool counted = c->every && step % c->every == 0;
    if (c->run->group) // the same on all ranks; what the clock says, rank 0 asks for
        return counted;
    return !c->impossible && (counted || mixt__saves_late(c));
}

/** Evaluation may have had more algorithms timed since the last save. */
static void ask_choices(mixt__saves *c)
{
    mixt__device *device = c->run->experiment.context->device;
    mixt__free(c->choices);
    c->choices = NULL;
    c->choices_bytes = device->backend->choices ? mixt__device_choices(device, NULL, 0) : 0;
    if (c->choices_bytes)
        c->choices = mixt__alloc(c->choices_bytes);
    if (c->choices)
        c->choices_bytes = mixt__device_choices(device, c->choices, c->choices_bytes);
}

/** What every checkpoint of the run has: conditions, files beside the state, and what stays when others go. */
static mixt__save_request request(mixt__saves *c, int64_t step, int64_t best)
{
    mixt__good_state good[MIXT_GOOD_STATES];
    mixt__save_request r = {.step = step, .keep = c->keep, .wanted = {best}, .wanted_count = 1};
    bool some = c->run->hooks->states(c->run, good);
    for (int i = 0; some && i < MIXT_GOOD_STATES; i++) {
        r.wanted[r.wanted_count++] = good[i].step;
        r.wanted[r.wanted_count++] = good[i].best;
    }
    snprintf(r.folder, sizeof r.folder, "%s/checkpoints", c->run->dir.path);
    r.run = mixt__json_copy(c->conditions); // the saver's thread alone holds what it is given
    r.run_lost = !r.run;
    r.files[r.file_count++] =
        (mixt__checkpoint_file){.name = "config.yaml", .data = c->config, .bytes = c->config_bytes};
    if (c->policy)
        r.files[r.file_count++] =
            (mixt__checkpoint_file){.name = MIXT_POLICY_FILE, .data = c->policy, .bytes = strlen(c->policy)};
    ask_choices(c);
    if (c->choices)
        r.files[r.file_count++] =
            (mixt__checkpoint_file){.name = MIXT_CHOICES_FILE, .data = c->choices, .bytes = c->choices_bytes};
    return r;
}

/** What diagnosis needs of the updates up to the checkpoint's, as a file of its own. */
static void add_trace(mixt__saves *c, mixt__save_request *r)
{
    mixt__saves_wait(c); // it may be writing what is replaced here
    mixt__free(c->trace);
    c->trace = c->run->hooks->trace(c->run, r->step, &c->trace_bytes);
    if (c->trace)
        r->files[r->file_count++] =
            (mixt__checkpoint_file){.name = MIXT_TRACE_FILE, .data = c->trace, .bytes = c->trace_bytes};
}

static void tell(mixt__saves *c, const mixt__save_report *report)
{
    char folder[MIXT_CHECKPOINT_PATH - 32], path[MIXT_CHECKPOINT_PATH];
    snprintf(folder, sizeof folder, "%s/checkpoints", c->run->dir.path);
    mixt_event event = {.kind = MIXT_EVENT_CHECKPOINT, .status = report->status};
    event.text = mixt__checkpoint_path(folder, report->step, path);
    if (mixt__run_tell(c->run, event) != MIXT_OK)
        mixt_run_ask_stop(c->run);
}

/** How the newest save ended, where it has. */
static void hear(mixt__saves *c)
{
    mixt__save_report report;
    if (!c->saver || !mixt__saver_report(c->saver, &report))
        return;
    bool again = c->failed; // a disk that stays full is said once
    c->failed = report.status != MIXT_OK;
    c->lost += c->failed;
    if (!c->failed)
        c->newest = report.step;
    tell(c, &report);
    if (again && !c->failed)
        mixt__run_note(c->run, true, "checkpoints can be saved again, from step %lld on", (long long)report.step);
    if (c->failed && !again)
        mixt__run_note(c->run, true, "no checkpoint of step %lld: %s; training continues, earlier checkpoints are kept",
                       (long long)report.step, report.error);
}

/** The end of what one rank may have done while the others waited: fails on all alike, and the run goes on. */
static mixt_status end_keepalive(mixt__saves *c, mixt__keepalive *meanwhile, mixt_status mine)
{
    mixt_status status = mixt__keepalive_end(meanwhile, mine);
    if (c->run->group)
        c->run->group->settled = false; // what fails next is something else
    return status;
}

/** Until the save under way is in place, or given up; where there are ranks, on all of them. @param mine how this one
 *  is */
static mixt_status wait_together(mixt__saves *c, mixt_status mine)
{
    mixt__keepalive meanwhile;
    if (by_parts(c)) {
        if (c->saver)
            mixt__saver_settle(c->saver, true);
    } else {
        mixt__keepalive_begin(&meanwhile, c->run->group);
        mixt__saves_wait(c);
        mine = end_keepalive(c, &meanwhile, mine);
    }
    hear(c);
    return mine;
}

void mixt__saves_return(mixt__saves *c, int64_t step)
{
    char folder[MIXT_CHECKPOINT_PATH - 32];
    (void)wait_together(c, MIXT_OK); // a group that is broken ends the run at the next update
    snprintf(folder, sizeof folder, "%s/checkpoints", c->run->dir.path);
    if (!c->run->dir.silent && mixt__checkpoints_drop_after(folder, step) != MIXT_OK)
        mixt__run_note(c->run, true, "checkpoints after step %lld cannot be removed: %s", (long long)step,
                       mixt_error_text());
}

/* ---- good states ---- */

/** A good state lies beside the checkpoint of every later update: it is written where it is not there yet.
 *  @param step that is being saved */
static bool lacks(const mixt__saves *c, const mixt__good_state *g, int64_t step)
{
    char folder[MIXT_CHECKPOINT_PATH - 32], path[MIXT_CHECKPOINT_PATH];
    snprintf(folder, sizeof folder, "%s/checkpoints", c->run->dir.path);
    return g->snapshot && g->run && g->step != step && access(mixt__checkpoint_path(folder, g->step, path), F_OK);
}

/** Of a rank that writes no small files, the step counts alone. */
static mixt__save_request good_request(mixt__saves *c, const mixt__good_state *g)
{
    if (c->run->dir.silent)
        return (mixt__save_request){.step = g->step};
    mixt__save_request r = request(c, g->step, g->best);
    add_trace(c, &r);
    mixt__json_merge(r.run, g->run);
    return r;
}

/** By this process, or by rank 0 while the others wait. What ranks have each of their own comes to it before. */
static mixt_status save_good_alone(mixt__saves *c, const mixt__good_state *g)
{
    mixt__trainer *t = c->run->experiment.trainer->inner;
    mixt__keepalive meanwhile;
    mixt_status status = MIXT_OK;
    if (mixt__ranks_discrete(t))
        MIXT_TRY(mixt__saver_collect(c->saver, t, g->snapshot));
    mixt__keepalive_begin(&meanwhile, c->run->group);
    if (!c->run->dir.silent) {
        mixt__save_request r = good_request(c, g);
        status = mixt__saver_write(c->saver, g->snapshot, &r);
    }
    return end_keepalive(c, &meanwhile, status);
}

/** Those of both that are not there yet, by all ranks in the same order. No other save is under way. */
static mixt_status save_good_states(mixt__saves *c, int64_t step)
{
    mixt__good_state good[MIXT_GOOD_STATES];
    uint8_t lacking[MIXT_GOOD_STATES] = {0};
    if (!c->run->hooks->states(c->run, good))
        return MIXT_OK;
    for (int i = 0; i < MIXT_GOOD_STATES; i++)
        lacking[i] = !c->run->dir.silent && lacks(c, &good[i], step);
    if (c->run->group)
        MIXT_TRY(mixt__group_broadcast(c->run->group, lacking, sizeof lacking, 1));
    for (int i = 0; i < MIXT_GOOD_STATES; i++) {
        if (lacking[i] && by_parts(c)) {
            mixt__save_request r = good_request(c, &good[i]);
            MIXT_TRY(mixt__saver_write_parts(c->saver, good[i].snapshot, &r));
        } else if (lacking[i]) {
            MIXT_TRY(save_good_alone(c, &good[i]));
        }
    }
    return MIXT_OK;
}

/* ---- a save ---- */

/** All that a checkpoint says of the run; of a rank that writes no small files, the step alone. */
static mixt__save_request state_request(mixt__saves *c, const mixt__loop_state *state)
{
    if (c->run->dir.silent)
        return (mixt__save_request){.step = state->steps};
    mixt__save_request r = request(c, state->steps, state->best_step);
    add_trace(c, &r);
    mixt__json_set(r.run, "loop", mixt__loop_state_pack(state));
    mixt__json_set(r.run, "watch", mixt__events_pack(&c->run->events));
    mixt__json_set(r.run, "auto", c->run->hooks->pack(c->run));
    return r;
}

/** All ranks: each its part, of what rank 0 says. */
static mixt_status save_parts(mixt__saves *c, const mixt__loop_state *state)
{
    MIXT_TRY(save_good_states(c, state->steps));
    mixt__save_request r = state_request(c, state);
    c->told = false;
    return mixt__saver_save_part(c->saver, &r);
}

/** This process, or rank 0 of those that do not see the same files: all of it. */
static mixt_status save_alone(mixt__saves *c, const mixt__loop_state *state)
{
    mixt__trainer *t = c->run->experiment.trainer->inner;
    MIXT_TRY(save_good_states(c, state->steps));
    if (mixt__ranks_discrete(t))
        MIXT_TRY(mixt__saver_collect(c->saver, t, NULL));
    if (c->run->dir.silent)
        return MIXT_OK;
    mixt__save_request r = state_request(c, state);
    return mixt__saver_save(c->saver, &r);
}

void mixt__saves_save(mixt__saves *c, const mixt__loop_state *state)
{
    double start = mixt__time_now();
    bool parts = by_parts(c);
    mixt__saves_prepare(c);
    c->lost += c->impossible;
    mixt_status possible = c->impossible ? mixt__fail(MIXT_ERROR_MEMORY, "no checkpoints are saved") : MIXT_OK;
    if (wait_together(c, possible) != MIXT_OK)
        return;
    mixt_status status = parts ? save_parts(c, state) : save_alone(c, state);
    if (!parts && c->run->dir.silent)
        return;
    if (status != MIXT_OK && !(c->run->group && c->run->group->broken)) { // else the run ends, and says why
        c->failed = true;
        c->lost++;
        mixt__run_note(c->run, true, "no checkpoint of step %lld: %s; training continues", (long long)state->steps,
                       mixt_error_text());
    }
    c->last = mixt__time_now();
    c->stall += c->last - start;
}

void mixt__saves_tell(mixt__saves *c)
{
    if (!c->saver || !mixt__saver_pending(c->saver))
        return;
    if (mixt__saver_writing(c->saver))
        mixt__ranks_ask(c->run->experiment.trainer->inner, MIXT_ASKED_PATIENCE);
    c->told = true;
}

void mixt__saves_poll(mixt__saves *c)
{
    uint32_t agreed = mixt__ranks_agreed_asked(c->run->experiment.trainer->inner);
    if (c->saver && c->told && mixt__saver_pending(c->saver) && !(agreed & MIXT_ASKED_PATIENCE))
        mixt__saver_settle(c->saver, false);
    hear(c);
}

/** A disk that stayed full was spoken of once, perhaps hours ago. */
static void say_lost(const mixt__saves *c)
{
    char newest[64] = "there is none";
    if (c->newest >= 0)
        snprintf(newest, sizeof newest, "the newest is of step %lld", (long long)c->newest);
    if (c->lost)
        mixt__run_note(c->run, true, "%lld checkpoint%s could not be saved; %s", (long long)c->lost,
                       c->lost == 1 ? "" : "s", newest);
}

bool mixt__saves_finish(mixt__saves *c, bool together)
{
    if (c->saver) {
        if (together)
            mixt__saver_settle(c->saver, true);
        mixt__saver_wait(c->saver);
        hear(c);
    }
    say_lost(c);
    return !c->impossible && !c->failed;
}

void mixt__saves_close(mixt__saves *c)
{
    mixt__saver_stop(c->saver);
    json_decref(c->conditions);
    mixt__free(c->choices);
    mixt__free(c->trace);
    free(c->config);
    free(c->policy);
    *c = (mixt__saves){0};
}
