/* Updates until the configuration, an early stop, an observer or a signal ends them. */
#include "run/loop_inside.h"

#include "base/signal_at.h"
#include "base/threads.h"
#include "run/auto/precision.h"
#include "run/final.h"
#include "run/open/fit.h"
#include "run/health.h"
#include "run/report/history.h"
#include "run/open/memory.h"
#include "run/open/phases.h"
#include "run/open/policy.h"
#include "run/ranks.h"
#include "run/report/predictions.h"
#include "run/report/shares.h"
#include "run/signals.h"
#include "run/report/summary.h"
#include "steer/decision.h"
#include "train/dist/rank0_first.h"
#include "train/integrity.h"

#include <math.h>
#include <stdio.h>

static int64_t setting(const mixt__loop *l, mixt__config_key key)
{
    return mixt__config_int(l->run->config, key);
}

static bool signalled(const mixt__loop *l)
{
    return mixt__run_signal(l->run) != 0;
}

/** Joules so far, asked for ten times a second at most: an answer can take longer than a small step. */
static double energy_now(mixt__loop *l)
{
    mixt__device *device = l->e->context->device;
    double now = mixt__time_now();
    if (device->backend->energy && (l->stop || now - l->energy_time > 0.1)) {
        l->energy = mixt__device_energy(device);
        l->energy_time = now;
    }
    return device->backend->energy ? l->energy : (double)NAN;
}

/* ---- validation ---- */

/** A function of the step alone, signals or not: a run that is stopped here and resumed must show the same rows. */
static bool validation_scheduled(const mixt__loop *l, int64_t step)
{
    int64_t every = setting(l, MIXT_KEY_TRAIN_VALIDATE_EVERY);
    if (!l->e->val)
        return false;
    if (step == l->e->total_steps)
        return true;
    if (every)
        return step % every == 0;
    return l->e->steps_per_epoch && step % l->e->steps_per_epoch == 0;
}

/** What was asked for waits until the newest update's result is there: it must see that update's weights. */
static bool validation_due(const mixt__loop *l, int64_t step)
{
    bool asked = l->e->val && l->run->asked & MIXT_ASKED_VALIDATION && step == l->issued;
    return asked || validation_scheduled(l, step);
}

/** Leaves it pending when a signal comes: a run stops within a step, and the resumed one validates first. */
static mixt_status validate(mixt__loop *l)
{
    mixt_evaluation found;
    const volatile sig_atomic_t *interrupt = l->run->signals ? &mixt__signals_stop : NULL;
    mixt__trainer *t = l->e->trainer->inner;
    if (l->run->group) // which stops after an update, all ranks at the same
        MIXT_TRY(mixt__trainer_evaluate_ranks(t, l->e->val, &found));
    else
        MIXT_TRY(mixt__trainer_evaluate(t, l->e->val, interrupt, &found));
    mixt_run_result *r = l->result;
    l->run->asked &= ~(unsigned)MIXT_ASKED_VALIDATION;
    l->pending = found.count < 0;
    if (l->pending)
        return MIXT_OK;
    r->validations++;
    r->val_step = r->steps;
    r->val_loss = found.loss;
    r->val_accuracy = found.accuracy;
    l->val_margin = found.margin;
    bool better = isfinite(found.loss) && !(found.loss >= r->best_val_loss); // best is NaN at first
    if (better)
        r->best_val_loss = found.loss;
    l->improved = isfinite(found.loss) && !(found.loss >= l->kept_loss);
    l->since_best = better ? 0 : l->since_best + 1;
    r->stopped_early = mixt__loop_out_of_patience(l);
    return mixt__run_tell(l->run, (mixt_event){.kind = MIXT_EVENT_VALIDATION, .validation = &found});
}

/* ---- results and rows ---- */

/** What was done since `start` is no part of an update. Rows and whoever listens are: a device works on while they do.
 */
static void set_aside(mixt__loop *l, double start)
{
    mixt__engine_set_aside(&l->engine, start);
}

static void collect(mixt__loop *l, const mixt_step *step, double seconds)
{
    mixt__window *w = &l->window;
    mixt__course_take(&l->course, step->loss);
    w->loss += step->loss;
    w->accuracy += step->accuracy;
    w->seconds += seconds;
    w->samples += step->samples;
    w->skipped += step->skipped;
    w->steps++;
    if (step->overflow_layer)
        snprintf(w->overflow_layer, sizeof w->overflow_layer, "%s", step->overflow_layer);
    l->result->samples += step->samples;
    l->result->skipped += step->skipped;
    l->result->step_seconds += seconds;
    l->result->steps = step->step;
    l->result->loss = step->loss;
    l->result->accuracy = step->accuracy;
}

