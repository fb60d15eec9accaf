/* One run of an experiment: begun, or gone on with after whatever ended the process before. */
#include "prove/compare.h"

#include "base/files.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/threads.h"
#include "mixt/run.h"
#include "prove/prove.h"

#include <math.h>
#include <stdio.h>

/** A run under way. */
typedef struct training {
    mixt_comparison *c;
    mixt_compare_side side;
    int64_t pair, seed;  // the pair from 1 on, its seed
    int64_t step, steps; // of the run
    bool stopping;       // by the one who hears how far it is, or the budget
    bool checked;        // it sees the data that the others saw …
    mixt_status differs; // … or it does not
} training;

/** Whether the run sees the data of the other one of its pair, and of the first pair. */
static mixt_status check_data(const training *t)
{
    char folder[MIXT_COMPARE_PATH + 100], other[MIXT_COMPARE_PATH + 100];
    const mixt_comparison *c = t->c;
    int64_t pair = t->pair - 1;
    mixt_compare_side side = (mixt_compare_side)!t->side;
    mixt__compare_run_folder(c, pair, t->side, folder);
    if (c->pairs[pair].done[side])
        MIXT_TRY(mixt__prove_same_data(mixt__compare_run_folder(c, pair, side, other), folder));
    return c->pairs[0].done[MIXT_COMPARE_A]
               ? mixt__prove_same_data(mixt__compare_run_folder(c, 0, MIXT_COMPARE_A, other), folder)
               : MIXT_OK;
}

/* ---- telling ---- */

static const char *name_of(const training *t)
{
    return t->side == MIXT_COMPARE_B ? "B" : "A";
}

/** Updates are counted over all runs of the experiment, as far as is known how many there will be. */
static mixt_progress progress_of(const training *t, mixt_progress_kind kind)
{
    const mixt_comparison *c = t->c;
    mixt_progress p = mixt__progress(kind, "training");
    int64_t runs = 0, pairs = c->info.wanted > c->count ? c->info.wanted : c->count;
    for (int64_t i = 0; i < c->count; i++)
        runs += c->pairs[i].done[0] + c->pairs[i].done[1];
    p.what = name_of(t);
    p.unit = "updates";
    p.done = runs * t->steps + (kind == MIXT_PROGRESS_PART ? 0 : t->step); // of a run that is done they are in `runs`
    p.total = 2 * pairs * t->steps;
    p.part = t->pair;
    return p;
}

static bool tell_step(const training *t, const mixt_step *step)
{
    mixt_progress p = progress_of(t, MIXT_PROGRESS_STEP);
    p.loss = step->loss;
    p.accuracy = step->accuracy;
    return mixt__compare_tell(t->c, p);
}

/** What came of a run. */
static bool tell_run(const training *t, const mixt_compare_run *run)
{
    char text[200], loss[32];
    mixt_progress p = progress_of(t, MIXT_PROGRESS_PART);
    snprintf(text, sizeof text, "pair %lld, %s: loss %s%s, %.2f ms per update", (long long)t->pair, name_of(t),
             mixt__progress_loss(loss, run->loss), run->diverged ? " (diverged)" : "", 1e3 * run->step_seconds);
    p.loss = run->loss;
    p.accuracy = run->accuracy;
    p.text = text;
    return mixt__compare_tell(t->c, p);
}

/* ---- training ---- */

static mixt_status hear(void *user, mixt_run *run, const mixt_event *event)
{
    training *t = user;
    if (event->kind == MIXT_EVENT_NOTE && event->warning)
        mixt__compare_note(t->c, MIXT_PROGRESS_WARNING, "pair %lld, %s: %s", (long long)t->pair, name_of(t),
                           event->text);
    if (event->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    if (!t->checked && check_data(t) != MIXT_OK)
        return t->differs = MIXT_ERROR_DATA;
    t->checked = true;
    t->step = event->step->step;
    t->steps = mixt_run_describe(run).total_steps;
    bool late = t->c->options.budget > 0 && mixt__time_now() - t->c->started > t->c->options.budget;
    t->stopping = t->stopping || !tell_step(t, event->step) || late;
    if (t->stopping)
        mixt_run_ask_stop(run);
    return MIXT_OK;
}

static bool pass_on(void *user, const mixt_progress *progress)
{
    mixt_comparison *c = ((const training *)user)->c;
    bool more = mixt__tell_on((mixt__teller){c->options.progress, c->options.user}, progress);
    c->halted = c->halted || !more;
    return more;
}

static mixt_status open_run(training *t, const char *folder, mixt_run **run)
{
    char seed[40], out[MIXT_COMPARE_PATH + 200];
    const char *const settings[] = {seed, out, NULL};
    mixt_run_options options =
        MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = hear, .user = t, .progress = pass_on);
    snprintf(seed, sizeof seed, "seed=%lld", (long long)t->seed);
    snprintf(out, sizeof out, "out=%s", folder);
    return mixt__prove_open_run(t->c->configs[t->side], folder, &options, run);
}

