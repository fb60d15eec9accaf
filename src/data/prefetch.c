/* A ring of buffers between the threads that fill it and one thread that takes.
 *
 * Three counters only ever grow: released <= taken <= filled <= released + depth. Slot n % depth belongs to the
 * fillers while n >= filled, to the taker from taken to released. Fillers claim pieces of a batch in order, so that
 * several share one batch and a batch never waits for one that was begun later; `filled` moves past a batch when all
 * its pieces are there. The mutex guards the counters, never the filling.
 *
 * One thread works at first, the others sleep. While the taker finds nothing ready, more wake, one at a time: a loader
 * that keeps up stays alone, and decoding of large images spreads out. All are made at the start, so that a training
 * step takes no memory.
 *
 * The child of a fork has the ring but not its threads, and one of them may have held the mutex: there it is only
 * freed.
 */
#include "data/prefetch.h"

#include "base/block.h"
#include "base/threads.h"
#include "data/buckets.h"
#include "num/num.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    ALIGN = 64,
    ERROR_SIZE = 2048,
    MAX_DEPTH = 1024,
    MAX_WOKEN = 64, // where no number is given
    PIECES = 32,    // of a batch, at most
    PATIENCE = 3,   // takes in a row that had to wait before another thread wakes
};

/** What the fillers know of a slot beyond its batch. */
typedef struct progress {
    int64_t claimed, done; // samples
    int64_t bad;           // sample of the failure below
    mixt_status status;
    char error[ERROR_SIZE];
} progress;

struct mixt__prefetch {
    const mixt_data *data;
    int64_t batch, first;
    int depth;
    mixt__batch *slots; // (depth)
    progress *progress; // (depth)
    char *buffers;
    mixt__prefetch_form form;
    bool rounds;          // some input is rounded
    float *samples;       // (thread_count) one each, before it is rounded
    pthread_t *threads;   // (thread_count)
    mixt__team_hold team; // of who started them
    int thread_count;
    pid_t process;      // that has the threads
    int started, awake; // threads that have an index, and indices that may work
    pthread_mutex_t lock;
    pthread_cond_t room, ready;
    int64_t begun, filled, taken, released; // batches since the start; begun: those that fillers have claimed from
    int waits;                              // takes in a row that had to wait
    bool stopping, ended;                   // ended: nothing is claimed any more, a batch failed
};

/** The batch of the data that a batch of the ring is, or is a part of. */
static mixt__data_which which_of(const mixt__prefetch *p, int64_t number)
{
    int64_t parts = p->form.parts, group = p->form.of / parts;
    return (mixt__data_which){p->batch * parts, group ? group : 1, number / parts};
}

/** What samples of a slot look like. */
static const mixt_data_info *info_of(const mixt__prefetch *p, const mixt__batch *slot)
{
    bool whole = p->form.whole || !mixt__data_bucket_count(p->data);
    return whole ? &p->data->info : &mixt__data_bucket_at(p->data, slot->bucket)->info;
}

/** Samples [first, first + count) of a slot's batch, which is one of the parts of the data's. */
static mixt_status make(const mixt__prefetch *p, const mixt__batch *slot, int64_t first, int64_t count,
                        const mixt__data_places *places)
{
    mixt__data_which which = which_of(p, slot->number);
    return mixt__data_batch_piece(p->data, &which, info_of(p, slot), slot->number % p->form.parts * p->batch + first,
                                  count, places);
}

/** The format of array `index` in the ring. */
static mixt_dtype dtype_of(const mixt_data_info *info, const mixt__prefetch_form *form, int index)
{
    mixt_dtype wanted = index ? form->more[index - 1] : form->input;
    return info->arrays[index].target || wanted == MIXT_DTYPE_NONE ? info->arrays[index].dtype : wanted;
}

/** Where array `index` begins in its block of a batch in the ring; with -1 the bytes of all of it. */
static size_t block_bytes(const mixt_data_info *info, const mixt__prefetch_form *form, int64_t batch, bool target,
                          int index)
{
    mixt__block block = {0};
    for (int i = 0; i < info->array_count; i++) {
        size_t bytes = (size_t)(batch * info->arrays[i].elements) * mixt_dtype_size(dtype_of(info, form, i));
        if (info->arrays[i].target != target)
            continue;
        size_t begin = mixt__block_add(&block, bytes);
        if (i == index)
            return begin;
    }
    return mixt__block_bytes(&block);
}

