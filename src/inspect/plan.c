/* What a compiled step is made of, read from its graph and its kernels. */
#include "mixt/plan.h"

#include "api/api.h"
#include "graph/op.h"
#include "train/dist/sharded.h"
#include "train/integrity.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

void mixt_memory_roles(const mixt_memory *m, mixt_memory_role roles[MIXT_MEMORY_ROLES])
{
    const mixt_memory_role table[MIXT_MEMORY_ROLES] = {
        {"parameters", "FP32 master weights", m->masters},
        {"copies", "low-precision working copies of weights", m->copies},
        {"gradients", "FP32 gradients", m->gradients},
        {"moments", "optimizer moments", m->moments},
        {"state", "running statistics, frozen parameters, a teacher's", m->state},
        {"activations", "values of the step, memory reused", m->activations},
        {"workspace", "scratch of the kernels", m->workspace},
        {"batches", "the batches of this step and the next", m->batches},
        {"control", "loss scale, gradient statistics", m->control},
        {"total", "what will be allocated, to the byte", m->total},
    };
    memcpy(roles, table, sizeof table);
}

/* ---- the step ---- */

const char *mixt_work_name(mixt_work work)
{
    static const char *const names[MIXT_WORK_COUNT] = {
        "products", "attention", "convolution", "recurrent", "norms", "pointwise", "loss", "other", "optimizer",
    };
    return (unsigned)work < MIXT_WORK_COUNT ? names[work] : "none";
}

/** The compiled step of a trainer. */
static mixt_status step_of(const mixt_trainer *t, const mixt__executable **step)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    *step = mixt__trainer_compiled(t->inner);
    return *step ? MIXT_OK
                 : mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: mixt_trainer_compile(trainer, data)");
}

mixt_status mixt_plan_frozen_in(const mixt_trainer *t, mixt_dtype format, mixt_plan_frozen *frozen)
{
    const mixt__executable *step;
    MIXT_TRY(mixt__need(frozen));
    *frozen = (mixt_plan_frozen){0};
    MIXT_TRY(step_of(t, &step));
    if ((unsigned)format >= MIXT_DTYPE_COUNT)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "there is no number format %d", (int)format);
    const mixt__params *p = mixt__trainer_params(t->inner);
    for (int32_t i = 0; i < p->count; i++)
        if (mixt__params_is_frozen(p, i) && p->frozen.home[i] == format) {
            frozen->parameters++;
            frozen->numbers += p->table[i].count;
        }
    frozen->scales = p->roles[MIXT_PARAM_FROZEN + (int)format].scale_count;
    frozen->bytes = p->roles[MIXT_PARAM_FROZEN + (int)format].bytes;
    return MIXT_OK;
}

static mixt_status node_of(const mixt_trainer *t, int64_t index, const mixt__executable **step, const mixt__node **node)
{
    *node = NULL;
    MIXT_TRY(step_of(t, step));
    int64_t count = (*step)->graph->node_count;
    if (index < 0 || index >= count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "node %lld: the step has %lld, from 0 on", (long long)index,
                          (long long)count);
    *node = &(*step)->graph->nodes[index];
    return MIXT_OK;
}

/** What ranks send before they compress, and in all: the last update sends everything that is left. */
static void describe_phases(const mixt__trainer *t, mixt_plan_info *info)
{
    int64_t updates = mixt__trainer_settings_of(t)->schedule.total_steps, after, whole, rest, last = 0;
    bool compressed = mixt__ranks_compress(t, &after) && info->ranks > 1;
    info->rank_whole = !compressed ? 0 : updates && updates < after ? updates : after;
    info->rank_whole_sent = info->rank_whole ? mixt__ranks_sent_plain(t) : 0;
    int64_t between = updates > info->rank_whole ? updates - info->rank_whole : 0;
    if (compressed && between) {
        last = mixt__ranks_sent_last(t);
        between--;
    }
    if (!__builtin_mul_overflow(info->rank_whole, info->rank_whole_sent, &whole) &&
        !__builtin_mul_overflow(between, info->rank_sent, &rest) && !__builtin_add_overflow(rest, last, &rest) &&
        !__builtin_add_overflow(whole, rest, &whole))
        info->rank_run_sent = updates ? whole : 0;
}

mixt_status mixt_plan_describe(const mixt_trainer *t, mixt_plan_info *info)
{
    const mixt__executable *step;
    mixt_gpu_info gpu;
    MIXT_TRY(mixt__need(info));
    MIXT_TRY(step_of(t, &step));
    mixt__device *device = step->device;
    *info = (mixt_plan_info){.device = device->backend->name, .nodes = step->graph->node_count, .device_name = ""};
    info->flops = mixt__executable_flops(step, false);
    info->matrix_flops = mixt__executable_flops(step, true);
    info->activations_unshared = step->plan.naive_bytes;
    info->recompute_budget = step->recompute.budget;
    info->recomputed = step->recompute.nodes;
    info->recompute_flops = step->recompute.flops;
    info->recompute_seconds = step->recompute.seconds;
    info->recompute_bound = step->recompute.lower;
    info->activations_kept_all = step->recompute.kept_all;
    bool alone = !mixt__ranks_joined(t->inner);
    info->ranks = alone ? 1 : mixt__trainer_settings_of(t->inner)->ranks;
    info->rank_sent = mixt__ranks_sent(t->inner);
    info->rank_gradients = alone ? 0 : info->rank_sent - mixt__ranks_sent_beside(t->inner);
    info->rank_weights = alone ? 0 : mixt__sharded_sent_weights(t->inner);
    describe_phases(t->inner, info);
    info->checks_state = mixt__integrity_bytes(t->inner) > 0;
    if (!device->backend->describe)
        return MIXT_OK;
    MIXT_TRY(mixt__device_describe(device, &gpu));
    info->device_name = gpu.name;
    info->device_bytes = gpu.memory_bytes;
    info->device_free = gpu.memory_free;
    size_t used = gpu.memory_bytes - gpu.memory_free, own = mixt__device_allocated(device);
    info->device_other = used > own ? used - own : 0;
    return MIXT_OK;
}