static mixt_status tell_row(mixt__loop *l, bool validated)
{
    const mixt_step *step = &l->run->last;
    mixt__window *w = &l->window;
    double n = (double)w->steps;
    mixt_run_row row = {
        .step = step->step, .epoch = step->epoch, .skipped = w->skipped, .val_loss = NAN, .val_accuracy = NAN};
    row.margin = step->margin;
    row.val_margin = validated ? l->val_margin : (double)NAN;
    row.memory = (int64_t)l->result->memory.allocated;
    row.loss = w->loss / n;
    row.accuracy = w->accuracy / n;
    row.lr = step->lr;
    row.scale = step->scale;
    row.grad_norm = step->grad_norm;
    row.samples_s = (double)w->samples / w->seconds;
    row.time = mixt__time_now() - l->run->started;
    row.energy = l->result->energy = energy_now(l) - l->energy_start;
    row.checkpoint_stall = l->saves.stall;
    l->saves.stall = 0;
    mixt__shares_find(l->e->trainer->inner, &row);
    if (w->overflow_layer[0])
        row.overflow_layer = w->overflow_layer;
    if (validated) {
        row.val_loss = l->result->val_loss;
        row.val_accuracy = l->result->val_accuracy;
    }
    mixt_status status = mixt__run_tell(l->run, (mixt_event){.kind = MIXT_EVENT_ROW, .row = &row});
    *w = (mixt__window){0}; // which the row points into
    MIXT_TRY(status);
    bool waits = l->run->dir.metrics.waiting_bytes > 0;
    if (waits != l->rows_wait)
        mixt__run_note(l->run, true,
                       waits ? "no space for metrics.jsonl: its rows wait in memory from step %lld on"
                             : "metrics.jsonl is complete again at step %lld",
                       (long long)step->step);
    l->rows_wait = waits;
    return MIXT_OK;
}

static mixt_status tell_step(mixt__loop *l)
{
    const mixt_step *step = &l->run->last;
    mixt_status status = mixt__run_tell(l->run, (mixt_event){.kind = MIXT_EVENT_STEP});
    const mixt__trainer *t = l->e->trainer->inner;
    char scale[64] = "";
    if (mixt__trainer_settings_of(t)->scaling.enabled)
        snprintf(scale, sizeof scale, "; loss scale %g -> %g", step->scale, (double)mixt__trainer_control(t)->scale);
    if (step->skipped)
        mixt__run_note(l->run, false, "step %lld skipped: the gradient of %s is NaN or Inf%s", (long long)step->step,
                       step->overflow_layer ? step->overflow_layer : "a layer", scale);
    return status;
}

/* ---- an update and what follows it ---- */

/** Once there is memory to speak of. */
static mixt_status learn_memory(mixt__loop *l)
{
    if (l->result->memory.total)
        return MIXT_OK;
    MIXT_TRY(mixt_trainer_memory(l->e->trainer, &l->result->memory));
    mixt__saves_prepare(&l->saves);
    return MIXT_OK;
}

static bool row_due(const mixt__loop *l, int64_t step)
{
    int64_t every = setting(l, MIXT_KEY_TRAIN_LOG_EVERY);
    return every ? step % every == 0 : l->spike || step % mixt__row_interval(step) == 0;
}

/** What follows the newest update: validation, whether to stop, the row of metrics.
 *  @param status of the update itself */
static mixt_status conclude(mixt__loop *l, mixt_status status)
{
    const mixt_step *step = &l->run->last;
    if (l->run->hooks->response(l->run) == MIXT_RESPONSE_GO_BACK) { // nothing of this update stays
        l->stop = false;
        return status;
    }
    bool validated = status == MIXT_OK && validation_due(l, step->step);
    if (validated) {
        double start = mixt__time_now();
        status = validate(l);
        set_aside(l, start);
    }
    validated = validated && status == MIXT_OK && !l->pending;
    bool newest = step->step == l->issued;
    l->result->stopped = newest && l->run->asked & MIXT_ASKED_STOP && step->step != l->e->total_steps;
    l->stop = step->step == l->e->total_steps || (l->stopping && newest) || l->pending || l->result->stopped_early ||
              l->result->stopped;
    bool row = !l->pending && (row_due(l, step->step) || validated || step->skipped || status != MIXT_OK);
    l->extra_row = l->stop && !row;
    if (l->extra_row)
        l->before_row = mixt__loop_state_of(l);
    if (row || l->stop) {
        mixt_status told = tell_row(l, validated);
        status = status == MIXT_OK ? told : status;
    }
    return status;
}

