/* Blocks of memory, buckets of gradients, the thread that sums them. */
#include "train/dist/ranks_memory.h"

#include "base/threads.h"
#include "graph/op.h"
#include "train/dist/lamb.h"
#include "train/dist/local.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <string.h>

float *mixt__ranks_gradients(const mixt__trainer *t)
{
    return t->device->backend->host_memory || t->ranks.discrete.sums ? mixt__params_gradients(t->params)
                                                                     : t->ranks.discrete.staged;
}

static size_t gradient_bytes(const mixt__params *params)
{
    return (size_t)params->total * sizeof(float);
}

/** Running statistics that a pass moves, of each the share by which it does. */
static int64_t list_moved(const mixt__trainer *t, mixt__moved *list, int64_t *total)
{
    const mixt__graph *g = t->train->graph;
    int64_t count = 0;
    *total = 0;
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        double share;
        if (!n->op->moves || !n->op->moves(n, &share) || n->recomputed)
            continue;
        for (int k = 0; k < n->in_count; k++) {
            const mixt__value *v = &g->values[n->in[k]];
            if (!mixt__bit(n->op->written_inputs, k) || v->role != MIXT_ROLE_STATE)
                continue;
            mixt__moved moved = {t->params->state_offset[v->param], mixt__shape_count(&v->shape), share};
            *total += moved.count;
            if (list)
                list[count] = moved;
            count++;
        }
    }
    return count;
}

/* In whole records' alignment. */
size_t mixt__ranks_record_bytes(const mixt__trainer *t, int64_t moved)
{
    size_t figures = (size_t)(mixt__ranks_passes(t) * (MIXT_PASS_FIGURES + moved)) * sizeof(float),
           unit = _Alignof(mixt__rank_record);
    return sizeof(mixt__rank_record) + (figures + unit - 1) / unit * unit;
}

/** Elements of a bucket: what is asked for, or all. */
static int64_t bucket_of(const mixt__trainer *t)
{
    int64_t asked = t->ranks.overlap.bucket,
            total = mixt__sharded_gradients(&t->ranks) ? mixt__sharded_largest(&t->ranks) : t->params->total;
    return asked < total ? asked : total > 0 ? total : 1;
}

static int64_t count_buckets(const mixt__trainer *t)
{
    int64_t bucket = bucket_of(t);
    if (mixt__sharded_gradients(&t->ranks))
        return t->ranks.shards.owners.groups;
    return (t->params->total + bucket - 1) / bucket;
}

/** Sizes of the blocks, in the order in which they are taken. */
enum {
    BLOCK_MOVED,
    BLOCK_START,
    BLOCK_ADDED,
    BLOCK_SUM,
    BLOCK_WORKSPACE,
    BLOCK_BUCKETS,
    BLOCK_CUTS,
    BLOCK_OWN,
    BLOCK_OWN_FIRST,
    BLOCK_CHUNKS,
    BLOCK_CHUNK_FIRST,
    BLOCK_RANK_CHUNKS,
    BLOCK_CHUNK_STATS,
    BLOCK_LAMB_SUMS,
    BLOCK_LAMB_RATIOS,
    BLOCK_MINE,
    BLOCK_ALL,
    BLOCK_STAGED,
    BLOCK_ARRIVED,
    BLOCK_SEGMENT_STATS,
    BLOCK_MASTERS,
    BLOCK_GATHERED,
    BLOCK_FEEDBACK,
    BLOCK_COMPRESS,
    BLOCKS_HOST = BLOCK_COMPRESS + MIXT_COMPRESS_BLOCKS, // from here on: of the device
    BLOCK_OWN_WORKSPACE = BLOCKS_HOST,
    BLOCK_MEASURE_WORKSPACE,
    BLOCK_OWN_STATS,
    BLOCK_STILL,
    BLOCKS
};

/** Of those that shared state needs. */
static void shared_sizes(const mixt__trainer *t, size_t sizes[BLOCKS])
{
    const mixt__owners *s = &t->ranks.shards.owners;
    size_t firsts = (size_t)(s->groups + 1) * sizeof(int64_t), ranks = (size_t)(s->ranks + 1) * sizeof(int64_t);
    sizes[BLOCK_CUTS] = ranks;
    sizes[BLOCK_OWN] = (size_t)s->most_cuts * sizeof(mixt__segment);
    sizes[BLOCK_OWN_FIRST] = firsts;
    if (!s->chunk)
        return;
    sizes[BLOCK_CHUNKS] = (size_t)s->most_chunks * sizeof(mixt__segment);
    sizes[BLOCK_CHUNK_FIRST] = firsts;
    sizes[BLOCK_RANK_CHUNKS] = ranks;
    if (mixt__lamb_shared(t)) {
        sizes[BLOCK_LAMB_SUMS] = 2 * (size_t)s->chunks * 2 * sizeof(double);
        sizes[BLOCK_LAMB_RATIOS] = (size_t)(t->params->segment_count + s->most_cuts) * sizeof(float);
    }
    if (!mixt__sharded_gradients(&t->ranks))
        return;
    if (!t->ranks.discrete.on_device)
        sizes[BLOCK_WORKSPACE] = mixt__group_reduce_bytes((int)s->ranks, bucket_of(t), t->ranks.format);
    sizes[BLOCK_CHUNK_STATS] = 2 * (size_t)s->chunks * sizeof(mixt__segment_stats);
}

