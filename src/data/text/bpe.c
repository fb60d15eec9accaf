/* Merging. Words go through a cache first; short pieces are merged in an array, long ones with a heap over a linked
 * list, in n log n.
 *
 * Where two bytes never stand side by side inside any merged token, no merge can cross: a long piece is cut there
 * first, exactly. So even megabytes without a blank, or random bytes, fall into short pieces.
 */
#include "data/text/bpe.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/hash.h"

enum { CACHED_BYTES = 24, CACHED_TOKENS = 9, CACHE_SLOTS = 1 << 14, ARRAY_MAX = 64, NO_RANK = UINT32_MAX };

typedef struct cached_piece {
    uint8_t size, count; // size 0: empty
    unsigned char bytes[CACHED_BYTES];
    uint32_t ids[CACHED_TOKENS];
} cached_piece;

/** Symbols of a long piece: a list by index, and a heap of rank << 40 | index. */
typedef struct long_piece {
    uint32_t *ids, *ranks; // ranks: of the pair with the next symbol
    int32_t *next, *previous;
    uint64_t *heap;
    int64_t heap_count, capacity;
} long_piece;

struct mixt__bpe_worker {
    cached_piece cache[CACHE_SLOTS];
    long_piece room;
};

mixt_status mixt__bpe_init(mixt__bpe *bpe, int64_t count)
{
    uint64_t slots = 16;
    while (slots < (uint64_t)count * 2)
        slots *= 2;
    bpe->slots = mixt__alloc((size_t)slots * sizeof *bpe->slots);
    bpe->mask = slots - 1;
    return bpe->slots ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld merges", (long long)count);
}

void mixt__bpe_free(mixt__bpe *bpe)
{
    mixt__free(bpe->slots);
    bpe->slots = NULL;
}

static const mixt__bpe_merge *find(const mixt__bpe *bpe, uint32_t left, uint32_t right)
{
    uint64_t pair = ((uint64_t)left << 32 | right) + 1, slot = mixt__hash_word(0, pair) & bpe->mask;
    while (bpe->slots[slot].pair && bpe->slots[slot].pair != pair)
        slot = (slot + 1) & bpe->mask;
    return &bpe->slots[slot];
}

static uint32_t rank_of(const mixt__bpe *bpe, uint32_t left, uint32_t right)
{
    const mixt__bpe_merge *merge = find(bpe, left, right);
    return merge->pair ? merge->rank : NO_RANK;
}

bool mixt__bpe_add(mixt__bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, mixt__span token)
{
    mixt__bpe_merge *merge = &bpe->slots[find(bpe, left, right) - bpe->slots];
    if (merge->pair)
        return false;
    *merge = (mixt__bpe_merge){((uint64_t)left << 32 | right) + 1, rank, id};
    for (int64_t i = 0; i + 1 < token.size; i++) {
        unsigned both = (unsigned)token.bytes[i] << 8 | token.bytes[i + 1];
        bpe->joined[both / 64] |= (uint64_t)1 << both % 64;
    }
    return true;
}

mixt_status mixt__bpe_worker_new(mixt__bpe_worker **worker)
{
    *worker = mixt__alloc(sizeof **worker);
    return *worker ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to tokenise in");
}

void mixt__bpe_worker_free(mixt__bpe_worker *worker)
{
    if (!worker)
        return;
    mixt__free(worker->room.ids);
    mixt__free(worker);
}

/* ---- short pieces ---- */

