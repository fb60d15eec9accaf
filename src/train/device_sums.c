/* Buckets in the order in which the backward pass makes them. */
#include "train/device_sums.h"

#include "backend/beside.h"
#include "train/trainer.h"

#include <string.h>
#include <time.h>

/** To the host; then something of the device's that is never 0. */
static mixt_status fetch(mixt__trainer *t, int64_t index)
{
    const mixt__beside *beside = mixt__backend_beside(t->backend);
    const mixt__bucket *b = &t->ranks.buckets[index];
    size_t bytes = (size_t)b->count * sizeof(float);
    MIXT_TRY(beside->copy(t->ranks.staged + b->begin, t->params->grad + b->begin, bytes));
    return beside->copy(&t->ranks.arrived[index], &t->control->scale, sizeof *t->ranks.arrived);
}

/** Those that are made once `mark` is; what failed first is kept for the end. */
static void send_until(mixt__trainer *t, int64_t mark)
{
    mixt__ranks *r = &t->ranks;
    for (; r->summed < r->bucket_count && r->buckets[r->summed].ready <= mark; r->summed++) {
        const mixt__bucket *b = &r->buckets[r->summed];
        if (r->sum_status == MIXT_OK)
            r->sum_status = r->sums ? r->sums->sum(t->params->grad + b->begin, b->count) : fetch(t, r->summed);
    }
}

static void node_passed(void *user, int64_t node)
{
    send_until(user, node);
}

void mixt__device_sums_expect(mixt__trainer *t)
{
    if (t->ranks.arrived)
        memset(t->ranks.arrived, 0, (size_t)t->ranks.bucket_count * sizeof *t->ranks.arrived);
}

void mixt__device_sums_begin(mixt__trainer *t, mixt__run *run)
{
    t->ranks.summed = 0;
    t->ranks.sum_status = MIXT_OK;
    if (t->watching || t->faults) // whose graphs have other nodes
        return;
    run->passed = node_passed;
    run->user = t;
}

mixt_status mixt__device_sums_finish(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    if (!r->buckets)
        return t->backend->copy(r->staged, t->params->grad, (size_t)t->params->total * sizeof(float));
    send_until(t, INT64_MAX);
    MIXT_TRY(r->sum_status);
    return r->sums ? r->sums->join() : mixt__backend_beside(t->backend)->join();
}

/* ---- waiting ---- */

static bool has_arrived(const mixt__ranks *r, int64_t bucket)
{
    return __atomic_load_n(&r->arrived[bucket], __ATOMIC_ACQUIRE);
}

/** Until a bucket is on the host, or the device has run all and it should be. */
static mixt_status await(const mixt__trainer *t, int64_t bucket)
{
    enum { LOOKS = 64, NAP_NANOSECONDS = 20000 };
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    mixt_status status = MIXT_END;
    for (int64_t looks = 1; status == MIXT_END && !has_arrived(&t->ranks, bucket); looks++)
        if (looks % LOOKS == 0) {
            status = mixt__backend_beside(t->backend)->query();
            nanosleep(&nap, NULL);
        }
    return status == MIXT_END ? MIXT_OK : status;
}

/** Lets the thread that sums have each bucket once it is there. */
static mixt_status hand_over(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    mixt__overlap_begin(r->overlap, r->buckets, r->bucket_count);
    r->begun = true;
    for (int64_t b = 0; b < r->bucket_count; b++) {
        MIXT_TRY(await(t, b));
        mixt__overlap_allow(r->overlap, b + 1);
    }
    return t->backend->synchronize();
}

mixt_status mixt__device_sums_wait(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    if (r->group && r->sums)
        MIXT_TRY(mixt__group_await(r->group, r->sums)); // and then there is nothing left to wait for
    return r->overlap ? hand_over(t) : t->backend->synchronize();
}

mixt_status mixt__device_sums_gather(mixt__trainer *t)
{
    MIXT_TRY(t->ranks.sums->gather(t->params->master, t->ranks.cuts));
    return t->ranks.sums->join();
}
