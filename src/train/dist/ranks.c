/* Parts of an update, put together over ranks or in one process. */
#include "train/dist/ranks.h"

#include "train/dist/rank_hash.h"
#include "train/dist/discrete.h"
#include "train/dist/device_sums.h"
#include "train/dist/local.h"
#include "train/dist/ranks_memory.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <string.h>

int64_t mixt__ranks_passes(const mixt__trainer *t)
{
    return t->settings.accumulate / t->settings.ranks;
}

int64_t mixt__ranks_first(const mixt__trainer *t)
{
    return t->ranks.group ? t->ranks.group->rank * mixt__ranks_passes(t) : 0;
}

int64_t mixt__ranks_parts(const mixt__trainer *t)
{
    return t->ranks.group || t->ranks.planned ? 1 : t->settings.ranks;
}

int64_t mixt__ranks_made(const mixt__trainer *t)
{
    return mixt__ranks_parts(t) * mixt__ranks_passes(t);
}

bool mixt__ranks_sharded(const mixt__trainer *t)
{
    return t->ranks.group && t->ranks.shards.owners.ranks;
}

static size_t gradient_bytes(const mixt__params *params)
{
    return (size_t)params->total * sizeof(float);
}

/* ---- statistics ---- */

/** From the arena to a list on the host of those that move, or back; in order with the kernels. */
static mixt_status copy_moved(mixt__trainer *t, float *list, bool back)
{
    const mixt__ranks *r = &t->ranks;
    for (int64_t i = 0; i < r->sums.moved_count; list += r->sums.moved[i++].count) {
        float *state = mixt__params_state(t->params) + r->sums.moved[i].offset;
        size_t bytes = (size_t)r->sums.moved[i].count * sizeof *list;
        MIXT_TRY(mixt__device_copy(t->device, back ? state : list, back ? list : state, bytes));
    }
    return MIXT_OK;
}

/** From 0 on, a pass leaves what it adds: m·b. */
static mixt_status clear_statistics(mixt__trainer *t, int64_t index)
{
    mixt__ranks *r = &t->ranks;
    if (index == mixt__ranks_first(t))
        MIXT_TRY(copy_moved(t, r->sums.start, false));
    for (int64_t i = 0; i < r->sums.moved_count; i++)
        MIXT_TRY(mixt__device_zero(t->device, mixt__params_state(t->params) + r->sums.moved[i].offset,
                                   (size_t)r->sums.moved[i].count * sizeof(float)));
    return MIXT_OK;
}

/** On a device with memory of its own. */
static mixt_status begin_pass_apart(mixt__trainer *t, bool last, int which, mixt__run *run)
{
    t->ranks.overlap.begun = false;
    if (!last || !t->ranks.overlap.buckets || t->ranks.local.local)
        return mixt__ranks_begin_reading(t, which, run);
    MIXT_TRY(mixt__device_sums_begin(t, run));
    t->ranks.overlap.begun =
        t->ranks.shards.reading && t->ranks.overlap.overlap; // whose thread sums between fetches of weights
    return MIXT_OK;
}

mixt_status mixt__ranks_before_pass(mixt__trainer *t, int64_t index, mixt__run *run)
{
    mixt__ranks *r = &t->ranks;
    if (r->sums.moved_count)
        MIXT_TRY(clear_statistics(t, index));
    bool last = index + 1 == mixt__ranks_first(t) + mixt__ranks_passes(t), shared = mixt__sharded_gradients(r);
    int which = t->instrumenting ? MIXT_GATHER_INSTRUMENTED : MIXT_GATHER_TRAIN;
    if (!t->device->backend->host_memory)
        return begin_pass_apart(t, last, which, run);
    r->overlap.begun = r->overlap.overlap && last && !r->local.local;
    if (!r->overlap.begun)
        return mixt__ranks_begin_reading(t, which, run);
    if (shared)
        mixt__sharded_begin(t);
    else
        mixt__overlap_begin(r->overlap.overlap, r->overlap.buckets, r->overlap.bucket_count);
    if (shared || mixt__trainer_runs_planned(t)) {
        run->passed = mixt__sharded_node;
        run->user = t;
    }
    return MIXT_OK;
}

