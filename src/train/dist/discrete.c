/* Passes and updates of sharded state where host and device have memory of their own. */
#include "train/dist/discrete.h"

#include "backend/beside.h"
#include "train/dist/device_gather.h"
#include "train/dist/device_sums.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <string.h>

enum { LINE = 64 }; // workspaces begin at multiples of it

/* ---- planning ---- */

size_t mixt__discrete_workspace(mixt__device *device, const mixt__segment *segments, int64_t count)
{
    return (mixt__device_update_workspace(device, segments, count) + LINE - 1) / LINE * LINE;
}

/** Workspaces of a rank's groups, one behind the other. @param cuts room for its segments */
static size_t rank_workspace(const mixt__trainer *t, int64_t rank, mixt__segment *cuts)
{
    const mixt__owners *o = &t->ranks.shards.owners;
    size_t bytes = 0;
    for (int64_t g = 0; g < o->groups; g++) {
        int64_t begin = mixt__owners_cut(o, t->params, g, rank), end = mixt__owners_cut(o, t->params, g, rank + 1);
        int64_t count = 0;
        for (int64_t s = o->firsts[g]; s < o->firsts[g + 1]; s++) {
            cuts[count] = mixt__owners_segment(t->params, s, begin, end);
            count += cuts[count].count > 0;
        }
        bytes += mixt__discrete_workspace(t->device, cuts, count);
    }
    return bytes;
}

mixt_status mixt__discrete_plan(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    mixt__segment *cuts =
        mixt__alloc((size_t)(t->params->segment_count + r->shards.owners.most_chunks + 1) * sizeof *cuts);
    if (!cuts)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to plan the update of %lld ranks",
                          (long long)r->shards.owners.ranks);
    r->discrete.update_bytes = 0;
    for (int64_t rank = 0; rank < r->shards.owners.ranks; rank++) { // all take as much as the one that needs most
        size_t bytes = rank_workspace(t, rank, cuts);
        r->discrete.update_bytes = bytes > r->discrete.update_bytes ? bytes : r->discrete.update_bytes;
    }
    for (int64_t i = 0; i < r->shards.owners.most_chunks; i++)
        cuts[i] = (mixt__segment){.offset = i * r->shards.owners.chunk, .count = r->shards.owners.chunk};
    r->discrete.measure_bytes =
        mixt__sharded_gradients(r) ? mixt__discrete_workspace(t->device, cuts, r->shards.owners.most_chunks) : 0;
    mixt__free(cuts);
    return MIXT_OK;
}

/* ---- a pass ---- */

/** Until what this stay's place on the host held before is in the device's memory. */
static mixt_status await_place(const mixt__trainer *t, int64_t stay)
{
    const mixt__gather *a = t->ranks.shards.reading;
    for (int64_t before = 0; before < stay; before++)
        if (mixt__gather_shared(a, before, stay))
            MIXT_TRY(mixt__device_sums_await(t->device, &a->landed[before]));
    return MIXT_OK;
}

mixt_status mixt__discrete_allow(mixt__trainer *t, int64_t count)
{
    mixt__ranks *r = &t->ranks;
    const mixt__bucket *jobs = r->shards.reading ? r->shards.reading->jobs : r->overlap.buckets;
    for (; r->overlap.let < count; r->overlap.let++) {
        int64_t group = jobs[r->overlap.let].group;
        bool fetch = r->shards.reading && group < 0;
        MIXT_TRY(fetch ? await_place(t, -1 - group)
                       : mixt__device_sums_await(t->device, &r->discrete.arrived[r->overlap.handed++]));
        mixt__overlap_allow(r->overlap.overlap, r->overlap.let + 1);
    }
    return MIXT_OK;
}

