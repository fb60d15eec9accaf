/* Threads that build plans. Each has a handle of cuDNN's of its own on the device, since a handle serves one thread at
 * a time; a graph is finished by the handle of the thread that then asks for its engines. */
#include "backend/cuda/core/cudnn_search.h"

#include "base/alloc.h"
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_LEAST = 3, THREADS_MOST = MIXT_CUDNN_THREADS };

/* ---- what is allowed ---- */

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

void mixt__cudnn_search_begin(mixt__cudnn_search *s, const mixt__cudnn_graph *g, cudnnBackendHeurMode_t mode,
                              const mixt__cudnn_wish *wish)
{
    s->allowed = s->built = 0;
    int64_t count = mixt__cudnn_propose(g, mode, s->configs);
    for (int64_t i = 0; i < count; i++) {
        mixt__cudnn_built *b = &s->list[s->allowed];
        *b = (mixt__cudnn_built){.config = s->configs[i]};
        if (!s->configs[i] || mixt__cudnn_config_read(s->configs[i], &b->choice, &b->notes))
            continue;
        const char *reason = forbidden(b->notes, wish);
        if (reason)
            MIXT_LOG(DISPATCH, "%s: engine %d, notes %x: %s", g->name, b->choice.engine, b->notes, reason);
        else
            s->allowed++;
    }
}

void mixt__cudnn_search_end(mixt__cudnn_search *s)
{
    for (int i = 0; i < s->built; i++)
        mixt__cudnn_destroy(s->list[i].plan);
    mixt__cudnn_proposals_free(s->configs);
    memset(s->configs, 0, sizeof s->configs);
    s->allowed = s->built = 0;
}

/* ---- threads ---- */

/** Numbered work, taken by whoever is free. */
typedef struct work {
    mixt__cuda_device *gpu;
    void (*one)(void *items, int index, cudnnHandle_t handle);
    void *items;
    int count;
    atomic_int next;
} work;

typedef struct worker {
    work *work;
    cudnnHandle_t handle;
    pthread_t thread;
    bool running;
} worker;

static void *serve(void *argument)
{
    const worker *w = argument;
    mixt__cuda_enter(&w->work->gpu->base);
    for (int i; (i = atomic_fetch_add(&w->work->next, 1)) < w->work->count;)
        w->work->one(w->work->items, i, w->handle);
    return NULL;
}

static int thread_limit(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < THREADS_LEAST ? THREADS_LEAST : cores > THREADS_MOST ? THREADS_MOST : (int)cores;
}

/** The first thread has the handle of the stream; the others' stay for the next time. */
static cudnnHandle_t handle_of(mixt__cuda_device *gpu, int thread)
{
    cudnnHandle_t *handles = gpu->cudnn.handles;
    if (!thread)
        return mixt__cudnn_handle(gpu);
    if (!handles[thread] && cudnnCreate(&handles[thread]) != CUDNN_STATUS_SUCCESS)
        handles[thread] = NULL;
    return handles[thread];
}

/** All of it: by this thread, and others beside it where there are any to be had. */
static void share_out(work *w)
{
    worker workers[THREADS_MOST];
    int threads = thread_limit() < w->count ? thread_limit() : w->count;
    for (int i = threads - 1; i >= 0; i--) { // this thread works while the others do
        workers[i] = (worker){.work = w, .handle = handle_of(w->gpu, i)};
        if (i)
            workers[i].running = workers[i].handle && !pthread_create(&workers[i].thread, NULL, serve, &workers[i]);
        else
            serve(&workers[i]);
    }
    for (int i = 1; i < threads; i++)
        if (workers[i].running)
            pthread_join(workers[i].thread, NULL);
}

/* ---- one graph ---- */

static void build_one(void *items, int index, cudnnHandle_t handle)
{
    mixt__cudnn_build((mixt__cudnn_built *)items + index, handle);
}

