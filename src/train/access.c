/* What those above this folder ask of a trainer, and tell it. */
#include "train/trainer_inside.h"

#include "data/prefetch.h"
#include "train/lengths.h"
#include "train/instrument.h"

#include <string.h>

/* ---- what it is ---- */

const mixt__trainer_settings *mixt__trainer_settings_of(const mixt__trainer *t)
{
    return &t->settings;
}

const mixt__model *mixt__trainer_model(const mixt__trainer *t)
{
    return &t->model;
}

mixt__device *mixt__trainer_device(const mixt__trainer *t)
{
    return t->device;
}

mixt__executable *mixt__trainer_compiled(const mixt__trainer *t)
{
    return t->train;
}

const mixt__batch_spec *mixt__trainer_spec(const mixt__trainer *t)
{
    return &t->spec;
}

mixt__params *mixt__trainer_params(const mixt__trainer *t)
{
    return t->params;
}

const mixt__recompute_choice *mixt__trainer_recompute(const mixt__trainer *t)
{
    return &t->recompute;
}

bool mixt__trainer_has_memory(const mixt__trainer *t)
{
    return t->control != NULL;
}

bool mixt__trainer_has_evaluation(const mixt__trainer *t)
{
    return t->eval_input != NULL;
}

bool mixt__trainer_has_prediction(const mixt__trainer *t)
{
    return t->predict_input != NULL;
}

bool mixt__trainer_is_broken(const mixt__trainer *t)
{
    return t->broken;
}

bool mixt__trainer_has_hand_gradients(const mixt__trainer *t)
{
    return t->hand_gradients;
}

/* ---- what it is told ---- */

void mixt__trainer_set(mixt__trainer *t, const mixt__trainer_settings *settings)
{
    t->settings = *settings;
}

void mixt__trainer_set_eval_batch(mixt__trainer *t, int64_t batch)
{
    t->settings.eval_batch = batch;
}

void mixt__trainer_try_rate(mixt__trainer *t, double factor)
{
    t->rate = (float)factor;
    mixt__trainer_set_rate(t, 1);
}

void mixt__trainer_set_recompute(mixt__trainer *t, size_t budget)
{
    t->settings.recompute_budget = budget;
}

void mixt__trainer_set_teacher(mixt__trainer *t, const mixt__trainer_teacher *teacher)
{
    t->teacher = *teacher;
}

void mixt__trainer_set_passed(mixt__trainer *t, mixt__passed *passed, void *user)
{
    t->passed = passed;
    t->passed_user = user;
}

/* ---- where it is ---- */

int64_t mixt__trainer_steps(const mixt__trainer *t)
{
    return t->attempts;
}

int64_t mixt__trainer_position(const mixt__trainer *t)
{
    return t->next_batch;
}

void mixt__trainer_seek(mixt__trainer *t, int64_t position)
{
    if (t->next_batch != position)
        mixt__trainer_stop_batches(t); // they make those behind the old one
    t->next_batch = position;
}

void mixt__trainer_seek_again(mixt__trainer *t)
{
    mixt__trainer_seek(t, t->next_batch - t->settings.accumulate);
    t->runs -= t->settings.accumulate;
}

int64_t mixt__trainer_epoch_passes(const mixt__trainer *t)
{
    return t->batches_per_epoch;
}

int64_t mixt__trainer_runs(const mixt__trainer *t)
{
    return t->runs;
}

const mixt__control *mixt__trainer_control(const mixt__trainer *t)
{
    return &t->control_copy;
}

mixt_status mixt__trainer_fetch_control(const mixt__trainer *t, mixt__control *control)
{
    return mixt__device_download(t->device, control, t->control, sizeof *control);
}

mixt_status mixt__trainer_drop_scale(mixt__trainer *t)
{
    mixt__trainer_carry_scale(t, true, &t->control_copy);
    return mixt__trainer_put_control(t, &t->control_copy);
}

/* ---- for who runs or times its parts ---- */

mixt_status mixt__trainer_pass_figures(const mixt__trainer *t, int64_t step, const float (**figures)[MIXT_PASS_FIGURES])
{
    const mixt__step_result *found;
    MIXT_TRY(mixt__feed_result_of(&t->feed, t->attempts - step, &found));
    *figures = found->metrics;
    return MIXT_OK;
}

const uint64_t *mixt__trainer_any_key(const mixt__trainer *t)
{
    static const uint64_t on_host = 1;
    return t->device->backend->host_memory ? &on_host : mixt__feed_key(&t->feed, 0);
}

const mixt__update *mixt__trainer_update(const mixt__trainer *t)
{
    return &t->update;
}

/* ---- another one to plan with ---- */

mixt__trainer *mixt__trainer_new(const mixt__model *model, mixt__device *device, const mixt__trainer_settings *settings)
{
    mixt__trainer *t = mixt__alloc(sizeof *t);
    if (!t)
        return NULL;
    t->model = *model;
    t->device = device;
    t->settings = *settings;
    t->rate = 1;
    t->ranks.format = MIXT_DTYPE_FP32;
    return t;
}

mixt_status mixt__trainer_new_planner(const mixt__trainer *t, mixt__trainer **planner)
{
    mixt__trainer_settings settings = t->settings;
    settings.faults = NULL; // which happen to the trainer alone
    mixt__trainer *p = mixt__trainer_new(&t->model, t->device, &settings);
    *planner = p;
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to plan a step");
    p->ranks = (mixt__ranks){.planned = mixt__ranks_joined(t)};
    p->ranks.shards.zero = t->ranks.shards.zero;
    p->ranks.format = t->ranks.format;
    p->ranks.overlap.bucket = t->ranks.overlap.bucket;
    p->ranks.local.compression = t->ranks.local.compression;
    p->ranks.discrete.on_device = t->ranks.discrete.on_device;
    p->lengths.count = t->lengths.count;
    memcpy(p->lengths.spec, t->lengths.spec, sizeof t->lengths.spec);
    mixt__trainer_want_layers(p, t->layers.wanted);
    mixt_status status = mixt__trainer_compile(p, &t->spec);
    if (status != MIXT_OK) {
        mixt__trainer_free(p);
        *planner = NULL;
    }
    return status;
}
