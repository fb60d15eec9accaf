/* Compiling a model for training, laying out and taking its memory. */
#include "train/trainer_inside.h"

#include "base/env.h"
#include "base/sizes.h"
#include "data/prefetch.h"
#include "graph/op.h"
#include "train/faults.h"
#include "train/finetune.h"
#include "train/lengths.h"
#include "train/moments_file.h"
#include "train/dist/sharded.h"
#include "train/instrument.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mixt_status note_environment(mixt__trainer_environment *e)
{
    char *candidate = mixt__strdup(mixt__env_get(MIXT_ENV_CANDIDATE));
    if (!candidate)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a trainer");
    mixt__free(e->candidate);
    e->candidate = candidate;
    e->fusion = !strcmp(mixt__env_get(MIXT_ENV_FUSION), "0") ? "0" : "1"; // as the passes read it
    return MIXT_OK;
}

mixt__compile_options mixt__trainer_compile_options(const mixt__trainer *t, const mixt__policy *policy)
{
    mixt__compile_options options = {.policy = *policy, .backward = true, .no_fusion = t->settings.no_fusion};
    options.fused = t->device->backend->fused;
    options.teacher = t->teacher.policy;
    options.injections = mixt__faults_injections(t);
    return options;
}

mixt_status mixt__trainer_compile_step(mixt__trainer *t, const mixt__instrument *instrument,
                                       mixt__executable **executable)
{
    return mixt__trainer_compile_shape(t, &t->spec, instrument, executable);
}

mixt_status mixt__trainer_compile_shape(mixt__trainer *t, const mixt__batch_spec *spec,
                                        const mixt__instrument *instrument, mixt__executable **executable)
{
    mixt__graph *source;
    MIXT_TRY(note_environment(&t->environment));
    MIXT_TRY(mixt__model_build(&t->model, spec, true, &source));
    mixt__compile_options options = mixt__trainer_compile_options(t, &t->settings.policy);
    options.typed_input = true;
    options.activation_budget = t->settings.recompute_budget;
    options.instrument = instrument;
    options.recompute = &t->recompute;
    mixt_status status = mixt__freeze(source, t->settings.freeze, t->settings.frozen);
    if (status == MIXT_OK)
        return mixt__compile_take(source, &options, t->device, executable);
    mixt__graph_free(source);
    return status;
}

int64_t mixt__trainer_last_writer(const mixt__graph *graph, int32_t param)
{
    int64_t last = -1;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            if (graph->nodes[i].out[o] == graph->params[param].grad && graph->params[param].grad)
                last = i;
    return last;
}

static mixt_status find_backward_order(mixt__trainer *t)
{
    int64_t n = t->params->segment_count;
    mixt__free(t->backward_order);
    t->backward_order = mixt__alloc((size_t)(n + 1) * sizeof *t->backward_order);
    int64_t *done = mixt__alloc((size_t)(n + 1) * sizeof *done);
    if (!t->backward_order || !done) {
        mixt__free(done);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the order of gradients");
    }
    for (int32_t s = 0; s < n; s++) { // insertion sort: segments are few and nearly in reverse order
        int64_t at = mixt__trainer_last_writer(t->train->graph, t->params->segments[s].param);
        int64_t i = s;
        for (; i > 0 && done[i - 1] > at; i--) {
            done[i] = done[i - 1];
            t->backward_order[i] = t->backward_order[i - 1];
        }
        done[i] = at;
        t->backward_order[i] = s;
    }
    mixt__free(done);
    return MIXT_OK;
}