/** Merges `count` symbols in their place; returns how many are left. */
static int merge_few(const mixt__bpe *bpe, uint32_t *ids, int count)
{
    uint32_t ranks[ARRAY_MAX];
    for (int i = 0; i + 1 < count; i++)
        ranks[i] = rank_of(bpe, ids[i], ids[i + 1]);
    for (;;) {
        int best = 0;
        for (int i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (count < 2 || ranks[best] == NO_RANK)
            return count;
        ids[best] = find(bpe, ids[best], ids[best + 1])->id;
        memmove(ids + best + 1, ids + best + 2, (size_t)(count - best - 2) * sizeof *ids);
        if (best + 2 < count) // the pair (best, best + 1) is new, those behind it move up
            memmove(ranks + best, ranks + best + 1, (size_t)(count - best - 2) * sizeof *ranks);
        count--;
        if (best + 1 < count)
            ranks[best] = rank_of(bpe, ids[best], ids[best + 1]);
        if (best > 0)
            ranks[best - 1] = rank_of(bpe, ids[best - 1], ids[best]);
    }
}

static int merge_array(const mixt__bpe *bpe, const unsigned char *piece, int size, uint32_t *ids)
{
    for (int i = 0; i < size; i++)
        ids[i] = bpe->byte_ids[piece[i]];
    return merge_few(bpe, ids, size);
}

/* ---- long pieces ---- */

/** One block for all five arrays. At most two pairs appear with a merge and one goes: the heap holds up to 3 n. */
static mixt_status room_for(long_piece *room, int64_t size)
{
    if (size > INT32_MAX)
        return mixt__fail(MIXT_ERROR_DATA, "a word of %lld bytes is too long to tokenise: at most %d", (long long)size,
                          INT32_MAX);
    if (size <= room->capacity)
        return MIXT_OK;
    size_t n = ((size_t)size + 15) / 16 * 16;
    mixt__free(room->ids);
    *room = (long_piece){.ids = mixt__alloc_uninit(n * (4 * sizeof(uint32_t) + 3 * sizeof(uint64_t)))};
    if (!room->ids)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to tokenise a word of %lld bytes", (long long)size);
    room->ranks = room->ids + n;
    room->next = (int32_t *)(room->ranks + n);
    room->previous = room->next + n;
    room->heap = (uint64_t *)(room->previous + n);
    room->capacity = (int64_t)n;
    return MIXT_OK;
}

static void heap_push(long_piece *room, uint64_t key)
{
    int64_t at = room->heap_count++;
    for (; at > 0 && room->heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        room->heap[at] = room->heap[(at - 1) / 2];
    room->heap[at] = key;
}

static uint64_t heap_pop(long_piece *room)
{
    uint64_t top = room->heap[0], key = room->heap[--room->heap_count];
    int64_t at = 0, count = room->heap_count;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child + 1 < count && room->heap[child + 1] < room->heap[child])
            child++;
        if (child >= count || room->heap[child] >= key)
            break;
        room->heap[at] = room->heap[child];
        at = child;
    }
    room->heap[at] = key;
    return top;
}

/** Looks the pair at `at` up again and queues it. */
static void rank_pair(const mixt__bpe *bpe, long_piece *room, int32_t at)
{
    int32_t next = room->next[at];
    room->ranks[at] = next < 0 ? NO_RANK : rank_of(bpe, room->ids[at], room->ids[next]);
    if (room->ranks[at] != NO_RANK)
        heap_push(room, (uint64_t)room->ranks[at] << 40 | (uint64_t)at);
}

/** Merges the symbols in room->ids; those that are left stand in the list from 0 on. */
static void merge_heap(const mixt__bpe *bpe, long_piece *room, int32_t size)
{
    room->heap_count = 0;
    for (int32_t i = 0; i < size; i++) {
        room->previous[i] = i - 1;
        room->next[i] = i + 1 < size ? i + 1 : -1;
    }
    for (int32_t i = 0; i < size; i++)
        rank_pair(bpe, room, i);
    while (room->heap_count) {
        uint64_t key = heap_pop(room);
        int32_t at = (int32_t)(key & 0xffffffffffu);
        if (room->ranks[at] != (uint32_t)(key >> 40))
            continue; // a neighbour has changed since
        int32_t gone = room->next[at], after = room->next[gone];
        room->ids[at] = find(bpe, room->ids[at], room->ids[gone])->id;
        room->ranks[gone] = NO_RANK;
        room->next[at] = after;
        if (after >= 0)
            room->previous[after] = at;
        rank_pair(bpe, room, at);
        if (room->previous[at] >= 0)
            rank_pair(bpe, room, room->previous[at]);
    }
}