/** Takes in the result of one update, with all that hangs on it. */
static mixt_status take_result(mixt__loop *l, mixt_step step, double seconds)
{
    mixt_step *last = &l->run->last;
    l->spike = mixt__usual_spike(&l->usual, step.loss);
    if (l->spike && l->window.steps && !setting(l, MIXT_KEY_TRAIN_LOG_EVERY))
        MIXT_TRY(tell_row(l, false)); // what came before: a mean over both would hide the spike
    *last = step;
    l->run->seconds = seconds;
    collect(l, last, seconds);
    MIXT_TRY(learn_memory(l));
    mixt_status told = tell_step(l);
    l->run->asked &= ~(unsigned)MIXT_ASKED_MEMORY; // who looks at it has
    mixt_status health = mixt__health_check(l->run, last, &l->stuck);
    if (told == MIXT_OK)
        told = mixt__layers_take(l->run, last);
    bool decided = l->run->hooks->response(l->run) != MIXT_RESPONSE_NONE;
    return conclude(l, health == MIXT_OK || decided ? told : health);
}

/** After the newest update's result: a checkpoint where one is due or validation was never better. */
static void keep(mixt__loop *l, bool due)
{
    bool best = l->improved;
    double start = mixt__time_now();
    due = due || l->run->asked & MIXT_ASKED_CHECKPOINT;
    l->improved = false;
    l->run->asked &= ~(unsigned)MIXT_ASKED_CHECKPOINT;
    if (best) {
        l->result->best_step = l->result->steps;
        l->kept_loss = l->result->val_loss;
    }
    mixt__loop_state state = mixt__loop_state_of(l);
    l->run->hooks->keep(l->run, &state, false);
    if ((best || due) && !l->stop) // the last state is saved at the end
        mixt__saves_save(&l->saves, &state);
    set_aside(l, start);
}

static mixt_status take_policy(void *user)
{
    mixt__loop *l = user;
    mixt__saves_wait(&l->saves);
    if ((l->run->asked & MIXT_ASKED_POLICY) && mixt__run_set_policy(l->run))
        mixt__saves_refresh(&l->saves);
    if (mixt__phases_due(l->e, l->issued + 1)) // of the policy that was asked for, where it has them
        MIXT_TRY(mixt__run_next_phase(l->run, l->issued + 1));
    return mixt_trainer_memory(l->e->trainer, &l->result->memory);
}

/** The policy of the next update, where it is another one. All results are in. */
static mixt_status change_policy(mixt__loop *l)
{
    if (l->run->group && l->run->asked & MIXT_ASKED_POLICY)
        MIXT_TRY(mixt__run_ranks_policy(l->run));
    if (!(l->run->asked & MIXT_ASKED_POLICY) && !mixt__phases_due(l->e, l->issued + 1))
        return MIXT_OK;
    MIXT_TRY(mixt__rank0_first(l->run->group, l->e->context->device, take_policy, l));
    mixt__loop_state state = mixt__loop_state_of(l);
    l->run->hooks->keep(l->run, &state, true);
    return MIXT_OK;
}

/* ---- decisions ---- */

/** Puts the loop, with all that was written, where the good state was. Time goes on. */
static mixt_status go_back(mixt__loop *l, int64_t step)
{
    mixt__loop_state state;
    mixt_run_result *r = l->result;
    double energy_start = l->energy_start, energy = r->energy, step_seconds = r->step_seconds;
    mixt__saves_return(&l->saves, step);
    MIXT_TRY(l->run->hooks->go_back(l->run, &state));
    MIXT_TRY(mixt__rows_cut(&l->run->dir.metrics, state.metrics_bytes));
    MIXT_TRY(mixt__layers_return(l->run, state.layers_bytes));
    mixt__tensorboard_return(&l->run->tensorboard, l->run, state.steps);
    state.seconds = mixt__run_seconds(l->run);
    l->run->started = mixt__time_now();
    mixt__loop_go_on(l, &state);
    l->energy_start = energy_start;
    r->energy = energy;
    r->step_seconds = step_seconds;
    l->improved = l->spike = l->extra_row = false;
    l->run->asked &= ~(unsigned)(MIXT_ASKED_VALIDATION | MIXT_ASKED_CHECKPOINT);
    return MIXT_OK;
}

