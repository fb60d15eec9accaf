/* Top-k: the largest elements of each matrix.
 *
 * The smallest magnitude that is sent is found digit by digit of its bits, by counting: integers, so that neither the
 * number of threads nor the order of counting changes what is chosen.
 */
#include "dist/compress.h"

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

/* ---- the sum ---- */

typedef struct division {
    const float *moved;
    float *feedback, scale;
} division;

static void keep_all(void *argument, int64_t begin, int64_t end, int thread)
{
    const division *d = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        d->feedback[i] = d->moved[i] / d->scale;
}

/** What a part does not send of a matrix becomes its feedback. */
static void keep_rest(mixt__compressor *c, const mixt__compress_piece *p, int64_t part, const float *moved,
                      const mixt__compress_pair *pairs, float scale)
{
    enum { GRAIN = 4096 };
    division d = {moved, c->feedback + part * c->total + p->offset, scale};
    mixt__parallel(p->rows * p->columns, GRAIN, keep_all, &d);
    for (int64_t k = 0; k < p->kept; k++)
        d.feedback[pairs[k].index] = 0;
}

/** Chooses a part's pairs and keeps the rest; what travels whole is put where it is summed. */
static void choose(mixt__compressor *c, const mixt__compress_rooms *rooms, int64_t part, float *sum, float scale)
{
    int64_t row = c->group ? c->group->rank : part;
    const float *moved = mixt__compress_moved(c, part, sum);
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        int64_t count = p->rows * p->columns;
        if (p->whole) {
            memcpy(rooms->left + part * c->counts.whole + p->at, moved + p->offset, (size_t)count * sizeof *moved);
            continue;
        }
        mixt__compress_pair *pairs = rooms->pairs + row * c->counts.pairs + p->at;
        mixt__compress_select(moved + p->offset, count, p->kept, pairs, rooms->bins);
        keep_rest(c, p, part, moved + p->offset, pairs, scale);
    }
}

mixt_status mixt__compress_topk(mixt__compressor *c, float *sum, float scale)
{
    const mixt__compress_rooms rooms = mixt__compress_rooms_of(c);
    for (int64_t part = 0; part < c->parts; part++)
        choose(c, &rooms, part, sum, scale);
    mixt_status status = mixt__compress_share_rows(c, rooms.pairs, (size_t)c->counts.pairs * sizeof *rooms.pairs);
    if (status == MIXT_OK)
        status = mixt__compress_add_rows(c, rooms.left, c->counts.whole, c->counts.whole);
    for (int64_t i = 0; i < c->counts.pieces && status == MIXT_OK; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        float *to = sum + p->offset;
        if (p->whole) {
            memcpy(to, rooms.left + p->at, (size_t)(p->rows * p->columns) * sizeof *to);
            continue;
        }
        mixt__parallel_zero(to, (size_t)(p->rows * p->columns) * sizeof *to);
        for (int64_t rank = 0; rank < c->ranks; rank++) {
            const mixt__compress_pair *pairs = rooms.pairs + rank * c->counts.pairs + p->at;
            for (int64_t k = 0; k < p->kept; k++)
                to[pairs[k].index] += pairs[k].value;
        }
    }
    return status;
}