/** Gradients that no node makes are 0. */
static mixt_status clear_unwritten(const mixt__trainer *t, int64_t group)
{
    const mixt__params *p = t->params;
    for (int64_t s = t->ranks.shards.owners.firsts[group]; s < t->ranks.shards.owners.firsts[group + 1]; s++)
        if (!t->ranks.shards.window.written[s])
            MIXT_TRY(mixt__device_zero(t->device, mixt__params_gradients(p) + p->shard.window_at[s],
                                       (size_t)p->segments[s].count * sizeof(float)));
    return MIXT_OK;
}

/** Gives memory to the groups whose first gradients are made by node number `next`. */
static mixt_status take_windows(mixt__trainer *t, int64_t next)
{
    mixt__ranks *r = &t->ranks;
    const mixt__stage *w = &r->shards.window;
    for (; t->params->shard.gradients && r->shards.taken < w->count; r->shards.taken++) {
        int64_t group = w->takes[r->shards.taken];
        if (w->first[group] > next)
            break;
        if (w->needs[group]) // those that were there before are on their way
            MIXT_TRY(mixt__device_sums_behind(t->device, r, w->needs[group]));
        MIXT_TRY(clear_unwritten(t, group));
    }
    return MIXT_OK;
}

/** A group of weights into the device's window, once the host has all of it. */
static mixt_status bring(mixt__trainer *t, mixt__gather *a, int64_t stay)
{
    size_t at = a->stays[stay].at;
    MIXT_TRY(mixt__discrete_allow(t, a->fetch_job[stay]));
    mixt__overlap_wait(t->ranks.overlap.overlap, a->fetch_job[stay]);
    MIXT_TRY(mixt__device_copy(t->device, a->window + at, a->host + at, mixt__gather_stay_bytes(a, stay)));
    return mixt__device_copy(t->device, &a->landed[stay], &t->control->scale, sizeof *a->landed); // which is never 0
}

static mixt_status prepare_node(mixt__trainer *t, int64_t next)
{
    mixt__gather *a = t->ranks.shards.reading;
    MIXT_TRY(take_windows(t, next));
    if (a && t->ranks.discrete.sums)
        return mixt__device_gather_prepare(t, next);
    for (; a && a->next < a->count && a->stays[a->next].first <= next; a->next++)
        MIXT_TRY(bring(t, a, a->next));
    return MIXT_OK;
}

/** Behind each node: gradients that are complete go on their way, and what the next node needs is brought. What failed
 *  first is kept for the end. */
static void node_passed(void *user, int64_t node)
{
    mixt__trainer *t = user;
    mixt__device_sums_send(t, node);
    if (t->ranks.discrete.sum_status == MIXT_OK)
        t->ranks.discrete.sum_status = prepare_node(t, node + 1);
}

mixt_status mixt__discrete_fetch_masters(mixt__trainer *t)
{
    const mixt__params *p = t->params;
    return mixt__device_download(t->device, t->ranks.discrete.masters, mixt__params_weights(p),
                                 p->roles[MIXT_PARAM_WEIGHT].bytes);
}

/** Weights will be fetched. @param sums of gradients between; NULL: none */
static mixt_status begin_fetches(mixt__trainer *t, int which, const mixt__bucket *sums, int64_t count)
{
    mixt__ranks *r = &t->ranks;
    mixt__gather *a = &r->shards.gathers[which];
    if (r->discrete.sums) {
        mixt__device_gather_begin(t, which);
        return MIXT_OK;
    }
    MIXT_TRY(mixt__discrete_fetch_masters(t)); // the device has then run all that reads this window too
    a->own = r->discrete.masters;
    memset(a->landed, 0, (size_t)a->count * sizeof *a->landed);
    mixt__gather_list(a, sums, count);
    r->overlap.let = r->overlap.handed = 0;
    r->shards.reading = a;
    mixt__overlap_begin(r->overlap.overlap, a->jobs, a->job_count);
    return MIXT_OK;
}

