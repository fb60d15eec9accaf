/* Chooses an engine for a described graph and runs it.
 *
 * cuDNN's heuristic proposes engine configurations, best first. Those with forbidden numerical notes are left out, the
 * first few of the rest are built (side by side: many are compiled only then) and timed on scratch memory one after the
 * other, and the winner is kept as engine and knobs, which is all that is needed to build it again. Plans are immutable
 * and shared by all calls with the same graph; graphs that cuDNN refused are remembered too, so that the next layer
 * does not ask again.
 */
#include "backend/cuda/core/cudnn_engine.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

enum {
    TIMED = MIXT_CUDNN_TOGETHER, // of those allowed
    TIMED_AT_LEAST = 3,          // however long they take
    TIMING_BYTES = 1 << 20,      // smaller problems take the first proposal: timing would measure launches
};

/** Some engines are compiled when they are built, a second or more each: no search goes on beyond this. */
static const double SEARCH_SECONDS = 2.5;

struct mixt__cudnn_plan {
    mixt__cudnn_plan *next;
    bool rough;        // the first proposal, for want of time: see mixt__backend
    char refusal[400]; // cuDNN has no engine for it
    char key[64], text[256];
    cudnnBackendDescriptor_t plan, config;
    size_t workspace_bytes;
    double seconds;
    int count, memory_count; // tensors that a run names: those in memory, then those by value
    int64_t uids[MIXT_CUDNN_TENSORS];
    size_t bytes[MIXT_CUDNN_TENSORS];
    uint64_t values[MIXT_CUDNN_TENSORS];
};

static mixt__cudnn_plan *plans;

#define CHECK(call, what) MIXT_TRY(mixt__cudnn_check((call), (what)))

/* ---- the graph ---- */

static mixt_status finish_graph(mixt__cudnn_graph *g)
{
    MIXT_TRY(g->status);
    cudnnHandle_t handle = mixt__cudnn_handle();
    CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph), "making a graph");
    CHECK(cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle),
          "making a graph");
    CHECK(cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->op_count,
                                   g->ops),
          "making a graph");
    return mixt__cudnn_check(cudnnBackendFinalize(g->graph), "making a graph");
}

/* ---- plans ---- */

/** Why an engine with these notes is not taken; NULL: it may be. */
static const char *forbidden(unsigned notes, const mixt__cudnn_wish *wish)
{
    if (!wish->any_order && notes & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
        return "not deterministic";
    if (notes & (1u << CUDNN_NUMERICAL_NOTE_WINOGRAD | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
                 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 |
                 1u << CUDNN_NUMERICAL_NOTE_FFT))
        return "not a direct sum";
    if (wish->strict_fp32 &&
        notes & (1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))
        return "less than FP32";
    return NULL;
}

mixt_status mixt__cudnn_run(const mixt__cudnn_plan *p, void *const *pointers, void *workspace)
{
    void *data[MIXT_CUDNN_TENSORS];
    for (int i = 0; i < p->count; i++)
        data[i] = i < p->memory_count ? pointers[i] : (void *)&p->values[i];
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (!status)
        status =
            cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p->count, p->uids);
    if (!status)
        status =
            cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p->count, data);
    if (!status)
        status = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!status)
        status = cudnnBackendFinalize(pack);
    if (!status)
        status = cudnnBackendExecute(mixt__cudnn_handle(), p->plan, pack);
    mixt__cudnn_destroy(pack);
    return mixt__cudnn_check(status, p->key);
}

typedef struct timed_run {
    const mixt__cudnn_plan *plan;
    void *const *pointers;
    void *workspace;
} timed_run;

static mixt_status run_timed(void *argument)
{
    timed_run *t = argument;
    return mixt__cudnn_run(t->plan, t->pointers, t->workspace);
}

/** Seconds that the plan takes on scratch memory; negative: it could not be timed. */
static double time_plan(const mixt__cudnn_plan *p, char *memory)
{
    void *pointers[MIXT_CUDNN_TENSORS];
    timed_run t = {p, pointers, mixt__cuda_scratch(p->workspace_bytes)};
    for (int i = 0; i < p->memory_count; i++) {
        pointers[i] = memory;
        memory += (p->bytes[i] + 255) / 256 * 256;
    }
    double seconds = t.workspace ? mixt__cuda_time(run_timed, &t) : -1;
    mixt__cuda_scratch_free(t.workspace);
    return seconds;
}

