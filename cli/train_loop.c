/* Steps until the configuration, an early stop or a signal ends them. */
#include "cli/train_loop.h"

#include "base/threads.h"
#include "cli/checkpoints.h"
#include "cli/progress.h"

#include <math.h>
#include <signal.h>
#include <string.h>

/** Updates in a row that no change of the loss scale can make succeed, after which a run has failed. */
enum { HOPELESS_MAX = 10 };

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/** The first signal asks for a clean stop; a second one kills as usual. A limit on file sizes is met as a failed write,
 * and whoever reads the progress line may go away: hours of training must not go with him. */
static const struct {
    int number;
    bool ignored;
} caught[] = {{SIGINT, false}, {SIGTERM, false}, {SIGXFSZ, true}, {SIGPIPE, true}};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static void catch_signals(struct sigaction old[CAUGHT])
{
    struct sigaction stop = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND},
                     ignore = {.sa_handler = SIG_IGN};
    stop_requested = 0;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i].number, caught[i].ignored ? &ignore : &stop, &old[i]);
}

typedef struct loop {
    cli_experiment *e;
    cli_run_dir *dir;
    cli_progress progress;
    cli_progress_info shown;
    cli_train_result *result;
    cli_checkpoints checkpoints;
    cli_window window;
    int64_t samples, issued;                  // updates given to the device
    mixt_step last;                           // the newest that was digested
    bool pending;                             // a signal came before its validation was through
    cli_loop_state before_row;                // as it was before a row that only the end of the run made
    bool extra_row;                           // there is such a row
    bool rows_wait;                           // the disk has no room for metrics.jsonl
    bool improved;                            // the newest validation is better than any that was kept
    double kept_loss;                         // of the best checkpoint; NaN: there is none
    double started;                           // less the seconds of earlier sessions of this run
    double digested_at;                       // when the last result was worked in
    bool stopping;                            // a signal came before the last update was issued
    double energy_start, energy, energy_time; // joules at the start and when last asked; NaN: the device does not count
    int64_t since_best;                       // validations without improvement
    bool stop;                                // this update is the last: what it logged is complete
    int64_t hopeless;                         // skipped updates in a row that a smaller loss scale would not have saved
} loop;

static int64_t setting(const loop *l, mixt__config_key key)
{
    return mixt__config_int(l->e->config, key);
}

/** Joules so far, asked for ten times a second at most: an answer can take longer than a small step. */
static double energy_now(loop *l)
{
    const mixt__backend *backend = l->e->context->backend;
    double now = mixt__time_now();
    if (backend->energy && (l->stop || now - l->energy_time > 0.1)) {
        l->energy = backend->energy();
        l->energy_time = now;
    }
    return backend->energy ? l->energy : (double)NAN;
}

/** A function of the step alone, signals or not: a run that is stopped here and resumed must show the same rows. */
static bool validation_due(const loop *l, int64_t step)
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

static bool out_of_patience(const loop *l)
{
    int64_t limit = setting(l, MIXT_KEY_TRAIN_EARLY_STOP);
    return limit && l->since_best >= limit;
}

/** Leaves it pending when a signal comes: a run stops within a step, and the resumed one validates first. */
static mixt_status validate(loop *l, const mixt_step *step)
{
    mixt_evaluation found;
    MIXT_TRY(mixt__trainer_evaluate(&l->e->trainer->core, l->e->val, &stop_requested, &found));
    cli_train_result *r = l->result;
    l->pending = found.count < 0;
    if (l->pending)
        return MIXT_OK;
    r->validations++;
    r->val_loss = found.loss;
    r->val_accuracy = found.accuracy;
    bool better = isfinite(found.loss) && !(found.loss >= r->best_val_loss); // best is NaN at first
    if (better)
        r->best_val_loss = found.loss;
    l->improved = isfinite(found.loss) && !(found.loss >= l->kept_loss);
    l->since_best = better ? 0 : l->since_best + 1;
    r->stopped_early = out_of_patience(l);
    if (isnan(found.accuracy))
        cli_progress_note(&l->progress, "step %lld: validation loss %.4f", (long long)step->step, found.loss);
    else
        cli_progress_note(&l->progress, "step %lld: validation loss %.4f, accuracy %.2f%%", (long long)step->step,
                          found.loss, 100 * found.accuracy);
    return MIXT_OK;
}

static void collect(loop *l, const mixt_step *step, double seconds)
{
    cli_window *w = &l->window;
    w->loss += step->loss;
    w->accuracy += step->accuracy;
    w->seconds += seconds;
    w->samples += step->samples;
    w->skipped += step->skipped;
    w->steps++;
    if (step->overflow_layer)
        snprintf(w->overflow_layer, sizeof w->overflow_layer, "%s", step->overflow_layer);
    l->samples += step->samples;
    l->result->skipped += step->skipped;
    l->result->step_seconds += seconds;
    l->result->steps = step->step;
    l->result->loss = step->loss;
    l->result->accuracy = step->accuracy;
}

