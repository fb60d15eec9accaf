/* Every plan is counted whole: the step, validation in batches that fit beside it, batches made ahead, checkpoints,
 * data. Validation gives way first: a smaller batch costs it little and changes nothing in training. Where the loss
 * compares samples of a batch it does not: its figures would be those of an easier task. */
#include "run/open/fit.h"

#include "base/sizes.h"
#include "graph/op.h"
#include "run/open/memory.h"
#include "run/open/phases.h"
#include "train/fit.h"
#include "train/seconds.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAY_RECOMPUTE, MAY_SPLIT, MAY_KEEP }; // positions of the words of train.memory_may

static size_t budgeted(const mixt_run *run, const mixt_run_memory *m)
{
    return run->experiment.context->device->backend->host_memory ? m->total.host : m->total.device;
}

/** Updates from one validation to the next. */
static double updates_between(const mixt_run *run)
{
    int64_t every = mixt__config_int(run->config, MIXT_KEY_TRAIN_VALIDATE_EVERY);
    return (double)(every ? every : run->experiment.steps_per_epoch ? run->experiment.steps_per_epoch : 1);
}

/** Halves validation, where it may be, until the run is within the budget.
 *  @param again the last count is made anew, of plans that are not rough */
static mixt_status cut_validation(const mixt__fit_count *c, mixt__trainer *t, size_t budget, bool again, size_t *bytes)
{
    mixt_run_memory memory;
    while (true) {
        MIXT_TRY(mixt__run_count_plan(c->run, &memory));
        *bytes = budgeted(c->run, &memory);
        bool last = *bytes <= budget || !memory.validation.host || mixt__trainer_settings_of(t)->eval_batch == 1 ||
                    mixt__trainer_model(t)->compares;
        if (last && !again)
            return MIXT_OK;
        if (last) {
            again = false;
            mixt__device_plan_roughly(mixt__trainer_device(t), false);
            mixt__trainer_free_eval(t);
        } else {
            mixt__trainer_set_eval_batch(t, mixt__trainer_settings_of(t)->eval_batch / 2);
        }
    }
}

mixt_status mixt__fit_measure(void *user, mixt__trainer *t, size_t budget, size_t *bytes, double *seconds)
{
    const mixt__fit_count *c = user;
    const mixt_data *val = c->run->experiment.val;
    bool before =
        mixt__device_plan_roughly(mixt__trainer_device(t), true); // halves that do not fit need no timed algorithms
    mixt__trainer_set_eval_batch(t, c->eval_asked);
    mixt_status status = cut_validation(c, t, budget, !before && mixt__trainer_device(t)->backend->choices, bytes);
    mixt__device_plan_roughly(mixt__trainer_device(t), before);
    MIXT_TRY(status);
    *seconds =
        !val ? 0 : mixt__trainer_evaluation_seconds(t, mixt_data_describe(val)->samples) / updates_between(c->run);
    return MIXT_OK;
}

/** Whether statistics are taken from the samples of a pass. Batch norm alone does that. */
static bool has_batch_norm(const mixt__trainer *t)
{
    const mixt__graph *g = mixt__trainer_compiled(t)->graph;
    double share;
    for (int64_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op->moves && g->nodes[i].op->moves(&g->nodes[i], &share))
            return true;
    return false;
}

/** Whether a batch in parts is another training. */
static bool needs_whole(const mixt__trainer *t)
{
    return mixt__trainer_model(t)->compares || has_batch_norm(t);
}

static int64_t eval_asked(const mixt_run *run)
{
    int64_t given = mixt__config_int(run->config, MIXT_KEY_TRAIN_EVAL_BATCH);
    return given ? given : mixt__config_int(run->config, MIXT_KEY_TRAIN_BATCH);
}

/* ---- lines ---- */

