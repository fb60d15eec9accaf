/* Planning owners, sums to their owners, the update of the own slices. */
#include "train/dist/sharded.h"

#include "train/lengths.h"

#include "num/num.h"
#include "train/dist/discrete.h"
#include "train/dist/lamb.h"
#include "train/trainer_inside.h"

#include <string.h>

bool mixt__sharded_gradients(const mixt__ranks *r)
{
    return r->shards.owners.ranks && r->shards.zero >= 2;
}

/* ---- planning ---- */

/** Elements of a group: small against all, else memory is taken by whole models that are under way. */
static int64_t group_limit(const mixt__params *p, const mixt__ranks *r)
{
    enum { PARTS = 32 };
    int64_t limit = p->total / PARTS;
    for (int64_t s = 0; s < p->segment_count; s++)
        limit = p->segments[s].count > limit ? p->segments[s].count : limit;
    return limit < r->overlap.bucket ? limit : r->overlap.bucket;
}

/** Where each segment's gradient is made. */
static void place_segments(const mixt__ranks *r, const mixt__params *p, int64_t *window_at)
{
    for (int64_t g = 0; g < r->shards.owners.groups; g++)
        for (int64_t s = r->shards.owners.firsts[g]; s < r->shards.owners.firsts[g + 1]; s++)
            window_at[s] = r->shards.window.at[g] + p->segments[s].offset - r->shards.owners.begins[g];
}

static void list_slices(const mixt__trainer *t, mixt__param_slice *slices)
{
    const mixt__ranks *r = &t->ranks;
    int64_t rank = r->group ? r->group->rank : 0, at = 0;
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        int64_t begin = mixt__owners_cut(&r->shards.owners, t->params, g, rank);
        slices[g] = (mixt__param_slice){begin, mixt__owners_cut(&r->shards.owners, t->params, g, rank + 1) - begin, at};
        at += slices[g].count;
    }
}

/** Elements of the spaces of moments in codes that any rank has, at most. */
static void measure_spaces(const mixt__trainer *t, int64_t room[MIXT_SPACES])
{
    const mixt__owners *o = &t->ranks.shards.owners;
    const mixt__params *p = t->params;
    for (int space = 0; space < MIXT_SPACES && p->codes.begin[space]; space++)
        for (int64_t rank = 0; rank < o->ranks; rank++) {
            int64_t own = 0;
            for (int64_t g = 0; g < o->groups; g++)
                own += mixt__params_in_space(p, space, mixt__owners_cut(o, p, g, rank + 1)) -
                       mixt__params_in_space(p, space, mixt__owners_cut(o, p, g, rank));
            room[space] = own > room[space] ? own : room[space];
        }
}

static mixt_status share_out(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    mixt__params_shard shard = {.moments = true, .room = r->shards.owners.room, .slice_count = r->shards.owners.groups};
    shard.window = r->shards.window.total;
    shard.masters = r->shards.zero >= 3;
    shard.gathered = r->shards.gathers[MIXT_GATHER_TRAIN].bytes;
    shard.place = mixt__gather_address;
    shard.gradients = mixt__sharded_gradients(r) && mixt__ranks_passes(t) == 1 &&
                      shard.window + shard.room < t->params->total; // else they are summed where they are made
    measure_spaces(t, shard.space_room);
    shard.slices = mixt__alloc((size_t)(shard.slice_count + 1) * sizeof *shard.slices);
    shard.window_at = mixt__alloc((size_t)(t->params->segment_count + 1) * sizeof *shard.window_at);
    mixt_status status = MIXT_ERROR_MEMORY;
    if (shard.slices && shard.window_at) {
        list_slices(t, shard.slices);
        if (shard.gradients)
            place_segments(r, t->params, shard.window_at);
        status = mixt__params_share_out(t->params, &shard);
    }
    if (status == MIXT_OK)
        mixt__params_place_copies(t->params, t->train->graph);
    mixt__free(shard.slices);
    mixt__free(shard.window_at);
    return status;
}

