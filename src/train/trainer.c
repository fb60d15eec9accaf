/* Compiling a model for training, laying out and taking its memory. */
#include "train/trainer.h"

#include "data/prefetch.h"

#include <stdlib.h>
#include <string.h>

enum { PREFETCH_DEPTH = 3 };

mixt__batch_spec mixt__trainer_spec_of(const mixt_data *data, int64_t batch)
{
    const mixt_data_info *info = mixt_data_describe(data);
    mixt__batch_spec spec = {.input_dtype = info->input_dtype, .target_dtype = info->target_dtype};
    spec.input = (mixt__shape){info->input_rank + 1, {batch}};
    for (int i = 0; i < info->input_rank; i++)
        spec.input.dims[i + 1] = info->input_dims[i];
    spec.target = (mixt__shape){1, {batch}};
    if (info->target != MIXT_TARGET_CLASS)
        spec.target = (mixt__shape){2, {batch, info->target_elements}};
    return spec;
}

/** Builds and compiles one graph of the model. */
static mixt_status compile(mixt__trainer *t, const mixt__batch_spec *spec, bool training, mixt__executable **executable)
{
    mixt__graph *source, *graph;
    MIXT_TRY(mixt__model_build(&t->model, spec, training, &source));
    mixt__compile_options options = {.policy = t->settings.policy, .backward = training, .no_fusion = t->settings.no_fusion};
    mixt_status status = mixt__passes_run(source, &options, &graph);
    mixt__graph_free(source);
    return status == MIXT_OK ? mixt__executable_take(graph, t->backend, executable) : status;
}

/** Node after which a segment's gradient is complete. */
static int64_t last_writer(const mixt__graph *graph, int32_t param)
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
        int64_t at = last_writer(t->train->graph, t->params->segments[s].param);
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

mixt_status mixt__trainer_compile(mixt__trainer *t, const mixt__batch_spec *spec)
{
    if (t->train)
        return mixt__fail(MIXT_ERROR_STATE, "the trainer is compiled already");
    t->spec = *spec;
    MIXT_TRY(compile(t, spec, true, &t->train));
    MIXT_TRY(mixt__params_new(t->train->graph, t->backend, true, mixt__optimizer_moments(&t->settings.optimizer), &t->params));
    for (int64_t s = 0; s < t->params->segment_count; s++) {
        mixt__segment *segment = &t->params->segments[s];
        segment->weight_decay = t->params->table[segment->param].decay ? t->settings.weight_decay : 0.0f;
    }
    t->workspace_bytes = mixt__update_workspace(t->params->segments, t->params->segment_count);
    return find_backward_order(t);
}

static void make_update(mixt__trainer *t)
{
    const mixt__params *p = t->params;
    const mixt__trainer_settings *s = &t->settings;
    t->update = (mixt__update){.segments = p->segments, .segment_count = p->segment_count, .total = p->total};
    t->update.master = p->master;
    t->update.grad = p->grad;
    t->update.moment1 = p->moment1;
    t->update.moment2 = p->moment2;
    memcpy(t->update.low, p->low, sizeof t->update.low);
    t->update.stats = t->stats;
    t->update.control = t->control;
    t->update.optimizer = s->optimizer;
    t->update.schedule = s->schedule;
    t->update.scaling = s->scaling;
    t->update.clip_norm = s->clip_norm;
    t->update.clip_value = s->clip_value;
    t->update.accumulate = s->accumulate;
    t->update.backward_order = t->backward_order;
    t->update.workspace = t->workspace;
}

static size_t stats_bytes(const mixt__trainer *t)
{
    return (size_t)t->params->segment_count * sizeof *t->stats;
}

mixt_status mixt__trainer_allocate(mixt__trainer *t)
{
    if (t->control)
        return MIXT_OK;
    size_t before = mixt__alloc_bytes();
    t->control = t->backend->alloc(sizeof *t->control);
    t->stats = t->backend->alloc(stats_bytes(t));
    t->workspace = t->backend->alloc(t->workspace_bytes);
    if (!t->control || !t->stats || !t->workspace)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the control of a step");
    MIXT_TRY(mixt__params_allocate(t->params));
    MIXT_TRY(mixt__executable_allocate(t->train));
    t->allocated = mixt__alloc_bytes() - before;
    MIXT_TRY(mixt__params_initialise(t->params, t->settings.seed));
    mixt__executable_bind(t->train, t->params, &t->control->seed);
    make_update(t);
    t->seen = mixt__control_start(&t->update);
    return t->backend->upload(t->control, &t->seen, sizeof t->seen);
}

static void free_eval(mixt__trainer *t)
{
    mixt__executable_free(t->eval);
    t->eval = NULL;
    mixt__free(t->eval_input);
    mixt__free(t->eval_target);
    t->eval_input = t->eval_target = NULL;
}

mixt_status mixt__trainer_recompile(mixt__trainer *t)
{
    mixt__executable *next;
    if (!t->train)
        return MIXT_OK;
    MIXT_TRY(compile(t, &t->spec, true, &next));
    mixt__executable_free(t->train);
    t->train = next;
    free_eval(t);
    MIXT_TRY(find_backward_order(t));
    if (!t->control)
        return mixt__params_retype(t->params, next->graph);
    MIXT_TRY(mixt__params_retype(t->params, next->graph));
    MIXT_TRY(mixt__executable_allocate(t->train));
    mixt__executable_bind(t->train, t->params, &t->control->seed);
    make_update(t);
    t->seen.scale = t->settings.scaling.enabled ? t->settings.scaling.initial : 1.0f;
    t->seen.seed = t->seen.scale / (float)t->settings.accumulate;
    return t->backend->upload(t->control, &t->seen, sizeof t->seen);
}

void mixt__trainer_free(mixt__trainer *t)
{
    mixt__prefetch_stop(t->prefetch);
    free_eval(t);
    mixt__executable_free(t->train);
    mixt__params_free(t->params);
    if (t->backend) {
        t->backend->free(t->control);
        t->backend->free(t->stats);
        t->backend->free(t->workspace);
    }
    mixt__free(t->backward_order);
    *t = (mixt__trainer){0};
}

static size_t batch_bytes(const mixt__batch_spec *spec)
{
    return (size_t)mixt__shape_count(&spec->input) * mixt_dtype_size(spec->input_dtype) +
           (size_t)mixt__shape_count(&spec->target) * mixt_dtype_size(spec->target_dtype);
}

mixt_memory mixt__trainer_memory(const mixt__trainer *t)
{
    mixt__params_bytes p = mixt__params_bytes_of(t->params);
    mixt_memory m = {.masters = p.masters, .copies = p.copies, .gradients = p.gradients, .moments = p.moments, .state = p.state};
    m.activations = t->train->plan.arena_bytes;
    m.workspace = t->train->workspace_bytes;
    m.control = sizeof *t->control + stats_bytes(t) + t->workspace_bytes;
    m.total = m.masters + m.copies + m.gradients + m.moments + m.state + m.activations + m.workspace + m.control;
    m.batches = batch_bytes(&t->spec) * PREFETCH_DEPTH; // filled by the loader, beside the plan
    m.allocated = t->allocated;
    return m;
}