mixt_status mixt__discrete_begin(mixt__trainer *t, mixt__run *run)
{
    mixt__ranks *r = &t->ranks;
    int which = t->instrumenting ? MIXT_GATHER_INSTRUMENTED : MIXT_GATHER_TRAIN;
    mixt__sharded_mark(t);
    if (t->params->shard.masters)
        MIXT_TRY(begin_fetches(t, which, r->overlap.buckets, r->overlap.bucket_count));
    run->passed = node_passed;
    run->user = t;
    return prepare_node(t, 0);
}

mixt_status mixt__discrete_begin_reading(mixt__trainer *t, int which, mixt__run *run)
{
    t->ranks.discrete.summed = t->ranks.overlap.bucket_count; // it makes no gradients
    t->ranks.discrete.sum_status = MIXT_OK;
    MIXT_TRY(begin_fetches(t, which, NULL, 0));
    run->passed = node_passed;
    run->user = t;
    return prepare_node(t, 0);
}

mixt_status mixt__discrete_put_sums(mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    for (int64_t i = 0; i < r->shards.window.count; i++) {
        const mixt__param_slice *slice = &p->shard.slices[r->shards.window.order[i]];
        float *to = mixt__sharded_mine(t, r->shards.window.order[i]);
        if (slice->count)
            MIXT_TRY(
                mixt__device_copy(t->device, to, r->discrete.staged + slice->begin, (size_t)slice->count * sizeof *to));
    }
    return MIXT_OK;
}

/* ---- the update ---- */

mixt_status mixt__discrete_measure(mixt__trainer *t, const mixt__update *own)
{
    mixt__update u = *own;
    u.stats = t->ranks.discrete.own_stats;
    u.workspace = t->ranks.discrete.measure_workspace;
    u.control_follows = false;
    MIXT_TRY(mixt__device_gradient_stats(t->device, &u));
    MIXT_TRY(mixt__device_copy(t->device, own->stats, u.stats, (size_t)own->segment_count * sizeof *u.stats));
    return mixt__device_synchronize(t->device);
}

/* By an update that leaves masters as they are: plain SGD with a rate of 0, of gradients that are finite. */
mixt_status mixt__discrete_round_copies(const mixt__trainer *t)
{
    mixt__update u = t->update;
    u.optimizer = (mixt__optimizer){.kind = MIXT_OPTIMIZER_SGD};
    u.gradient = u.weight;
    u.moments[0] = u.moments[1] = (mixt__update_role){0};
    u.statistics_count = 0;
    u.sums[0] = u.sums[1] = NULL;
    u.control = t->ranks.discrete.still;
    return mixt__device_optimizer_step(t->device, &u);
}

/** Masters of all ranks to all, over the host. */
static mixt_status exchange_masters(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        const mixt__param_slice *slice = &p->shard.slices[g];
        if (slice->count)
            MIXT_TRY(mixt__device_copy(t->device, r->discrete.staged + slice->begin,
                                       mixt__params_weights(p) + slice->begin,
                                       (size_t)slice->count * sizeof *r->discrete.staged));
    }
    MIXT_TRY(mixt__device_synchronize(t->device));
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        mixt__owners_cuts(&r->shards.owners, p, g, r->shards.cuts);
        MIXT_TRY(mixt__group_gather_parts(r->group, r->discrete.staged + r->shards.owners.begins[g], r->shards.cuts,
                                          sizeof *r->discrete.staged));
    }
    return mixt__device_copy(t->device, mixt__params_weights(p), r->discrete.staged,
                             (size_t)p->total * sizeof *r->discrete.staged);
}

/* Masters of a skipped update, which changes none, travel too: the host does not know yet. */
mixt_status mixt__discrete_apply(mixt__trainer *t, const mixt__update *update)
{
    MIXT_TRY(mixt__sharded_update(t, update));
    if (t->params->shard.masters)
        return MIXT_OK;
    MIXT_TRY(t->ranks.discrete.sums ? mixt__device_sums_gather(t) : exchange_masters(t));
    return mixt__discrete_round_copies(t);
}
