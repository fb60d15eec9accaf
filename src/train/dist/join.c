/* Joining others, and questions about them: of the record that the folder itself works on. */
#include "train/dist/join.h"

#include "train/trainer_inside.h"

void mixt__ranks_join_with(mixt__trainer *t, const mixt__joining *how)
{
    mixt__ranks *r = &t->ranks;
    r->group = how->group;
    r->planned = how->planned;
    r->save_parts = true; // until it is known that ranks do not see the same files
    r->format = how->format;
    r->sums.check = how->check;
    r->overlap.bucket = how->bucket;
    r->shards.zero = how->zero;
    r->local.compression = how->compression;
    r->local.compress_after = how->compress_after;
}

void mixt__ranks_join_take(mixt__trainer *t, mixt__group *group, int64_t bucket)
{
    t->ranks.group = t->ranks.joined = group;
    t->ranks.overlap.bucket = bucket;
}

void mixt__ranks_sum_on_device(mixt__trainer *t, mixt__device_sums *sums)
{
    t->ranks.discrete.on_device = true;
    t->ranks.discrete.sums = sums;
}

void mixt__ranks_set_save_parts(mixt__trainer *t, bool parts)
{
    t->ranks.save_parts = parts;
}

mixt__group *mixt__ranks_group(const mixt__trainer *t)
{
    return t->ranks.group;
}

bool mixt__ranks_joined(const mixt__trainer *t)
{
    return t->ranks.group || t->ranks.planned;
}

bool mixt__ranks_compress(const mixt__trainer *t, int64_t *after)
{
    *after = t->ranks.local.compress_after;
    return t->ranks.local.compression.kind != MIXT_COMPRESS_NONE;
}

int mixt__ranks_owner_of(const mixt__trainer *t, int64_t segment, int64_t element)
{
    const mixt__owners *o = &t->ranks.shards.owners;
    int rank = 0;
    if (!mixt__ranks_sharded(t))
        return -1;
    int64_t group = mixt__owners_group(o, segment);
    while (rank + 1 < o->ranks && element >= mixt__owners_cut(o, t->params, group, rank + 1))
        rank++;
    return rank;
}

void mixt__ranks_signal(mixt__trainer *t, int signal)
{
    t->ranks.sums.signal = signal;
}

void mixt__ranks_ask(mixt__trainer *t, uint32_t asked)
{
    t->ranks.sums.asked |= asked;
}

int mixt__ranks_agreed_signal(const mixt__trainer *t)
{
    return t->ranks.sums.agreed_signal;
}

uint32_t mixt__ranks_agreed_asked(const mixt__trainer *t)
{
    return t->ranks.sums.agreed_asked;
}

bool mixt__ranks_trace_of(const mixt__trainer *t, mixt__ranks_trace *trace)
{
    const mixt__part_overlap *b = &t->ranks.overlap;
    *trace = (mixt__ranks_trace){0};
    if (!b->overlap)
        return false;
    if (t->ranks.local.compressor.pieces) {
        trace->seconds = trace->waited = t->ranks.local.compressor.seconds;
        return true;
    }
    trace->count = b->bucket_count;
    trace->buckets = b->buckets;
    trace->passed = mixt__overlap_passed_at(b->overlap);
    mixt__overlap_seconds(b->overlap, &trace->seconds, &trace->waited);
    if (trace->waited > trace->seconds)
        trace->waited = trace->seconds; // the last may have been waited for by more than it took
    return true;
}