static mixt_status compile_and_lay_out(mixt__trainer *t)
{
    MIXT_TRY(mixt__moments_check(t));
    MIXT_TRY(mixt__trainer_compile_step(t, NULL, &t->train));
    MIXT_TRY(mixt__adapters_check(t->train->graph));
    MIXT_TRY(mixt__lengths_compile(t, NULL, t->train, &t->lengths.steps));
    MIXT_TRY(mixt__trainer_plan_layers(t));
    MIXT_TRY(mixt__params_new(t->train->graph, t->device, true, mixt__optimizer_moments(&t->settings.optimizer),
                              t->settings.moments, &t->params));
    MIXT_TRY(mixt__sharded_plan(t));
    for (int64_t s = 0; s < t->params->segment_count; s++) {
        mixt__segment *segment = &t->params->segments[s];
        segment->weight_decay = t->params->table[segment->param].decay ? t->settings.weight_decay : 0.0f;
    }
    MIXT_TRY(mixt__groups_apply(t->params, t->settings.lr_groups, t->settings.decay_groups));
    t->workspace_bytes = mixt__device_update_workspace(t->device, t->params->segments, t->params->segment_count);
    return find_backward_order(t);
}

static void forget_plan(mixt__trainer *t)
{
    mixt__trainer_drop_instrumented(t);
    mixt__lengths_free(&t->lengths.steps);
    mixt__executable_free(t->train);
    mixt__params_free(t->params);
    mixt__ranks_forget(&t->ranks);
    t->train = NULL;
    t->params = NULL;
}

mixt_status mixt__trainer_compile(mixt__trainer *t, const mixt__batch_spec *spec)
{
    if (t->train)
        return mixt__fail(MIXT_ERROR_STATE, "the trainer is compiled already");
    bool replays;
    MIXT_TRY(mixt__env_on(MIXT_ENV_REPLAY, &replays)); // before memory is taken, where a step will read it
    t->spec = *spec;
    mixt_status status = compile_and_lay_out(t);
    if (status == MIXT_OK)
        status = mixt__faults_open(t);
    if (status != MIXT_OK)
        forget_plan(t);
    return status;
}

mixt_status mixt__trainer_compile_data(mixt__trainer *t, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, t->settings.batch);
    if (!t->train)
        mixt__lengths_take(t, data);
    return mixt__trainer_compile(t, &spec);
}

static void make_update(mixt__trainer *t)
{
    const mixt__params *p = t->params;
    const mixt__trainer_settings *s = &t->settings;
    t->update = (mixt__update){.segments = p->segments, .segment_count = p->segment_count, .total = p->total};
    mixt__params_fill_update(p, s->seed, &t->update);
    t->update.stats = t->stats;
    t->update.control = t->control;
    t->update.optimizer = s->optimizer;
    mixt__trainer_set_rate(t, 1);
    t->update.scaling = s->scaling;
    t->update.clip_norm = s->decided.clip;
    t->update.clip_value = s->decided.clip_value;
    t->update.accumulate = s->accumulate;
    t->update.gradient_factor = 1;
    t->update.backward_order = t->backward_order;
    t->update.workspace = t->workspace;
    mixt__integrity_fill(t);
}

static size_t stats_bytes(const mixt__trainer *t)
{
    return (size_t)t->params->segment_count * sizeof *t->stats;
}

mixt_dtype mixt__trainer_fed_dtype(const mixt__trainer *t)
{
    return t->train->graph->values[t->train->graph->input].dtype;
}

mixt__batch_spec mixt__trainer_fed_spec(const mixt__trainer *t)
{
    return mixt__spec_fed(&t->spec, t->train->graph);
}

static size_t batch_bytes(const mixt__trainer *t)
{
    mixt__batch_spec fed = mixt__trainer_fed_spec(t);
    return mixt__spec_input_bytes(&fed) + mixt__spec_target_bytes(&fed);
}

/** What to do when there is room for `room` of `need` bytes: activations and batches grow with the batch. */
static void suggest(const mixt__trainer *t, const mixt_memory *m, size_t need, size_t room, char *text, size_t size)
{
    double growing = (double)(m->activations + m->batches), fixed = (double)need - growing;
    double fits = floor((double)t->settings.batch * ((double)room - fixed) / growing);
    if (fits >= 1)
        snprintf(text, size, "a batch of about %.0f would fit; in a run train.memory=%.0fM makes it fit", fits,
                 floor((double)room / 1048576.0 * 0.95));
    else
        snprintf(text, size, "use a smaller model");
}