/** Goes back where it says so, does the rest, and keeps what has become: a run that is killed right after goes on from
 *  here. */
static mixt_status take_decision(mixt__loop *l, const mixt_decision *d)
{
    bool stop = d->action == MIXT_ACTION_STOP;
    if (d->back >= 0)
        MIXT_TRY(go_back(l, d->back));
    mixt__saves_wait(&l->saves); // what is measured is the step's alone
    MIXT_TRY(l->run->hooks->apply(l->run, d));
    MIXT_TRY(mixt_trainer_memory(l->e->trainer, &l->result->memory)); // of another plan, perhaps
    mixt__saves_refresh(&l->saves);
    if (!stop || d->back >= 0) {
        mixt__loop_state state = mixt__loop_state_of(l);
        l->run->hooks->keep(l->run, &state, true);
        mixt__saves_save(&l->saves, &state);
    }
    return stop ? mixt__fail(MIXT_ERROR_DATA, "step %lld: %s%s", (long long)d->step, d->text,
                             d->back >= 0 ? "; the last good state is saved" : "")
                : MIXT_OK;
}

/** All that was asked for and all that is recorded for this place. */
static mixt_status decide(mixt__loop *l)
{
    mixt_decision d;
    mixt_status status = MIXT_OK;
    bool found = false;
    if (l->run->asked & MIXT_ASKED_DECISION)
        mixt__saves_wait(&l->saves); // the newest checkpoint may be what it goes back to
    double start = mixt__time_now();
    do {
        status = l->run->hooks->next(l->run, l->issued, &d, &found);
        if (status == MIXT_OK && found) {
            status = take_decision(l, &d);
            mixt__decision_free(&d);
        }
    } while (status == MIXT_OK && found);
    set_aside(l, start); // finding out what went wrong is no part of an update
    return status;
}

/** What is to be done before an update: decisions, another policy, batches that are left out. */
static mixt_status prepare(void *user, int64_t update)
{
    mixt__loop *l = user;
    (void)update; // a decision may have gone back
    mixt__saves_poll(&l->saves);
    MIXT_TRY(decide(l));
    MIXT_TRY(change_policy(l));
    l->run->hooks->skip(l->run);
    l->due = mixt__saves_due(&l->saves, l->issued + 1);
    mixt__layers_prepare(l->run, l->issued + 1);
    if (l->run->group && mixt__saves_late(&l->saves))
        mixt_run_ask_checkpoint(l->run);
    mixt__run_ranks_tell(l->run);
    mixt__saves_tell(&l->saves);
    return MIXT_OK;
}

static void issued(void *user, int64_t update)
{
    mixt__loop *l = user;
    mixt__run_ranks_hear(l->run);
    mixt__signal_at(MIXT_PLACE_UPDATE);
    l->issued = update;
    l->stopping = signalled(l);
    l->wait = l->stopping || update == l->e->total_steps || l->due || validation_scheduled(l, update) ||
              mixt__phases_due(l->e, update + 1) || l->run->hooks->waits(l->run, update);
}

/** What must see this update's weights or ends the run waits for it. */
static bool settles(void *user)
{
    const mixt__loop *l = user;
    return l->wait || l->run->asked;
}

static mixt_status made(void *user, const mixt__made *update)
{
    mixt__loop *l = user;
    mixt_status status = take_result(l, update->step, update->seconds);
    l->engine.stop = l->stop;
    return status;
}

static mixt_status settled(void *user)
{
    mixt__loop *l = user;
    if (l->run->hooks->response(l->run) != MIXT_RESPONSE_GO_BACK)
        keep(l, l->due);
    return MIXT_OK;
}

/** At least one update: there is something to save after every signal. */
static mixt_status make_updates(mixt__loop *l)
{
    mixt__engine *g = &l->engine;
    *g = (mixt__engine){.trainer = l->e->trainer->inner, .data = l->e->train, .user = l, .stop = l->stop};
    g->before = prepare;
    g->issued = issued;
    g->settles = settles;
    g->made = made;
    g->settled = settled;
    return mixt__engine_make(g, INT64_MAX);
}