/** Puts a line behind the others, in memory of the run that holds no line of the plan it has. */
static void add_line(mixt_run *run, mixt_fit *fit, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void add_line(mixt_run *run, mixt_fit *fit, const char *format, ...)
{
    int i = 0;
    va_list args;
    while (i < MIXT_FIT_LINES - 1 && fit->lines[i])
        i++;
    bool taken = fit != &run->fit && run->fit.lines[0] == run->fit_texts[0][0];
    char *line = run->fit_texts[taken][i];
    va_start(args, format);
    vsnprintf(line, MIXT_LINE_TEXT, format, args);
    va_end(args);
    fit->lines[i] = line;
}

/** What is computed again, in words. */
static void recompute_line(mixt_run *run, mixt_fit *fit)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    char kept[MIXT_SIZE_TEXT], all[MIXT_SIZE_TEXT], gap[96] = "";
    const mixt__recompute_choice *c = &mixt__trainer_compiled(t)->recompute;
    if (c->lower < c->seconds)
        snprintf(gap, sizeof gap, " (the search ended early: the best choice may save %.1f%% of their time)",
                 100 * (1 - c->lower / c->seconds));
    add_line(run, fit,
             "activations in %s instead of %s: %lld op%s run again in the backward pass, with the same bits%s",
             mixt__size_text(mixt__trainer_compiled(t)->plan.arena_bytes, kept), mixt__size_text(c->kept_all, all),
             (long long)fit->recomputed, fit->recomputed == 1 ? "" : "s", gap);
}

static void write_lines(mixt_run *run, mixt_fit *fit)
{
    char budget[MIXT_SIZE_TEXT], memory[MIXT_SIZE_TEXT], asked[MIXT_SIZE_TEXT];
    bool changed = fit->asked != fit->memory;
    memset(fit->lines, 0, sizeof fit->lines);
    if (!fit->budget)
        return;
    add_line(run, fit, "%s of %s on the %s%s%s%s", mixt__size_text(fit->memory, memory),
             mixt__size_text(fit->budget, budget), fit->device ? "GPU" : "host",
             !fit->asked ? ""
             : changed   ? "; as configured it would take "
                         : ": fits as configured",
             fit->asked && changed ? mixt__size_text(fit->asked, asked) : "", "");
    if (fit->recomputed)
        recompute_line(run, fit);
    if (fit->keep != run->kept || (!fit->asked && fit->keep != MIXT_DTYPE_NONE))
        add_line(run, fit, "activations are kept for the backward pass in %s, which rounds gradients",
                 mixt_dtype_name(fit->keep));
    if (fit->split > run->split || (!fit->asked && fit->split > 1))
        add_line(run, fit, "each batch of %lld is split into %lld parts of %lld, one after the other%s",
                 (long long)(fit->batch * fit->split), (long long)fit->split, (long long)fit->batch,
                 fit->batch_norm || fit->compares ? "" : "; the update is that of the whole batch");
    if (fit->eval_batch < eval_asked(run) && run->experiment.val)
        add_line(run, fit, "validation in batches of %lld instead of %lld", (long long)fit->eval_batch,
                 (long long)eval_asked(run));
    if (fit->asked && changed && fit->cost < 0.001)
        add_line(run, fit, "training should not take longer (predicted, not measured)");
    else if (fit->asked && changed)
        add_line(run, fit, "training should take about %.1f%% longer (predicted, not measured)", 100 * fit->cost);
}

/** Of parts, and of validation in other batches, where they are another training or another figure. */
static void warn_of_parts(mixt_run *run)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    long long batch = mixt__config_int(run->config, MIXT_KEY_TRAIN_BATCH), split = mixt__trainer_settings_of(t)->split;
    long long part = mixt__trainer_settings_of(t)->batch, eval = mixt__trainer_settings_of(t)->eval_batch;
    if (split > 1 && has_batch_norm(t))
        mixt__run_note(
            run, true,
            "warning: batch norm uses %lld samples instead of %lld: losses will differ from those of whole batches",
            part, part * split);
    if (split > 1 && mixt__trainer_model(t)->compares)
        mixt__run_note(run, true,
                       "warning: the loss compares %lld samples with each other instead of %lld (train.split=%lld): "
                       "losses will differ from those of whole batches",
                       part, part * split, split);
    if (run->experiment.val && eval != batch && mixt__trainer_model(t)->compares)
        mixt__run_note(run, true,
                       "warning: validation compares %lld samples with each other instead of %lld (train.eval_batch): "
                       "its loss and accuracy will differ from those in batches of train.batch",
                       eval, batch);
}