mixt_status mixt__sharded_plan(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    int64_t ranks = t->settings.ranks;
    if (!r->shards.zero || ranks == 1 || (!r->group && !r->planned) || !t->params->total)
        return MIXT_OK;
    bool blocks = t->params->codes.begin[0];                          // which no cut may part
    bool cut = r->shards.zero >= 2 || mixt__lamb_shared(t) || blocks; // whose sums are put together
    int64_t limit = r->shards.zero >= 2 ? group_limit(t->params, r) : 0,
            chunk = cut ? t->device->backend->update_chunk : 0;
    MIXT_TRY(mixt__owners_make(&r->shards.owners, t->params, ranks, limit, chunk));
    if (!t->device->backend->host_memory)
        MIXT_TRY(mixt__discrete_plan(t));
    if (r->shards.zero >= 2)
        MIXT_TRY(mixt__stage_make(&r->shards.window, t->train->graph, t->params, &r->shards.owners));
    mixt__params_place_copies(t->params, t->train->graph);
    if (r->shards.zero >= 3)
        MIXT_TRY(
            mixt__gather_make(&r->shards.gathers[MIXT_GATHER_TRAIN], t->train->graph, t->params, &r->shards.owners));
    return share_out(t);
}

mixt_status mixt__sharded_plan_reading(mixt__trainer *t, const mixt__executable *e, int which)
{
    mixt__gather *a = &t->ranks.shards.gathers[which];
    if (!t->params->shard.masters)
        return MIXT_OK;
    MIXT_TRY(mixt__gather_make(a, e->graph, t->params, &t->ranks.shards.owners));
    if (which == MIXT_GATHER_INSTRUMENTED &&
        (a->bytes > t->params->shard.gathered ||
         mixt__gather_host_bytes(a) > mixt__gather_host_bytes(&t->ranks.shards.gathers[MIXT_GATHER_TRAIN])))
        return mixt__fail(MIXT_ERROR_STATE, "a step with statistics of layers gathers more weights than was planned");
    return MIXT_OK;
}

size_t mixt__sharded_host_bytes(const mixt__trainer *t, int which)
{
    bool none = t->device->backend->host_memory || t->ranks.discrete.on_device;
    return none ? 0 : mixt__gather_host_bytes(&t->ranks.shards.gathers[which]);
}

void mixt__sharded_bind(mixt__trainer *t, mixt__executable *e, int which, char *window, float *seed)
{
    char *host = which == MIXT_GATHER_EVAL ? t->eval_gathered : t->ranks.discrete.gathered;
    mixt__gather_place(&t->ranks.shards.gathers[which], window, host);
    t->params->shard.user = &t->ranks.shards.gathers[which];
    mixt__executable_bind(e, t->params, seed);
}

/* ---- what is sent ---- */

static int64_t rank_of(const mixt__ranks *r)
{
    return r->group ? r->group->rank : 0;
}

static mixt__owner_size own_share(const mixt__trainer *t)
{
    return mixt__owners_size(&t->ranks.shards.owners, t->params, rank_of(&t->ranks));
}

int64_t mixt__sharded_sent_weights(const mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    if (!r->shards.owners.ranks)
        return 0;
    if (t->params->shard.masters)
        return mixt__gather_sent(&r->shards.gathers[MIXT_GATHER_TRAIN], rank_of(r)) * mixt__ranks_passes(t);
    return own_share(t).elements * (int64_t)sizeof(float) * (r->shards.owners.ranks - 1);
}

int64_t mixt__sharded_sent_statistics(const mixt__trainer *t)
{
    const mixt__ranks *r = &t->ranks;
    int64_t bytes = mixt__sharded_gradients(r) ? (int64_t)sizeof(mixt__segment_stats) : 0;
    if (!r->shards.owners.ranks)
        return 0;
    bytes += mixt__lamb_shared(t) ? 2 * (int64_t)sizeof(double) : 0;
    return own_share(t).chunks * bytes * (r->shards.owners.ranks - 1);
}

int64_t mixt__sharded_sent_gradients(const mixt__trainer *t)
{
    return (t->params->total - own_share(t).elements) * (int64_t)mixt_dtype_size(t->ranks.format);
}

/* ---- sums ---- */

int64_t mixt__sharded_largest(const mixt__ranks *r)
{
    const mixt__owners *s = &r->shards.owners;
    int64_t most = 1;
    for (int64_t g = 0; g < s->groups; g++)
        most = s->begins[g + 1] - s->begins[g] > most ? s->begins[g + 1] - s->begins[g] : most;
    return most;
}