static mixt_status encode_long(const mixt__bpe *bpe, long_piece *room, const unsigned char *piece, int64_t size,
                               mixt__tokens *tokens)
{
    MIXT_TRY(room_for(room, size));
    MIXT_TRY(mixt__tokens_reserve(tokens, size));
    for (int64_t i = 0; i < size; i++)
        room->ids[i] = bpe->byte_ids[piece[i]];
    merge_heap(bpe, room, (int32_t)size);
    for (int32_t i = 0; i >= 0; i = room->next[i])
        tokens->ids[tokens->count++] = room->ids[i];
    return MIXT_OK;
}

mixt_status mixt__bpe_merge_symbols(const mixt__bpe *bpe, mixt__bpe_worker *worker, uint32_t *symbols, int64_t count,
                                    mixt__tokens *tokens)
{
    long_piece *room = &worker->room;
    if (!count)
        return MIXT_OK;
    MIXT_TRY(mixt__tokens_reserve(tokens, count));
    if (count <= ARRAY_MAX) {
        int left = merge_few(bpe, symbols, (int)count);
        memcpy(tokens->ids + tokens->count, symbols, (size_t)left * sizeof *symbols);
        tokens->count += left;
        return MIXT_OK;
    }
    MIXT_TRY(room_for(room, count));
    memcpy(room->ids, symbols, (size_t)count * sizeof *symbols);
    merge_heap(bpe, room, (int32_t)count);
    for (int32_t i = 0; i >= 0; i = room->next[i])
        tokens->ids[tokens->count++] = room->ids[i];
    return MIXT_OK;
}

/* ---- any piece ---- */

static mixt_status encode_short(const mixt__bpe *bpe, mixt__bpe_worker *worker, const unsigned char *piece,
                                int64_t size, mixt__tokens *tokens)
{
    uint32_t ids[ARRAY_MAX];
    MIXT_TRY(mixt__tokens_reserve(tokens, ARRAY_MAX));
    uint32_t *to = tokens->ids + tokens->count;
    if (size > CACHED_BYTES) {
        int count = merge_array(bpe, piece, (int)size, ids);
        memcpy(to, ids, (size_t)count * sizeof *ids);
        tokens->count += count;
        return MIXT_OK;
    }
    uint64_t h = mixt__hash_bytes(0, piece, size);
    cached_piece *entry = &worker->cache[(h ^ h >> 32) % CACHE_SLOTS];
    if (entry->size != size || memcmp(entry->bytes, piece, (size_t)size)) {
        int count = merge_array(bpe, piece, (int)size, ids);
        if (count > CACHED_TOKENS) {
            memcpy(to, ids, (size_t)count * sizeof *ids);
            tokens->count += count;
            return MIXT_OK;
        }
        entry->size = (uint8_t)size;
        entry->count = (uint8_t)count;
        memcpy(entry->bytes, piece, (size_t)size);
        memcpy(entry->ids, ids, (size_t)count * sizeof *ids);
    }
    memcpy(to, entry->ids, sizeof entry->ids); // a fixed size is faster; there is room behind
    tokens->count += entry->count;
    return MIXT_OK;
}

mixt_status mixt__bpe_encode(const mixt__bpe *bpe, mixt__bpe_worker *worker, const unsigned char *piece, int64_t size,
                             mixt__tokens *tokens)
{
    if (size <= ARRAY_MAX)
        return size > 0 ? encode_short(bpe, worker, piece, size, tokens) : MIXT_OK;
    int64_t begin = 0;
    for (int64_t i = 1; i <= size; i++) {
        unsigned both = i < size ? (unsigned)piece[i - 1] << 8 | piece[i] : 0;
        if (i < size && bpe->joined[both / 64] >> both % 64 & 1)
            continue;
        if (i - begin <= ARRAY_MAX)
            MIXT_TRY(encode_short(bpe, worker, piece + begin, i - begin, tokens));
        else
            MIXT_TRY(encode_long(bpe, &worker->room, piece + begin, i - begin, tokens));
        begin = i;
    }
    return MIXT_OK;
}