void mixt__fit_tell(mixt_run *run)
{
    const mixt_fit *fit = &run->fit;
    for (int i = 0; fit->budget && i < MIXT_FIT_LINES && fit->lines[i]; i++)
        mixt__run_note(run, false, "%-8s %s", i ? "" : "fit", fit->lines[i]);
    if (fit->budget && fit->memory > fit->budget)
        mixt__run_note(run, true, "warning: the plan of this run takes %zu bytes, more than train.memory (%zu)",
                       fit->memory, fit->budget);
    warn_of_parts(run);
}

/* ---- the choice ---- */

static void take_settings(mixt_run *run, const mixt__trainer *t, mixt_fit *fit)
{
    fit->device = !mixt__trainer_device(t)->backend->host_memory;
    fit->batch = mixt__trainer_settings_of(t)->batch;
    fit->accumulate = mixt__trainer_settings_of(t)->accumulate;
    fit->split = mixt__trainer_settings_of(t)->split;
    fit->recompute = mixt__trainer_settings_of(t)->recompute_budget;
    fit->recomputed = mixt__trainer_compiled(t)->recompute.nodes;
    fit->keep = mixt__trainer_settings_of(t)->policy.keep;
    fit->eval_batch = mixt__trainer_settings_of(t)->eval_batch;
    fit->batch_norm = fit->split > 1 && has_batch_norm(t);
    fit->compares = fit->split > 1 && mixt__trainer_model(t)->compares;
    write_lines(run, fit);
}

static mixt_status set(mixt_run *run, mixt__config_key key, int64_t number)
{
    char setting[96];
    snprintf(setting, sizeof setting, "%s=%lld", mixt__config_table[key].name, (long long)number);
    return number == mixt__config_int(run->config, key) ? MIXT_OK
                                                        : mixt_config_set(run->config, setting, "train.memory");
}

static mixt_status set_kept(mixt_run *run, mixt_dtype kept)
{
    char setting[64];
    const char *word = kept == MIXT_DTYPE_NONE ? "policy" : mixt_dtype_name(kept);
    MIXT_TRY(mixt_policy_set_keep(run->experiment.trainer->policy, kept));
    if (!strcmp(word, mixt__config_string(run->config, MIXT_KEY_TRAIN_ACTIVATIONS)))
        return MIXT_OK;
    snprintf(setting, sizeof setting, "%s=%s", mixt__config_table[MIXT_KEY_TRAIN_ACTIVATIONS].name, word);
    return mixt_config_set(run->config, setting, "train.memory");
}

/** What the trainer was planned for becomes the configuration's. */
static mixt_status keep(mixt_run *run)
{
    mixt_trainer *t = run->experiment.trainer;
    t->options.split = mixt__trainer_settings_of(t->inner)->split;
    t->options.recompute_budget = mixt__trainer_settings_of(t->inner)->recompute_budget;
    if (run->kept == MIXT_DTYPE_NONE) // else it stays what it was
        MIXT_TRY(set_kept(run, mixt__trainer_settings_of(t->inner)->policy.keep));
    MIXT_TRY(set(run, MIXT_KEY_TRAIN_RECOMPUTE, (int64_t)t->options.recompute_budget));
    return set(run, MIXT_KEY_TRAIN_SPLIT, t->options.split);
}

static bool listed(const mixt_run *run, int word)
{
    return mixt__config_lists(run->config, MIXT_KEY_TRAIN_MEMORY_MAY, word);
}

bool mixt__fit_may_split(const mixt_run *run)
{
    bool by_hand = !run->resume.run[0] && mixt__config_was_set(run->config, MIXT_KEY_TRAIN_MEMORY_MAY);
    return listed(run, MAY_SPLIT) && (by_hand || !needs_whole(run->experiment.trainer->inner));
}