/** One sample from where it was made to its places in the ring. */
static void put_sample(const mixt__prefetch *p, const mixt__batch *slot, int64_t number, const float *sample)
{
    const mixt_data_info *info = info_of(p, slot);
    for (int i = 0; i < info->array_count && !info->arrays[i].target; i++) {
        mixt_dtype dtype = dtype_of(info, &p->form, i);
        int64_t elements = info->arrays[i].elements;
        size_t bytes = (size_t)elements * mixt_dtype_size(dtype);
        char *to = (char *)slot->input + block_bytes(info, &p->form, p->batch, false, i) + (size_t)number * bytes;
        if (dtype == info->arrays[i].dtype)
            memcpy(to, sample, bytes);
        else
            mixt__narrow(dtype)(to, sample, elements);
        sample += elements;
    }
}

/** The same into the slot, inputs rounded. */
static mixt_status fill(mixt__prefetch *p, int thread, const mixt__batch *slot, int64_t first, int64_t count)
{
    const mixt_data_info *info = info_of(p, slot);
    if (!p->rounds) {
        mixt__data_places places = mixt__data_places_as(info, p->batch, first, slot->input, slot->target);
        return make(p, slot, first, count, &places);
    }
    float *sample = p->samples + thread * p->data->info.input_elements;
    for (int64_t k = first; k < first + count; k++) {
        mixt__data_places places = mixt__data_places_as(info, p->batch, k, slot->input, slot->target);
        float *at = sample;
        for (int i = 0; i < info->array_count && !info->arrays[i].target; at += info->arrays[i++].elements)
            places.at[i] = (char *)at;
        MIXT_TRY(make(p, slot, k, 1, &places));
        put_sample(p, slot, k, sample);
    }
    return MIXT_OK;
}

/** Waits for something to fill. False when there will be nothing any more. */
static bool claim(mixt__prefetch *p, int thread, mixt__batch **slot, progress **state, int64_t *first, int64_t *count)
{
    for (;; pthread_cond_wait(&p->room, &p->lock)) {
        if (p->stopping || p->ended)
            return false;
        if (thread >= p->awake)
            continue;
        *slot = &p->slots[(p->begun ? p->begun - 1 : 0) % p->depth];
        *state = &p->progress[(p->begun ? p->begun - 1 : 0) % p->depth];
        if (p->begun && (*state)->claimed < p->batch)
            break;
        if (p->begun - p->released < p->depth) {
            *slot = &p->slots[p->begun % p->depth];
            *state = &p->progress[p->begun % p->depth];
            **state = (progress){.status = MIXT_OK};
            (*slot)->number = p->first + p->begun / p->form.run * p->form.of + p->begun % p->form.run;
            mixt__data_which which = which_of(p, (*slot)->number);
            (*slot)->bucket = mixt__data_bucket_of(p->data, &which);
            p->begun++;
            break;
        }
    }
    int64_t piece = p->batch / PIECES > 0 ? p->batch / PIECES : 1, left = p->batch - (*state)->claimed;
    *first = (*state)->claimed;
    *count = p->awake == 1 || left < piece ? left : piece;
    (*state)->claimed += *count;
    return true;
}

/** Books a piece; the failure of the earliest sample is the batch's. */
static void finish(mixt__prefetch *p, progress *state, int64_t first, int64_t count, mixt_status status)
{
    state->done += count;
    if (status != MIXT_OK && (state->status == MIXT_OK || first < state->bad)) {
        state->status = status;
        state->bad = first;
        size_t length = strnlen(mixt_error_text(), ERROR_SIZE - 1); // this thread's text dies with it
        memcpy(state->error, mixt_error_text(), length);
        state->error[length] = 0;
        p->ended = true; // pieces of batches before this one are claimed already, and come
        pthread_cond_broadcast(&p->room);
    }
    while (p->filled < p->begun) {
        const progress *next = &p->progress[p->filled % p->depth];
        if (next->status != MIXT_OK || next->done < p->batch)
            break;
        p->filled++;
    }
    pthread_cond_signal(&p->ready);
}