/** Of those that it needs where host and device have memory of their own. */
static void discrete_sizes(const mixt__trainer *t, size_t sizes[BLOCKS])
{
    const mixt__ranks *r = &t->ranks;
    sizes[BLOCK_OWN_WORKSPACE] = r->discrete.update_bytes;
    sizes[BLOCK_STILL] = sizeof *r->discrete.still;
    if (!mixt__sharded_gradients(r))
        return;
    sizes[BLOCK_SEGMENT_STATS] = (size_t)t->params->segment_count * sizeof *r->discrete.segment_stats;
    sizes[BLOCK_MEASURE_WORKSPACE] = r->discrete.measure_bytes;
    sizes[BLOCK_OWN_STATS] = (size_t)r->shards.owners.most_chunks * sizeof *r->discrete.own_stats;
    if (!t->params->shard.masters)
        return;
    sizes[BLOCK_MASTERS] = (size_t)t->params->shard.room * sizeof *r->discrete.masters;
    sizes[BLOCK_GATHERED] = mixt__sharded_host_bytes(t, MIXT_GATHER_TRAIN);
}

static void block_sizes(const mixt__trainer *t, size_t sizes[BLOCKS])
{
    const mixt__ranks *r = &t->ranks;
    mixt__compressor compressor;
    int64_t total, count = list_moved(t, NULL, &total);
    memset(sizes, 0, BLOCKS * sizeof *sizes);
    sizes[BLOCK_BUCKETS] = r->discrete.on_device ? (size_t)count_buckets(t) * sizeof(mixt__bucket) : 0;
    if (t->settings.ranks == 1)
        return;
    sizes[BLOCK_MOVED] = (size_t)count * sizeof(mixt__moved);
    sizes[BLOCK_START] = (size_t)total * sizeof(float);
    sizes[BLOCK_ADDED] = (size_t)(t->settings.accumulate * total) * sizeof(float);
    sizes[BLOCK_STAGED] = t->device->backend->host_memory ? 0 : gradient_bytes(t->params);
    sizes[BLOCK_ARRIVED] = t->device->backend->host_memory ? 0 : (size_t)count_buckets(t) * sizeof *r->discrete.arrived;
    bool alone = !r->group && !r->planned;
    if (mixt__local_plan(t, &compressor)) {
        mixt__compress_sizes(&compressor, sizes + BLOCK_COMPRESS);
        sizes[BLOCK_FEEDBACK] = gradient_bytes(t->params);
        sizes[BLOCK_STILL] = sizeof *r->discrete.still;
    }
    if (alone) {
        sizes[BLOCK_SUM] = gradient_bytes(t->params);
    } else if (!r->discrete.on_device) {
        sizes[BLOCK_BUCKETS] = (size_t)count_buckets(t) * sizeof(mixt__bucket);
        sizes[BLOCK_WORKSPACE] = mixt__group_sum_bytes((int)t->settings.ranks, bucket_of(t), r->format);
    }
    if (alone)
        return;
    sizes[BLOCK_MINE] = mixt__ranks_record_bytes(t, total);
    sizes[BLOCK_ALL] = (size_t)t->settings.ranks * mixt__ranks_record_bytes(t, total);
    if (r->shards.owners.ranks)
        shared_sizes(t, sizes);
    if (r->shards.owners.ranks && !t->device->backend->host_memory)
        discrete_sizes(t, sizes);
}

/** Beside gradients: weights and statistics of what is sharded, and records. */
int64_t mixt__ranks_sent_beside(const mixt__trainer *t)
{
    int64_t others = t->settings.ranks - 1, moved;
    (void)list_moved(t, NULL, &moved);
    return mixt__sharded_sent_weights(t) + mixt__sharded_sent_statistics(t) +
           others * (int64_t)mixt__ranks_record_bytes(t, moved);
}

int64_t mixt__ranks_sent_plain(const mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    int rank = r->group ? r->group->rank : 0, size = (int)t->settings.ranks;
    if (size == 1 || (!r->group && !r->planned))
        return 0;
    if (mixt__sharded_gradients(r))
        return mixt__ranks_sent_beside(t) + mixt__sharded_sent_gradients(t);
    return mixt__ranks_sent_beside(t) + mixt__group_sum_sent(rank, size, t->params->total, bucket_of(t), r->format);
}