static mixt_status log_row(loop *l, const mixt_step *step, bool validated)
{
    cli_window *w = &l->window;
    double n = (double)w->steps;
    cli_metrics_row row = {
        .step = step->step, .epoch = step->epoch, .skipped = w->skipped, .val_loss = NAN, .val_accuracy = NAN};
    row.memory = (int64_t)l->result->memory.allocated;
    row.loss = w->loss / n;
    row.accuracy = w->accuracy / n;
    row.lr = step->lr;
    row.scale = step->scale;
    row.grad_norm = step->grad_norm;
    row.samples_s = (double)w->samples / w->seconds;
    row.energy = l->result->energy = energy_now(l) - l->energy_start;
    row.checkpoint_stall = l->checkpoints.stall;
    l->checkpoints.stall = 0;
    if (w->overflow_layer[0])
        row.overflow_layer = w->overflow_layer;
    if (validated) {
        row.val_loss = l->result->val_loss;
        row.val_accuracy = l->result->val_accuracy;
    }
    mixt_status status = cli_metrics_log(&l->dir->metrics, &row); // which points into the window
    *w = (cli_window){0};
    MIXT_TRY(status);
    bool waits = l->dir->metrics.waiting_bytes > 0;
    if (waits != l->rows_wait)
        cli_progress_warn(&l->progress,
                          waits ? "no room for metrics.jsonl: its rows wait in memory from step %lld on"
                                : "metrics.jsonl is complete again at step %lld",
                          (long long)step->step);
    l->rows_wait = waits;
    return MIXT_OK;
}

static void show(loop *l, const mixt_step *step)
{
    const cli_experiment *e = l->e;
    const mixt__scaling *scaling = &e->trainer->core.settings.scaling;
    l->shown =
        (cli_progress_info){.step = step->step, .steps = e->total_steps, .epoch = step->epoch + 1, .loss = step->loss};
    l->shown.epochs = setting(l, MIXT_KEY_TRAIN_EPOCHS);
    l->shown.accuracy = step->accuracy;
    l->shown.items_s = (double)(l->samples * e->items_per_sample) / l->result->step_seconds;
    l->shown.item = e->item;
    l->shown.scale = scaling->enabled ? step->scale : NAN;
    cli_progress_update(&l->progress, &l->shown);
    if (step->skipped)
        cli_progress_note(&l->progress, "step %lld skipped: gradient of %s is not finite; loss scale %g -> %g",
                          (long long)step->step, step->overflow_layer ? step->overflow_layer : "a layer", step->scale,
                          (double)e->trainer->core.seen.scale);
}

/** Fails when training cannot go on: a loss that is not finite although the update counted, or updates skipped one
 *  after another for another reason than a loss scale that is still falling. */
static mixt_status check_health(loop *l, const mixt_step *step)
{
    const mixt__scaling *scaling = &l->e->trainer->core.settings.scaling;
    if (!isfinite(step->loss) && !step->skipped)
        return mixt__fail(MIXT_ERROR_DATA, "step %lld: the loss is not finite (%g): lower train.lr, or check the data",
                          (long long)step->step, step->loss);
    bool can_fall = scaling->enabled && scaling->dynamic && step->scale > (double)scaling->floor;
    bool hopeless = step->skipped && (!isfinite(step->loss) || !can_fall);
    bool last = step->step == l->e->total_steps && !isfinite(step->loss);
    l->hopeless = hopeless ? l->hopeless + 1 : 0;
    if (l->hopeless < HOPELESS_MAX && !last)
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_DATA,
        "step %lld: the last %lld updates were skipped (loss %g, first bad gradient in %s, loss scale %g): training "
        "has diverged; lower train.lr, set train.clip, or use another precision",
        (long long)step->step, (long long)l->hopeless, isnan(step->loss) ? (double)NAN : step->loss,
        step->overflow_layer ? step->overflow_layer : "no layer", step->scale);
}

/** What is true after the newest update that was digested. */
static cli_loop_state state_of(const loop *l)
{
    const cli_train_result *r = l->result;
    cli_loop_state s = {.window = l->window, .steps = r->steps, .samples = l->samples, .skipped = r->skipped};
    s.validations = r->validations;
    s.since_best = l->since_best;
    s.best_step = r->best_step;
    s.hopeless = l->hopeless;
    s.metrics_bytes = cli_metrics_length(&l->dir->metrics);
    s.pending = l->pending;
    s.epoch = l->last.epoch;
    s.lr = l->last.lr;
    s.scale = l->last.scale;
    s.grad_norm = l->last.grad_norm;
    s.loss = r->loss;
    s.accuracy = r->accuracy;
    s.val_loss = r->val_loss;
    s.val_accuracy = r->val_accuracy;
    s.best_val_loss = r->best_val_loss;
    s.kept_val_loss = l->kept_loss;
    s.seconds = mixt__time_now() - l->started;
    s.step_seconds = r->step_seconds;
    s.energy = r->energy;
    return s;
}

