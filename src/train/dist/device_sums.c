/* Buckets in the order in which the backward pass makes them. */
#include "train/dist/device_sums.h"

#include "backend/beside.h"
#include "train/dist/discrete.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <string.h>
#include <time.h>

/** To the host; then something of the device's that is never 0. */
static mixt_status fetch(mixt__trainer *t, int64_t index)
{
    const mixt__beside *beside = t->device->backend->beside;
    const mixt__bucket *b = &t->ranks.overlap.buckets[index];
    size_t bytes = (size_t)b->count * sizeof(float);
    const float *made = mixt__sharded_gradients(&t->ranks) ? mixt__sharded_made(t->params, &t->ranks, b)
                                                           : mixt__params_gradients(t->params) + b->begin;
    MIXT_TRY(beside->copy(t->device, t->ranks.discrete.staged + b->begin, made, bytes));
    return beside->copy(t->device, &t->ranks.discrete.arrived[index], &t->control->scale,
                        sizeof *t->ranks.discrete.arrived);
}

/** Each slice of a group to its owner. */
static mixt_status reduce(mixt__trainer *t, int64_t index)
{
    mixt__ranks *r = &t->ranks;
    const mixt__bucket *b = &r->overlap.buckets[index];
    mixt__device_sums *sums = r->discrete.sums;
    mixt__owners_cuts(&r->shards.owners, t->params, b->group, r->shards.cuts);
    MIXT_TRY(sums->reduce(sums, mixt__sharded_made(t->params, r, b), r->shards.cuts, mixt__sharded_mine(t, b->group)));
    return sums->mark(sums, index);
}

static mixt_status send(mixt__trainer *t, int64_t index)
{
    const mixt__bucket *b = &t->ranks.overlap.buckets[index];
    mixt__device_sums *sums = t->ranks.discrete.sums;
    if (!sums)
        return fetch(t, index);
    return mixt__sharded_gradients(&t->ranks) ? reduce(t, index)
                                              : sums->sum(sums, mixt__params_gradients(t->params) + b->begin, b->count);
}

void mixt__device_sums_send(mixt__trainer *t, int64_t node)
{
    mixt__ranks *r = &t->ranks;
    for (; r->discrete.summed < r->overlap.bucket_count && r->overlap.buckets[r->discrete.summed].ready <= node;
         r->discrete.summed++)
        if (r->discrete.sum_status == MIXT_OK)
            r->discrete.sum_status = send(t, r->discrete.summed);
}

static void node_passed(void *user, int64_t node)
{
    mixt__device_sums_send(user, node);
}

void mixt__device_sums_expect(mixt__trainer *t)
{
    if (t->ranks.discrete.arrived)
        memset(t->ranks.discrete.arrived, 0, (size_t)t->ranks.overlap.bucket_count * sizeof *t->ranks.discrete.arrived);
}

mixt_status mixt__device_sums_begin(mixt__trainer *t, mixt__run *run)
{
    t->ranks.discrete.summed = 0;
    t->ranks.discrete.sum_status = MIXT_OK;
    if (mixt__sharded_gradients(&t->ranks))
        return mixt__discrete_begin(t, run);
    if (!mixt__trainer_runs_planned(t))
        return MIXT_OK;
    run->passed = node_passed;
    run->user = t;
    return MIXT_OK;
}

mixt_status mixt__device_sums_behind(mixt__device *device, mixt__ranks *r, int64_t count)
{
    mixt__device_sums *sums = r->discrete.sums;
    return sums ? sums->join(sums, count - 1) : device->backend->beside->join(device);
}

mixt_status mixt__device_sums_finish(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    if (r->local.local) // they are not summed
        return MIXT_OK;
    if (!r->overlap.buckets)
        return mixt__device_copy(t->device, r->discrete.staged, mixt__params_gradients(t->params),
                                 (size_t)t->params->total * sizeof(float));
    mixt__device_sums_send(t, INT64_MAX);
    MIXT_TRY(r->discrete.sum_status);
    mixt__device_sums *sums = r->discrete.sums;
    return sums ? sums->join(sums, -1) : t->device->backend->beside->join(t->device);
}

/* ---- waiting ---- */

mixt_status mixt__device_sums_await(mixt__device *device, const uint32_t *number)
{
    enum { LOOKS = 64, NAP_NANOSECONDS = 20000 };
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    mixt_status status = MIXT_END;
    for (int64_t looks = 1; status == MIXT_END && !__atomic_load_n(number, __ATOMIC_ACQUIRE); looks++)
        if (looks % LOOKS == 0) {
            status = device->backend->beside->query(device);
            nanosleep(&nap, NULL);
        }
    return status == MIXT_END ? MIXT_OK : status;
}

/** Lets the thread that sums have each bucket once it is there. */
static mixt_status hand_over(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    if (!r->shards.reading) { // else it has begun with the pass
        r->overlap.let = r->overlap.handed = 0;
        mixt__overlap_begin(r->overlap.overlap, r->overlap.buckets, r->overlap.bucket_count);
    }
    r->overlap.begun = true;
    MIXT_TRY(mixt__discrete_allow(t, r->shards.reading ? r->shards.reading->job_count : r->overlap.bucket_count));
    return mixt__device_synchronize(t->device);
}

mixt_status mixt__device_sums_wait(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    if (r->group && r->discrete.sums)
        MIXT_TRY(mixt__group_await(r->group, r->discrete.sums)); // and then there is nothing left to wait for
    return r->overlap.overlap && !r->local.local ? hand_over(t) : mixt__device_synchronize(t->device);
}

mixt_status mixt__device_sums_gather(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    mixt__device_sums *sums = r->discrete.sums;
    const mixt__params *p = t->params;
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        mixt__owners_cuts(&r->shards.owners, p, g, r->shards.cuts);
        MIXT_TRY(
            sums->gather(sums, mixt__params_weights(p) + r->shards.owners.begins[g], r->shards.cuts, sizeof(float)));
    }
    return sums->join(sums, -1);
}