mixt_status mixt__ranks_after_pass(mixt__trainer *t, int64_t index)
{
    if (!t->ranks.overlap.begun)
        MIXT_TRY(mixt__ranks_end_reading(t, MIXT_OK));
    return copy_moved(t, t->ranks.sums.added + index * t->ranks.sums.moved_total, false);
}

/** All that the passes add, in their order, on top of what was there before the update. */
static mixt_status move_statistics(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    for (int64_t p = 0; p < t->settings.accumulate && r->sums.moved_count; p++) {
        float *to = r->sums.start;
        const float *share = r->sums.added + p * r->sums.moved_total;
        for (int64_t i = 0; i < r->sums.moved_count; i++)
            for (int64_t k = 0; k < r->sums.moved[i].count; k++, to++, share++)
                *to = (float)((1 - r->sums.moved[i].share) * (double)*to + (double)*share);
    }
    return copy_moved(t, r->sums.start, true);
}

/* ---- parts ---- */

mixt_status mixt__ranks_end_part(mixt__trainer *t, int64_t part)
{
    mixt__ranks *r = &t->ranks;
    if (t->settings.ranks == 1 || r->group)
        return MIXT_OK;
    mixt__sum_part(r->sums.sum, mixt__ranks_gradients(t), t->params->total, r->format, part,
                   part + 1 == t->settings.ranks);
    return MIXT_OK;
}

static void fill_record(mixt__trainer *t, const mixt__pass_weights *weights)
{
    mixt__ranks *r = &t->ranks;
    mixt__rank_record *mine = (mixt__rank_record *)(void *)r->sums.mine;
    int64_t passes = mixt__ranks_passes(t), first = mixt__ranks_first(t);
    *mine = (mixt__rank_record){.update = t->attempts, .targets = weights->total};
    mine->hashed = r->sums.hashed;
    mine->hash = r->sums.hash;
    mine->signal = r->sums.signal;
    mine->asked = r->sums.asked;
    mine->damage = mixt__integrity_tell(t);
    float *figures = (float *)(void *)(mine + 1);
    memcpy(figures, mixt__feed_result(&t->feed)->metrics[first], (size_t)passes * MIXT_PASS_FIGURES * sizeof *figures);
    if (r->sums.moved_total)
        memcpy(figures + passes * MIXT_PASS_FIGURES, r->sums.added + first * r->sums.moved_total,
               (size_t)(passes * r->sums.moved_total) * sizeof *figures);
}

static const mixt__rank_record *record_of(const mixt__trainer *t, int rank)
{
    return (const mixt__rank_record *)(const void *)(t->ranks.sums.all +
                                                     (size_t)rank *
                                                         mixt__ranks_record_bytes(t, t->ranks.sums.moved_total));
}

/** One rank's record, in the order of ranks. */
static mixt_status read_record(mixt__trainer *t, int rank, mixt__pass_weights *weights)
{
    mixt__ranks *r = &t->ranks;
    int64_t passes = mixt__ranks_passes(t), first = rank * passes;
    const mixt__rank_record *told = record_of(t, rank);
    const float *figures = (const float *)(const void *)(told + 1);
    if (told->update != t->attempts)
        return mixt__fail(MIXT_ERROR_STATE, "rank %d is at update %lld, rank %d at %lld", rank, (long long)told->update,
                          r->group->rank, (long long)t->attempts);
    weights->total += told->targets;
    r->sums.agreed_signal = r->sums.agreed_signal ? r->sums.agreed_signal : told->signal;
    r->sums.agreed_asked |= told->asked;
    memcpy(mixt__feed_result(&t->feed)->metrics[first], figures, (size_t)passes * MIXT_PASS_FIGURES * sizeof *figures);
    if (r->sums.moved_total)
        memcpy(r->sums.added + first * r->sums.moved_total, figures + passes * MIXT_PASS_FIGURES,
               (size_t)(passes * r->sums.moved_total) * sizeof *figures);
    return MIXT_OK;
}

