/* Each part is asked from the code that takes it; what is small is what the run's account holds beside them. */
#include "run/open/memory.h"

#include "data/data.h"
#include "run/open/without_data.h"
#include "train/checkpoint.h"
#include "train/instrument.h"
#include "monitor/monitor.h"

#include <string.h>

static bool validates(const mixt__experiment *e)
{
    return e->val && mixt_data_describe(e->val)->samples > 0;
}

static void tell_cut(mixt_run *run, int64_t asked)
{
    int64_t batch = mixt__trainer_settings_of(run->experiment.trainer->inner)->eval_batch;
    if (batch < asked)
        mixt__run_note(run, true, "validation in batches of %lld: there is no memory for train.eval_batch=%lld",
                       (long long)batch, (long long)asked);
}

/* ---- parts ---- */

static mixt_bytes public_bytes(mixt__trainer_bytes bytes)
{
    return (mixt_bytes){bytes.host, bytes.device};
}

/** Where the trainer's own memory lies. */
static mixt_bytes on_device(const mixt__trainer *t, size_t bytes)
{
    return mixt__trainer_device(t)->backend->host_memory ? (mixt_bytes){.host = bytes} : (mixt_bytes){.device = bytes};
}

static void data_parts(const mixt__experiment *e, mixt_run_memory *m)
{
    for (int64_t i = 0; i < e->context->data_count; i++) {
        const mixt_data *data = e->context->data[i];
        bool tokens = mixt_data_describe(data)->target == MIXT_TARGET_TOKENS;
        *(tokens ? &m->tokens.host : &m->data.host) += mixt__data_bytes(data);
        m->mapped += mixt__data_mapped(data);
    }
}

/** Results of updates, and statistics of those that are looked into. */
static size_t results_bytes(const mixt__trainer *t)
{
    return mixt__feed_host_bytes(mixt__trainer_settings_of(t)->accumulate) + mixt__trainer_layer_slots_bytes(t);
}

/** All parts but the graphs. */
static void plan_parts(const mixt__experiment *e, mixt_run_memory *m)
{
    const mixt__trainer *t = e->trainer->inner;
    *m = (mixt_run_memory){.eval_batch = mixt__trainer_settings_of(t)->eval_batch};
    m->step = on_device(t, mixt__trainer_memory(t).total);
    m->weights = on_device(t, mixt__trainer_weight_bytes(t));
    m->validation = public_bytes(mixt__trainer_evaluation_bytes(t));
    m->prediction = public_bytes(mixt__trainer_prediction_bytes(t));
    m->batches.host = mixt__trainer_batches_ahead(t, e->train) + results_bytes(t) + mixt__ranks_host_bytes(t);
    m->checkpoints.host =
        mixt__snapshot_bytes(t, mixt__snapshot_saved(t)) + mixt__weights_bytes(mixt__trainer_params(t));
    data_parts(e, m);
}

/** Texts of the configuration are counted as if they took this much, or what they take beyond: else the way in which a
 * setting is written would decide whether a plan fits. */
enum { TEXTS = 16 << 10 };

/** Bytes of the host that parts hold already. */
static size_t held(const mixt__trainer *t, const mixt_run_memory *m)
{
    size_t bytes = m->data.host + m->tokens.host;
    if (mixt__trainer_has_memory(t))
        bytes += m->step.host + results_bytes(t) + mixt__ranks_host_bytes(t);
    else if (mixt__trainer_has_weights(t))
        bytes += m->weights.host;
    if (mixt__trainer_has_evaluation(t))
        bytes += m->validation.host;
    if (mixt__trainer_has_prediction(t))
        bytes += m->prediction.host;
    return bytes;
}

void mixt_run_memory_parts(const mixt_run_memory *m, mixt_run_memory_part parts[MIXT_RUN_MEMORY_PARTS])
{
    const mixt_run_memory_part all[MIXT_RUN_MEMORY_PARTS] = {
        {"step", "the training step, as above", m->step},
        {"validation", "its activations, workspace and batch", m->validation},
        {"batches", "made ahead by other threads", m->batches},
        {"checkpoints", "the state's copy while it is written", m->checkpoints},
        {"snapshots", "good states to go back to, and a trace", m->snapshots},
        {"data", "data sets in memory", m->data},
        {"tokens", "tokens and texts in memory", m->tokens},
        {"graphs", "graphs, kernel calls, names", m->graphs},
        {"total", "what the run will hold", m->total},
    };
    memcpy(parts, all, sizeof all);
}

static void add_up(mixt_run_memory *m)
{
    mixt_run_memory_part parts[MIXT_RUN_MEMORY_PARTS];
    mixt_run_memory_parts(m, parts);
    m->total = (mixt_bytes){0};
    for (int i = 0; i < MIXT_RUN_MEMORY_PARTS - 1; i++) {
        m->total.host += parts[i].bytes.host;
        m->total.device += parts[i].bytes.device;
    }
}

