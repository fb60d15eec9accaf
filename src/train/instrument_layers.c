/* Steps whose layers are looked into: their memory, and what they bring to the host. */
#include "train/instrument.h"

#include "graph/op.h"
#include "ops/ops.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <string.h>

/* A slot of host memory holds a copy of the device's statistics, then those of the parameters' gradients. */

/* ---- memory ---- */

void mixt__trainer_want_layers(mixt__trainer *t, bool wanted)
{
    t->layers.wanted = wanted;
}

bool mixt__trainer_layers_wanted(const mixt__trainer *t)
{
    return t->layers.wanted;
}

int64_t mixt__trainer_layers_count(const mixt__trainer *t)
{
    return t->layers.values;
}

bool mixt__trainer_layers_ready(const mixt__trainer *t)
{
    return t->layers.running;
}

/** Workspace for the statistics of `count` numbers. */
static mixt_status workspace_of(const mixt__trainer *t, int64_t count, size_t *bytes)
{
    const mixt__kernel *kernel = t->device->backend->kernels(&mixt__op_tensor_stats)[0];
    const mixt__tensor_stats_attrs attrs = {.tag = 0};
    mixt__arena arena = {0};
    mixt__tensor in = {.dtype = MIXT_DTYPE_FP32, .shape = {1, {count}}, .strides = {1}, .contiguous = true};
    mixt__call call = {.op = &mixt__op_tensor_stats, .attrs = &attrs, .in = &in, .in_count = 1};
    mixt_status status = kernel->prepare(&call, &arena);
    *bytes = (call.workspace_bytes + MIXT_MEMORY_ALIGNMENT - 1) / MIXT_MEMORY_ALIGNMENT * MIXT_MEMORY_ALIGNMENT;
    mixt__arena_free(&arena);
    return status;
}

mixt_status mixt__trainer_plan_layers(mixt__trainer *t)
{
    int64_t largest;
    size_t workspace;
    t->layers.values = 0;
    if (!t->layers.wanted)
        return MIXT_OK;
    MIXT_TRY(mixt__instrument_count_layers(t->train->graph, &t->layers.values, &largest));
    MIXT_TRY(workspace_of(t, largest, &workspace));
    if (t->layers.values && t->train->workspace_bytes < workspace)
        t->train->workspace_bytes = workspace;
    return MIXT_OK;
}

static size_t aligned(size_t bytes)
{
    return (bytes + MIXT_MEMORY_ALIGNMENT - 1) / MIXT_MEMORY_ALIGNMENT * MIXT_MEMORY_ALIGNMENT;
}

size_t mixt__trainer_layer_bytes(const mixt__trainer *t)
{
    size_t value = aligned(MIXT_STATS_NUMBERS * sizeof(double)) + aligned(MIXT_STATS_COUNTS * sizeof(int64_t));
    return (size_t)t->layers.values * value;
}

static size_t slot_bytes(const mixt__trainer *t)
{
    return mixt__trainer_layer_bytes(t) + (size_t)t->params->segment_count * sizeof(mixt__segment_stats);
}

size_t mixt__trainer_layer_slots_bytes(const mixt__trainer *t)
{
    return t->layers.values ? MIXT_STAGE_SLOTS * slot_bytes(t) : 0;
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of layers");
}

mixt_status mixt__trainer_take_layers(mixt__trainer *t)
{
    if (t->layers.values)
        t->layers.device = mixt__device_alloc(t->device, mixt__trainer_layer_bytes(t));
    return t->layers.values && !t->layers.device ? no_memory() : MIXT_OK;
}

mixt_status mixt__trainer_take_layer_slots(mixt__trainer *t)
{
    for (int i = 0; t->layers.values && i < MIXT_STAGE_SLOTS; i++) {
        t->layers.step[i] = 0;
        t->layers.host[i] = mixt__device_alloc_host(t->device, slot_bytes(t));
        if (!t->layers.host[i])
            return no_memory();
    }
    return MIXT_OK;
}

void mixt__trainer_release_layers(mixt__trainer *t)
{
    mixt__device_free(t->device, t->layers.device);
    t->layers.device = NULL;
    mixt__trainer_release_layer_slots(t);
}

void mixt__trainer_release_layer_slots(mixt__trainer *t)
{
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        mixt__device_free_host(t->device, t->layers.host[i]);
        t->layers.host[i] = NULL;
        t->layers.step[i] = 0;
    }
}

/* ---- to the host, without a wait ---- */

void mixt__trainer_mark_instrumented(mixt__trainer *t)
{
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) // a trainer that went back makes the same step again
        t->layers.step[i] = t->layers.step[i] == t->attempts ? 0 : t->layers.step[i];
    t->layers.step[t->feed.turn % MIXT_STAGE_SLOTS] = t->instrumenting && t->layers.running ? t->attempts : 0;
}

mixt_status mixt__trainer_keep_instrumented(mixt__trainer *t)
{
    char *slot = t->layers.host[t->feed.turn % MIXT_STAGE_SLOTS];
    size_t bytes = mixt__trainer_layer_bytes(t);
    if (!t->layers.running)
        return MIXT_OK;
    if (mixt__ranks_parts(t) == 1) // else they are there: see mixt__trainer_add_instrumented
        MIXT_TRY(mixt__device_copy(t->device, slot, t->layers.device, bytes));
    return mixt__device_copy(t->device, slot + bytes, t->stats, (size_t)t->params->segment_count * sizeof *t->stats);
}