/** A system that promises more memory than it has kills the process later: better to refuse here, with figures. */
static mixt_status check_room(const mixt__trainer *t)
{
    mixt_memory m = mixt__trainer_memory(t);
    if (t->device->backend->host_memory) { // then the loader's batches lie beside the plan
        m.batches = batch_bytes(t) * MIXT_PREFETCH_DEPTH;
        m.total += m.batches;
    }
    size_t held = mixt__trainer_has_weights(t) ? mixt__trainer_weight_bytes(t) : 0;
    size_t room = mixt__device_available(t->device), need = m.total - held;
    const double gib = 1073741824.0;
    char advice[128];
    if (!room || need <= room)
        return MIXT_OK;
    suggest(t, &m, need, room, advice, sizeof advice);
    return mixt__fail(MIXT_ERROR_MEMORY,
                      "training needs %.2f GiB (weights, gradients and moments %.2f, activations %.2f, workspace %.2f, "
                      "batches %.2f), "
                      "%s has %.2f GiB free: %s",
                      (double)need / gib, (double)(m.masters + m.copies + m.gradients + m.moments + m.state) / gib,
                      (double)m.activations / gib, (double)(m.workspace + m.control) / gib, (double)m.batches / gib,
                      t->device->backend->name, (double)room / gib, advice);
}

bool mixt__trainer_has_weights(const mixt__trainer *t)
{
    return t->params && t->params->taken;
}

size_t mixt__trainer_weight_bytes(const mixt__trainer *t)
{
    return mixt__params_weight_bytes(t->params);
}

size_t mixt__trainer_kept_stats_bytes(const mixt__trainer *t)
{
    return MIXT_STAGE_SLOTS * stats_bytes(t);
}

static void drop_stats(mixt__trainer *t)
{
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        if (t->kept_stats[i])
            mixt__device_free_host(t->device, t->kept_stats[i]);
        t->kept_stats[i] = NULL;
    }
}

/** Gives back the memory of the step but for the weights. */
static void release_step(mixt__trainer *t)
{
    drop_stats(t);
    mixt__feed_close(&t->feed);
    mixt__trainer_release_layers(t);
    mixt__device_free(t->device, t->control);
    mixt__device_free(t->device, t->stats);
    mixt__device_free(t->device, t->workspace);
    t->control = NULL;
    t->stats = NULL;
    t->workspace = NULL;
    mixt__integrity_release(t);
    if (t->device)
        mixt__ranks_release(t);
    if (t->params)
        mixt__params_release_training(t->params);
    if (t->train)
        mixt__executable_release(t->train);
}

/** Whether any node draws random numbers. */
static bool is_random(const mixt__graph *graph)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        if (mixt__node_random(&graph->nodes[i]))
            return true;
    return false;
}

static mixt_status open_feed(mixt__trainer *t)
{
    mixt__batch_spec fed = mixt__trainer_fed_spec(t);
    return mixt__feed_open(&t->feed, t->device, &t->spec, &fed, t->settings.accumulate, mixt__ranks_made(t),
                           is_random(t->train->graph));
}

static mixt_status need_whole(const mixt__trainer *t)
{
    if (t->broken)
        return mixt__fail(MIXT_ERROR_STATE, "a change of precision or a restore failed halfway: create a new trainer");
    return MIXT_OK;
}

mixt_status mixt__trainer_take_weights(mixt__trainer *t)
{
    MIXT_TRY(need_whole(t));
    if (mixt__trainer_has_weights(t))
        return MIXT_OK;
    size_t room = mixt__device_available(t->device), need = mixt__trainer_weight_bytes(t),
           before = mixt__device_allocated(t->device);
    const double gib = 1073741824.0;
    if (room && need > room)
        return mixt__fail(MIXT_ERROR_MEMORY, "the weights need %.2f GiB, %s has %.2f GiB free: use a smaller model",
                          (double)need / gib, t->device->backend->name, (double)room / gib);
    mixt_status status = mixt__params_allocate(t->params);
    t->allocated = mixt__device_allocated(t->device) - before;
    if (status == MIXT_OK)
        status = mixt__params_initialise(t->params, t->settings.seed);
    if (status == MIXT_OK && t->model.begin)
        status = mixt__trainer_begin_with(t->params, &t->model);
    if (status == MIXT_OK && t->params->fixed_count)
        status = t->teacher.load(t->teacher.user, t->params);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt__params_release(t->params); // so that a later call starts afresh
    t->allocated = 0;
    return status;
}

