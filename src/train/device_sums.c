/* Buckets in the order in which the backward pass makes them. */
#include "train/device_sums.h"

#include "train/trainer.h"

/** Those that are made once `mark` is; what failed first is kept for the end. */
static void sum_until(mixt__trainer *t, int64_t mark)
{
    mixt__ranks *r = &t->ranks;
    for (; r->summed < r->bucket_count && r->buckets[r->summed].ready <= mark; r->summed++) {
        const mixt__bucket *b = &r->buckets[r->summed];
        if (r->sum_status == MIXT_OK)
            r->sum_status = r->sums->sum(t->params->grad + b->begin, b->count);
    }
}

static void node_passed(void *user, int64_t node)
{
    sum_until(user, node);
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
    sum_until(t, INT64_MAX);
    MIXT_TRY(t->ranks.sum_status);
    return t->ranks.sums->join();
}

mixt_status mixt__device_sums_wait(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    return r->group && r->sums ? mixt__group_await(r->group, r->sums) : t->backend->synchronize();
}

mixt_status mixt__device_sums_gather(mixt__trainer *t)
{
    MIXT_TRY(t->ranks.sums->gather(t->params->master, t->ranks.cuts));
    return t->ranks.sums->join();
}