mixt_status mixt_plan_node_at(const mixt_trainer *t, int64_t index, mixt_plan_node *node)
{
    const mixt__executable *step;
    const mixt__node *n;
    MIXT_TRY(mixt__need(node));
    MIXT_TRY(node_of(t, index, &step, &n));
    *node = (mixt_plan_node){.layer = n->layer, .op = n->op->name, .backward = n->backward, .view = n->alias};
    node->recomputed = n->recomputed;
    node->kernel = n->alias ? "view" : step->choices[index].kernel->name;
    node->work = n->op->work;
    node->arithmetic = n->arithmetic;
    node->matrix = n->op->matrix_work;
    node->tensor_cores = node->matrix && !n->alias && step->calls[index].tensor_cores;
    node->flops = mixt__node_flops(step->graph, n);
    node->bytes = mixt__node_bytes(step->graph, n);
    node->inputs = n->in_count;
    node->outputs = n->out_count;
    node->refusals = step->choices[index].refused_count;
    node->rule = n->rule;
    return MIXT_OK;
}

static bool matches(const char *glob, const mixt__node *n)
{
    return !glob || !fnmatch(glob, n->layer, 0);
}

int64_t mixt_plan_next(const mixt_trainer *t, const char *layer, int64_t index)
{
    const mixt__executable *step;
    if (step_of(t, &step) != MIXT_OK)
        return -1;
    for (int64_t i = index > 0 ? index : 0; i < step->graph->node_count; i++)
        if (matches(layer, &step->graph->nodes[i]))
            return i;
    return -1;
}

/* ---- values and kernels of a node ---- */

static mixt_status read_value(const mixt_trainer *t, int64_t index, int position, bool output, mixt_plan_value *value)
{
    static const char *const roles[MIXT_ROLE_COUNT] = {
        [MIXT_ROLE_ACTIVATION] = "activation", [MIXT_ROLE_INPUT] = "input", [MIXT_ROLE_TARGET] = "target",
        [MIXT_ROLE_PARAM] = "parameter",       [MIXT_ROLE_SCALE] = "scale", [MIXT_ROLE_GRAD] = "gradient",
        [MIXT_ROLE_STATE] = "state",           [MIXT_ROLE_SEED] = "seed",   [MIXT_ROLE_CACHE] = "cache",
        [MIXT_ROLE_SIDE] = "statistics",
    };
    const mixt__executable *step;
    const mixt__node *n;
    MIXT_TRY(mixt__need(value));
    MIXT_TRY(node_of(t, index, &step, &n));
    int count = output ? n->out_count : n->in_count;
    if (position < 0 || position >= count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s %d of node %lld: it has %d, from 0 on", output ? "output" : "input",
                          position, (long long)index, count);
    const mixt__value *v = &step->graph->values[output ? n->out[position] : n->in[position]];
    *value = (mixt_plan_value){.name = v->name, .role = roles[v->role], .dtype = v->dtype, .rank = v->shape.rank};
    memcpy(value->dims, v->shape.dims, (size_t)v->shape.rank * sizeof value->dims[0]);
    return MIXT_OK;
}

mixt_status mixt_plan_input(const mixt_trainer *t, int64_t index, int position, mixt_plan_value *value)
{
    return read_value(t, index, position, false, value);
}

mixt_status mixt_plan_output(const mixt_trainer *t, int64_t index, int position, mixt_plan_value *value)
{
    return read_value(t, index, position, true, value);
}

mixt_status mixt_plan_refusal(const mixt_trainer *t, int64_t index, int position, const char **kernel,
                              const char **reason)
{
    const mixt__executable *step;
    const mixt__node *n;
    MIXT_TRY(mixt__need(kernel));
    MIXT_TRY(mixt__need(reason));
    MIXT_TRY(node_of(t, index, &step, &n));
    const mixt__choice *choice = &step->choices[index];
    if (position < 0 || position >= choice->refused_count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "refusal %d of node %lld: it has %d, from 0 on", position,
                          (long long)index, choice->refused_count);
    *kernel = choice->refused[position].kernel;
    *reason = choice->refused[position].reason;
    return MIXT_OK;
}

/* ---- text ---- */

mixt_status mixt_plan_explain(const mixt_trainer *t, int64_t index, char **text)
{
    const mixt__executable *step;
    const mixt__node *n;
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(node_of(t, index, &step, &n));
    return mixt__node_explain(step->graph, index, text);
}

/** Lines of the graph on their way to the caller. */
typedef struct lines {
    const mixt__graph *graph;
    const char *layer;
    void (*write)(void *user, int64_t index, const char *line);
    void *user;
    int64_t next;
} lines;

static void pass_on(void *argument, const char *line)
{
    lines *l = argument;
    int64_t index = l->next++;
    if (matches(l->layer, &l->graph->nodes[index]))
        l->write(l->user, index, line);
}

mixt_status mixt_plan_text(const mixt_trainer *t, const char *layer,
                           void (*write)(void *user, int64_t index, const char *line), void *user)
{
    const mixt__executable *step;
    if (!write)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_plan_text: write must not be NULL");
    MIXT_TRY(step_of(t, &step));
    lines l = {.graph = step->graph, .layer = layer, .write = write, .user = user};
    mixt__graph_print(step->graph, pass_on, &l);
    return MIXT_OK;
}