mixt_status mixt__trainer_keep_stats(mixt__trainer *t)
{
    if (t->kept_stats[0])
        return MIXT_OK;
    MIXT_TRY(mixt__trainer_read_control(t));
    mixt__feed_forget(&t->feed); // what is recorded does not copy them
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        t->kept_stats[i] = mixt__device_alloc_host(t->device, stats_bytes(t));
        if (t->kept_stats[i])
            continue;
        drop_stats(t);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of gradients");
    }
    return MIXT_OK;
}

/** All but the weights, which are there. */
static mixt_status take_step(mixt__trainer *t)
{
    size_t before = mixt__device_allocated(t->device);
    t->control = mixt__device_alloc(t->device, sizeof *t->control);
    t->stats = mixt__device_alloc(t->device, stats_bytes(t));
    t->workspace = mixt__device_alloc(t->device, t->workspace_bytes);
    if (!t->control || !t->stats || !t->workspace)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the control of a step");
    MIXT_TRY(mixt__integrity_take(t));
    MIXT_TRY(mixt__params_allocate_training(t->params));
    MIXT_TRY(mixt__executable_allocate(t->train));
    MIXT_TRY(mixt__trainer_take_layers(t));
    MIXT_TRY(mixt__ranks_take(t));
    if (!t->device->backend->host_memory)
        MIXT_TRY(open_feed(t));
    t->allocated += mixt__device_allocated(t->device) - before;
    if (t->device->backend->host_memory)
        MIXT_TRY(open_feed(t));
    MIXT_TRY(mixt__trainer_take_layer_slots(t));
    mixt__sharded_bind(t, t->train, MIXT_GATHER_TRAIN, mixt__params_gathered(t->params), &t->control->seed);
    mixt__lengths_attach(t);
    mixt__trainer_attach_instrumented(t);
    make_update(t);
    t->control_copy = mixt__control_start(&t->update);
    return mixt__trainer_put_control(t, &t->control_copy);
}

mixt_status mixt__trainer_allocate(mixt__trainer *t)
{
    MIXT_TRY(need_whole(t));
    if (t->control)
        return MIXT_OK;
    bool first = !mixt__trainer_has_weights(t);
    if (check_room(t) != MIXT_OK)
        mixt__trainer_free_eval(t); // which is planned anew beside the step
    MIXT_TRY(check_room(t));
    mixt_status status = mixt__trainer_take_weights(t);
    size_t weights = t->allocated;
    if (status == MIXT_OK)
        status = take_step(t);
    if (status == MIXT_OK)
        return MIXT_OK;
    release_step(t); // so that a later call starts afresh
    if (first)
        mixt__params_release(t->params);
    t->allocated = first ? 0 : weights;
    char need[MIXT_SIZE_TEXT];
    if (status != MIXT_ERROR_MEMORY) // as a thread that cannot be started
        return status;
    return mixt__fail_context(status, "training needs %s", mixt__size_text(mixt__trainer_memory(t).total, need));
}

void mixt__trainer_stop_batches(mixt__trainer *t)
{
    mixt__prefetch_stop(t->prefetch);
    t->prefetch = NULL;
    t->prefetched = NULL;
}

void mixt__trainer_free_eval(mixt__trainer *t)
{
    mixt__trainer_free_predict(t);
    mixt__executable_free(t->eval);
    t->eval = NULL;
    mixt__gather_free(&t->ranks.shards.gathers[MIXT_GATHER_EVAL]);
    if (t->eval_window)
        mixt__device_free(t->device, t->eval_window);
    if (t->eval_gathered)
        mixt__device_free_host(t->device, t->eval_gathered);
    t->eval_window = t->eval_gathered = NULL;
    mixt__free(t->eval_input);
    mixt__free(t->eval_target);
    t->eval_input = t->eval_target = NULL;
    for (int i = 0; i < 2; i++) {
        if (t->eval_device[i])
            mixt__device_free(t->device, t->eval_device[i]);
        t->eval_device[i] = NULL;
    }
}