int64_t mixt__sharded_buckets(const mixt__ranks *r, mixt__bucket *buckets)
{
    for (int64_t i = 0; i < r->shards.window.count; i++) {
        int64_t g = r->shards.window.order[i], begin = r->shards.owners.begins[g];
        buckets[i] = (mixt__bucket){.begin = begin, .count = r->shards.owners.begins[g + 1] - begin, .group = g};
        buckets[i].ready = r->shards.window.ready[g];
    }
    return r->shards.window.count;
}

/** Of a group, so that element 0 is the first of the own slice's arenas. */
static float *own_gradients(const mixt__params *p, int64_t group)
{
    const mixt__param_slice *slice = &p->shard.slices[group];
    return p->shard.gradients ? mixt__params_own_gradients(p) : mixt__params_gradients(p) + (slice->begin - slice->at);
}

float *mixt__sharded_mine(const mixt__trainer *t, int64_t group)
{
    return own_gradients(t->params, group) + t->params->shard.slices[group].at;
}

float *mixt__sharded_made(const mixt__params *params, const mixt__ranks *r, const mixt__bucket *b)
{
    bool window = params->shard.gradients;
    return mixt__params_gradients(params) + (window ? r->shards.window.at[b->group] : b->begin);
}

mixt_status mixt__sharded_sum(mixt__trainer *t, const mixt__bucket *b)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    const mixt__param_slice *slice = &p->shard.slices[b->group];
    bool host = t->device->backend->host_memory;
    float *made = host ? mixt__sharded_made(t->params, r, b) : r->discrete.staged + b->begin;
    float *mine = host ? mixt__sharded_mine(t, b->group) : r->discrete.staged + slice->begin;
    mixt__owners_cuts(&r->shards.owners, p, b->group, r->shards.cuts);
    return mixt__group_reduce(r->group, made, r->shards.cuts, r->overlap.step, r->format, r->sums.workspace, mine);
}

void mixt__sharded_mark(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    if (t->instrumenting)
        r->shards.window.graph = NULL; // it may be another in the same place
    mixt__stage_mark(&r->shards.window, mixt__lengths_step(t)->graph, t->params, &r->shards.owners);
    (void)mixt__sharded_buckets(r, r->overlap.buckets);
    r->shards.taken = 0;
}

void mixt__sharded_begin(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    mixt__sharded_mark(t);
    if (!t->params->shard.masters) {
        mixt__overlap_begin(r->overlap.overlap, r->overlap.buckets, r->overlap.bucket_count);
    } else {
        r->shards.reading = &r->shards.gathers[t->instrumenting ? MIXT_GATHER_INSTRUMENTED : MIXT_GATHER_TRAIN];
        r->shards.reading->own = mixt__params_weights(t->params);
        mixt__gather_list(r->shards.reading, r->overlap.buckets, r->overlap.bucket_count);
        mixt__overlap_begin(r->overlap.overlap, r->shards.reading->jobs, r->shards.reading->job_count);
        mixt__overlap_passed(r->overlap.overlap, -1);
    }
    mixt__sharded_passed(t, -1);
}

/** Gradients that no node makes are 0. */
static void clear_unwritten(const mixt__params *p, const mixt__ranks *r, int64_t group)
{
    for (int64_t s = r->shards.owners.firsts[group]; s < r->shards.owners.firsts[group + 1]; s++)
        if (!r->shards.window.written[s])
            memset(mixt__params_gradients(p) + p->shard.window_at[s], 0, (size_t)p->segments[s].count * sizeof(float));
}

void mixt__sharded_passed(mixt__trainer *t, int64_t node)
{
    mixt__ranks *r = &t->ranks;
    const mixt__stage *w = &r->shards.window;
    mixt__gather *a = r->shards.reading;
    for (; t->params->shard.gradients && r->shards.taken < w->count; r->shards.taken++) {
        int64_t group = w->takes[r->shards.taken], needs = w->needs[group];
        if (w->first[group] > node + 1)
            break;
        if (needs)
            mixt__overlap_wait(r->overlap.overlap, a ? a->sum_job[needs - 1] : needs);
        clear_unwritten(t->params, r, group);
    }
    for (; a && a->next < a->count && a->stays[a->next].first <= node + 1; a->next++)
        mixt__overlap_wait(r->overlap.overlap, a->fetch_job[a->next]);
}

