/* Steps until the configuration, an early stop or a signal ends them. */
#include "cli/train_loop.h"

#include "base/threads.h"
#include "cli/progress.h"

#include <math.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/** The first signal asks for a clean stop; a second one kills as usual. */
static void catch_signals(struct sigaction *old_int, struct sigaction *old_term)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND};
    stop_requested = 0;
    sigaction(SIGINT, &action, old_int);
    sigaction(SIGTERM, &action, old_term);
}

/** What accumulates between two rows of metrics. */
typedef struct window {
    double loss, accuracy, seconds;
    int64_t steps, skipped, samples;
    char overflow_layer[128];
} window;

typedef struct loop {
    cli_experiment *e;
    cli_run_dir *dir;
    cli_progress progress;
    cli_progress_info shown;
    cli_train_result *result;
    window window;
    int64_t samples;
    int patience; // validations left before an early stop
} loop;

static int64_t setting(const loop *l, mixt__config_key key)
{
    return mixt__config_int(l->e->config, key);
}

static bool validation_due(const loop *l, const mixt_step *step)
{
    int64_t every = setting(l, MIXT_KEY_TRAIN_VALIDATE_EVERY);
    if (!l->e->val)
        return false;
    if (step->step == l->e->total_steps || stop_requested)
        return true;
    if (every)
        return step->step % every == 0;
    return l->e->steps_per_epoch && step->step % l->e->steps_per_epoch == 0;
}

static mixt_status validate(loop *l, const mixt_step *step)
{
    mixt_evaluation found;
    MIXT_TRY(mixt_trainer_evaluate(l->e->trainer, l->e->val, &found));
    cli_train_result *r = l->result;
    r->validations++;
    r->val_loss = found.loss;
    r->val_accuracy = found.accuracy;
    bool better = !(found.loss >= r->best_val_loss);
    if (better)
        r->best_val_loss = found.loss;
    int limit = (int)setting(l, MIXT_KEY_TRAIN_EARLY_STOP);
    l->patience = better ? limit : l->patience - 1;
    r->stopped_early = limit && l->patience <= 0;
    if (isnan(found.accuracy))
        cli_progress_note(&l->progress, "step %lld: validation loss %.4f", (long long)step->step, found.loss);
    else
        cli_progress_note(&l->progress, "step %lld: validation loss %.4f, accuracy %.2f%%", (long long)step->step, found.loss,
                          100 * found.accuracy);
    return MIXT_OK;
}

static void collect(loop *l, const mixt_step *step, double seconds)
{
    window *w = &l->window;
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
    window *w = &l->window;
    double n = (double)w->steps;
    cli_metrics_row row = {.step = step->step, .epoch = step->epoch, .skipped = w->skipped, .val_loss = NAN, .val_accuracy = NAN};
    row.memory = (int64_t)l->result->memory.allocated;
    row.loss = w->loss / n;
    row.accuracy = w->accuracy / n;
    row.lr = step->lr;
    row.scale = step->scale;
    row.grad_norm = step->grad_norm;
    row.samples_s = (double)w->samples / w->seconds;
    if (w->overflow_layer[0])
        row.overflow_layer = w->overflow_layer;
    if (validated) {
        row.val_loss = l->result->val_loss;
        row.val_accuracy = l->result->val_accuracy;
    }
    mixt_status status = cli_run_dir_log(l->dir, &row);
    *w = (window){0};
    return status;
}

static void show(loop *l, const mixt_step *step)
{
    const cli_experiment *e = l->e;
    const mixt__scaling *scaling = &e->trainer->core.settings.scaling;
    l->shown = (cli_progress_info){.step = step->step, .steps = e->total_steps, .epoch = step->epoch + 1, .loss = step->loss};
    l->shown.epochs = setting(l, MIXT_KEY_TRAIN_EPOCHS);
    l->shown.accuracy = step->accuracy;
    l->shown.items_s = (double)(l->samples * e->items_per_sample) / l->result->step_seconds;
    l->shown.item = e->item;
    l->shown.scale = scaling->enabled ? step->scale : NAN;
    cli_progress_update(&l->progress, &l->shown);
    if (step->skipped)
        cli_progress_note(&l->progress, "step %lld skipped: gradient of %s is not finite; loss scale %g -> %g", (long long)step->step,
                          step->overflow_layer ? step->overflow_layer : "a layer", step->scale, (double)e->trainer->core.seen.scale);
}

/** One update with all that hangs on it. */
static mixt_status advance(loop *l)
{
    mixt_step step;
    double start = mixt__time_now();
    MIXT_TRY(mixt_trainer_step(l->e->trainer, l->e->train, &step));
    collect(l, &step, mixt__time_now() - start);
    if (step.step == 1)
        MIXT_TRY(mixt_trainer_memory(l->e->trainer, &l->result->memory));
    show(l, &step);
    if (!isfinite(step.loss) && !step.skipped)
        return mixt__fail(MIXT_ERROR_DATA, "step %lld: the loss is not finite (%g): lower train.lr, or check the data",
                          (long long)step.step, step.loss);
    bool validated = validation_due(l, &step);
    if (validated)
        MIXT_TRY(validate(l, &step));
    bool last = step.step == l->e->total_steps || stop_requested || l->result->stopped_early;
    if (validated || last || step.step % setting(l, MIXT_KEY_TRAIN_LOG_EVERY) == 0 || step.skipped)
        MIXT_TRY(log_row(l, &step, validated));
    return MIXT_OK;
}

mixt_status cli_train_loop(cli_experiment *e, cli_run_dir *dir, bool quiet, cli_train_result *result)
{
    loop l = {.e = e, .dir = dir, .result = result};
    struct sigaction old_int, old_term;
    *result = (cli_train_result){.val_loss = NAN, .val_accuracy = NAN, .best_val_loss = NAN};
    l.patience = (int)setting(&l, MIXT_KEY_TRAIN_EARLY_STOP);
    catch_signals(&old_int, &old_term);
    cli_progress_start(&l.progress, stderr, quiet, 0);
    double start = mixt__time_now();
    mixt_status status = MIXT_OK;
    while (status == MIXT_OK && result->steps < e->total_steps && !stop_requested && !result->stopped_early)
        status = advance(&l);
    result->seconds = mixt__time_now() - start;
    result->samples_s = result->step_seconds > 0 ? (double)l.samples / result->step_seconds : 0;
    result->interrupted = stop_requested;
    cli_progress_finish(&l.progress, &l.shown);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return status;
}