/* ---- of several ranks ---- */

/** Adds statistics of the same values in other passes. */
static void add_statistics(const mixt__trainer *t, char *sum, const char *more)
{
    const mixt__graph *g = t->instrumented->graph;
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        if (n->op != &mixt__op_tensor_stats)
            continue;
        size_t numbers = t->instrumented->plan.offset[n->out[0]], counts = t->instrumented->plan.offset[n->out[1]];
        double *a = (double *)(void *)(sum + numbers);
        const double *b = (const double *)(const void *)(more + numbers);
        a[MIXT_STATS_SUM] += b[MIXT_STATS_SUM];
        a[MIXT_STATS_SQUARES] += b[MIXT_STATS_SQUARES];
        a[MIXT_STATS_MIN] = fmin(a[MIXT_STATS_MIN], b[MIXT_STATS_MIN]);
        a[MIXT_STATS_MAX] = fmax(a[MIXT_STATS_MAX], b[MIXT_STATS_MAX]);
        a[MIXT_STATS_AMAX] = fmax(a[MIXT_STATS_AMAX], b[MIXT_STATS_AMAX]);
        for (int k = 0; k < MIXT_STATS_COUNTS; k++)
            ((int64_t *)(void *)(sum + counts))[k] += ((const int64_t *)(const void *)(more + counts))[k];
    }
}

mixt_status mixt__trainer_add_instrumented(mixt__trainer *t, int64_t part)
{
    char *slot = t->layers.host[t->feed.turn % MIXT_STAGE_SLOTS];
    size_t bytes = mixt__trainer_layer_bytes(t);
    if (!t->instrumenting || !t->layers.running || mixt__ranks_parts(t) == 1)
        return MIXT_OK;
    if (!part)
        return mixt__device_download(t->device, slot, t->layers.device, bytes);
    char *more = mixt__alloc_uninit(bytes);
    mixt_status status = more ? mixt__device_download(t->device, more, t->layers.device, bytes) : no_memory();
    if (status == MIXT_OK)
        add_statistics(t, slot, more);
    mixt__free(more);
    return status;
}

/** Statistics of all ranks, one behind the other, in their order. */
static mixt_status gather_instrumented(mixt__trainer *t, char *slot, size_t bytes)
{
    mixt__group *g = t->ranks.group;
    char *all = mixt__alloc_uninit(bytes * (size_t)g->size);
    mixt_status status = mixt__group_agree(g, all ? MIXT_OK : no_memory());
    if (status == MIXT_OK)
        status = mixt__group_gather(g, slot, bytes, all, 1);
    for (int rank = 0; status == MIXT_OK && rank < g->size; rank++)
        if (rank)
            add_statistics(t, slot, all + (size_t)rank * bytes);
        else
            memcpy(slot, all, bytes);
    mixt__free(all);
    return status;
}

mixt_status mixt__trainer_join_instrumented(mixt__trainer *t, int64_t step, bool *instrumented)
{
    mixt__group *g = t->ranks.group;
    char *slot = NULL;
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++)
        slot = t->layers.running && t->layers.step[i] == step ? t->layers.host[i] : slot;
    int64_t bytes = slot ? (int64_t)mixt__trainer_layer_bytes(t) : 0, *all = (int64_t *)(void *)g->words;
    bool same = true;
    MIXT_TRY(mixt__group_gather(g, &bytes, sizeof bytes, all, 1));
    *instrumented = true;
    for (int rank = 0; rank < g->size; rank++) {
        *instrumented = *instrumented && all[rank];
        same = same && all[rank] == bytes; // else a test lets something happen to one rank's step alone
    }
    return *instrumented && same ? gather_instrumented(t, slot, (size_t)bytes) : MIXT_OK;
}

/* ---- what they were ---- */

/** The slot that holds a step's statistics; NULL: none does. */
static const char *slot_of(const mixt__trainer *t, int64_t step)
{
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++)
        if (t->layers.running && step > 0 && t->layers.step[i] == step)
            return t->layers.host[i];
    return NULL;
}

bool mixt__trainer_was_instrumented(const mixt__trainer *t, int64_t step)
{
    return slot_of(t, step) != NULL;
}

mixt_status mixt__trainer_instrumented_result(const mixt__trainer *t, int64_t step, int64_t index,
                                              mixt__instrumented_value *value, const int64_t **counts)
{
    const char *slot = slot_of(t, step);
    const mixt__node *n;
    if (!slot)
        return mixt__fail(MIXT_ERROR_STATE, "step %lld was not instrumented", (long long)step);
    MIXT_TRY(mixt__trainer_instrumented_describe(t, index, &n, value));
    const size_t *offset = t->instrumented->plan.offset;
    *counts = (const int64_t *)(const void *)(slot + offset[n->out[1]]);
    memcpy(value->numbers, slot + offset[n->out[0]], sizeof value->numbers);
    memcpy(value->counts, *counts, sizeof value->counts);
    return MIXT_OK;
}

const mixt__segment_stats *mixt__trainer_instrumented_gradients(const mixt__trainer *t, int64_t step)
{
    const char *slot = slot_of(t, step);
    return slot ? (const mixt__segment_stats *)(const void *)(slot + mixt__trainer_layer_bytes(t)) : NULL;
}