void mixt__sharded_node(void *user, int64_t node)
{
    mixt__trainer *t = user;
    mixt__overlap_passed(t->ranks.overlap.overlap, node);
    if (mixt__sharded_gradients(&t->ranks))
        mixt__sharded_passed(t, node);
}

mixt_status mixt__ranks_begin_reading(mixt__trainer *t, int which, mixt__run *run)
{
    mixt__ranks *r = &t->ranks;
    if (!r->group || !t->params->shard.masters)
        return MIXT_OK;
    if (!r->shards.cuts)
        return mixt__fail(MIXT_ERROR_STATE, "sharded weights cannot be read before training has its memory");
    r->shards.taken = r->shards.window.count; // it makes no gradients
    if (!t->device->backend->host_memory)
        return mixt__discrete_begin_reading(t, which, run);
    r->shards.reading = &r->shards.gathers[which];
    r->shards.reading->own = mixt__params_weights(t->params);
    mixt__gather_list(r->shards.reading, NULL, 0);
    mixt__overlap_begin(r->overlap.overlap, r->shards.reading->jobs, r->shards.reading->job_count);
    mixt__sharded_node(t, -1);
    run->passed = mixt__sharded_node;
    run->user = t;
    return MIXT_OK;
}

mixt_status mixt__ranks_end_reading(mixt__trainer *t, mixt_status status)
{
    mixt__ranks *r = &t->ranks;
    if (!r->shards.reading)
        return status;
    bool alone = r->shards.reading == &r->shards.gathers[MIXT_GATHER_EVAL]; // no part of an update, which waits itself
    r->shards.reading = NULL;
    if (status == MIXT_OK && !t->device->backend->host_memory)
        status = r->discrete.sum_status;
    if (r->discrete.sums)
        return status == MIXT_OK && alone ? mixt__group_await(r->group, r->discrete.sums) : status;
    if (status != MIXT_OK)
        mixt__overlap_cancel(r->overlap.overlap);
    return status == MIXT_OK ? mixt__overlap_finish(r->overlap.overlap) : status;
}

mixt_status mixt__sharded_finish(mixt__ranks *r)
{
    mixt_status status = mixt__overlap_finish(r->overlap.overlap);
    for (int64_t i = 0; r->shards.reading && i < r->overlap.bucket_count; i++)
        r->overlap.buckets[i] = r->shards.reading->jobs[r->shards.reading->sum_job[i] - 1]; // with their times
    r->shards.reading = NULL;
    return status;
}

/* ---- the own slices ---- */

/** Moments in codes, of a part of a segment: in this rank's arenas. */
static void place_moments(const mixt__params *p, int64_t group, mixt__segment *cut)
{
    const mixt__params_codes *c = &p->codes;
    if (!c->begin[0])
        return;
    const mixt__param_slice *moments = &c->slices[cut->coded ? MIXT_SPACE_CODES : MIXT_SPACE_WIDE][group];
    const mixt__param_slice *scales = &c->slices[MIXT_SPACE_SCALES][group];
    cut->moment_offset -= moments->begin - moments->at;
    cut->scale_offset -= scales->begin - scales->at;
}

void mixt__sharded_list(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    int64_t own = 0, chunks = 0, chunk = r->shards.owners.chunk;
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        const mixt__param_slice *slice = &p->shard.slices[g];
        r->shards.own_first[g] = own;
        if (r->shards.chunk_first)
            r->shards.chunk_first[g] = chunks;
        for (int64_t s = r->shards.owners.firsts[g]; s < r->shards.owners.firsts[g + 1]; s++) {
            mixt__segment cut = mixt__owners_segment(p, s, slice->begin, slice->begin + slice->count);
            if (!cut.count)
                continue;
            int64_t made = cut.offset; // all gradients are there, or the own
            cut.offset -= slice->begin - slice->at;
            place_moments(p, g, &cut);
            made = p->shard.gradients ? cut.offset : made;
            cut.low = p->shard.masters ? MIXT_DTYPE_NONE : cut.low; // it is rounded when it is gathered
            r->shards.own[own++] = cut;
            for (int64_t done = 0; r->shards.chunks && done < cut.count; done += chunk) {
                int64_t left = cut.count - done;
                r->shards.chunks[chunks++] =
                    (mixt__segment){made + done, left < chunk ? left : chunk, .low = MIXT_DTYPE_NONE};
            }
        }
    }
    r->shards.own_first[r->shards.owners.groups] = own;
    if (!r->shards.chunk_first)
        return;
    r->shards.chunk_first[r->shards.owners.groups] = chunks;
    r->shards.rank_chunks[0] = 0;
    for (int64_t rank = 0; rank < r->shards.owners.ranks; rank++)
        r->shards.rank_chunks[rank + 1] =
            r->shards.rank_chunks[rank] + mixt__owners_size(&r->shards.owners, p, rank).chunks;
}

