/* The thread that sums buckets.
 *
 * done <= allowed <= count, all guarded by the lock; the sums themselves are made without it.
 */
#include "dist/overlap.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

struct mixt__overlap {
    mixt__group *group;
    mixt__overlap_fn *sum;
    void *user;
    mixt__bucket *buckets;
    int64_t count, allowed, done;
    int64_t let; // the caller's own copy of `allowed`
    mixt_status status;
    bool stopping;
    double seconds, waited;
    double start, passed; // of the newest sum: its begin; from there when the rest was let go
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t go, ready;
};

size_t mixt__overlap_bytes(void)
{
    return sizeof(mixt__overlap);
}

/** Waits for a bucket; false: there will be none any more. */
static bool next(mixt__overlap *o)
{
    while (!o->stopping && (o->done == o->allowed || o->status != MIXT_OK))
        pthread_cond_wait(&o->go, &o->lock);
    return !o->stopping;
}

static void *work(void *argument)
{
    mixt__overlap *o = argument;
    pthread_mutex_lock(&o->lock);
    while (next(o)) {
        mixt__bucket *b = &o->buckets[o->done];
        pthread_mutex_unlock(&o->lock);
        double start = mixt__time_now();
        mixt_status status = o->sum(o->user, b);
        double end = mixt__time_now();
        pthread_mutex_lock(&o->lock);
        o->seconds += end - start;
        b->begun = start - o->start;
        b->ended = end - o->start;
        o->done++;
        o->status = status;
        pthread_cond_signal(&o->ready);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

mixt_status mixt__overlap_start(mixt__group *group, mixt__overlap_fn *sum, void *user, mixt__overlap **overlap)
{
    sigset_t all, before;
    mixt__overlap *o = mixt__alloc(sizeof *o);
    *overlap = NULL;
    if (!o)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for sums over ranks");
    o->group = group;
    o->sum = sum;
    o->user = user;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->go, NULL);
    pthread_cond_init(&o->ready, NULL);
    sigfillset(&all); // signals are the main thread's business
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&o->thread, NULL, work, o);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        mixt__free(o);
        return mixt__fail(MIXT_ERROR_STATE, "the thread for sums over ranks cannot be started: %s", strerror(error));
    }
    *overlap = o;
    return MIXT_OK;
}

void mixt__overlap_stop(mixt__overlap *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->stopping = true;
    pthread_cond_signal(&o->go);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->thread, NULL);
    pthread_cond_destroy(&o->go);
    pthread_cond_destroy(&o->ready);
    pthread_mutex_destroy(&o->lock);
    mixt__free(o);
}

void mixt__overlap_begin(mixt__overlap *o, mixt__bucket *buckets, int64_t count)
{
    pthread_mutex_lock(&o->lock);
    o->start = mixt__time_now();
    o->buckets = buckets;
    o->count = count;
    o->let = o->allowed = o->done = 0;
    o->status = MIXT_OK;
    pthread_mutex_unlock(&o->lock);
}

void mixt__overlap_allow(mixt__overlap *o, int64_t allowed)
{
    double now = mixt__time_now() - o->start;
    pthread_mutex_lock(&o->lock);
    for (; o->let < allowed; o->let++)
        o->buckets[o->let].allowed = now;
    o->allowed = allowed;
    pthread_cond_signal(&o->go);
    pthread_mutex_unlock(&o->lock);
}

void mixt__overlap_passed(mixt__overlap *o, int64_t mark)
{
    int64_t allowed = o->let;
    while (allowed < o->count && o->buckets[allowed].ready <= mark)
        allowed++;
    if (allowed > o->let)
        mixt__overlap_allow(o, allowed);
}

/** Until so many have gone, or one has failed. */
static mixt_status wait_for(mixt__overlap *o, int64_t count)
{
    double start = mixt__time_now();
    pthread_mutex_lock(&o->lock);
    while (o->done < count && o->status == MIXT_OK)
        pthread_cond_wait(&o->ready, &o->lock);
    mixt_status status = o->status;
    pthread_mutex_unlock(&o->lock);
    o->waited += mixt__time_now() - start;
    return status;
}

void mixt__overlap_wait(mixt__overlap *o, int64_t count)
{
    (void)wait_for(o, count < o->let ? count : o->let); // a failure is told by finish
}

mixt_status mixt__overlap_finish(mixt__overlap *o)
{
    o->passed = mixt__time_now() - o->start;
    mixt__overlap_allow(o, o->count);
    mixt_status status = wait_for(o, o->count);
    return status == MIXT_OK ? MIXT_OK : mixt__fail(status, "%s", o->group->why); // the thread's own text is not here
}

void mixt__overlap_cancel(mixt__overlap *o)
{
    pthread_mutex_lock(&o->lock);
    o->count = o->allowed = o->let = o->done < o->allowed ? o->done + 1 : o->done;
    while (o->done < o->allowed && o->status == MIXT_OK)
        pthread_cond_wait(&o->ready, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

void mixt__overlap_seconds(const mixt__overlap *o, double *all, double *waited)
{
    *all = o->seconds;
    *waited = o->waited;
}

double mixt__overlap_passed_at(const mixt__overlap *o)
{
    return o->passed;
}