static mixt_status fail_smallest(const mixt_run *run, const mixt_fit *fit, const mixt__fit_request *request)
{
    char budget[MIXT_SIZE_TEXT], memory[MIXT_SIZE_TEXT];
    const double mib = 1048576.0;
    const mixt__trainer *t = run->experiment.trainer->inner;
    bool both = request->may_recompute && request->may_split;
    const char *but = both || run->resume.run[0]         ? ""
                      : mixt__trainer_model(t)->compares ? ", but the loss compares the samples of a part"
                      : has_batch_norm(t)                ? ", but batch norm takes its statistics from the parts"
                                                         : "";
    mixt__size_text(fit->budget, budget);
    mixt__size_text(fit->memory, memory);
    return mixt__fail(
        MIXT_ERROR_MEMORY,
        "this run does not fit into %s (train.memory): the smallest plan takes %s of the %s's memory (%zu bytes), "
        "train.memory=%.0fM would be enough%s%s%s",
        budget, memory, fit->device ? "GPU" : "host", fit->memory, ceil((double)fit->memory / mib),
        both                 ? ""
        : run->resume.run[0] ? "; the parts of a batch cannot change when a run is resumed"
                             : "; with train.memory_may=recompute,split it would take less",
        but,
        mixt__trainer_model(t)->compares && run->experiment.val ? "; a smaller train.eval_batch may take less" : "");
}

/** As the configuration has it: what that takes, and how long an update. */
static mixt_status plan_asked(mixt_run *run, size_t *bytes, double *seconds)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__fit_count c = {run, eval_asked(run)};
    mixt__trainer_settings s = *mixt__trainer_settings_of(t);
    bool kept = s.policy.keep != run->kept;
    s.policy.keep = run->kept;
    if (run->kept == MIXT_DTYPE_NONE)
        s.policy.keep_origin = NULL;
    mixt__trainer_set(t, &s);
    if (kept || s.split != run->split || s.recompute_budget != run->recompute)
        MIXT_TRY(mixt__trainer_replan(t, s.batch * s.split, run->split, run->recompute));
    MIXT_TRY(mixt__fit_measure(&c, t, SIZE_MAX, bytes, seconds));
    *seconds += mixt__trainer_seconds(t);
    return MIXT_OK;
}

/** The search, and its result in `fit`. */
static mixt_status choose(mixt_run *run, size_t budget, mixt_fit *fit)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__fit_count c = {run, eval_asked(run)};
    mixt__fit_request request = {.budget = budget, .measure = mixt__fit_measure, .user = &c};
    mixt__fit_choice choice;
    double seconds;
    *fit = (mixt_fit){.budget = budget};
    request.may_recompute = listed(run, MAY_RECOMPUTE);
    request.may_split = !run->resume.run[0] && mixt__fit_may_split(run); // a run that goes on keeps its parts
    request.may_keep = !run->resume.run[0] && listed(run, MAY_KEEP) &&   // which is part of a run's bits,
                       !run->experiment.phases.policy;                   // and said by phase
    MIXT_TRY(plan_asked(run, &fit->asked, &seconds));
    MIXT_TRY(mixt__trainer_fit(t, &request, &choice));
    fit->memory = choice.chosen.bytes;
    fit->cost = (choice.chosen.update + choice.chosen.beside) / seconds - 1;
    take_settings(run, t, fit);
    if (choice.fits)
        return keep(run);
    size_t bytes;
    MIXT_TRY(plan_asked(run, &bytes, &seconds)); // the run stays what it was
    return fail_smallest(run, fit, &request);
}

/** As asked for by now: the parts and the activations of the phases before are the least that this one has. */
static mixt_status enter_phase(mixt_run *run, int64_t index)
{
    mixt__experiment *e = &run->experiment;
    mixt_status status = mixt__phases_enter(e, index);
    if (status == MIXT_OK &&
        mixt__trainer_settings_of(e->trainer->inner)->recompute_budget != e->trainer->options.recompute_budget) {
        e->trainer->options.recompute_budget = 0; // too little for this phase: ask anew
        status = mixt__phases_enter(e, index);
    }
    run->split = e->trainer->options.split;
    run->recompute = e->trainer->options.recompute_budget;
    run->kept = mixt__trainer_settings_of(e->trainer->inner)->policy.keep;
    return status;
}

/** Every phase within the budget, in the same parts and with the same bytes of activations: what one of them needs, all
 *  of them get. Looked at in turn until none needs more. */
