/* Choosing candidates, laying out memory, running the list. */
#include "runtime/executable.h"

#include "base/log.h"
#include "base/threads.h"
#include "runtime/candidates.h"

#include <string.h>

static void refuse(mixt__choice *choice, const char *kernel, const char *reason)
{
    if (choice->refused_count < MIXT_MAX_REFUSALS) {
        choice->refused[choice->refused_count].kernel = kernel;
        choice->refused[choice->refused_count++].reason = reason;
    }
}

static mixt_status choose(mixt__device *device, const mixt__call *call, mixt__choice *choice)
{
    const mixt__kernel *const *list = device->backend->kernels(call->op);
    char buffer[64];
    const char *forced = mixt__candidate_forced(call->op->name, buffer, sizeof buffer);
    for (; list && *list; list++) {
        const char *reason = "does not support this call";
        if (forced && strcmp((*list)->name, forced))
            refuse(choice, (*list)->name, "MIXT_CANDIDATE forces another");
        else if ((*list)->supports && !(*list)->supports(call, &reason))
            refuse(choice, (*list)->name, reason);
        else {
            choice->kernel = *list;
            MIXT_LOG(DISPATCH, "%s (%s): %s", call->layer, call->op->name, choice->kernel->name);
            return MIXT_OK;
        }
    }
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "layer '%s': no kernel of %s can run %s%s%s", call->layer,
                      device->backend->name, call->op->name, choice->refused_count ? ": " : "",
                      choice->refused_count ? choice->refused[choice->refused_count - 1].reason : "");
}

static mixt__tensor describe(const mixt__graph *graph, int32_t id)
{
    const mixt__value *v = &graph->values[id];
    mixt__tensor t = {.dtype = v->dtype, .shape = v->shape, .contiguous = mixt__value_contiguous(v)};
    memcpy(t.strides, v->strides, sizeof t.strides);
    t.scale_kind = v->scales.kind;
    t.scale_block = v->scales.block;
    return t;
}

static mixt_status describe_call(mixt__executable *e, int64_t i)
{
    const mixt__node *n = &e->graph->nodes[i];
    mixt__call *call = &e->calls[i];
    *call = (mixt__call){
        .device = e->device, .op = n->op, .attrs = n->attrs, .layer = n->layer, .arithmetic = n->arithmetic};
    call->in_count = n->in_count;
    call->out_count = n->out_count;
    call->in = mixt__arena_alloc(&e->memory_of_calls, (size_t)(n->in_count + n->out_count + 1) * sizeof *call->in);
    if (!call->in)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan");
    call->out = call->in + n->in_count;
    for (int k = 0; k < n->in_count; k++)
        call->in[k] = describe(e->graph, n->in[k]);
    for (int o = 0; o < n->out_count; o++)
        call->out[o] = describe(e->graph, n->out[o]);
    return MIXT_OK;
}

static mixt_status prepare_call(mixt__executable *e, int64_t i)
{
    const mixt__node *n = &e->graph->nodes[i];
    mixt__call *call = &e->calls[i];
    if (n->alias)
        return MIXT_OK;
    MIXT_TRY(choose(e->device, call, &e->choices[i]));
    if (e->choices[i].kernel->prepare) {
        mixt_status status = e->choices[i].kernel->prepare(call, &e->memory_of_calls);
        if (status != MIXT_OK)
            return mixt__fail_context(status, "layer '%s': %s with kernel '%s'", n->layer, n->op->name,
                                      e->choices[i].kernel->name);
    }
    if (call->workspace_bytes > e->workspace_bytes)
        e->workspace_bytes = call->workspace_bytes;
    return MIXT_OK;
}

static mixt_status build(mixt__executable *e)
{
    size_t nodes = (size_t)e->graph->node_count + 1;
    e->calls = mixt__alloc(nodes * sizeof *e->calls);
    e->choices = mixt__alloc(nodes * sizeof *e->choices);
    if (!e->calls || !e->choices)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan");
    for (int64_t i = 0; i < e->graph->node_count; i++)
        MIXT_TRY(describe_call(e, i));
    if (e->device->backend->foresee)
        mixt__device_foresee(e->device, e->calls, e->graph->node_count);
    for (int64_t i = 0; i < e->graph->node_count; i++)
        MIXT_TRY(prepare_call(e, i));
    size_t align = MIXT_MEMORY_ALIGNMENT;
    e->workspace_bytes = (e->workspace_bytes + align - 1) / align * align;
    return mixt__memory_plan_make(e->graph, &e->plan);
}

