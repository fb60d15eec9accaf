/* The two halves of LAMB, and what ranks tell each other in between. */
#include "train/dist/lamb.h"

#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

bool mixt__lamb_shared(const mixt__trainer *t)
{
    return t->ranks.shards.zero && t->settings.optimizer.kind == MIXT_OPTIMIZER_LAMB;
}

/** The first half of a group: leaves its chunks' sums among all. */
static mixt_status update_moments(void *user, const mixt__update *own, int64_t group)
{
    mixt__trainer *t = user;
    const mixt__ranks *r = &t->ranks;
    int64_t first = r->shards.chunk_first[group], chunks = r->shards.chunk_first[group + 1] - first;
    double *sums = r->shards.lamb_sums + 2 * (r->shards.rank_chunks[r->group->rank] + first);
    if (!chunks)
        return MIXT_OK;
    MIXT_TRY(mixt__device_lamb_moments(t->device, own));
    return mixt__device_copy(t->device, sums, own->workspace, (size_t)chunks * 2 * sizeof *sums);
}

static mixt_status update_weights(void *user, const mixt__update *own, int64_t group)
{
    mixt__trainer *t = user;
    const mixt__ranks *r = &t->ranks;
    return mixt__device_lamb_weights(t->device, own,
                                     r->shards.lamb_ratios + t->params->segment_count + r->shards.own_first[group]);
}

/** From the sums of all ranks: those of all segments, then those of the own parts. */
static void make_ratios(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    double *ordered = r->shards.lamb_sums + 2 * r->shards.owners.chunks;
    float *own = r->shards.lamb_ratios + p->segment_count;
    mixt__sharded_order(t, r->shards.lamb_sums, 2 * sizeof *ordered, ordered);
    for (int64_t s = 0; s < p->segment_count; s++) {
        int64_t count = mixt__update_chunks(&p->segments[s], 1, r->shards.owners.chunk);
        r->shards.lamb_ratios[s] = t->device->backend->lamb_ratio(ordered, count);
        ordered += 2 * count;
    }
    for (int64_t i = 0; i < r->shards.own_first[r->shards.owners.groups]; i++)
        own[i] = r->shards.lamb_ratios[p->segment_of[r->shards.own[i].param]];
}

/* Sums of an update that is skipped, which nobody has made, travel too: the host may not know yet. */
mixt_status mixt__lamb_update(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    MIXT_TRY(mixt__sharded_each(t, update, update_moments, t));
    MIXT_TRY(mixt__device_synchronize(t->device));
    MIXT_TRY(mixt__group_gather_parts(r->group, r->shards.lamb_sums, r->shards.rank_chunks,
                                      2 * sizeof *r->shards.lamb_sums));
    make_ratios(t);
    return mixt__sharded_each(t, update, update_weights, t);
}