/** Puts the loop where a checkpoint left it. */
static void go_on(loop *l, const cli_loop_state *s)
{
    cli_train_result *r = l->result;
    l->window = s->window;
    l->samples = s->samples;
    l->since_best = s->since_best;
    l->hopeless = s->hopeless;
    l->started -= s->seconds;
    l->issued = r->steps = s->steps;
    r->skipped = s->skipped;
    r->validations = s->validations;
    r->best_step = s->best_step;
    r->loss = s->loss;
    r->accuracy = s->accuracy;
    r->val_loss = s->val_loss;
    r->val_accuracy = s->val_accuracy;
    r->best_val_loss = s->best_val_loss;
    l->kept_loss = s->kept_val_loss;
    r->step_seconds = s->step_seconds;
    r->energy = s->energy;
    if (!isnan(s->energy))
        l->energy_start -= s->energy;
    r->stopped_early = out_of_patience(l);
    l->pending = s->pending;
    l->last = (mixt_step){.step = s->steps, .epoch = s->epoch, .lr = s->lr, .scale = s->scale};
    l->last.loss = s->loss;
    l->last.accuracy = s->accuracy;
    l->last.grad_norm = s->grad_norm;
    l->stop = !l->pending && (r->stopped_early || r->steps >= l->e->total_steps);
}

/** Once there is memory to speak of. */
static mixt_status learn_memory(loop *l)
{
    if (l->result->memory.total)
        return MIXT_OK;
    MIXT_TRY(mixt_trainer_memory(l->e->trainer, &l->result->memory));
    cli_checkpoints_prepare(&l->checkpoints);
    return MIXT_OK;
}

/** What follows the newest update: validation, whether to stop, the log.
 *  @param status of the update itself */
static mixt_status conclude(loop *l, mixt_status status)
{
    const mixt_step *step = &l->last;
    bool validated = status == MIXT_OK && validation_due(l, step->step);
    if (validated)
        status = validate(l, step);
    validated = validated && status == MIXT_OK && !l->pending;
    l->stop = step->step == l->e->total_steps || (l->stopping && step->step == l->issued) || l->pending ||
              l->result->stopped_early;
    bool due = step->step % setting(l, MIXT_KEY_TRAIN_LOG_EVERY) == 0;
    bool row = !l->pending && (due || validated || step->skipped || status != MIXT_OK);
    l->extra_row = l->stop && !row;
    if (l->extra_row)
        l->before_row = state_of(l);
    if (row || l->stop) {
        mixt_status logged = log_row(l, step, validated);
        status = status == MIXT_OK ? logged : status;
    }
    l->digested_at = mixt__time_now();
    return status;
}

/** All that hangs on one update: figures, validation, the log. */
static mixt_status digest(loop *l, int64_t number)
{
    MIXT_TRY(mixt__trainer_result(&l->e->trainer->core, number, &l->last));
    collect(l, &l->last, mixt__time_now() - l->digested_at);
    MIXT_TRY(learn_memory(l));
    show(l, &l->last);
    return conclude(l, check_health(l, &l->last));
}

/** After the newest update was digested: a checkpoint where one is due or validation was never better. */
static void keep(loop *l, bool due)
{
    bool best = l->improved && l->checkpoints.active;
    l->improved = false;
    if (best) {
        l->result->best_step = l->result->steps;
        l->kept_loss = l->result->val_loss;
    }
    if ((!best && !due) || l->stop)
        return; // the last state is saved at the end
    cli_loop_state state = state_of(l);
    cli_checkpoints_save(&l->checkpoints, &state);
    l->digested_at = mixt__time_now();
}

/** Issues one update. On a GPU the one before it is digested while it runs; what must see this one's weights or end
 *  the run waits for it. */
static mixt_status advance(loop *l)
{
    cli_checkpoints_poll(&l->checkpoints);
    bool due = cli_checkpoints_due(&l->checkpoints, l->issued + 1);
    MIXT_TRY(mixt_trainer_step(l->e->trainer, l->e->train, NULL));
    l->issued++;
    l->stopping = stop_requested;
    bool wait = l->e->context->backend->host_memory || l->stopping || l->issued == l->e->total_steps || due ||
                validation_due(l, l->issued);
    mixt_status status = MIXT_OK;
    while (status == MIXT_OK && l->result->steps < l->issued - (wait ? 0 : 1))
        status = digest(l, l->result->steps + 1);
    if (status == MIXT_OK && wait)
        keep(l, due);
    return status;
}