mixt_status mixt__executable_take(mixt__graph *graph, mixt__device *device, mixt__executable **executable)
{
    mixt__executable *e = mixt__alloc(sizeof *e);
    *executable = e;
    if (!e) {
        mixt__graph_free(graph);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan");
    }
    e->graph = graph;
    e->device = device;
    mixt__device_enter(device);
    e->threads = mixt__threads_count();
    mixt_status status = build(e);
    if (status != MIXT_OK) {
        mixt__executable_free(e);
        *executable = NULL;
    }
    return status;
}

mixt_status mixt__executable_allocate(mixt__executable *e)
{
    e->arena = mixt__device_alloc(e->device, e->plan.arena_bytes);
    e->workspace = mixt__device_alloc(e->device, e->workspace_bytes);
    if (!e->arena || !e->workspace)
        return mixt__fail(MIXT_ERROR_MEMORY,
                          "no memory on %s for %zu bytes of activations and %zu of workspace: use a smaller batch",
                          e->device->backend->name, e->plan.arena_bytes, e->workspace_bytes);
    MIXT_LOG(MEMORY, "activations %zu bytes (%zu without reuse), workspace %zu", e->plan.arena_bytes,
             e->plan.naive_bytes, e->workspace_bytes);
    return MIXT_OK;
}

void mixt__executable_widen(mixt__executable *e, const mixt__executable *other)
{
    if (e->plan.arena_bytes < other->plan.arena_bytes)
        e->plan.arena_bytes = other->plan.arena_bytes;
    if (e->workspace_bytes < other->workspace_bytes)
        e->workspace_bytes = other->workspace_bytes;
}

void mixt__executable_share(mixt__executable *e, const mixt__executable *owner)
{
    e->borrowed = true;
    e->arena = owner->arena;
    e->workspace = owner->workspace;
}

void mixt__executable_release(mixt__executable *e)
{
    if (!e->borrowed) {
        mixt__device_free(e->device, e->arena);
        mixt__device_free(e->device, e->workspace);
    }
    e->arena = e->workspace = NULL;
}

void mixt__executable_free(mixt__executable *e)
{
    if (!e)
        return;
    for (int64_t i = 0; e->calls && e->choices && i < e->graph->node_count; i++)
        if (e->choices[i].kernel && e->choices[i].kernel->release)
            e->choices[i].kernel->release(&e->calls[i]);
    mixt__executable_release(e);
    mixt__memory_plan_free(&e->plan);
    mixt__arena_free(&e->memory_of_calls);
    mixt__free(e->calls);
    mixt__free(e->choices);
    mixt__free(e->seconds);
    mixt__graph_free(e->graph);
    mixt__free(e);
}

/** Address of the value that owns the memory. NULL for the batch and the loss's gradient: they change from run to
 * run. */
static char *owner_address(const mixt__executable *e, int32_t id, const mixt__params *params, int64_t node)
{
    const mixt__value *v = &e->graph->values[id];
    switch (v->role) {
    case MIXT_ROLE_ACTIVATION:
        return e->plan.offset[id] == SIZE_MAX ? NULL : e->arena + e->plan.offset[id];
    case MIXT_ROLE_SIDE:
        return e->side + e->plan.offset[id];
    case MIXT_ROLE_PARAM:
    case MIXT_ROLE_SCALE:
    case MIXT_ROLE_GRAD:
    case MIXT_ROLE_STATE:
        return mixt__params_address(params, v, node);
    default:
        return NULL;
    }
}

/** Distance of a value from the start of its owner's memory, in bytes. */
static size_t view_offset(const mixt__graph *graph, int32_t id)
{
    int64_t elements = 0;
    size_t size = mixt_dtype_size(graph->values[id].dtype);
    for (; graph->values[id].base; id = graph->values[id].base)
        elements += graph->values[id].offset;
    return (size_t)elements * size;
}

static void *address(const mixt__executable *e, int32_t id, const mixt__params *params, int64_t node)
{
    char *owner = owner_address(e, mixt__value_base(e->graph, id), params, node);
    return owner ? owner + view_offset(e->graph, id) : NULL;
}

void mixt__executable_bind(mixt__executable *e, const mixt__params *params, float *seed)
{
    e->seed = seed;
    for (int64_t i = 0; i < e->graph->node_count; i++) {
        const mixt__node *n = &e->graph->nodes[i];
        mixt__call *call = &e->calls[i];
        for (int k = 0; k < n->in_count; k++) {
            int32_t scales = e->graph->values[n->in[k]].scales.value;
            call->in[k].data = address(e, n->in[k], params, i);
            call->in[k].scales = scales ? address(e, scales, params, i) : NULL;
        }
        for (int o = 0; o < n->out_count; o++)
            call->out[o].data = address(e, n->out[o], params, i);
        call->workspace = e->workspace;
    }
}