/** While no batches are made and no checkpoint is open: what is not of a part is of the graphs. */
static void plan_all(mixt_run *run, mixt_run_memory *m)
{
    plan_parts(&run->experiment, m);
    m->snapshots.host = run->hooks->bytes(run);
    if (!run->graphs) {
        size_t texts = mixt__config_text_bytes(run->config) + (run->precision ? strlen(run->precision) + 1 : 0);
        size_t all = mixt__account_bytes(run->account), parts = held(run->experiment.trainer->inner, m) + texts;
        run->graphs = (all > parts ? all - parts : 0) + (texts > TEXTS ? texts : TEXTS);
        if (!run->events.monitor && mixt__config_bool(run->config, MIXT_KEY_WATCH_MONITOR)) // made when training begins
            run->graphs += mixt__monitor_bytes();
        if (run->experiment.planned) // ranks that would be joined then
            run->graphs += mixt__group_memory(run->experiment.ranks);
    }
    m->graphs.host = run->graphs;
    add_up(m);
    m->allocated = run->result.run_memory.allocated;
}

/** In batches that fit; told where they are smaller than those asked for. */
static mixt_status plan_validation(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    int64_t asked = mixt__trainer_settings_of(t)->eval_batch;
    if (!validates(&run->experiment))
        return MIXT_OK;
    MIXT_TRY(mixt__trainer_plan_evaluation(t, run->experiment.val));
    tell_cut(run, asked);
    return MIXT_OK;
}

mixt_status mixt__run_plan_validation(mixt_run *run)
{
    mixt__layers_plan(run);
    if (mixt__config_int(run->config, MIXT_KEY_TRAIN_EARLY_STOP) && !validates(&run->experiment))
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "train.early_stop needs a validation part, which the data does not have: set data.val_fraction");
    return plan_validation(run);
}

mixt_status mixt__run_plan_memory(mixt_run *run, mixt_run_memory *memory)
{
    mixt__account *before = mixt__account_use(run->account);
    mixt__layers_plan(run);
    mixt_status status = plan_validation(run);
    if (status == MIXT_OK)
        plan_all(run, memory);
    mixt__account_use(before);
    return status;
}

mixt_status mixt__run_count_plan(mixt_run *run, mixt_run_memory *memory)
{
    const mixt__experiment *e = &run->experiment;
    run->graphs = 0;
    if (validates(e))
        MIXT_TRY(mixt__trainer_plan_evaluation(e->trainer->inner, e->val));
    plan_all(run, memory);
    return MIXT_OK;
}

/** Without looking into layers where there is no room for that. */
static mixt_status take_step(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt_status status = mixt__trainer_allocate(t);
    if (status == MIXT_ERROR_MEMORY && mixt__layers_drop(run))
        status = mixt__trainer_allocate(t);
    return status;
}

mixt_status mixt__run_take_memory(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    int64_t asked = mixt__trainer_settings_of(t)->eval_batch;
    run->graphs = 0;
    MIXT_TRY(take_step(run));
    if (validates(&run->experiment))
        MIXT_TRY(mixt__trainer_prepare_evaluation(t, run->experiment.val));
    tell_cut(run, asked);
    plan_all(run, &run->result.run_memory);
    return MIXT_OK;
}

void mixt__run_change_validation(mixt_run *run, int64_t most)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    const mixt_trainer_options *o = &run->experiment.trainer->options;
    int64_t asked = o->eval_batch ? o->eval_batch : o->batch, before = mixt__trainer_settings_of(t)->eval_batch;
    if (!validates(&run->experiment))
        return;
    mixt__trainer_set_eval_batch(t, most ? most : asked);
    if (mixt__trainer_prepare_evaluation(t, run->experiment.val) != MIXT_OK)
        mixt__run_note(run, true, "no memory to validate under the new policy: %s", mixt_error_text());
    else if (mixt__trainer_settings_of(t)->eval_batch != before)
        mixt__run_note(run, true, "validation in batches of %lld from here on, of %lld before: %s",
                       (long long)mixt__trainer_settings_of(t)->eval_batch, (long long)before,
                       mixt__trainer_settings_of(t)->eval_batch < before ? "the new policy leaves less memory"
                                                                         : "the new policy leaves more memory");
}

void mixt__run_count_memory(mixt_run *run)
{
    mixt__device *device = run->experiment.context->device;
    plan_all(run, &run->result.run_memory); // another policy may have come
    run->result.run_memory.allocated.host = mixt__account_bytes(run->account);
    run->result.run_memory.allocated.device = device->backend->host_memory ? 0 : mixt__device_allocated(device);
}

mixt_status mixt_run_plan_memory(mixt_run *run, mixt_run_memory *memory)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(memory));
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__account *before = mixt__account_use(run->account);
    mixt_status status = mixt__without_data_data(run);
    if (status == MIXT_OK)
        status = mixt__run_plan_validation(run);
    if (status == MIXT_OK)
        plan_all(run, memory); // the graphs of training alone
    if (status == MIXT_OK)
        status = mixt__trainer_plan_prediction(t);
    if (status == MIXT_OK)
        memory->prediction = public_bytes(mixt__trainer_prediction_bytes(t));
    if (!mixt__trainer_has_prediction(t))
        mixt__trainer_free_predict(t);
    mixt__account_use(before);
    return status;
}
