/* Cutting the flat arenas into groups and slices. */
#include "train/dist/owners.h"

#include "num/blocks.h"

#include <string.h>

enum { GRAIN = 16 };

/** Where the next group begins, in segments. */
static int64_t group_end(const mixt__params *p, int64_t first, int64_t limit)
{
    int64_t s = first + 1, begin = p->segments[first].offset;
    while (s < p->segment_count && limit) {
        int64_t end = s + 1 < p->segment_count ? p->segments[s + 1].offset : p->total;
        if (end - begin > limit)
            return s;
        s++;
    }
    return limit ? s : p->segment_count;
}

static void measure(mixt__owners *s, const mixt__params *p)
{
    for (int64_t rank = 0; rank < s->ranks; rank++) {
        mixt__owner_size size = mixt__owners_size(s, p, rank);
        s->room = size.elements > s->room ? size.elements : s->room;
        s->most_cuts = size.cuts > s->most_cuts ? size.cuts : s->most_cuts;
        s->most_chunks = size.chunks > s->most_chunks ? size.chunks : s->most_chunks;
        s->chunks += size.chunks;
    }
}

mixt_status mixt__owners_make(mixt__owners *s, const mixt__params *p, int64_t ranks, int64_t limit, int64_t chunk)
{
    size_t most = (size_t)p->segment_count + 2;
    mixt__owners_free(s);
    *s = (mixt__owners){.ranks = ranks, .chunk = chunk};
    s->begins = mixt__alloc(most * sizeof *s->begins);
    s->firsts = mixt__alloc(most * sizeof *s->firsts);
    if (!s->begins || !s->firsts) {
        mixt__owners_free(s);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to shard the state between ranks");
    }
    for (int64_t first = 0; first < p->segment_count; first = group_end(p, first, limit)) {
        s->begins[s->groups] = p->segments[first].offset;
        s->firsts[s->groups++] = first;
    }
    s->begins[s->groups] = p->total;
    s->firsts[s->groups] = p->segment_count;
    measure(s, p);
    return MIXT_OK;
}

void mixt__owners_free(mixt__owners *s)
{
    mixt__free(s->begins);
    mixt__free(s->firsts);
    *s = (mixt__owners){0};
}

/** The nearest place in a group where a chunk begins, or the group's end. */
static int64_t nearest_chunk(const mixt__owners *s, const mixt__params *p, int64_t group, int64_t at)
{
    int64_t low = s->firsts[group], high = s->firsts[group + 1] - 1;
    while (low < high) { // the segment that holds it
        int64_t middle = (low + high + 1) / 2;
        if (p->segments[middle].offset <= at)
            low = middle;
        else
            high = middle - 1;
    }
    const mixt__segment *segment = &p->segments[low];
    int64_t last = (segment->count - 1) / s->chunk, chunk = (at - segment->offset) / s->chunk;
    chunk = chunk < last ? chunk : last;
    int64_t before = segment->offset + chunk * s->chunk, after = before + s->chunk;
    if (chunk == last)
        after = low + 1 < s->firsts[group + 1] ? p->segments[low + 1].offset : s->begins[group + 1];
    return at - before <= after - at ? before : after;
}

int64_t mixt__owners_cut(const mixt__owners *s, const mixt__params *p, int64_t group, int64_t rank)
{
    int64_t begin = s->begins[group], end = s->begins[group + 1];
    if (rank <= 0 || rank >= s->ranks)
        return rank <= 0 ? begin : end;
    int64_t at = begin + (end - begin) * rank / s->ranks;
    if (!s->chunk) {
        at = begin + (at - begin + GRAIN - 1) / GRAIN * GRAIN;
        return at < end ? at : end;
    }
    int64_t shift = group * (s->chunk * 1265 / 2048) % s->chunk; // else groups of the same sizes would all favour …
    at += shift - s->chunk / 2;                                  // … the same ranks
    return nearest_chunk(s, p, group, at < begin ? begin : at < end ? at : end - 1);
}

void mixt__owners_cuts(const mixt__owners *s, const mixt__params *p, int64_t group, int64_t *cuts)
{
    for (int64_t rank = 0; rank <= s->ranks; rank++)
        cuts[rank] = mixt__owners_cut(s, p, group, rank);
}

mixt__segment mixt__owners_segment(const mixt__params *p, int64_t s, int64_t begin, int64_t end)
{
    mixt__segment cut = p->segments[s];
    int64_t from = cut.offset > begin ? cut.offset : begin, to = cut.offset + cut.count;
    to = to < end ? to : end;
    cut.low_offset += from - cut.offset;
    cut.moment_offset += from - cut.offset;
    cut.scale_offset += (from - cut.offset) / MIXT_BLOCK;
    cut.first += from - cut.offset;
    cut.offset = from;
    cut.count = to > from ? to - from : 0;
    return cut;
}

mixt__owner_size mixt__owners_size(const mixt__owners *s, const mixt__params *p, int64_t rank)
{
    mixt__owner_size size = {0};
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t begin = mixt__owners_cut(s, p, g, rank), end = mixt__owners_cut(s, p, g, rank + 1);
        size.elements += end - begin;
        for (int64_t i = s->firsts[g]; i < s->firsts[g + 1]; i++) {
            int64_t count = mixt__owners_segment(p, i, begin, end).count;
            size.cuts += count > 0;
            size.chunks += s->chunk ? (count + s->chunk - 1) / s->chunk : 0;
        }
    }
    return size;
}

int64_t mixt__owners_group(const mixt__owners *s, int64_t segment)
{
    int64_t low = 0, high = s->groups - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (s->firsts[middle] <= segment)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
