/* Chooses an engine for a described graph and runs it.
 *
 * cuDNN's heuristic proposes engine configurations, best first. Those with forbidden numerical notes are left out, the
 * first few of the rest are built (cudnn_search.h) and timed on scratch memory one after the other, and the winner is
 * kept as engine and knobs, which is all that is needed to build it again. Plans are immutable and shared by all of the
 * device's calls with the same graph; graphs that cuDNN refused are remembered too, so that the next layer does not ask
 * again.
 *
 * Engines that were timed for a batch serve batches near to it too: who looks for the largest batch that fits does not
 * time them for each.
 *
 * A rough plan is most often only counted: the first proposal is asked for its workspace and built when it first runs,
 * together with the others of its step.
 */
#include "backend/cuda/core/cudnn_search.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMED = 10,             // of those allowed
    TIMED_FEW = 4,          // of those that are compiled first
    TIMED_AT_LEAST = 3,     // however long they take
    NEAR = 8,               // batches that differ by an eighth share a choice
    TIMING_BYTES = 1 << 20, // smaller problems take the first proposal: timing would measure launches
};

/** Some engines are compiled when they are built, a second or more each, and some take long on a large batch: no search
 *  goes on beyond this. */
static const double SEARCH_SECONDS = 1.5;

struct mixt__cudnn_plan {
    mixt__cudnn_plan *next;
    mixt__cuda_device *gpu;
    bool rough;        // the first proposal, for want of time: see mixt__backend
    char refusal[400]; // cuDNN has no engine for it
    char key[MIXT_CUDNN_KEY], text[256];
    uint64_t kind; // of graphs that differ in the batch alone
    int64_t batch;
    mixt__cudnn_choice choice;
    cudnnBackendDescriptor_t plan, config;
    size_t workspace_bytes;
    double seconds;
    mixt__cudnn_search *late; // instead of plan and config: built when it runs, from the first on
    unsigned step;            // that it was made for
    int count, memory_count;  // tensors that a run names: those in memory, then those by value
    int64_t uids[MIXT_CUDNN_TENSORS];
    size_t bytes[MIXT_CUDNN_TENSORS];
    uint64_t values[MIXT_CUDNN_TENSORS];
};

/* ---- built late ---- */

/** The first of what waits, for all plans of one step: their building shares the cores. */
static void build_step(mixt__cuda_device *gpu, unsigned step)
{
    int count = 0;
    for (const mixt__cudnn_plan *p = gpu->cudnn.plans; p; p = p->next)
        count += p->late && p->step == step && !p->late->built;
    mixt__cudnn_search **list = mixt__alloc((size_t)count * sizeof *list);
    if (!list)
        return;
    count = 0;
    for (const mixt__cudnn_plan *p = gpu->cudnn.plans; p; p = p->next)
        if (p->late && p->step == step && !p->late->built)
            list[count++] = p->late;
    mixt__cudnn_search_build_first(gpu, list, count);
    mixt__free(list);
}

/** The plan of a late one: of its first proposal that can be built and keeps to what was counted. */
static mixt_status build_late(const mixt__cudnn_plan *p, cudnnBackendDescriptor_t *plan)
{
    mixt__cudnn_search *s = p->late;
    if (!s->built)
        build_step(p->gpu, p->step);
    for (int i = 0; i < s->allowed; i++) {
        if (i == s->built)
            mixt__cudnn_search_build(p->gpu, s, 1);
        *plan = s->list[i].plan;
        if (!s->list[i].status && s->list[i].workspace_bytes <= p->workspace_bytes)
            return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_DEVICE, "%s: cuDNN has no engine within %zu bytes", p->key, p->workspace_bytes);
}

static size_t limit_of(const mixt__cudnn_wish *wish)
{
    return wish->workspace_limit ? wish->workspace_limit : (size_t)1 << 30;
}