void mixt__cudnn_search_build(mixt__cuda_device *gpu, mixt__cudnn_search *s, int count)
{
    int left = s->allowed - s->built, most = thread_limit();
    count = count < left ? count : left;
    work w = {.gpu = gpu, .one = build_one, .items = s->list + s->built, .count = count < most ? count : most};
    if (w.count > 0)
        share_out(&w);
    s->built += w.count > 0 ? w.count : 0;
}

static void build_first(void *items, int index, cudnnHandle_t handle)
{
    mixt__cudnn_search *s = ((mixt__cudnn_search *const *)items)[index];
    mixt__cudnn_build(&s->list[0], handle);
    s->built = 1;
}

void mixt__cudnn_search_build_first(mixt__cuda_device *gpu, mixt__cudnn_search **searches, int count)
{
    work w = {.gpu = gpu, .one = build_first, .items = searches, .count = count};
    if (count > 0)
        share_out(&w);
}

void mixt__cudnn_search_skip(mixt__cudnn_search *s, int first)
{
    s->allowed -= first;
    memmove(s->list, s->list + first, (size_t)s->allowed * sizeof s->list[0]);
}

/* ---- many graphs ---- */

void mixt__cudnn_ahead_add(const char *key, mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, int wanted,
                           const mixt__cudnn_choice *kept)
{
    mixt__cudnn_ahead *a = mixt__alloc(sizeof *a);
    if (!a)
        return;
    snprintf(a->key, sizeof a->key, "%s", key);
    a->graph = *g;
    memset(g, 0, sizeof *g);
    a->wish = *wish;
    a->wanted = wanted;
    a->is_kept = kept != NULL;
    if (kept)
        a->kept = *kept;
    mixt__cuda_cudnn *cudnn = &a->graph.gpu->cudnn;
    a->next = cudnn->waiting;
    cudnn->waiting = a;
}

/** What fails is found again, and told, by who asks for the graph. */
static void build_ahead(void *items, int index, cudnnHandle_t handle)
{
    mixt__cudnn_ahead *a = ((mixt__cudnn_ahead **)items)[index];
    mixt__cudnn_search *s = &a->search;
    if (mixt__cudnn_finish(&a->graph, handle) != MIXT_OK)
        return;
    if (!a->is_kept) {
        mixt__cudnn_search_begin(s, &a->graph, CUDNN_HEUR_MODE_A, &a->wish);
    } else if (!mixt__cudnn_config_make(&a->graph, &a->kept, &s->configs[0])) {
        s->list[0] = (mixt__cudnn_built){.config = s->configs[0], .choice = a->kept};
        s->allowed = 1;
    }
    for (; s->built < s->allowed && s->built < a->wanted; s->built++)
        mixt__cudnn_build(&s->list[s->built], handle);
}

void mixt__cudnn_ahead_build(mixt__cuda_device *gpu)
{
    int count = 0;
    for (mixt__cudnn_ahead *a = gpu->cudnn.waiting; a; a = a->next)
        count++;
    mixt__cudnn_ahead **list = count ? mixt__alloc((size_t)count * sizeof *list) : NULL;
    if (!list)
        return;
    work w = {.gpu = gpu, .one = build_ahead, .items = list};
    for (mixt__cudnn_ahead *a = gpu->cudnn.waiting; a; a = a->next)
        if (!a->graph.graph)
            list[w.count++] = a;
    if (w.count)
        share_out(&w);
    mixt__free(list);
}

mixt__cudnn_ahead *mixt__cudnn_ahead_take(mixt__cuda_device *gpu, const char *key)
{
    for (mixt__cudnn_ahead **at = &gpu->cudnn.waiting; *at; at = &(*at)->next)
        if (!strcmp((*at)->key, key)) {
            mixt__cudnn_ahead *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

bool mixt__cudnn_ahead_has(const mixt__cuda_device *gpu, const char *key)
{
    const mixt__cudnn_ahead *a = gpu->cudnn.waiting;
    while (a && strcmp(a->key, key))
        a = a->next;
    return a != NULL;
}

void mixt__cudnn_ahead_free(mixt__cudnn_ahead *a)
{
    if (!a)
        return;
    mixt__cudnn_search_end(&a->search);
    mixt__cudnn_end(&a->graph);
    mixt__free(a);
}