void *mixt__executable_address(const mixt__executable *e, int32_t value)
{
    return address(e, value, NULL, 0);
}

/** Points the inputs that come from the batch, and the loss's gradient, at this run's memory. */
static void bind_batch(const mixt__executable *e, const mixt__node *n, mixt__call *call, const mixt__run *run)
{
    for (int k = 0; k < n->in_count; k++) {
        int32_t owner = mixt__value_base(e->graph, n->in[k]);
        mixt__role role = e->graph->values[owner].role;
        size_t place = e->graph->values[owner].place;
        const void *input = run->inputs ? run->inputs[owner] : (const char *)run->input + place;
        if (role == MIXT_ROLE_INPUT || role == MIXT_ROLE_CACHE)
            call->in[k].data = (char *)(uintptr_t)input + view_offset(e->graph, n->in[k]);
        else if (role == MIXT_ROLE_TARGET)
            call->in[k].data = (char *)(uintptr_t)run->target + place + view_offset(e->graph, n->in[k]);
        else if (role == MIXT_ROLE_SEED)
            call->in[k].data = (void *)(uintptr_t)(run->seed ? run->seed : e->seed);
    }
}

static uint32_t gradient_outputs(const mixt__graph *graph, const mixt__node *n)
{
    uint32_t mask = 0;
    for (int o = 0; o < n->out_count; o++)
        if (graph->values[n->out[o]].role == MIXT_ROLE_GRAD)
            mask |= 1u << o;
    return mask;
}

/** The time of each node is that between the mark behind it and the mark behind the node before. */
static mixt_status add_times(mixt__executable *e)
{
    int64_t last = 0;
    for (int64_t i = 0; i < e->graph->node_count; i++) {
        if (e->graph->nodes[i].alias)
            continue;
        double seconds;
        MIXT_TRY(mixt__device_between(e->device, last, i + 1, &seconds));
        e->seconds[i] += seconds;
        last = i + 1;
    }
    e->profiled_runs++;
    return MIXT_OK;
}

static mixt_status run_node(mixt__executable *e, const mixt__run *run, int64_t i)
{
    const mixt__node *n = &e->graph->nodes[i];
    mixt__call *call = &e->calls[i];
    if (n->alias)
        return MIXT_OK;
    bind_batch(e, n, call, run);
    call->accumulate = run->accumulate ? gradient_outputs(e->graph, n) : n->accumulates;
    call->rng_key = run->rng_key;
    mixt_status status = e->choices[i].kernel->run(call);
    return status == MIXT_OK ? MIXT_OK : mixt__fail_context(status, "layer '%s': %s", n->layer, n->op->name);
}

static mixt_status run_nodes(mixt__executable *e, const mixt__run *run)
{
    if (e->seconds)
        MIXT_TRY(mixt__device_mark(e->device, 0));
    for (int64_t i = 0; i < e->graph->node_count; i++) {
        MIXT_TRY(run_node(e, run, i));
        if (run->passed)
            run->passed(run->user, i);
        if (e->seconds && !e->graph->nodes[i].alias)
            MIXT_TRY(mixt__device_mark(e->device, i + 1));
    }
    return e->seconds ? add_times(e) : MIXT_OK;
}

mixt_status mixt__executable_run(mixt__executable *e, const mixt__run *run)
{
    mixt__device_enter(e->device);
    int before = mixt__threads_use(e->threads);
    mixt_status status = run_nodes(e, run);
    mixt__threads_use(before);
    return status;
}

mixt_status mixt__executable_run_node(mixt__executable *e, const mixt__run *run, int64_t node)
{
    mixt__device_enter(e->device);
    int before = mixt__threads_use(e->threads);
    mixt_status status = run_node(e, run, node);
    mixt__threads_use(before);
    return status;
}

mixt_status mixt__executable_profile(mixt__executable *e, bool on)
{
    mixt__free(e->seconds);
    e->profiled_runs = 0;
    e->seconds = on ? mixt__alloc((size_t)(e->graph->node_count + 1) * sizeof *e->seconds) : NULL;
    return on && !e->seconds ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the profile") : MIXT_OK;
}

double mixt__executable_flops(const mixt__executable *e, bool matrix_only)
{
    double total = 0;
    for (int64_t i = 0; i < e->graph->node_count; i++)
        if (!matrix_only || e->graph->nodes[i].op->matrix_work)
            total += mixt__node_flops(e->graph, &e->graph->nodes[i]);
    return total;
}