static int64_t sent_locally(const mixt__trainer *t, bool last)
{
    int64_t sent = mixt__local_sent(t, last);
    return sent ? mixt__ranks_sent_beside(t) + sent : mixt__ranks_sent_plain(t);
}

int64_t mixt__ranks_sent(const mixt__trainer *t)
{
    return sent_locally(t, false);
}

int64_t mixt__ranks_sent_last(const mixt__trainer *t)
{
    return sent_locally(t, true);
}

static size_t sum_blocks(const size_t sizes[BLOCKS], int first, int end)
{
    size_t sum = 0;
    for (int i = first; i < end; i++)
        sum += sizes[i];
    return sum;
}

size_t mixt__ranks_bytes(const mixt__trainer *t)
{
    size_t sizes[BLOCKS];
    block_sizes(t, sizes);
    return sum_blocks(sizes, t->device->backend->host_memory ? 0 : BLOCKS_HOST, BLOCKS);
}

size_t mixt__ranks_host_bytes(const mixt__trainer *t)
{
    size_t sizes[BLOCKS];
    block_sizes(t, sizes);
    return sum_blocks(sizes, 0, t->device->backend->host_memory ? 0 : BLOCKS_HOST) +
           (sizes[BLOCK_WORKSPACE] ? mixt__overlap_bytes() : 0);
}

static void blocks_of(mixt__ranks *r, void **blocks[BLOCKS])
{
    blocks[BLOCK_MOVED] = (void **)&r->sums.moved;
    blocks[BLOCK_START] = (void **)&r->sums.start;
    blocks[BLOCK_ADDED] = (void **)&r->sums.added;
    blocks[BLOCK_SUM] = (void **)&r->sums.sum;
    blocks[BLOCK_WORKSPACE] = &r->sums.workspace;
    blocks[BLOCK_BUCKETS] = (void **)&r->overlap.buckets;
    blocks[BLOCK_CUTS] = (void **)&r->shards.cuts;
    blocks[BLOCK_OWN] = (void **)&r->shards.own;
    blocks[BLOCK_OWN_FIRST] = (void **)&r->shards.own_first;
    blocks[BLOCK_CHUNKS] = (void **)&r->shards.chunks;
    blocks[BLOCK_CHUNK_FIRST] = (void **)&r->shards.chunk_first;
    blocks[BLOCK_RANK_CHUNKS] = (void **)&r->shards.rank_chunks;
    blocks[BLOCK_CHUNK_STATS] = (void **)&r->shards.chunk_stats;
    blocks[BLOCK_LAMB_SUMS] = (void **)&r->shards.lamb_sums;
    blocks[BLOCK_LAMB_RATIOS] = (void **)&r->shards.lamb_ratios;
    blocks[BLOCK_MINE] = (void **)&r->sums.mine;
    blocks[BLOCK_ALL] = (void **)&r->sums.all;
    blocks[BLOCK_STAGED] = (void **)&r->discrete.staged;
    blocks[BLOCK_ARRIVED] = (void **)&r->discrete.arrived;
    blocks[BLOCK_SEGMENT_STATS] = (void **)&r->discrete.segment_stats;
    blocks[BLOCK_MASTERS] = (void **)&r->discrete.masters;
    blocks[BLOCK_GATHERED] = (void **)&r->discrete.gathered;
    blocks[BLOCK_FEEDBACK] = (void **)&r->local.feedback;
    blocks[BLOCK_OWN_WORKSPACE] = &r->discrete.own_workspace;
    blocks[BLOCK_MEASURE_WORKSPACE] = &r->discrete.measure_workspace;
    blocks[BLOCK_OWN_STATS] = (void **)&r->discrete.own_stats;
    blocks[BLOCK_STILL] = (void **)&r->discrete.still;
    blocks[BLOCK_COMPRESS + MIXT_COMPRESS_PIECES] = (void **)&r->local.compressor.pieces;
    blocks[BLOCK_COMPRESS + MIXT_COMPRESS_FACTORS] = (void **)&r->local.compressor.factors;
    blocks[BLOCK_COMPRESS + MIXT_COMPRESS_WORKSPACE] = &r->local.compressor.workspace;
}

/** What is kept from update to update: it begins with zeros. */
static bool is_state(int block)
{
    return block == BLOCK_FEEDBACK || block == BLOCK_COMPRESS + MIXT_COMPRESS_FACTORS;
}

