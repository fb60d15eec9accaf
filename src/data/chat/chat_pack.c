/* Best fit, longest first: rows wait in lists by the room that they have left, and a bit for each list says whether any
 * does. */
#include "data/chat/chat_pack.h"

#include <stdlib.h>
#include <string.h>

/** While rows are filled. */
typedef struct filling {
    int64_t *row;   // (samples) that a sample went to
    int64_t *next;  // (samples) of a row: the next one with as much room; -1: none
    int64_t *first; // (places + 1) by the room left; -1: none
    uint64_t *some; // a bit for each of those
    int64_t rows, places;
} filling;

/** A sample's places: all tokens but the last, which is only predicted. */
static int64_t places_of(const mixt__chat_sample *s, int64_t most)
{
    return s->count - 1 < most ? s->count - 1 : most;
}

static void put_back(filling *f, int64_t row, int64_t room)
{
    f->next[row] = f->first[room];
    f->first[room] = row;
    f->some[room / 64] |= UINT64_C(1) << room % 64;
}

/** The least room of at least `needed` that a row has; -1: none has. */
static int64_t fitting(const filling *f, int64_t needed)
{
    int64_t words = f->places / 64 + 1;
    for (int64_t w = needed / 64; w < words; w++) {
        uint64_t bits = f->some[w];
        if (w == needed / 64)
            bits &= ~UINT64_C(0) << needed % 64;
        if (bits)
            return w * 64 + __builtin_ctzll(bits);
    }
    return -1;
}

static void fill_best(filling *f, int64_t sample, int64_t needed)
{
    int64_t room = fitting(f, needed), row = f->rows;
    if (room < 0) {
        room = f->places;
        f->rows++;
    } else {
        row = f->first[room];
        f->first[room] = f->next[row];
        if (f->first[room] < 0)
            f->some[room / 64] &= ~(UINT64_C(1) << room % 64);
    }
    f->row[sample] = row;
    put_back(f, row, room - needed);
}

/** Samples by their places, most first, those of one length in the file's order: counted, not compared. */
static void sort(const mixt__chat_set *set, int64_t places, int64_t *counts, int64_t *order)
{
    memset(counts, 0, (size_t)(places + 2) * sizeof *counts);
    for (int64_t i = 0; i < set->count; i++)
        counts[places - places_of(&set->sample[i], places) + 1]++;
    for (int64_t n = 0; n <= places; n++)
        counts[n + 1] += counts[n];
    for (int64_t i = 0; i < set->count; i++)
        order[counts[places - places_of(&set->sample[i], places)]++] = i;
}

static void fill_in_order(const mixt__chat_set *set, filling *f)
{
    int64_t room = 0;
    for (int64_t i = 0; i < set->count; i++) {
        int64_t needed = places_of(&set->sample[i], f->places);
        if (needed > room) {
            room = f->places;
            f->rows++;
        }
        f->row[i] = f->rows - 1;
        room -= needed;
    }
}

/** Lists the samples of each row, in the file's order. */
static mixt_status list_rows(const mixt__chat_set *set, const filling *f, mixt__chat_packing *p)
{
    p->rows = f->rows;
    p->begin = mixt__alloc((size_t)(f->rows + 2) * sizeof *p->begin);
    p->sample = mixt__alloc((size_t)(set->count + 1) * sizeof *p->sample);
    if (!p->begin || !p->sample)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to pack samples");
    for (int64_t i = 0; i < set->count; i++)
        p->begin[f->row[i] + 1]++;
    for (int64_t r = 0; r < f->rows; r++)
        p->begin[r + 1] += p->begin[r];
    int64_t *used = mixt__alloc((size_t)(f->rows + 1) * sizeof *used);
    if (!used)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to pack samples");
    for (int64_t i = 0; i < set->count; i++)
        p->sample[p->begin[f->row[i]] + used[f->row[i]]++] = i;
    mixt__free(used);
    return MIXT_OK;
}

static mixt_status fill(const mixt__chat_set *set, int64_t *order, int64_t *counts, bool in_order, filling *f,
                        mixt__chat_packing *p)
{
    if (!f->row || !f->next || !f->first || !f->some || !order || !counts)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to pack samples");
    memset(f->first, 0xff, (size_t)(f->places + 1) * sizeof *f->first);
    if (in_order) {
        fill_in_order(set, f);
        return list_rows(set, f, p);
    }
    sort(set, f->places, counts, order);
    for (int64_t i = 0; i < set->count; i++)
        fill_best(f, order[i], places_of(&set->sample[order[i]], f->places));
    return list_rows(set, f, p);
}

mixt_status mixt__chat_pack(const mixt__chat_set *set, int64_t places, bool in_order, mixt__chat_packing *p)
{
    size_t samples = (size_t)(set->count + 1) * sizeof(int64_t), rooms = (size_t)(places + 2) * sizeof(int64_t);
    filling f = {.places = places};
    *p = (mixt__chat_packing){0};
    f.row = mixt__alloc(samples);
    f.next = mixt__alloc(samples);
    f.first = mixt__alloc(rooms);
    f.some = mixt__alloc((size_t)(places / 64 + 1) * sizeof *f.some);
    int64_t *order = mixt__alloc(samples), *counts = mixt__alloc(rooms);
    mixt_status status = fill(set, order, counts, in_order, &f, p);
    mixt__free(f.row);
    mixt__free(f.next);
    mixt__free(f.first);
    mixt__free(f.some);
    mixt__free(order);
    mixt__free(counts);
    return status;
}

void mixt__chat_packing_free(mixt__chat_packing *p)
{
    mixt__free(p->sample);
    mixt__free(p->begin);
    *p = (mixt__chat_packing){0};
}