/** Scratch memory for all tensors, filled with small numbers; NULL: too little data for timing to matter, or no room.
 */
static void *timing_memory(const mixt__cudnn_plan *p)
{
    size_t total = 0;
    for (int i = 0; i < p->memory_count; i++)
        total += (p->bytes[i] + 255) / 256 * 256;
    if (total < TIMING_BYTES)
        return NULL;
    void *memory = mixt__cuda_scratch(total);
    if (memory && cudaMemsetAsync(memory, 0x3c, total, mixt__cuda.stream) != cudaSuccess) {
        mixt__cuda_scratch_free(memory);
        return NULL;
    }
    return memory;
}

static void describe(mixt__cudnn_plan *p, const mixt__cudnn_choice *c)
{
    int at = snprintf(p->text, sizeof p->text, "engine %d", c->engine);
    for (int64_t i = 0; i < c->knob_count && at < (int)sizeof p->text; i++)
        at += snprintf(p->text + at, sizeof p->text - (size_t)at, " k%d=%d", c->knobs[i][0], c->knobs[i][1]);
}

/** Puts the graph's plan in this one's place. */
static void take_plan(mixt__cudnn_plan *p, mixt__cudnn_built *built)
{
    mixt__cudnn_destroy(p->plan);
    p->plan = built->plan;
    built->plan = NULL;
    p->workspace_bytes = built->workspace_bytes;
}

/** Whether what was built works within the wish; timed if there is memory for that. */
static bool try_built(mixt__cudnn_plan *p, mixt__cudnn_built *b, const mixt__cudnn_wish *wish, void *memory)
{
    size_t limit = wish->workspace_limit ? wish->workspace_limit : (size_t)1 << 30;
    describe(p, &b->choice);
    if (b->status) {
        MIXT_LOG(DISPATCH, "%s: %s: %s %s", p->key, p->text, cudnnGetErrorString(b->status), b->detail);
        mixt__cudnn_destroy(b->plan);
        return mixt__cudnn_check(b->status, p->key) == MIXT_OK;
    }
    take_plan(p, b);
    const char *reason = p->workspace_bytes > limit ? "too large a workspace" : NULL;
    b->choice.seconds = !reason && memory ? time_plan(p, memory) : 0;
    if (b->choice.seconds < 0)
        reason = "did not run";
    MIXT_LOG(DISPATCH, "%s: %s, notes %x: %s, %.1f MiB, %.4f ms", p->key, p->text, b->notes,
             reason ? reason : "allowed", (double)p->workspace_bytes / 1048576, 1e3 * b->choice.seconds);
    return !reason;
}

/** Those of the proposals whose notes allow them, in their order. */
static int list_allowed(mixt__cudnn_plan *p, const cudnnBackendDescriptor_t *configs, int64_t count,
                        const mixt__cudnn_wish *wish, mixt__cudnn_built *list)
{
    int allowed = 0;
    for (int64_t i = 0; i < count; i++) {
        mixt__cudnn_built *b = &list[allowed];
        *b = (mixt__cudnn_built){.config = configs[i]};
        if (!configs[i] || mixt__cudnn_config_read(configs[i], &b->choice, &b->notes))
            continue;
        const char *reason = forbidden(b->notes, wish);
        describe(p, &b->choice);
        if (reason)
            MIXT_LOG(DISPATCH, "%s: %s, notes %x: %s", p->key, p->text, b->notes, reason);
        else
            allowed++;
    }
    return allowed;
}

