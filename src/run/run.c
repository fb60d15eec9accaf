/* The public side of a run: opening it in three ways, training, evaluating, and what it lets others see. */
#include "run/run.h"

#include "base/options.h"
#include "run/auto/precision.h"
#include "run/auto/register.h"
#include "run/advance.h"
#include "run/open/references.h"
#include "run/open/adapter.h"
#include "run/open/fit.h"
#include "run/open/hf_folder.h"
#include "run/open/init.h"
#include "run/open/inputs.h"
#include "run/open/without_data.h"
#include "run/loop.h"
#include "run/open/memory.h"
#include "run/report/metrics.h"
#include "run/open/phases.h"
#include "run/open/policy.h"
#include "run/ranks.h"
#include "run/resume.h"
#include "run/report/summary.h"
#include "run/open/weights.h"
#include "train/dist/rank0_first.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void note_line(void *user, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mixt__run_note(user, false, "%s", text);
}

static void warn_line(void *user, const char *format, ...)
{
    char text[MIXT_WEIGHTS_WARNING + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mixt__run_note(user, true, "%s", text);
}

static mixt_status make(const mixt_run_options *options, mixt_run **run)
{
    mixt_run *made = mixt__alloc(sizeof *made);
    *run = NULL;
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a run");
    mixt__handle_add(&made->handle, made, "run", NULL);
    made->signals = options->signals;
    made->experiment.teller = (mixt__teller){options->progress, options->user};
    made->result = (mixt_run_result){.val_loss = NAN, .val_accuracy = NAN, .best_val_loss = NAN, .energy = NAN};
    made->result.best_step = made->result.val_step = -1;
    made->observers[0].hear = mixt__metrics_observe;
    made->observers[0].user = &made->dir.metrics;
    made->observers[1].hear = mixt__tensorboard_observe;
    made->observers[1].user = &made->tensorboard;
    made->observers[2].hear = mixt__events_observe;
    made->observers[2].user = &made->events;
    made->observer_count = 3;
    mixt__auto_register(made);
    if (options->observer)
        (void)mixt_run_observe(made, options->observer, options->user); // there is room
    made->account = mixt__account_open(mixt__account_now());
    made->outer = mixt__account_use(made->account);
    *run = made;
    return MIXT_OK;
}

/** Also where the model does not fit the data: what is doubtful about the data may be why. */
static mixt_status open_experiment(mixt_run *run)
{
    mixt_status status = mixt__experiment_open(&run->experiment, run->config);
    mixt__warnings_tell_teacher(run);
    mixt__warnings_tell_data(run, run->experiment.train);
    return status;
}

/** Hands the run out, or closes it: on all ranks. */
static mixt_status finish(mixt_status status, mixt_run **run)
{
    status = mixt__run_agree(*run, status);
    if (status == MIXT_OK)
        status = mixt__run_ranks_check(*run);
    if (status == MIXT_OK) {
        (*run)->precision = mixt__strdup(mixt__config_string((*run)->config, MIXT_KEY_PRECISION));
        if (!(*run)->precision)
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a run");
    }
    mixt__account_use((*run)->outer);
    if (status != MIXT_OK) {
        mixt_run_close(*run);
        *run = NULL;
    }
    return status;
}

static mixt_status open_new(mixt_run *run, const mixt_run_options *options)
{
    for (const char *const *s = options->settings; s && *s; s++)
        MIXT_TRY(mixt_config_set(run->config, *s, "setting"));
    MIXT_TRY(mixt__hf_folder_fill(run->config));
    MIXT_TRY(mixt__adapter_config_fill(run->config));
    MIXT_TRY(run->hooks->read(run));
    MIXT_TRY(mixt__auto_precision_take(run));
    MIXT_TRY(mixt__run_take_policy(run->config));
    MIXT_TRY(mixt_config_check(run->config));
    MIXT_TRY(mixt__run_ranks_open(run, options));
    MIXT_TRY(open_experiment(run));
    MIXT_TRY(mixt__run_plan_phases(run));
    MIXT_TRY(mixt__fit_new(run));
    return mixt__experiment_init(&run->experiment, false, NULL, NULL);
}

mixt_status mixt_run_open_with(const char *path, const mixt_run_options *given, mixt_run **run)
{
    mixt_run_options own = MIXT_OPTIONS(mixt_run_options), *options = &own;
    MIXT_TRY(mixt__need(run));
    *run = NULL;
    MIXT_TRY(mixt__options(mixt_run_options, &own, given));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(make(options, run));
    mixt_status status = mixt_config_new(&(*run)->config);
    if (status == MIXT_OK)
        status = mixt_config_load((*run)->config, path);
    return finish(status == MIXT_OK ? open_new(*run, options) : status, run);
}

mixt_status mixt_run_open_config(const mixt_config *config, const mixt_run_options *given, mixt_run **run)
{
    mixt_run_options own = MIXT_OPTIONS(mixt_run_options), *options = &own;
    MIXT_TRY(mixt__need(run));
    *run = NULL;
    MIXT_TRY(mixt__options(mixt_run_options, &own, given));
    MIXT_TRY(mixt__need(config));
    MIXT_TRY(make(options, run));
    mixt_status status = mixt_config_copy(config, &(*run)->config);
    return finish(status == MIXT_OK ? open_new(*run, options) : status, run);
}

static mixt_status open_again(mixt_run *run, const char *folder, const mixt_run_options *options)
{
    MIXT_TRY(mixt__resume_open(run, folder, options));
    run->experiment.update = run->resume.state.steps;
    MIXT_TRY(run->hooks->read(run));
    MIXT_TRY(mixt__run_ranks_open(run, options));
    mixt_status status = open_experiment(run);
    MIXT_TRY(mixt__data_gone(run->config, run->resume.run, status));
    MIXT_TRY(mixt__run_plan_phases(run));
    MIXT_TRY(mixt__fit_again(run));
    MIXT_TRY(mixt__resume_restore(run));
    run->has_weights = run->resume.checkpoint != NULL;
    return run->resume.looking ? mixt__advance_warn(run, options->before) : MIXT_OK;
}

mixt_status mixt_run_resume_with(const char *folder, const mixt_run_options *given, mixt_run **run)
{
    mixt_run_options own = MIXT_OPTIONS(mixt_run_options), *options = &own;
    MIXT_TRY(mixt__need(run));
    *run = NULL;
    MIXT_TRY(mixt__options(mixt_run_options, &own, given));
    MIXT_TRY(mixt__need(folder));
    MIXT_TRY(make(options, run));
    return finish(open_again(*run, folder, options), run);
}

static mixt_status open_trained(mixt_run *run, const char *folder, const char *weights, const mixt_run_options *options)
{
    char path[MIXT_WEIGHTS_PATH];
    MIXT_TRY(mixt_run_folder_config(folder, &run->config));
    MIXT_TRY(mixt__run_inputs_vocab(folder, run->config));
    for (const char *const *s = options->settings; s && *s; s++)
        MIXT_TRY(mixt_config_set(run->config, *s, "setting"));
    MIXT_TRY(mixt__run_folder_weights(folder, weights, path, sizeof path));
    run->experiment.update = INT64_MAX; // the last one's phase
    bool foreign = mixt__hf_folder_is(folder);
    if (foreign)
        MIXT_TRY(mixt__hf_folder_check_text(folder, run->config, mixt__config_string(run->config, MIXT_KEY_DATA_KIND)));
    MIXT_TRY(mixt__without_data_open(run, folder));
    if (foreign) // the kind may have been found out by looking
        MIXT_TRY(mixt__hf_folder_check_text(folder, run->config, mixt_data_describe(run->experiment.facts)->kind));
    MIXT_TRY(foreign ? mixt__experiment_load(&run->experiment, folder, warn_line, run)
                     : mixt__experiment_load_weights(&run->experiment, path));
    run->has_weights = true;
    return MIXT_OK;
}

mixt_status mixt_run_load_with(const char *folder, const char *weights, const mixt_run_options *given, mixt_run **run)
{
    mixt_run_options own = MIXT_OPTIONS(mixt_run_options), *options = &own;
    MIXT_TRY(mixt__need(run));
    *run = NULL;
    MIXT_TRY(mixt__options(mixt_run_options, &own, given));
    MIXT_TRY(mixt__need(folder));
    MIXT_TRY(make(options, run));
    return finish(open_trained(*run, folder, weights ? weights : "final", options), run);
}

void mixt_run_close(mixt_run *run)
{
    if (!run || mixt__need_open(run, "run") != MIXT_OK)
        return;
    if (run->telling) { // whoever tells goes on with it
        mixt__fail(MIXT_ERROR_STATE, "a run cannot be closed by its observer: ask it to stop (mixt_run_ask_stop)");
        return;
    }
    mixt__handle_remove(run);
    mixt__run_ranks_close(run);
    mixt__layers_close(&run->layers);
    mixt__run_dir_close(&run->dir);
    mixt__resume_close(&run->resume);
    run->hooks->close(run);
    mixt__experiment_close(&run->experiment);
    mixt_policy_free(run->policy);
    mixt__without_data_close(&run->known);
    mixt_config_free(run->config);
    mixt__free(run->precision);
    mixt__free(run->phase_memory);
    mixt__account_close(run->account);
    mixt__free(run);
}

mixt_status mixt__run_begin(mixt_run *run)
{
    if (run->has_weights)
        return MIXT_OK;
    MIXT_TRY(mixt__experiment_init(&run->experiment, true, note_line, run));
    run->has_weights = true;
    return MIXT_OK;
}

static mixt_status open_directory(mixt_run *run)
{
    mixt__run_dir *dir = &run->dir;
    dir->silent = dir->metrics.silent = dir->events.silent = dir->layers.silent = !mixt__run_writes(run);
    if (dir->silent)
        return MIXT_OK;
    if (run->resume.run[0])
        return mixt__resume_directory(run);
    MIXT_TRY(mixt__run_dir_create(&run->dir, run->config, mixt_data_describe(run->experiment.train)->kind));
    MIXT_TRY(mixt__auto_precision_keep(run));
    MIXT_TRY(mixt__run_inputs_write(run->dir.path, &run->experiment));
    return mixt__run_dir_begun(&run->dir);
}

static mixt_status plan_validation(void *user)
{
    return mixt__run_plan_validation(user);
}

static mixt_status train(mixt_run *run)
{
    MIXT_TRY(mixt__without_data_data(run));
    MIXT_TRY(mixt__run_first_phase(run));
    MIXT_TRY(mixt__rank0_first(run->group, run->experiment.context->device, plan_validation, run));
    MIXT_TRY(mixt__run_begin(run));
    MIXT_TRY(mixt__run_take_memory(run));
    MIXT_TRY(mixt__run_ranks_directory(run, open_directory));
    MIXT_TRY(mixt__references_take(run));
    if (mixt__run_writes(run))
        MIXT_TRY(mixt__run_keep_phases(run));
    if (mixt__run_writes(run) && mixt__config_bool(run->config, MIXT_KEY_TRAIN_TENSORBOARD))
        mixt__tensorboard_open(&run->tensorboard, run, run->dir.path,
                               run->resume.checkpoint ? run->resume.state.steps : -1);
    MIXT_TRY(mixt__events_open(&run->events, run));
    MIXT_TRY(run->hooks->open(run));
    MIXT_TRY(mixt__layers_resume(run));
    mixt_status status = mixt__loop_run(run);
    mixt_status told = mixt__run_tell(run, (mixt_event){.kind = MIXT_EVENT_END, .status = status});
    status = status == MIXT_OK ? told : status;
    mixt__rows *const files[] = {&run->dir.metrics, &run->dir.events, &run->dir.layers};
    for (int i = 0; status == MIXT_OK && i < 3; i++)
        status = mixt__rows_flush(files[i]);
    return status;
}

mixt_status mixt_run_train(mixt_run *run, mixt_run_result *result)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    if (run->dir.path[0])
        return mixt__fail(MIXT_ERROR_STATE, "%s is trained already: resume it to continue", run->dir.path);
    if (run->experiment.planned)
        return mixt__fail(MIXT_ERROR_STATE, "the run was opened to plan %lld ranks: it cannot train",
                          (long long)run->experiment.ranks);
    if (run->resume.looking)
        return mixt__fail(MIXT_ERROR_STATE, "%s was opened to repeat earlier updates: resume it to train",
                          run->resume.run);
    mixt__account *before = mixt__account_use(run->account);
    mixt_status status = train(run);
    if (run->group && status != MIXT_OK)
        mixt__group_give_up(run->group);
    mixt__account_use(before);
    if (result)
        *result = run->result;
    const mixt__loop_state *from = &run->resume.state; // of a new directory that goes on: what it was given
    bool nothing = status != MIXT_OK && run->result.steps <= from->steps &&
                   mixt__rows_length(&run->dir.events) <= from->events_bytes;
    mixt__tensorboard_close(&run->tensorboard, nothing);
    mixt__events_close(&run->events);
    run->hooks->close(run);
    if (nothing)
        mixt__run_dir_discard(&run->dir);
    mixt__run_dir_close(&run->dir);
    return status;
}