/** Which bucket is complete when: with the last of its parameters. */
static void fill_buckets(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    int64_t bucket = bucket_of(t);
    r->overlap.bucket_count = count_buckets(t);
    for (int64_t b = 0; b < r->overlap.bucket_count; b++) {
        int64_t begin = b * bucket, left = p->total - begin;
        r->overlap.buckets[b] =
            (mixt__bucket){.begin = begin, .count = left < bucket ? left : bucket, .ready = -1, .group = b};
    }
    for (int64_t s = 0; s < p->segment_count; s++) {
        const mixt__segment *segment = &p->segments[s];
        int64_t made = mixt__trainer_last_writer(t->train->graph, segment->param);
        for (int64_t b = segment->offset / bucket; b * bucket < segment->offset + segment->count; b++)
            if (made > r->overlap.buckets[b].ready)
                r->overlap.buckets[b].ready = made;
    }
    for (int64_t i = 1; i < r->overlap.bucket_count; i++) { // insertion sort: they are nearly in reverse order
        mixt__bucket moved = r->overlap.buckets[i];
        int64_t k = i;
        for (; k > 0 && r->overlap.buckets[k - 1].ready > moved.ready; k--)
            r->overlap.buckets[k] = r->overlap.buckets[k - 1];
        r->overlap.buckets[k] = moved;
    }
}

static mixt_status sum_bucket(void *user, const mixt__bucket *b)
{
    mixt__trainer *t = user;
    const mixt__ranks *r = &t->ranks;
    mixt__gather_means means = mixt__gather_over_hosts(r->group);
    if (b->group < 0)
        return mixt__gather_fetch(r->shards.reading, -1 - b->group, r->shards.cuts, &means);
    if (mixt__sharded_gradients(r))
        return mixt__sharded_sum(t, b);
    return mixt__group_sum(r->group, mixt__ranks_gradients(t) + b->begin, b->count, r->overlap.step, r->format,
                           r->sums.workspace);
}

mixt_status mixt__ranks_take(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    size_t sizes[BLOCKS];
    void **blocks[BLOCKS];
    block_sizes(t, sizes);
    blocks_of(r, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        if (!sizes[i] || *blocks[i])
            continue;
        bool host = i < BLOCKS_HOST && !t->device->backend->host_memory;
        *blocks[i] = host ? mixt__device_alloc_host(t->device, sizes[i]) : mixt__device_alloc(t->device, sizes[i]);
        if (!*blocks[i])
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for an update of %lld ranks (%.1f MiB)",
                              (long long)t->settings.ranks,
                              (double)(mixt__ranks_bytes(t) + mixt__ranks_host_bytes(t)) / 1048576.0);
        if (is_state(i))
            mixt__parallel_zero(*blocks[i], sizes[i]);
    }
    if (r->discrete.gathered)
        memset(r->discrete.gathered, 0, sizes[BLOCK_GATHERED]); // gaps between parameters travel too
    if (r->discrete.still)
        MIXT_TRY(mixt__device_zero(t->device, r->discrete.still, sizeof *r->discrete.still));
    if (r->sums.moved)
        r->sums.moved_count = list_moved(t, r->sums.moved, &r->sums.moved_total);
    if (r->local.compressor.pieces)
        mixt__local_prepare(t);
    MIXT_TRY(mixt__params_allocate_gradients(t->params));
    if (r->shards.own)
        mixt__sharded_list(t);
    if (!r->overlap.buckets)
        return MIXT_OK;
    r->overlap.step = bucket_of(t);
    if (mixt__sharded_gradients(r))
        r->overlap.bucket_count = mixt__sharded_buckets(r, r->overlap.buckets);
    else
        fill_buckets(t);
    if (!r->group || r->discrete.on_device)
        return MIXT_OK;
    return mixt__overlap_start(r->group, sum_bucket, t, &r->overlap.overlap);
}

static void release(mixt__trainer *t, bool state)
{
    void **blocks[BLOCKS];
    mixt__overlap_stop(t->ranks.overlap.overlap);
    t->ranks.overlap.overlap = NULL;
    blocks_of(&t->ranks, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        if (is_state(i) && !state)
            continue;
        if (i < BLOCKS_HOST && !t->device->backend->host_memory)
            mixt__device_free_host(t->device, *blocks[i]);
        else
            mixt__device_free(t->device, *blocks[i]);
        *blocks[i] = NULL;
    }
    t->ranks.sums.moved_count = t->ranks.sums.moved_total = 0;
}

void mixt__ranks_release(mixt__trainer *t)
{
    release(t, true);
}

void mixt__ranks_release_plan(mixt__trainer *t)
{
    release(t, false);
}

void mixt__ranks_forget(mixt__ranks *r)
{
    mixt__owners_free(&r->shards.owners);
    mixt__stage_free(&r->shards.window);
    for (int i = 0; i < MIXT_GATHERS; i++)
        mixt__gather_free(&r->shards.gathers[i]);
}