/** Takes the first proposal within the wish as it is. False: there is none, or cuDNN does not say what it needs. */
static bool postpone(mixt__cudnn_plan *p, const mixt__cudnn_wish *wish, mixt__cudnn_search *s)
{
    size_t bytes = 0;
    int i = 0;
    while (i < s->allowed &&
           (mixt__cudnn_config_workspace(s->list[i].config, &bytes) != CUDNN_STATUS_SUCCESS || bytes > limit_of(wish)))
        i++;
    if (s->built || i == s->allowed)
        return false;
    mixt__account *before = mixt__account_use(NULL); // plans are the device's, not the run's
    p->late = mixt__alloc(sizeof *p->late);
    mixt__account_use(before);
    if (!p->late)
        return false;
    mixt__cudnn_search_skip(s, i);
    *p->late = *s;
    memset(s, 0, sizeof *s);
    p->workspace_bytes = bytes;
    p->step = p->gpu->cudnn.steps;
    return true;
}

/* ---- running ---- */

mixt_status mixt__cudnn_run(const mixt__cudnn_plan *p, void *const *pointers, void *workspace)
{
    void *data[MIXT_CUDNN_TENSORS];
    for (int i = 0; i < p->count; i++)
        data[i] = i < p->memory_count ? pointers[i] : (void *)&p->values[i];
    cudnnBackendDescriptor_t pack = NULL, plan = p->plan;
    if (p->late)
        MIXT_TRY(build_late(p, &plan));
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
        status = cudnnBackendExecute(mixt__cudnn_handle(p->gpu), plan, pack);
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
    double seconds = t.workspace ? mixt__cuda_time(p->gpu, run_timed, &t) : -1;
    mixt__cuda_scratch_free(t.workspace);
    return seconds;
}

static size_t timing_bytes(const mixt__cudnn_plan *p)
{
    size_t total = 0;
    for (int i = 0; i < p->memory_count; i++)
        total += (p->bytes[i] + 255) / 256 * 256;
    return total;
}

/** How many plans are compared: with too little data timing does not matter. */
static int wanted_of(const mixt__cudnn_plan *p, const mixt__cudnn_wish *wish)
{
    return timing_bytes(p) < TIMING_BYTES ? 1 : wish->few ? TIMED_FEW : TIMED;
}