void mixt__trainer_carry_scale(const mixt__trainer *t, bool scaled, mixt__control *control)
{
    const mixt__scaling *s = &t->update.scaling;
    mixt__control fresh = mixt__control_start(&t->update);
    if (scaled && s->enabled && s->dynamic) {
        control->scale = fminf(fmaxf(control->scale, s->floor), s->ceiling);
        if (control->overflows_left > fresh.overflows_left)
            control->overflows_left = fresh.overflows_left;
    } else {
        control->scale = fresh.scale;
        control->clean_steps = fresh.clean_steps;
        control->overflows_left = fresh.overflows_left;
    }
    control->seed = control->scale / (float)t->update.accumulate;
}

/** Puts a newly compiled step in the place of the one that runs. */
static mixt_status replace_plan(mixt__trainer *t)
{
    MIXT_TRY(mixt__trainer_plan_layers(t));
    MIXT_TRY(find_backward_order(t));
    size_t before = mixt__device_allocated(t->device);
    MIXT_TRY(mixt__sharded_plan(t));
    MIXT_TRY(mixt__params_retype(t->params, t->train->graph));
    MIXT_TRY(mixt__executable_allocate(t->train));
    MIXT_TRY(mixt__integrity_take(t)); // of other copies
    MIXT_TRY(mixt__trainer_take_layers(t));
    MIXT_TRY(mixt__ranks_take(t));
    bool fed = t->feed.device; // else its batches have another size from here on
    if (!fed && !t->device->backend->host_memory)
        MIXT_TRY(open_feed(t));
    t->allocated +=
        mixt__device_allocated(t->device) - before; // copies may have become fewer: it wraps around and back
    if (!fed && t->device->backend->host_memory)
        MIXT_TRY(open_feed(t));
    MIXT_TRY(mixt__trainer_take_layer_slots(t));
    mixt__sharded_bind(t, t->train, MIXT_GATHER_TRAIN, mixt__params_gathered(t->params), &t->control->seed);
    mixt__lengths_attach(t);
    bool scaled = t->update.scaling.enabled;
    make_update(t);
    mixt__trainer_carry_scale(t, scaled, &t->control_copy);
    return mixt__trainer_put_control(t, &t->control_copy);
}

/** Without values yet: as if compiled for the first time. What was compiled stays when that fails. */
static mixt_status recompile_empty(mixt__trainer *t)
{
    mixt__trainer before = *t;
    t->train = t->instrumented = t->lengths.instrumented_whole = NULL;
    t->lengths.steps = t->lengths.instrumented = (mixt__length_steps){{0}};
    t->params = NULL;
    t->backward_order = NULL;
    t->ranks.shards.owners = (mixt__owners){0};
    t->ranks.shards.window = (mixt__stage){0};
    memset(t->ranks.shards.gathers, 0, sizeof t->ranks.shards.gathers);
    mixt_status status = mixt__trainer_compile(t, &before.spec);
    if (status != MIXT_OK) {
        mixt__free(t->backward_order);
        before.environment = t->environment;
        before.recompute = t->recompute; // why, where activations do not fit
        *t = before;
        return status;
    }
    forget_plan(&before);
    mixt__free(before.backward_order);
    mixt__trainer_free_eval(t);
    return MIXT_OK;
}

/** The step in all its lengths, not in the trainer's place. */
static mixt_status compile_steps(mixt__trainer *t, mixt__executable **whole, mixt__length_steps *steps)
{
    MIXT_TRY(mixt__trainer_compile_step(t, NULL, whole));
    mixt_status status = mixt__lengths_compile(t, NULL, *whole, steps);
    if (status != MIXT_OK)
        mixt__executable_free(*whole);
    return status;
}