/** The state that a run ends with, where it has checkpoints or a signal ended it. */
static mixt_status keep_last(loop *l, bool interrupted)
{
    if (l->result->steps && (interrupted || l->checkpoints.active)) {
        cli_loop_state state = l->extra_row ? l->before_row : state_of(l);
        cli_checkpoints_save(&l->checkpoints, &state);
    }
    bool good = cli_checkpoints_finish(&l->checkpoints);
    l->result->checkpoints_lost = l->checkpoints.lost;
    if (good || !interrupted)
        return MIXT_OK; // the weights themselves are still to be saved
    return mixt__fail(MIXT_ERROR_FILE, "stopped by a signal at step %lld, whose state could not be saved",
                      (long long)l->result->steps);
}

/** What was left undone when the run was stopped. */
static mixt_status catch_up(loop *l)
{
    MIXT_TRY(learn_memory(l));
    MIXT_TRY(conclude(l, MIXT_OK));
    keep(l, cli_checkpoints_due(&l->checkpoints, l->issued));
    return MIXT_OK;
}

static mixt_status run(loop *l)
{
    bool moved = !l->stop;
    mixt_status status = l->pending ? catch_up(l) : MIXT_OK;
    while (status == MIXT_OK && !l->stop) // at least one update: there is something to save after every signal
        status = advance(l);
    if (!moved) // nothing was left to do: the summary still speaks of memory
        status = mixt_trainer_memory(l->e->trainer, &l->result->memory);
    l->result->interrupted = stop_requested && (l->pending || l->result->steps < l->e->total_steps);
    if (status == MIXT_OK && moved)
        return keep_last(l, l->result->interrupted);
    (void)cli_checkpoints_finish(&l->checkpoints); // for what it says: the run has failed anyway, or had nothing to do
    return status;
}

/** What the data made of the task where a user might think of another. A task that is none is no error, but should not
 * look like a success either. */
static void note_task(loop *l)
{
    const mixt__zoo_entry *entry;
    if (mixt_data_describe(l->e->train)->target == MIXT_TARGET_VALUES)
        cli_progress_note(&l->progress, "targets are values, not classes (integers from 0): training on their mean "
                                        "squared error");
    const char *name = mixt__config_string(l->e->config, MIXT_KEY_MODEL);
    if (mixt__model_find(name, &entry) == MIXT_OK && entry->sees_all && mixt_data_describe(l->e->train)->next_tokens)
        cli_progress_note(&l->progress,
                          "warning: %s sees all tokens of a sample, the next one too, and need only copy it: hide some "
                          "with data.mask=0.15",
                          name);
}

/** A run that ends as it began has failed, however finite its losses; what it has written stays. */
static mixt_status check_applied(const cli_train_result *r)
{
    if (!r->steps || r->skipped < r->steps || r->interrupted)
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_DATA,
        "none of the updates was applied (%lld skipped: gradients not finite): nothing was learned; train "
        "longer, so that a dynamic loss scale can fall, lower train.loss_scale or train.scale_init, or "
        "use another precision",
        (long long)r->steps);
}

mixt_status cli_train_loop(cli_experiment *e, cli_run_dir *dir, bool quiet, const cli_loop_state *resumed,
                           cli_train_result *result)
{
    loop l = {.e = e, .dir = dir, .result = result, .kept_loss = NAN};
    struct sigaction old[CAUGHT];
    char path[1200];
    *result =
        (cli_train_result){.val_loss = NAN, .val_accuracy = NAN, .best_val_loss = NAN, .energy = NAN, .best_step = -1};
    l.energy_start = energy_now(&l);
    l.started = mixt__time_now();
    if (resumed)
        go_on(&l, resumed);
    catch_signals(old);
    cli_progress_start(&l.progress, stderr, quiet, result->steps);
    note_task(&l);
    cli_checkpoints_open(&l.checkpoints, e, dir, &l.progress, resumed ? resumed->steps : -1);
    l.digested_at = mixt__time_now();
    mixt_status status = run(&l);
    result->seconds = mixt__time_now() - l.started;
    result->samples_s = result->step_seconds > 0 ? (double)l.samples / result->step_seconds : 0;
    if (result->steps && l.shown.step)
        cli_progress_finish(&l.progress, &l.shown);
    cli_checkpoints_close(&l.checkpoints);
    if (status == MIXT_OK) // while signals are caught: one that comes at the end must not cost the weights
        status = mixt_trainer_save(e->trainer, cli_run_dir_file(dir, "model.safetensors", path));
    if (status == MIXT_OK)
        status = check_applied(result);
    for (int i = 0; i < CAUGHT; i++) // what is ignored stays so: rows of metrics may still wait
        if (!caught[i].ignored)
            sigaction(caught[i].number, &old[i], NULL);
    return status;
}
