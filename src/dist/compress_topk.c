/* Top-k: the largest elements of each matrix.
 *
 * The smallest magnitude that is sent is found digit by digit of its bits, by counting: integers, so that neither the
 * number of threads nor the order of counting changes what is chosen.
 */
#include "dist/compress.h"

#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

#include <string.h>

enum { CHUNK = 16384 }; // elements that one thread looks at, at least

/** Looking for the largest of one matrix. */
typedef struct selection {
    const float *values;
    int64_t count, chunk; // elements of all, of a chunk
    int shift;            // the digit that is counted: bits from here on …
    uint32_t digits;      // … of so many values
    uint32_t prefix;      // that the digits before it must have
    uint32_t *bins;       // (chunks, MIXT_SELECT_BINS)
    uint32_t limit;       // bits of the smallest magnitude that is sent
    int64_t equal;        // how many of that magnitude are sent
    mixt__compress_pair *pairs;
} selection;

static uint32_t magnitude(float value)
{
    return mixt__fp32_bits(value) & 0x7fffffffu;
}

static mixt__range chunk_of(const selection *s, int64_t index)
{
    int64_t begin = index * s->chunk, end = begin + s->chunk;
    return (mixt__range){begin < s->count ? begin : s->count, end < s->count ? end : s->count};
}

static void count_digit(void *argument, int64_t begin, int64_t end, int thread)
{
    const selection *s = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        mixt__range r = chunk_of(s, c);
        uint32_t *bins = s->bins + c * MIXT_SELECT_BINS;
        memset(bins, 0, s->digits * sizeof *bins);
        for (int64_t i = r.begin; i < r.end; i++) {
            uint32_t bits = magnitude(s->values[i]) >> s->shift;
            bins[bits & (s->digits - 1)] += bits / s->digits == s->prefix;
        }
    }
}

/** The bits of the kept-th largest magnitude, and how many of exactly that are among the kept. */
static void find_limit(selection *s, int64_t chunks, int64_t kept)
{
    static const struct {
        int shift;
        uint32_t digits;
    } steps[] = {{20, 2048}, {10, 1024}, {0, 1024}};
    s->prefix = 0;
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
        s->shift = steps[step].shift;
        s->digits = steps[step].digits;
        mixt__parallel(chunks, 1, count_digit, s);
        uint32_t digit = s->digits;
        for (int64_t found = 0; found < kept;) {
            digit--;
            int64_t here = 0;
            for (int64_t c = 0; c < chunks; c++)
                here += s->bins[c * MIXT_SELECT_BINS + digit];
            if (found + here >= kept) {
                kept -= found;
                break;
            }
            found += here;
        }
        s->prefix = s->prefix * s->digits + digit;
    }
    s->limit = s->prefix;
    s->equal = kept;
}

/** How many of a chunk are above the limit, and at it: in its first two bins. */
static void count_chosen(void *argument, int64_t begin, int64_t end, int thread)
{
    const selection *s = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        mixt__range r = chunk_of(s, c);
        uint32_t above = 0, at = 0;
        for (int64_t i = r.begin; i < r.end; i++) {
            above += magnitude(s->values[i]) > s->limit;
            at += magnitude(s->values[i]) == s->limit;
        }
        s->bins[c * MIXT_SELECT_BINS] = above;
        s->bins[c * MIXT_SELECT_BINS + 1] = at;
    }
}

/** Where a chunk's pairs begin is in its first bin, how many at the limit it may send in its second. */
static void write_chosen(void *argument, int64_t begin, int64_t end, int thread)
{
    const selection *s = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        mixt__range r = chunk_of(s, c);
        mixt__compress_pair *to = s->pairs + s->bins[c * MIXT_SELECT_BINS];
        uint32_t left = s->bins[c * MIXT_SELECT_BINS + 1];
        for (int64_t i = r.begin; i < r.end; i++) {
            uint32_t bits = magnitude(s->values[i]);
            bool tie = bits == s->limit && left > 0;
            left -= tie;
            if (bits > s->limit || tie)
                *to++ = (mixt__compress_pair){(uint32_t)i, s->values[i]};
        }
    }
}

void mixt__compress_select(const float *values, int64_t count, int64_t kept, mixt__compress_pair *pairs, uint32_t *bins)
{
    selection s = {.values = values, .count = count, .bins = bins, .pairs = pairs};
    int64_t even = (count + MIXT_SELECT_CHUNKS - 1) / MIXT_SELECT_CHUNKS;
    s.chunk = even > CHUNK ? even : CHUNK;
    int64_t chunks = (count + s.chunk - 1) / s.chunk;
    find_limit(&s, chunks, kept);
    mixt__parallel(chunks, 1, count_chosen, &s);
    int64_t at = 0, ties = s.equal;
    for (int64_t c = 0; c < chunks; c++) {
        uint32_t *bin = bins + c * MIXT_SELECT_BINS;
        int64_t equal = bin[1] < ties ? bin[1] : ties, all = bin[0] + equal;
        bin[0] = (uint32_t)at;
        bin[1] = (uint32_t)equal;
        at += all;
        ties -= equal;
    }
    mixt__parallel(chunks, 1, write_chosen, &s);
}

/* ---- the exchange ---- */

/** Chooses this rank's pairs; what travels whole is put where it is summed. */
static void choose(const mixt__compressor *c, const mixt__compress_rooms *rooms, const float *rest)
{
    int64_t row = c->group ? c->group->rank : 0;
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        int64_t count = p->rows * p->columns;
        mixt__compress_pair *pairs = rooms->pairs + row * c->counts.pairs + p->at;
        if (p->whole)
            memcpy(rooms->left + p->at, rest + p->offset, (size_t)count * sizeof *rest);
        else
            mixt__compress_select(rest + p->offset, count, p->kept, pairs, rooms->bins);
    }
}

/** Everyone's pairs to everyone. */
static mixt_status share_pairs(const mixt__compressor *c, mixt__compress_pair *pairs)
{
    mixt__group *g = c->group;
    size_t bytes = (size_t)c->counts.pairs * sizeof *pairs;
    int count = 0;
    if (!g || !bytes)
        return MIXT_OK;
    for (int peer = 0; peer < g->size; peer++) {
        if (peer == g->rank)
            continue;
        g->out[count] = (mixt__message){peer, pairs + g->rank * c->counts.pairs, bytes};
        g->in[count++] = (mixt__message){peer, pairs + peer * c->counts.pairs, bytes};
    }
    return mixt__group_exchange(g, count, count, 1);
}

mixt_status mixt__compress_topk(mixt__compressor *c, float *rest, float *common)
{
    const mixt__compress_rooms rooms = mixt__compress_rooms_of(c);
    int64_t own = c->group ? c->group->rank : 0;
    choose(c, &rooms, rest);
    MIXT_TRY(share_pairs(c, rooms.pairs));
    MIXT_TRY(mixt__compress_add_ranks(c, rooms.left, c->counts.whole));
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        if (p->whole) {
            mixt__compress_take_whole(c, p, rooms.left + p->at, rest, common);
            continue;
        }
        for (int64_t rank = 0; rank < c->ranks; rank++) {
            const mixt__compress_pair *pairs = rooms.pairs + rank * c->counts.pairs + p->at;
            for (int64_t k = 0; k < p->kept; k++) {
                common[p->offset + pairs[k].index] -= pairs[k].value / (float)c->ranks;
                if (rank == own)
                    rest[p->offset + pairs[k].index] = 0;
            }
        }
    }
    return MIXT_OK;
}