/** The state that a run ends with: every run can go on. */
static mixt_status keep_last(mixt__loop *l, bool interrupted)
{
    if (l->result->steps) {
        mixt__loop_state state = l->extra_row ? l->before_row : mixt__loop_state_of(l);
        mixt__saves_save(&l->saves, &state);
    }
    bool good = mixt__saves_finish(&l->saves, true);
    l->result->checkpoints_lost = l->saves.lost;
    if (good || !interrupted)
        return MIXT_OK; // the weights themselves are still to be saved
    return mixt__fail(MIXT_ERROR_FILE, "stopped by a signal at step %lld, whose state could not be saved",
                      (long long)l->result->steps);
}

/** What was left undone when the run was stopped. */
static mixt_status catch_up(mixt__loop *l)
{
    MIXT_TRY(learn_memory(l));
    MIXT_TRY(conclude(l, MIXT_OK));
    keep(l, mixt__saves_due(&l->saves, l->issued));
    return MIXT_OK;
}

static mixt_status run_updates(mixt__loop *l)
{
    bool moved = !l->stop;
    mixt_status status = l->pending ? catch_up(l) : MIXT_OK;
    if (status == MIXT_OK)
        status = make_updates(l);
    if (!moved) // nothing was left to do: the summary still speaks of memory
        status = mixt_trainer_memory(l->e->trainer, &l->result->memory);
    bool over =
        !l->pending && (l->result->steps >= l->e->total_steps || l->result->stopped_early || l->result->stopped);
    l->result->interrupted = signalled(l) && !over;
    l->result->signal = l->result->interrupted ? mixt__run_signal(l->run) : 0;
    if (status == MIXT_OK && moved)
        return keep_last(l, l->result->interrupted);
    (void)mixt__saves_finish(&l->saves, false); // for what it says: the run has failed anyway, or had nothing to do
    return status;
}

/** Says what will happen, then begins. Memory is taken before: a run that gets none has only that to say. */
static mixt_status announce(mixt__loop *l)
{
    mixt_status ready = mixt__trainer_allocate(l->e->trainer->inner);
    if (ready == MIXT_OK) {
        mixt__summary_tell(l->run);
        mixt__run_ranks_note(l->run);
        mixt__run_tell_phases(l->run);
        mixt__auto_precision_tell(l->run);
        mixt__fit_tell(l->run);
        mixt__warnings_tell(l->run);
    }
    mixt_status told = mixt__run_tell(l->run, (mixt_event){.kind = MIXT_EVENT_START});
    return ready == MIXT_OK ? told : ready;
}

mixt_status mixt__loop_run(mixt_run *run)
{
    mixt__loop l = {.run = run, .e = &run->experiment, .result = &run->result, .kept_loss = NAN};
    const mixt__loop_state *resumed = run->resume.checkpoint ? &run->resume.state : NULL;
    run->asked = 0;
    l.energy_start = energy_now(&l);
    run->started = mixt__time_now();
    if (resumed)
        mixt__loop_go_on(&l, resumed);
    if (run->signals)
        mixt__signals_catch();
    mixt__trainer_tell_damage(l.e->trainer->inner);
    mixt_status status = announce(&l);
    mixt__saves_open(&l.saves, run, resumed ? resumed->steps : -1);
    if (status == MIXT_OK && !resumed) {
        mixt__loop_state start = mixt__loop_state_of(&l);
        run->hooks->keep(run, &start, false);
    }
    if (status == MIXT_OK)
        status = run_updates(&l);
    if (status == MIXT_OK)
        mixt__run_ranks_note_end(run);
    run->result.seconds = mixt__time_now() - run->started;
    run->result.samples_s = run->result.step_seconds > 0 ? (double)run->result.samples / run->result.step_seconds : 0;
    mixt__run_count_memory(run); // all that it holds is there still
    mixt__saves_close(&l.saves);
    if (status == MIXT_OK) // while signals are caught: one that comes at the end must not cost the weights
        status = mixt__final_save(run);
    if (status == MIXT_OK)
        mixt__predictions_write(run);
    if (status == MIXT_OK && run->resume.run[0]) // until here, weights that the directory held before were not its last
        mixt__history_add(run, json_pack("{s:s, s:I}", "event", "finished", "step", (json_int_t)run->result.steps));
    if (status == MIXT_OK)
        status = mixt__health_check_end(run, &l.course);
    if (run->signals)
        mixt__signals_release();
    return status;
}