/** With weights but without the memory of a step. */
static mixt_status recompile_weights(mixt__trainer *t)
{
    mixt__executable *next;
    mixt__length_steps steps;
    MIXT_TRY(compile_steps(t, &next, &steps));
    mixt__trainer_drop_instrumented(t);
    mixt__lengths_free(&t->lengths.steps);
    mixt__executable_free(t->train);
    t->train = next;
    t->lengths.steps = steps;
    mixt__trainer_free_eval(t);
    size_t before = mixt__device_allocated(t->device);
    mixt_status status = mixt__trainer_plan_layers(t);
    if (status == MIXT_OK)
        status = find_backward_order(t);
    if (status == MIXT_OK)
        status = mixt__sharded_plan(t);
    if (status == MIXT_OK)
        status = mixt__params_retype(t->params, t->train->graph);
    t->allocated += mixt__device_allocated(t->device) - before; // as in replace_plan
    t->broken = status != MIXT_OK;
    return status;
}

mixt_status mixt__trainer_recompile(mixt__trainer *t)
{
    mixt__executable *next;
    mixt__length_steps steps;
    if (!t->train)
        return MIXT_OK;
    if (!t->control)
        return mixt__trainer_has_weights(t) ? recompile_weights(t) : recompile_empty(t);
    MIXT_TRY(compile_steps(t, &next, &steps));
    mixt_status read = mixt__trainer_read_control(t);
    if (read != MIXT_OK) {
        mixt__lengths_free(&steps);
        mixt__executable_free(next);
        return read;
    }
    bool resized = t->feed.batches != t->settings.accumulate;
    if (resized && t->device->backend->host_memory)
        mixt__feed_close(&t->feed);
    else
        mixt__feed_forget(&t->feed);
    mixt__trainer_drop_instrumented(t);
    mixt__trainer_release_layer_slots(t);
    size_t before = mixt__device_allocated(t->device);
    mixt__executable_release(t->train); // before the next takes its memory
    mixt__trainer_release_layers(t);
    mixt__ranks_release_plan(t); // a pass may have become several
    if (resized)
        mixt__feed_close(&t->feed); // which on a device is counted
    t->allocated -= before - mixt__device_allocated(t->device);
    mixt__lengths_free(&t->lengths.steps);
    mixt__executable_free(t->train);
    t->train = next;
    t->lengths.steps = steps;
    mixt__batch_spec fed = mixt__trainer_fed_spec(t);
    mixt__feed_retype(&t->feed, &fed);
    mixt__lengths_select_whole(t);
    mixt__trainer_stop_batches(t); // those that are ready have the format of before
    mixt__trainer_free_eval(t);
    mixt_status status = replace_plan(t);
    t->broken = status != MIXT_OK;
    return status;
}

void mixt__trainer_free(mixt__trainer *t)
{
    if (!t)
        return;
    mixt__trainer_stop_batches(t);
    mixt__trainer_free_eval(t);
    if (t->device)
        release_step(t);
    forget_plan(t);
    mixt__faults_close(t);
    mixt__free(t->backward_order);
    mixt__free(t->environment.candidate);
    mixt__group_close(t->ranks.joined);
    mixt__free(t);
}

mixt_memory mixt__trainer_memory(const mixt__trainer *t)
{
    mixt__params_bytes p = mixt__params_bytes_of(t->params);
    mixt_memory m = {
        .masters = p.masters, .copies = p.copies, .gradients = p.gradients, .moments = p.moments, .state = p.state};
    m.activations = t->train->plan.arena_bytes;
    m.workspace = t->train->workspace_bytes;
    m.control = sizeof *t->control + stats_bytes(t) + t->workspace_bytes + mixt__trainer_layer_bytes(t);
    m.control += mixt__ranks_bytes(t) + mixt__integrity_bytes(t);
    m.batches = mixt__feed_bytes(t->device, &t->spec, t->settings.accumulate, mixt__ranks_made(t));
    m.total =
        m.masters + m.copies + m.gradients + m.moments + m.state + m.activations + m.workspace + m.batches + m.control;
    m.allocated = t->allocated;
    return m;
}