/** This rank has failed in its passes. */
static mixt_status leave(mixt__ranks *r, mixt_status status)
{
    if (r->overlap.overlap && (r->overlap.begun || r->shards.reading))
        mixt__overlap_cancel(r->overlap.overlap);
    r->shards.reading = NULL;
    mixt__group_give_up(r->group);
    return status;
}

static mixt_status join_ranks(mixt__trainer *t, mixt_status status, mixt__pass_weights *weights)
{
    mixt__ranks *r = &t->ranks;
    if (status != MIXT_OK)
        return leave(r, status);
    if (!r->discrete.sums && !r->local.local) {
        if (!r->overlap.begun)
            mixt__overlap_begin(r->overlap.overlap, r->overlap.buckets, r->overlap.bucket_count);
        r->overlap.begun = false;
        MIXT_TRY(mixt__sharded_finish(r));
    }
    fill_record(t, weights);
    MIXT_TRY(
        mixt__group_gather(r->group, r->sums.mine, mixt__ranks_record_bytes(t, r->sums.moved_total), r->sums.all, 1));
    weights->total = 0;
    r->sums.agreed_signal = 0;
    r->sums.agreed_asked = 0;
    for (int rank = 0; rank < r->group->size; rank++) {
        status = read_record(t, rank, weights);
        r->group->settled = status != MIXT_OK; // all ranks read the same
        MIXT_TRY(status);
    }
    r->sums.asked = 0;
    mixt__integrity_hear(t, &record_of(t, 0)->damage, mixt__ranks_record_bytes(t, r->sums.moved_total), r->group->size,
                         false);
    if (!r->sums.hashed || r->sums.hashed + 1 != t->attempts || t->integrity.known) // weights are known to be damaged
        return MIXT_OK;
    for (int rank = 0; rank < r->group->size; rank++)
        r->group->cuts[rank] = record_of(t, rank)->hash;
    status = mixt__rank_hash_compare(t, r->group->cuts);
    r->group->settled = status != MIXT_OK;
    return status;
}

mixt_status mixt__ranks_join(mixt__trainer *t, mixt_status status, mixt__pass_weights *weights)
{
    if (t->settings.ranks == 1)
        return status;
    MIXT_TRY(t->ranks.group ? join_ranks(t, status, weights) : status);
    if (t->ranks.group && !t->device->backend->host_memory && mixt__sharded_gradients(&t->ranks)) {
        if (!t->ranks.discrete.sums) // else they are there
            MIXT_TRY(mixt__discrete_put_sums(t));
        return move_statistics(t);
    }
    const float *sum = t->ranks.group ? mixt__ranks_gradients(t) : t->ranks.sums.sum;
    if (sum != mixt__params_gradients(t->params) && !t->ranks.local.local)
        MIXT_TRY(mixt__device_copy(t->device, mixt__params_gradients(t->params), sum, gradient_bytes(t->params)));
    return move_statistics(t);
}

mixt_status mixt__ranks_measure(mixt__trainer *t, const mixt__update *update)
{
    return t->ranks.group && mixt__sharded_gradients(&t->ranks) ? mixt__sharded_measure(t, update)
                                                                : mixt__device_gradient_stats(t->device, update);
}

mixt_status mixt__ranks_control(mixt__trainer *t, mixt__update *update)
{
    return t->ranks.local.local ? mixt__local_control(t, update) : mixt__device_step_control(t->device, update);
}

mixt_status mixt__ranks_apply(mixt__trainer *t, const mixt__update *update)
{
    MIXT_TRY(mixt__ranks_sharded(t) ? mixt__sharded_apply(t, update) : mixt__device_optimizer_step(t->device, update));
    if (t->ranks.local.local)
        MIXT_TRY(mixt__local_finish(t));
    return t->ranks.group ? mixt__rank_hash_take(t) : MIXT_OK;
}