static void *work(void *argument)
{
    mixt__prefetch *p = argument;
    mixt__batch *slot;
    progress *state;
    int64_t first, count;
    mixt__team_use_again(p->team);
    pthread_mutex_lock(&p->lock);
    int thread = p->started++;
    while (claim(p, thread, &slot, &state, &first, &count)) {
        pthread_mutex_unlock(&p->lock);
        mixt_status status = fill(p, thread, slot, first, count);
        pthread_mutex_lock(&p->lock);
        finish(p, state, first, count, status);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/** Bytes of a slot's inputs and targets, and of all slots; false: too large to count. */
static bool count_buffers(const mixt_data_info *info, int64_t batch, int depth, const mixt__prefetch_form *form,
                          int64_t *input, int64_t *target, int64_t *total)
{
    int64_t most;
    if (__builtin_mul_overflow(info->input_elements + info->target_elements, batch * 4, &most) || most > INT64_MAX / 16)
        return false;
    *input = (int64_t)block_bytes(info, form, batch, false, -1);
    *target = (int64_t)block_bytes(info, form, batch, true, -1);
    return !__builtin_mul_overflow((int64_t)(aligned((size_t)*input) + aligned((size_t)*target)), (int64_t)depth,
                                   total);
}

static mixt_status take_buffers(mixt__prefetch *p)
{
    int64_t input, target, total;
    if (!count_buffers(&p->data->info, p->batch, p->depth, &p->form, &input, &target, &total))
        return mixt__fail(MIXT_ERROR_MEMORY, "a batch of %lld samples is too large", (long long)p->batch);
    p->slots = mixt__alloc((size_t)p->depth * sizeof *p->slots);
    p->progress = mixt__alloc((size_t)p->depth * sizeof *p->progress);
    p->buffers = p->form.alloc(p->form.user, (size_t)total);
    if (p->buffers)
        memset(p->buffers, 0, (size_t)total);
    if (!p->slots || !p->progress || !p->buffers)
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
    mixt__free(p->progress);
    mixt__free(p->threads);
    mixt__free(p->samples);
    p->form.free(p->form.user, p->buffers);
    mixt__data_drop(p->data);
    mixt__free(p);
}

/** Whether this is a child of the process that has the threads. */
static bool is_orphan(const mixt__prefetch *p)
{
    return getpid() != p->process;
}

static void stop_threads(mixt__prefetch *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
}

/** Makes the threads with all signals blocked: Ctrl-C is the main thread's business. */
static int make_threads(mixt__prefetch *p, int wanted)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!error && p->thread_count < wanted) {
        error = pthread_create(&p->threads[p->thread_count], NULL, work, p);
        p->thread_count += !error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/** As many as the data's options say, or one a core. */
static int threads_wanted(const mixt_data *data)
{
    int given = data->options.threads, cores = mixt__threads_count();
    return given ? given : cores < MAX_WOKEN ? cores : MAX_WOKEN;
}

/** Room for one sample a thread, before it is rounded. */
static size_t samples_bytes(const mixt_data *data)
{
    return (size_t)threads_wanted(data) * (size_t)data->info.input_elements * sizeof(float);
}

/** Where the options give no number, one thread is awake at first. */
static mixt_status start_threads(mixt__prefetch *p)
{
    int given = p->data->options.threads, wanted = threads_wanted(p->data);
    p->threads = mixt__alloc((size_t)wanted * sizeof *p->threads);
    if (p->rounds)
        p->samples = mixt__alloc_uninit(samples_bytes(p->data));
    if (!p->threads || (p->rounds && !p->samples))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a prefetch ring");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    pthread_cond_init(&p->ready, NULL);
    p->awake = given ? given : 1;
    p->team = mixt__team_now();
    int error = make_threads(p, wanted);
    if (p->thread_count) // fewer than wanted do as well
        return MIXT_OK;
    stop_threads(p);
    return mixt__fail(MIXT_ERROR_STATE, "the prefetch thread cannot be started: %s", strerror(error));
}

static void *take(void *unused, size_t bytes)
{
    (void)unused;
    return mixt__alloc(bytes);
}

static void give_back(void *unused, void *block)
{
    (void)unused;
    mixt__free(block);
}

static mixt__prefetch_form form_or_plain(const mixt__prefetch_form *form)
{
    mixt__prefetch_form made = form ? *form : (mixt__prefetch_form){0};
    made.alloc = made.alloc ? made.alloc : take;
    made.free = made.free ? made.free : give_back;
    made.parts = made.parts ? made.parts : 1;
    if (!made.run)
        made.run = made.of = 1;
    return made;
}

/** Whether some input has another format in the ring. */
static bool rounds(const mixt_data_info *info, const mixt__prefetch_form *form)
{
    for (int i = 0; i < info->array_count; i++)
        if (dtype_of(info, form, i) != info->arrays[i].dtype)
            return true;
    return false;
}

size_t mixt__prefetch_bytes(const mixt_data *data, int64_t batch, int depth, const mixt__prefetch_form *form)
{
    mixt__prefetch_form made = form_or_plain(form);
    int64_t input, target, total;
    if (!count_buffers(&data->info, batch, depth, &made, &input, &target, &total))
        return 0;
    size_t ring = sizeof(mixt__prefetch) + (size_t)depth * (sizeof(mixt__batch) + sizeof(progress));
    size_t threads = (size_t)threads_wanted(data) * sizeof(pthread_t);
    return ring + threads + (size_t)total + (rounds(&data->info, &made) ? samples_bytes(data) : 0);
}

mixt_status mixt__prefetch_start(const mixt_data *data, int64_t batch, int depth, int64_t first,
                                 const mixt__prefetch_form *form, mixt__prefetch **prefetch)
{
    *prefetch = NULL;
    if (batch < 1 || batch > INT32_MAX || depth < 1 || depth > MAX_DEPTH || first < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "prefetch: batch %lld, depth %d, first batch %lld out of range",
                          (long long)batch, depth, (long long)first);
    mixt__prefetch_form made = form_or_plain(form);
    if (batch > data->info.samples / made.parts)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%s:%s: a batch of %lld samples, but the %s part has %lld; lower the batch size",
                          data->info.kind, data->path, (long long)(batch * made.parts), data->info.split,
                          (long long)data->info.samples);
    mixt__prefetch *p = mixt__alloc(sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a prefetch ring");
    p->data = mixt__data_hold(data);
    p->batch = batch;
    p->depth = depth;
    p->first = first;
    p->process = getpid();
    p->form = made;
    p->rounds = rounds(&data->info, &p->form);
    mixt_status status = take_buffers(p);
    if (status == MIXT_OK)
        status = start_threads(p);
    if (status != MIXT_OK) {
        free_all(p);
        return status;
    }
    *prefetch = p;
    return MIXT_OK;
}

/** Wakes another thread when the taker has waited several times in a row. */
static void note_wait(mixt__prefetch *p, bool waited)
{
    p->waits = waited ? p->waits + 1 : 0;
    if (p->waits < PATIENCE || p->awake >= p->thread_count)
        return;
    p->waits = 0;
    p->awake++;
    pthread_cond_broadcast(&p->room);
    MIXT_LOG(DATA, "training waits for data (%s): %d threads now prepare batches", p->data->path, p->awake);
}

mixt_status mixt__prefetch_take(mixt__prefetch *p, const mixt__batch **batch)
{
    *batch = NULL;
    if (is_orphan(p))
        return mixt__fail(MIXT_ERROR_STATE,
                          "the threads that prepare batches of %s:%s stayed in process %lld when it forked: open data "
                          "and trainer in the child process",
                          p->data->info.kind, p->data->path, (long long)p->process);
    pthread_mutex_lock(&p->lock);
    bool full = p->taken - p->released == p->depth; // there is nothing to fill: waiting would never end
    const progress *next = &p->progress[p->taken % p->depth];
    const mixt__batch *slot = &p->slots[p->taken % p->depth];
    note_wait(p, !full && p->taken == p->filled && p->begun > 0);
    // A batch that failed is reported when its claimed pieces are through: the earliest sample's failure counts.
    while (!full && p->taken == p->filled &&
           !(p->begun > p->taken && next->status != MIXT_OK && next->done == next->claimed))
        pthread_cond_wait(&p->ready, &p->lock);
    mixt_status status = MIXT_OK;
    if (full)
        status = mixt__fail(MIXT_ERROR_STATE, "all %d buffers are taken: release one first", p->depth);
    else if (p->taken < p->filled) {
        p->taken++;
        *batch = slot;
    } else {
        status = next->status;
        mixt__error_set(next->error);
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

void mixt__prefetch_release(mixt__prefetch *p)
{
    if (is_orphan(p))
        return;
    pthread_mutex_lock(&p->lock);
    if (p->released < p->taken)
        p->released++;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
}

int mixt__prefetch_threads(mixt__prefetch *p)
{
    if (is_orphan(p))
        return 0;
    pthread_mutex_lock(&p->lock);
    int count = p->awake;
    pthread_mutex_unlock(&p->lock);
    return count;
}

void mixt__prefetch_stop(mixt__prefetch *p)
{
    if (!p)
        return;
    if (!is_orphan(p))
        stop_threads(p);
    free_all(p);
}