/** Chunks of the own gradients, to this rank's place among all. */
static mixt_status measure_own(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    mixt__segment_stats *mine = r->shards.chunk_stats + r->shards.rank_chunks[r->group->rank];
    mixt__update own = *update;
    own.segments = r->shards.chunks;
    own.segment_count = r->shards.chunk_first[r->shards.owners.groups];
    own.gradient.data =
        t->params->shard.gradients ? mixt__params_own_gradients(t->params) : mixt__params_gradients(t->params);
    own.backward_order = NULL;
    own.stats = mine;
    if (!own.segment_count)
        return MIXT_OK;
    return t->device->backend->host_memory ? mixt__device_gradient_stats(t->device, &own)
                                           : mixt__discrete_measure(t, &own);
}

void mixt__sharded_order(mixt__trainer *t, const void *chunks, size_t size, void *ordered)
{
    const mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    int64_t *next = r->shards.cuts; // by rank: its next chunk
    char *to = ordered;
    memcpy(next, r->shards.rank_chunks, (size_t)r->shards.owners.ranks * sizeof *next);
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        int64_t rank = 0, end = mixt__owners_cut(&r->shards.owners, p, g, 1);
        for (int64_t s = r->shards.owners.firsts[g]; s < r->shards.owners.firsts[g + 1]; s++)
            for (int64_t at = 0; at < p->segments[s].count; at += r->shards.owners.chunk, to += size) {
                while (p->segments[s].offset + at >= end)
                    end = mixt__owners_cut(&r->shards.owners, p, g, ++rank + 1);
                memcpy(to, (const char *)chunks + (size_t)next[rank]++ * size, size);
            }
    }
}

mixt_status mixt__sharded_measure(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    MIXT_TRY(measure_own(t, update));
    MIXT_TRY(mixt__group_gather_parts(r->group, r->shards.chunk_stats, r->shards.rank_chunks,
                                      sizeof *r->shards.chunk_stats));
    mixt__segment_stats *ordered = r->shards.chunk_stats + r->shards.owners.chunks;
    mixt__segment_stats *stats = t->device->backend->host_memory ? update->stats : r->discrete.segment_stats;
    mixt__sharded_order(t, r->shards.chunk_stats, sizeof *ordered, ordered);
    for (int64_t s = 0; s < p->segment_count; s++) {
        int64_t count = mixt__update_chunks(&p->segments[s], 1, r->shards.owners.chunk);
        t->device->backend->join_stats(ordered, count, &stats[s]);
        ordered += count;
    }
    if (stats == update->stats)
        return MIXT_OK;
    return mixt__device_copy(t->device, update->stats, stats, (size_t)p->segment_count * sizeof *stats);
}

/** Rounds all masters to their working copies: those of other ranks have come without. */
static void round_copies(const mixt__params *p)
{
    for (int64_t s = 0; s < p->segment_count; s++) {
        const mixt__segment *g = &p->segments[s];
        if (g->low != MIXT_DTYPE_NONE)
            mixt__narrow(g->low)(mixt__role_at(&p->roles[MIXT_PARAM_COPY + (int)g->low], g->low_offset),
                                 mixt__params_weights(p) + g->offset, g->count);
    }
}

/** An update of this rank's part of a group. */
static mixt__update update_of(const mixt__trainer *t, const mixt__update *update, int64_t group)
{
    const mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    const mixt__param_slice *slice = &p->shard.slices[group];
    mixt__update own = *update;
    own.segments = r->shards.own + r->shards.own_first[group];
    own.segment_count = r->shards.own_first[group + 1] - r->shards.own_first[group];
    own.total = p->shard.room;
    own.weight.data = mixt__params_weights(p) + (p->shard.masters ? 0 : slice->begin - slice->at);
    own.gradient.data = own_gradients(p, group);
    own.statistics_count = group ? 0 : update->statistics_count; // they are settled once
    for (int i = 0; i < 2; i++)
        own.sums[i] = update->sums[i] ? update->sums[i] + r->shards.own_first[group] : NULL;
    return own;
}