mixt_status mixt_run_evaluate(mixt_run *run, const char *split, mixt_evaluation *result)
{
    mixt_data *data;
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__run_begin(run));
    MIXT_TRY(mixt_run_data(run, split, &data));
    MIXT_TRY(mixt__references_for(run, split, data));
    return mixt_trainer_evaluate(run->experiment.trainer, data, result);
}

mixt_run_info mixt_run_describe(const mixt_run *run)
{
    if (mixt__need_open(run, "run") != MIXT_OK)
        return (mixt_run_info){.folder = "", .checkpoint = "", .item = ""};
    const mixt__experiment *e = &run->experiment;
    mixt_run_info info = {
        .folder = run->dir.path, .total_steps = e->total_steps, .steps_per_epoch = e->steps_per_epoch};
    info.checkpoint = run->resume.checkpoint ? run->resume.checkpoint->folder : "";
    info.epochs = mixt__config_int(run->config, MIXT_KEY_TRAIN_EPOCHS);
    info.rank = run->group ? run->group->rank : 0;
    info.ranks = run->group ? run->group->size : 1;
    info.item = e->item;
    info.items_per_sample = e->items_per_sample;
    info.scaling = mixt__trainer_settings_of(e->trainer->inner)->scaling.enabled;
    return info;
}