static mixt_status choose_phases(mixt_run *run, size_t budget, mixt_fit *fit)
{
    mixt__experiment *e = &run->experiment;
    mixt__fit_count c = {run, eval_asked(run)};
    int64_t count = mixt_policy_phases(e->phases.policy), start = e->phases.current, split = run->split;
    int64_t first = mixt__run_largest_phase(run);
    size_t bytes, asked = 0, recompute = run->recompute;
    double seconds;
    for (int64_t i = first, fits = 0, tries = 0; fits < count; i = (i + 1) % count, fits++, tries++) {
        MIXT_TRY(enter_phase(run, i));
        MIXT_TRY(mixt__fit_measure(&c, e->trainer->inner, budget, &bytes, &seconds));
        if (tries && bytes <= budget)
            continue;
        if (tries == 4 * count)
            return mixt__fail(MIXT_ERROR_MEMORY, "no plan was found with all phases within train.memory");
        MIXT_TRY(choose(run, budget, fit));
        asked = asked ? asked : fit->asked;
        fits = 0;
    }
    run->split = split;
    run->recompute = recompute;
    MIXT_TRY(mixt__phases_enter(e, first));
    MIXT_TRY(mixt__fit_measure(&c, e->trainer->inner, budget, &fit->memory, &seconds));
    fit->asked = asked;
    take_settings(run, e->trainer->inner, fit);
    return mixt__phases_enter(e, start);
}

/** The run within the budget, whether it has phases or not. */
static mixt_status choose_all(mixt_run *run, size_t budget, mixt_fit *fit)
{
    if (!run->experiment.phases.policy)
        return choose(run, budget, fit);
    MIXT_TRY(choose_phases(run, budget, fit));
    run->fit = *fit;
    return mixt__run_plan_phases(run);
}

mixt_status mixt_plan_fit(mixt_run *run, size_t memory, mixt_fit *fit)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    mixt__trainer *t = run->experiment.trainer->inner;
    if (memory && (mixt__trainer_has_memory(t) || mixt__trainer_has_weights(t)))
        return mixt__fail(MIXT_ERROR_STATE, "the run's memory is allocated already: plan it before training");
    mixt_fit found = run->fit;
    mixt_status status = MIXT_OK;
    if (memory) {
        mixt__account *before = mixt__account_use(run->account);
        status = choose_all(run, memory, &found);
        mixt__account_use(before);
    } else if (!found.budget)
        take_settings(run, t, &found);
    if (status == MIXT_OK)
        run->fit = found;
    if (fit)
        *fit = found;
    return status;
}

/** What the configuration asks for, before anything is changed to fit. */
static size_t read_asked(mixt_run *run)
{
    run->split = mixt__config_int(run->config, MIXT_KEY_TRAIN_SPLIT);
    run->recompute = (size_t)mixt__config_int(run->config, MIXT_KEY_TRAIN_RECOMPUTE);
    run->kept = mixt__trainer_settings_of(run->experiment.trainer->inner)->policy.keep;
    return (size_t)mixt__config_int(run->config, MIXT_KEY_TRAIN_MEMORY);
}

mixt_status mixt__fit_new(mixt_run *run)
{
    size_t budget = read_asked(run);
    return budget ? choose_all(run, budget, &run->fit) : MIXT_OK;
}

static bool changed(const mixt_run *run, mixt__config_key key)
{
    return json_object_get(run->resume.changes, mixt__config_table[key].name) != NULL;
}

mixt_status mixt__fit_again(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__fit_count c = {run, eval_asked(run)};
    size_t budget = read_asked(run);
    double seconds;
    if (!budget)
        return MIXT_OK;
    if (changed(run, MIXT_KEY_TRAIN_MEMORY)) {
        run->recompute = changed(run, MIXT_KEY_TRAIN_RECOMPUTE) ? run->recompute : 0;
        return choose_all(run, budget, &run->fit);
    }
    run->fit = (mixt_fit){.budget = budget};
    MIXT_TRY(mixt__run_plan_phases(run));
    MIXT_TRY(mixt__fit_measure(&c, t, budget, &run->fit.memory, &seconds));
    take_settings(run, t, &run->fit);
    return MIXT_OK;
}