/** Scratch memory for all tensors, filled with small numbers; NULL: there is no room. */
static void *timing_memory(const mixt__cudnn_plan *p)
{
    void *memory = mixt__cuda_scratch(timing_bytes(p));
    if (memory && cudaMemsetAsync(memory, 0x3c, timing_bytes(p), p->gpu->stream) != cudaSuccess) {
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

/** Seconds that what was built takes, 0 where there is no memory to time it; negative: it does not work within the
 *  wish. */
static double try_built(mixt__cudnn_plan *p, const mixt__cudnn_built *b, const mixt__cudnn_wish *wish, void *memory)
{
    mixt__cudnn_plan trial = *p;
    describe(p, &b->choice);
    if (b->status) {
        MIXT_LOG(DISPATCH, "%s: %s: %s %s", p->key, p->text, cudnnGetErrorString(b->status), b->detail);
        (void)mixt__cudnn_check(b->status, p->key); // its words stand if there is nothing better to say
        return -1;
    }
    trial.plan = b->plan;
    trial.workspace_bytes = b->workspace_bytes;
    const char *reason = b->workspace_bytes > limit_of(wish) ? "too large a workspace" : NULL;
    double seconds = reason ? -1 : memory ? time_plan(&trial, memory) : 0;
    MIXT_LOG(DISPATCH, "%s: %s, notes %x: %s, %.1f MiB, %.4f ms", p->key, p->text, b->notes,
             reason        ? reason
             : seconds < 0 ? "did not run"
                           : "allowed",
             (double)b->workspace_bytes / 1048576, 1e3 * seconds);
    return seconds;
}

/** The best of a search that has begun, in its list; NULL when none works. */
static mixt__cudnn_built *best_of(mixt__cudnn_search *s, mixt__cudnn_plan *p, const mixt__cudnn_wish *wish)
{
    int wanted = p->rough ? 1 : wanted_of(p, wish), found = 0;
    void *memory = wanted > 1 ? timing_memory(p) : NULL;
    mixt__cudnn_built *best = NULL;
    double start = mixt__time_now();
    for (int i = 0; i < s->allowed && found < (memory ? wanted : 1); i++) {
        if (i == s->built && found >= TIMED_AT_LEAST && mixt__time_now() - start > SEARCH_SECONDS)
            break;
        if (i == s->built)
            mixt__cudnn_search_build(p->gpu, s, memory ? wanted - found : 1);
        mixt__cudnn_built *b = &s->list[i];
        b->choice.seconds = try_built(p, b, wish, memory);
        found += b->choice.seconds >= 0;
        if (b->choice.seconds >= 0 && (!best || b->choice.seconds < best->choice.seconds))
            best = b;
    }
    mixt__cuda_scratch_free(memory);
    return best;
}

/** Makes it the plan, with its configuration. */
static void adopt(mixt__cudnn_plan *p, mixt__cudnn_search *s, mixt__cudnn_built *b)
{
    for (int i = 0; i < MIXT_CUDNN_PROPOSALS; i++)
        if (s->configs[i] == b->config)
            s->configs[i] = NULL;
    p->config = b->config;
    p->plan = b->plan;
    p->workspace_bytes = b->workspace_bytes;
    p->choice = b->choice;
    p->seconds = b->choice.seconds;
    b->plan = NULL;
    describe(p, &b->choice);
}

/** The engine of an earlier choice. False: it is of another cuDNN, say, and is to be made anew. */
static bool recall(const mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p,
                   const mixt__cudnn_choice *kept, mixt__cudnn_search *s)
{
    if (!s->allowed) {
        if (mixt__cudnn_config_make(g, kept, &s->configs[0]))
            return false;
        s->list[0] = (mixt__cudnn_built){.config = s->configs[0], .choice = *kept};
        s->allowed = 1;
    }
    if (p->rough && postpone(p, wish, s))
        return true;
    if (!s->built)
        mixt__cudnn_search_build(p->gpu, s, 1);
    if (s->list[0].status)
        return false;
    adopt(p, s, &s->list[0]);
    return true;
}

/** Whether one of what is proposed serves; it is the plan then. */
static bool settle(mixt__cudnn_search *s, mixt__cudnn_plan *p, const mixt__cudnn_wish *wish)
{
    if (p->rough && postpone(p, wish, s))
        return true;
    mixt__cudnn_built *best = best_of(s, p, wish);
    if (!best)
        return false;
    adopt(p, s, best);
    MIXT_LOG(DISPATCH, "%s: chose %s, %.4f ms", p->key, p->text, 1e3 * p->seconds);
    return true;
}

/** @param g finished @param s begun where the graph was foreseen, else empty */
static mixt_status search(const mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p,
                          mixt__cudnn_search *s)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    bool found = s->allowed && settle(s, p, wish);
    for (int m = 0; !found && m < 2; m++) {
        mixt__cudnn_search_end(s);
        mixt__cudnn_search_begin(s, g, modes[m], wish);
        found = settle(s, p, wish);
    }
    return found ? MIXT_OK : mixt__fail_context(MIXT_ERROR_DEVICE, "%s: cuDNN has no engine for it", g->name);
}

/** An earlier choice for this graph, or for one whose batch is near. */
static bool find_kept(const mixt__cudnn_plan *p, mixt__cudnn_choice *kept)
{
    if (mixt__cuda_choice_get(p->gpu, p->key, kept, sizeof *kept))
        return true;
    for (const mixt__cudnn_plan *q = p->gpu->cudnn.plans; q && p->batch; q = q->next)
        if (q != p && q->plan && q->kind == p->kind && NEAR * llabs(q->batch - p->batch) <= p->batch) {
            *kept = q->choice;
            return true;
        }
    return false;
}

/** Keeps the choice; where another process was first, its engine becomes the plan. */
static void agree(const mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p, mixt__cudnn_search *s)
{
    mixt__cudnn_choice first = p->choice;
    cudnnBackendDescriptor_t plan = p->plan, config = p->config;
    if (mixt__cuda_choice_put(p->gpu, p->key, &first, sizeof first))
        return;
    mixt__cudnn_search_end(s);
    if (recall(g, wish, p, &first, s)) {
        mixt__cudnn_destroy(plan);
        mixt__cudnn_destroy(config);
    }
}

static mixt_status choose(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p,
                          mixt__cudnn_search *s)
{
    mixt__cudnn_choice kept, known;
    if (!g->graph)
        MIXT_TRY(mixt__cudnn_finish(g, mixt__cudnn_handle(p->gpu)));
    bool found = find_kept(p, &kept), recalled = found && recall(g, wish, p, &kept, s);
    if (recalled) {
        p->rough = p->late != NULL;
    } else {
        if (found)
            mixt__cudnn_search_end(s);
        MIXT_TRY(search(g, wish, p, s));
    }
    if (!p->rough && !(recalled && mixt__cuda_choice_get(p->gpu, p->key, &known, sizeof known)))
        agree(g, wish, p, s);
    return MIXT_OK;
}

/** The same, with what was built ahead. */
static mixt_status choose_now(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, mixt__cudnn_plan *p)
{
    mixt__cudnn_ahead *ahead = mixt__cudnn_ahead_take(p->gpu, p->key);
    mixt__cudnn_search empty = {0};
    bool usable = ahead && ahead->graph.graph && ahead->graph.status == MIXT_OK;
    mixt_status status = usable ? choose(&ahead->graph, wish, p, &ahead->search) : choose(g, wish, p, &empty);
    mixt__cudnn_search_end(&empty);
    mixt__cudnn_ahead_free(ahead);
    return status;
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

/** Puts it among those that are built ahead, unless it is there already. */
static mixt_status foresee(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, const mixt__cudnn_plan *p)
{
    mixt__cudnn_choice kept;
    bool known = find_kept(p, &kept);
    if (!mixt__cudnn_ahead_has(p->gpu, p->key))
        mixt__cudnn_ahead_add(p->key, g, wish, p->rough ? 0 : wanted_of(p, wish), known ? &kept : NULL);
    return mixt__fail(MIXT_ERROR_DEVICE, "not built yet");
}

void mixt__cudnn_foresee(mixt__cuda_device *gpu, bool on)
{
    gpu->cudnn.foreseeing = on;
    gpu->cudnn.steps += on;
    if (!on)
        mixt__cudnn_ahead_build(gpu);
}

void mixt__cudnn_drop(mixt__cuda_device *gpu)
{
    for (mixt__cudnn_plan *p = gpu->cudnn.plans, *next; p; p = next) {
        next = p->next;
        mixt__cudnn_destroy(p->plan);
        mixt__cudnn_destroy(p->config);
        if (p->late)
            mixt__cudnn_search_end(p->late);
        mixt__free(p->late);
        mixt__free(p);
    }
    gpu->cudnn.plans = NULL;
    for (mixt__cudnn_ahead *a = gpu->cudnn.waiting, *next; a; a = next) {
        next = a->next;
        mixt__cudnn_ahead_free(a);
    }
    gpu->cudnn.waiting = NULL;
}

mixt_status mixt__cudnn_choose(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, const mixt__cudnn_plan **plan)
{
    *plan = NULL;
    MIXT_TRY(g->status);
    mixt__cuda_cudnn *cudnn = &g->gpu->cudnn;
    mixt__cudnn_plan made = {.gpu = g->gpu, .rough = g->gpu->base.rough, .batch = g->batch}, *p = cudnn->plans;
    made.kind = g->kind + wish->strict_fp32 + 2u * wish->any_order;
    snprintf(made.key, sizeof made.key, "%.30s-%016llx%s%s", g->name, (unsigned long long)g->hash,
             wish->strict_fp32 ? "-fp32" : "", wish->any_order ? "-any" : "");
    while (p && (strcmp(p->key, made.key) || (p->rough && !made.rough))) // calls may still hold a rough one: it stays
        p = p->next;
    if (!p) {
        list_tensors(g, &made);
        if (cudnn->foreseeing)
            return foresee(g, wish, &made);
        p = mixt__alloc(sizeof *p);
        if (!p)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a plan of cuDNN");
        *p = made;
        p->next = cudnn->plans;
        cudnn->plans = p;
        if (choose_now(g, wish, p) != MIXT_OK)
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