const mixt_config *mixt_run_config(const mixt_run *run)
{
    return mixt__need_open(run, "run") == MIXT_OK ? run->config : NULL;
}

mixt_trainer *mixt_run_trainer(mixt_run *run)
{
    return mixt__need_open(run, "run") == MIXT_OK ? run->experiment.trainer : NULL;
}

const mixt_data *mixt_run_facts(const mixt_run *run)
{
    return mixt__need_open(run, "run") == MIXT_OK ? run->experiment.facts : NULL;
}

mixt_status mixt_run_data(mixt_run *run, const char *split, mixt_data **data)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(split));
    MIXT_TRY(mixt__need(data));
    const mixt__experiment *e = &run->experiment;
    *data = !strcmp(split, "train") ? e->train : !strcmp(split, "val") ? e->val : NULL;
    if (*data)
        return MIXT_OK;
    return run->known.folder ? mixt__without_data_part(run, split, data)
                             : mixt__experiment_data(&run->experiment, split, data);
}

mixt_status mixt_run_part(const mixt_run *run, const char **split)
{
    static const char *const parts[] = {"test", "val"};
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(split));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool has;
        *split = parts[i];
        MIXT_TRY(mixt__experiment_has_part(&run->experiment, *split, &has));
        if (has)
            return MIXT_OK;
    }
    *split = "all";
    return MIXT_OK;
}