/** Trains to the end; a loss that does not stay finite is a result. */
static mixt_status train(training *t, const char *folder, mixt_compare_run *result, bool *done)
{
    mixt_run *run;
    mixt_run_result figures = {0};
    mixt_status status = open_run(t, folder, &run);
    if (status == MIXT_ERROR_STATE && t->c->halted) // while its data was made ready
        return MIXT_OK;
    MIXT_TRY(status);
    status = mixt_run_train(run, &figures);
    mixt_run_close(run);
    if (t->differs != MIXT_OK) {
        status = check_data(t); // for its text
        mixt__folder_remove_all(folder);
        return status;
    }
    bool broken = status == MIXT_OK && figures.validations && !isfinite(figures.val_loss) && !figures.stopped;
    result->diverged = broken || (status == MIXT_ERROR_DATA && figures.steps > 0);
    if (result->diverged)
        mixt__compare_note(t->c, MIXT_PROGRESS_NOTE, "pair %lld, %s diverged: %s", (long long)t->pair, name_of(t),
                           broken ? "its last validation loss is NaN or Inf" : mixt_error_text());
    else
        MIXT_TRY(status);
    *done = result->diverged || !figures.stopped;
    return MIXT_OK;
}

static int64_t samples_of(const mixt_config *config)
{
    return mixt__config_int(config, MIXT_KEY_TRAIN_BATCH) * mixt__config_int(config, MIXT_KEY_TRAIN_ACCUMULATE);
}

/** Once both runs of a pair are there. */
static mixt_status equal_losses(mixt_comparison *c, int64_t pair)
{
    char a[MIXT_COMPARE_PATH + 100], b[MIXT_COMPARE_PATH + 100];
    mixt__compare_pair *p = &c->pairs[pair];
    if (p->runs[0].diverged || p->runs[1].diverged)
        return MIXT_OK;
    return mixt__compare_equal(mixt__compare_run_folder(c, pair, MIXT_COMPARE_A, a),
                               mixt__compare_run_folder(c, pair, MIXT_COMPARE_B, b), p->runs);
}

mixt_status mixt__compare_train(mixt_comparison *c, int64_t pair, mixt_compare_side side, bool *done)
{
    char folder[MIXT_COMPARE_PATH + 100], checkpoints[MIXT_COMPARE_PATH + 200];
    mixt__compare_pair *p = &c->pairs[pair];
    mixt_compare_run *run = &p->runs[side];
    double started = mixt__time_now();
    training t = {.c = c, .side = side, .pair = pair + 1};
    t.seed = mixt__config_int(c->configs[MIXT_COMPARE_A], MIXT_KEY_SEED) + pair;
    mixt__compare_run_folder(c, pair, side, folder);
    MIXT_TRY(train(&t, folder, run, done));
    if (!*done)
        return MIXT_OK;
    mixt_status measured = mixt__compare_measure(folder, samples_of(c->configs[side]), run);
    if (!run->diverged || measured == MIXT_ERROR_MEMORY) // one that diverged may have left no row at all
        MIXT_TRY(measured);
    p->done[side] = true;
    if (p->done[!side])
        MIXT_TRY(equal_losses(c, pair));
    if (p->done[!side]) // with what is known of both now
        MIXT_TRY(mixt__compare_state_run(c, pair, (mixt_compare_side)!side));
    MIXT_TRY(mixt__compare_state_run(c, pair, side));
    MIXT_TRY(mixt__rows_flush(&c->rows)); // on disk before what it could be made from again goes
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
    mixt__folder_remove_all(checkpoints); // its weights stay; two states more of each run would fill the disk
    c->longest = mixt__time_now() - started > c->longest ? mixt__time_now() - started : c->longest;
    (void)tell_run(&t, run);
    return MIXT_OK;
}