mixt_status mixt__sharded_each(mixt__trainer *t, const mixt__update *update, mixt__sharded_group_fn *fn, void *user)
{
    char *workspace = t->ranks.discrete.own_workspace;
    for (int64_t g = 0; g < t->ranks.shards.owners.groups; g++) {
        mixt__update own = update_of(t, update, g);
        if (workspace) {
            own.workspace = workspace;
            workspace += mixt__discrete_workspace(t->device, own.segments, own.segment_count);
        }
        if (own.segment_count || own.statistics_count)
            MIXT_TRY(fn(user, &own, g));
    }
    return MIXT_OK;
}

static mixt_status step_group(void *user, const mixt__update *own, int64_t group)
{
    (void)group;
    return mixt__device_optimizer_step(((mixt__trainer *)user)->device, own);
}

mixt_status mixt__sharded_update(mixt__trainer *t, const mixt__update *update)
{
    return mixt__lamb_shared(t) ? mixt__lamb_update(t, update) : mixt__sharded_each(t, update, step_group, t);
}

mixt_status mixt__sharded_apply(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    const mixt__params *p = t->params;
    if (!t->device->backend->host_memory)
        return mixt__discrete_apply(t, update);
    MIXT_TRY(mixt__sharded_update(t, update));
    if (t->control->found_inf || p->shard.masters) // on all ranks
        return MIXT_OK;
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        mixt__owners_cuts(&r->shards.owners, p, g, r->shards.cuts);
        MIXT_TRY(mixt__group_gather_parts(r->group, mixt__params_weights(p) + r->shards.owners.begins[g],
                                          r->shards.cuts, sizeof(float)));
    }
    round_copies(t->params);
    return MIXT_OK;
}

/** One role. @param own of this rank, on the host. @param all of rank 0; else NULL */
static mixt_status collect(mixt__trainer *t, const mixt__param_role *role, const char *own, char *all)
{
    mixt__ranks *r = &t->ranks;
    size_t unit = mixt_dtype_size(role->format);
    int space = mixt__params_space_of((int)(role - t->params->roles));
    for (int64_t g = 0; g < r->shards.owners.groups; g++) {
        mixt__owners_cuts(&r->shards.owners, t->params, g, r->shards.cuts);
        for (int64_t rank = 0; space >= 0 && t->params->codes.begin[space] && rank <= r->shards.owners.ranks; rank++)
            r->shards.cuts[rank] = mixt__params_in_space(t->params, space, r->shards.cuts[rank]);
        MIXT_TRY(mixt__group_collect_parts(r->group, own + mixt__role_size(role, role->slices[g].at),
                                           all ? all + mixt__role_size(role, r->shards.cuts[0]) : NULL, r->shards.cuts,
                                           unit));
    }
    return MIXT_OK;
}

/** The same from where the trainer has it. */
static mixt_status collect_now(mixt__trainer *t, int id, char *all)
{
    const mixt__param_role *role = &t->params->roles[id];
    float *room = id == MIXT_PARAM_WEIGHT ? t->ranks.discrete.masters : t->ranks.discrete.staged;
    if (t->device->backend->host_memory)
        return collect(t, role, role->data, all);
    MIXT_TRY(mixt__device_download(t->device, room, role->data, role->bytes));
    return collect(t, role, (const char *)room, all);
}

mixt_status mixt__sharded_collect_masters(mixt__trainer *t, float *all)
{
    return collect_now(t, MIXT_PARAM_WEIGHT, (char *)all);
}

mixt_status mixt__sharded_collect(mixt__trainer *t, const mixt__ranks_own *own, char *const *roles)
{
    for (int id = 0; id < MIXT_PARAM_ROLES; id++) {
        const mixt__param_role *role = &t->params->roles[id];
        if (mixt__role_saved(role) && role->owner == MIXT_OWNER_SHARD)
            MIXT_TRY(own ? collect(t, role, own->roles[id], roles[id]) : collect_now(t, id, roles[id]));
    }
    return MIXT_OK;
}
