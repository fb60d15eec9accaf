/* A ring of buffers between one filling thread and one taking thread.
 *
 * Three counters only ever grow: released <= taken <= filled <= released + depth. Slot n % depth belongs to the
 * filler while n >= filled, to the taker from taken to released. The mutex guards the counters, never the filling.
 */
#include "data/prefetch.h"

#include "data/data.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { ALIGN = 64, ERROR_SIZE = 2048, MAX_DEPTH = 1024 };

struct mixt__prefetch {
    const mixt_data *data;
    int64_t batch, first;
    mixt__prefetch_mode mode;
    int depth;
    mixt__batch *slots; // (depth)
    char *buffers;
    mixt__prefetch_memory memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t room, ready;
    int64_t filled, taken, released; // batches since the start
    bool stopping;
    mixt_status status; // why the thread ended; MIXT_OK while it works
    char error[ERROR_SIZE];
};

static mixt_status fill(mixt__prefetch *p, mixt__batch *slot)
{
    if (p->mode == MIXT_PREFETCH_TRAIN) {
        slot->samples = p->batch;
        return mixt_data_batch(p->data, p->batch, slot->number, slot->input, slot->target);
    }
    return mixt_data_read(p->data, slot->number * p->batch, p->batch, slot->input, slot->target, &slot->samples);
}

static void *work(void *argument)
{
    mixt__prefetch *p = argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stopping && p->filled - p->released == p->depth)
            pthread_cond_wait(&p->room, &p->lock);
        if (p->stopping)
            break;
        mixt__batch *slot = &p->slots[p->filled % p->depth];
        slot->number = p->first + p->filled;
        pthread_mutex_unlock(&p->lock);
        mixt_status status = fill(p, slot);
        pthread_mutex_lock(&p->lock);
        if (status != MIXT_OK) {
            p->status = status;
            size_t length = strnlen(mixt_error_text(), ERROR_SIZE - 1); // this thread's text dies with it
            memcpy(p->error, mixt_error_text(), length);
            p->error[length] = 0;
        } else {
            p->filled++;
        }
        pthread_cond_signal(&p->ready);
        if (status != MIXT_OK)
            break;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static mixt_status take_buffers(mixt__prefetch *p)
{
    const mixt_data_info *info = &p->data->info;
    int64_t input, target, total;
    if (__builtin_mul_overflow(info->input_elements, p->batch * 4, &input) ||
        __builtin_mul_overflow(info->target_elements, p->batch * 4, &target) || input > INT64_MAX / 8 ||
        target > INT64_MAX / 8 ||
        __builtin_mul_overflow((int64_t)(aligned((size_t)input) + aligned((size_t)target)), (int64_t)p->depth, &total))
        return mixt__fail(MIXT_ERROR_MEMORY, "a batch of %lld samples is too large", (long long)p->batch);
    p->slots = mixt__alloc((size_t)p->depth * sizeof *p->slots);
    p->buffers = p->memory.alloc((size_t)total);
    if (p->buffers)
        memset(p->buffers, 0, (size_t)total);
    if (!p->slots || !p->buffers)
        return mixt__fail(MIXT_ERROR_MEMORY,
                          "no memory for %d batches of %lld samples (%.1f MiB); lower the batch size", p->depth,
                          (long long)p->batch, (double)total / 1048576.0);
    char *at = p->buffers;
    for (int i = 0; i < p->depth; i++) {
        p->slots[i].input = at;
        p->slots[i].target = at + aligned((size_t)input);
        at += aligned((size_t)input) + aligned((size_t)target);
    }
    return MIXT_OK;
}

static void free_all(mixt__prefetch *p)
{
    mixt__free(p->slots);
    p->memory.free(p->buffers);
    mixt__free(p);
}

/** Creates the thread with all signals blocked: Ctrl-C is the main thread's business. */
static mixt_status start_thread(mixt__prefetch *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    pthread_cond_init(&p->ready, NULL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return MIXT_OK;
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    return mixt__fail(MIXT_ERROR_STATE, "the prefetch thread cannot be started: %s", strerror(error));
}

mixt_status mixt__prefetch_start(const mixt_data *data, int64_t batch, int depth, int64_t first,
                                 mixt__prefetch_mode mode, const mixt__prefetch_memory *memory,
                                 mixt__prefetch **prefetch)
{
    *prefetch = NULL;
    if (batch < 1 || batch > INT32_MAX || depth < 1 || depth > MAX_DEPTH || first < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "prefetch: batch %lld, depth %d, first batch %lld out of range",
                          (long long)batch, depth, (long long)first);
    if (mode == MIXT_PREFETCH_TRAIN && batch > data->info.samples)
        return mixt__fail(
            MIXT_ERROR_ARGUMENT, "%s:%s: a batch of %lld samples, but the %s part has %lld; lower the batch size",
            data->info.kind, data->path, (long long)batch, data->info.split, (long long)data->info.samples);
    mixt__prefetch *p = mixt__alloc(sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a prefetch ring");
    p->data = data;
    p->batch = batch;
    p->depth = depth;
    p->first = first;
    p->mode = mode;
    p->memory = memory ? *memory : (mixt__prefetch_memory){mixt__alloc, mixt__free};
    mixt_status status = take_buffers(p);
    if (status == MIXT_OK)
        status = start_thread(p);
    if (status != MIXT_OK) {
        free_all(p);
        return status;
    }
    *prefetch = p;
    return MIXT_OK;
}

mixt_status mixt__prefetch_take(mixt__prefetch *p, const mixt__batch **batch)
{
    *batch = NULL;
    pthread_mutex_lock(&p->lock);
    bool full = p->taken - p->released == p->depth; // the thread has nothing to fill: waiting would never end
    while (!full && p->taken == p->filled && p->status == MIXT_OK)
        pthread_cond_wait(&p->ready, &p->lock);
    mixt_status status = MIXT_OK;
    if (full)
        status = mixt__fail(MIXT_ERROR_STATE, "all %d buffers are taken: release one first", p->depth);
    else if (p->taken < p->filled)
        *batch = &p->slots[p->taken++ % p->depth];
    else
        status = p->status;
    pthread_mutex_unlock(&p->lock);
    if (status != MIXT_OK && !full)
        mixt__error_set(p->error);
    return status;
}

void mixt__prefetch_release(mixt__prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    if (p->released < p->taken)
        p->released++;
    pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->lock);
}

void mixt__prefetch_stop(mixt__prefetch *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    free_all(p);
}