/** The best of one mode's proposals in *best; false when none is allowed. */
static bool best_of(const mixt__cudnn_graph *g, mixt__cudnn_plan *p, cudnnBackendHeurMode_t mode,
                    const mixt__cudnn_wish *wish, mixt__cudnn_choice *best)
{
    cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS];
    mixt__cudnn_built list[MIXT_CUDNN_PROPOSALS];
    int64_t count = mixt__cudnn_propose(g, mode, configs);
    int allowed = list_allowed(p, configs, count, wish, list), found = 0, built = 0;
    void *memory = p->rough ? NULL : timing_memory(p);
    int wanted = memory ? TIMED : 1;
    double start = mixt__time_now();
    for (int i = 0; i < allowed && found < wanted; i++) {
        if (i == built && found >= TIMED_AT_LEAST && mixt__time_now() - start > SEARCH_SECONDS)
            break;
        if (i == built)
            built += mixt__cudnn_build(list + i, allowed - i < wanted - found ? allowed - i : wanted - found);
        if (try_built(p, &list[i], wish, memory) && (!found++ || list[i].choice.seconds < best->seconds))
            *best = list[i].choice;
    }
    mixt__cuda_scratch_free(memory);
    mixt__cudnn_proposals_free(configs);
    return found > 0;
}

static mixt_status adopt(const mixt__cudnn_graph *g, mixt__cudnn_plan *p, const mixt__cudnn_choice *c)
{
    mixt__cudnn_built built = {0};
    mixt__cudnn_destroy(p->config);
    p->config = NULL;
    CHECK(mixt__cudnn_config_make(g, c, &p->config), p->key);
    built.config = p->config;
    mixt__cudnn_build(&built, 1);
    take_plan(p, &built);
    CHECK(built.status, p->key);
    p->seconds = c->seconds;
    describe(p, c);
    return MIXT_OK;
}

static mixt_status choose(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p)
{
    mixt__cudnn_choice c = {0};
    MIXT_TRY(finish_graph(g));
    if (mixt__cuda_choice_get(p->key, &c, sizeof c) && adopt(g, p, &c) == MIXT_OK) {
        p->rough = false;
        return MIXT_OK; // otherwise it is of another cuDNN, say, and is made anew
    }
    if (!best_of(g, p, CUDNN_HEUR_MODE_A, wish, &c) && !best_of(g, p, CUDNN_HEUR_MODE_FALLBACK, wish, &c))
        return mixt__fail_context(MIXT_ERROR_DEVICE, "%s: cuDNN has no engine for it", g->name);
    MIXT_TRY(adopt(g, p, &c));
    MIXT_LOG(DISPATCH, "%s: chose %s, %.4f ms", p->key, p->text, 1e3 * c.seconds);
    if (!p->rough)
        mixt__cuda_choice_put(p->key, &c, sizeof c);
    return MIXT_OK;
}

/** What a run must name. */
static void list_tensors(const mixt__cudnn_graph *g, mixt__cudnn_plan *p)
{
    for (int value = 0; value < 2; value++) {
        for (int t = 1; t <= g->tensor_count; t++)
            if (value ? g->by_value[t] : g->bytes[t] > 0) {
                p->uids[p->count] = t;
                p->bytes[p->count] = g->bytes[t];
                p->values[p->count++] = g->value[t];
            }
        if (!value)
            p->memory_count = p->count;
    }
}

mixt_status mixt__cudnn_choose(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, const mixt__cudnn_plan **plan)
{
    *plan = NULL;
    MIXT_TRY(g->status);
    char key[64];
    snprintf(key, sizeof key, "%.30s-%016llx%s%s", g->name, (unsigned long long)g->hash,
             wish->strict_fp32 ? "-fp32" : "", wish->any_order ? "-any" : "");
    mixt__cudnn_plan *p = plans;
    while (p && (strcmp(p->key, key) || (p->rough && !mixt__cuda.rough))) // calls may still hold a rough one: it stays
        p = p->next;
    if (!p) {
        p = mixt__alloc(sizeof *p);
        if (!p)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a plan of cuDNN");
        memcpy(p->key, key, sizeof key);
        p->rough = mixt__cuda.rough;
        list_tensors(g, p);
        p->next = plans;
        plans = p;
        if (choose(g, wish, p) != MIXT_OK)
            snprintf(p->refusal, sizeof p->refusal, "%s", mixt_error_text());
    }
    if (*p->refusal)
        return mixt__fail(MIXT_ERROR_DEVICE, "%s", p->refusal);
    *plan = p;
    return MIXT_OK;
}

size_t mixt__cudnn_workspace(const mixt__cudnn_plan *plan)
{
    return plan->workspace_bytes;
}

double mixt__cudnn_seconds(const mixt__cudnn_plan *plan)
{
    return plan->seconds;
}
