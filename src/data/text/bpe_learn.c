/* Learning byte pairs.
 *
 * Every distinct piece of the text is kept once, with its count, as a chain of symbols. A pair of symbols knows how
 * often it comes up and where; the most frequent one stands on top of a heap. Joining it touches only the places where
 * it stands: neighbours there lose a pair and gain one. Counts that fall are not looked for in the heap: what comes to
 * its top with an old count goes back with the new one. So a step costs the places that it changes, not the text.
 *
 * A pair of symbols can come into being only while the younger of the two is made: all its places are known at the end
 * of that step, from left to right, and that is the order in which they are joined, as an encoder does.
 */
#include "data/text/bpe_learn.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "data/hash.h"
#include "data/names.h"
#include "base/unicode.h"

#include <string.h>

enum { GONE = -1, FIRST_SLOTS = 1 << 16, TELL_EVERY = 64 };

typedef struct pair {
    uint32_t left, right;
    int64_t count;
    int64_t first, last; // of its places in `nodes`; GONE: none
    bool banned;         // what it would make is a token already
    bool raised;         // in `fresh`: its count has grown in this step
} pair;

/** A place of a pair. */
typedef struct node {
    int32_t at;
    int64_t next;
} node;

/** An entry of the heap: what the pair's count was. */
typedef struct entry {
    int64_t count;
    int32_t pair;
} entry;

typedef struct learner {
    mixt__names words; // distinct pieces
    int64_t *counts;   // of each
    int64_t counts_room;
    uint32_t *symbol;       // (places) of all words, one behind the other
    int32_t *next, *before; // neighbours in the word; GONE: none
    int64_t *weight;        // of the place's word
    int64_t places;
    pair *pairs;
    int64_t pair_count, pair_room;
    int32_t *slots; // pairs + 1 by hash, 0: free
    int64_t slot_count;
    node *nodes;
    int64_t node_count, node_room;
    entry *heap;
    int64_t heap_count, heap_room;
    int32_t *fresh;
    int64_t fresh_count, fresh_room;
    mixt__names tokens; // their bytes by id
} learner;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to learn a vocabulary");
}

static void close_learner(learner *l)
{
    void *const blocks[] = {l->counts, l->symbol, l->next,  l->before, l->weight,
                            l->pairs,  l->slots,  l->nodes, l->heap,   l->fresh};
    for (int i = 0; i < (int)(sizeof blocks / sizeof blocks[0]); i++)
        mixt__free(blocks[i]);
    mixt__names_free(&l->words);
    mixt__names_free(&l->tokens);
}

/* ---- words ---- */

static mixt_status count_piece(learner *l, const unsigned char *piece, int64_t size)
{
    int64_t word = mixt__names_add(&l->words, (const char *)piece, size);
    if (word < 0)
        return no_memory();
    if (word == l->words.count - 1) { // it may be new
        int64_t room = l->counts_room;
        if (!mixt__grow((void **)&l->counts, &l->counts_room, word, sizeof *l->counts))
            return no_memory();
        if (l->counts_room > room)
            memset(l->counts + room, 0, (size_t)(l->counts_room - room) * sizeof *l->counts);
    }
    l->counts[word]++;
    return MIXT_OK;
}

/** Bytes that are no UTF-8 belong to no piece. */
static mixt_status count_pieces(learner *l, mixt__span text)
{
    for (int64_t at = 0; at < text.size; at++) {
        int64_t valid = at + mixt__utf8_valid(text.bytes + at, text.size - at);
        while (at < valid) {
            int64_t end = mixt__gpt2_piece_end(text.bytes, valid, at);
            MIXT_TRY(count_piece(l, text.bytes + at, end - at));
            at = end;
        }
    }
    return MIXT_OK;
}

static int64_t word_size(const learner *l, int64_t word)
{
    int64_t end = word + 1 < l->words.count ? l->words.begin[word + 1] : l->words.text_size;
    return end - l->words.begin[word] - 1;
}

static mixt_status lay_out(learner *l)
{
    for (int64_t w = 0; w < l->words.count; w++)
        l->places += word_size(l, w);
    if (l->places >= INT32_MAX)
        return mixt__fail(MIXT_ERROR_DATA, "the text has too many different words to learn a vocabulary from");
    size_t n = (size_t)l->places;
    l->symbol = mixt__alloc_uninit(n * sizeof *l->symbol);
    l->next = mixt__alloc_uninit(n * sizeof *l->next);
    l->before = mixt__alloc_uninit(n * sizeof *l->before);
    l->weight = mixt__alloc_uninit(n * sizeof *l->weight);
    if (!l->symbol || !l->next || !l->before || !l->weight)
        return no_memory();
    int64_t at = 0;
    for (int64_t w = 0; w < l->words.count; w++) {
        const unsigned char *bytes = (const unsigned char *)l->words.text + l->words.begin[w];
        int64_t size = word_size(l, w);
        for (int64_t i = 0; i < size; i++, at++) {
            l->symbol[at] = bytes[i];
            l->before[at] = i ? (int32_t)at - 1 : GONE;
            l->next[at] = i + 1 < size ? (int32_t)at + 1 : GONE;
            l->weight[at] = l->counts[w];
        }
    }
    return MIXT_OK;
}

/* ---- pairs ---- */

static uint64_t slot_of(const learner *l, uint32_t left, uint32_t right)
{
    return mixt__hash_word(0, (uint64_t)left << 32 | right) & (uint64_t)(l->slot_count - 1);
}

static mixt_status grow_slots(learner *l)
{
    int64_t count = l->slot_count ? 2 * l->slot_count : FIRST_SLOTS;
    int32_t *slots = mixt__alloc((size_t)count * sizeof *slots);
    if (!slots)
        return no_memory();
    mixt__free(l->slots);
    l->slots = slots;
    l->slot_count = count;
    for (int64_t i = 0; i < l->pair_count; i++) {
        uint64_t s = slot_of(l, l->pairs[i].left, l->pairs[i].right);
        while (slots[s])
            s = (s + 1) & (uint64_t)(count - 1);
        slots[s] = (int32_t)i + 1;
    }
    return MIXT_OK;
}

/** The pair of two symbols, a new one where it is new. */
static mixt_status find_pair(learner *l, uint32_t left, uint32_t right, int32_t *found)
{
    if (2 * l->pair_count >= l->slot_count)
        MIXT_TRY(grow_slots(l));
    uint64_t s = slot_of(l, left, right);
    for (; l->slots[s]; s = (s + 1) & (uint64_t)(l->slot_count - 1)) {
        const pair *p = &l->pairs[l->slots[s] - 1];
        if (p->left == left && p->right == right) {
            *found = l->slots[s] - 1;
            return MIXT_OK;
        }
    }
    if (!mixt__grow((void **)&l->pairs, &l->pair_room, l->pair_count, sizeof *l->pairs) || l->pair_count == INT32_MAX)
        return no_memory();
    *found = (int32_t)l->pair_count++;
    l->pairs[*found] = (pair){.left = left, .right = right, .first = GONE, .last = GONE};
    l->slots[s] = *found + 1;
    return MIXT_OK;
}

/** The pair that begins at a place, if one does, counts once more. */
static mixt_status add_place(learner *l, int32_t at)
{
    int32_t which;
    if (at == GONE || l->next[at] == GONE)
        return MIXT_OK;
    MIXT_TRY(find_pair(l, l->symbol[at], l->symbol[l->next[at]], &which));
    if (!mixt__grow((void **)&l->nodes, &l->node_room, l->node_count, sizeof *l->nodes) ||
        !mixt__grow((void **)&l->fresh, &l->fresh_room, l->fresh_count, sizeof *l->fresh))
        return no_memory();
    pair *p = &l->pairs[which];
    l->nodes[l->node_count] = (node){at, GONE};
    if (p->last == GONE)
        p->first = l->node_count;
    else
        l->nodes[p->last].next = l->node_count;
    p->last = l->node_count++;
    p->count += l->weight[at];
    if (!p->raised)
        l->fresh[l->fresh_count++] = which;
    p->raised = true;
    return MIXT_OK;
}

/** The pair that begins at a place counts there no longer. */
static mixt_status drop_place(learner *l, int32_t at)
{
    int32_t which;
    if (at == GONE || l->next[at] == GONE)
        return MIXT_OK;
    MIXT_TRY(find_pair(l, l->symbol[at], l->symbol[l->next[at]], &which));
    l->pairs[which].count -= l->weight[at];
    return MIXT_OK;
}

/* ---- heap ---- */

static bool comes_before(const learner *l, entry a, entry b)
{
    if (a.count != b.count)
        return a.count > b.count;
    const pair *x = &l->pairs[a.pair], *y = &l->pairs[b.pair];
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static mixt_status heap_push(learner *l, entry e)
{
    if (!mixt__grow((void **)&l->heap, &l->heap_room, l->heap_count, sizeof *l->heap))
        return no_memory();
    int64_t at = l->heap_count++;
    for (; at && comes_before(l, e, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = e;
    return MIXT_OK;
}

static entry heap_pop(learner *l)
{
    entry top = l->heap[0], e = l->heap[--l->heap_count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < l->heap_count; at = child) {
        if (child + 1 < l->heap_count && comes_before(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!comes_before(l, l->heap[child], e))
            break;
        l->heap[at] = l->heap[child];
    }
    if (l->heap_count)
        l->heap[at] = e;
    return top;
}

static mixt_status push_fresh(learner *l)
{
    for (int64_t i = 0; i < l->fresh_count; i++) {
        pair *p = &l->pairs[l->fresh[i]];
        p->raised = false;
        MIXT_TRY(heap_push(l, (entry){p->count, l->fresh[i]}));
    }
    l->fresh_count = 0;
    return MIXT_OK;
}

/** The most frequent pair, from twice on; GONE: there is none. */
static mixt_status best_pair(learner *l, int32_t *best)
{
    *best = GONE;
    while (l->heap_count) {
        entry e = heap_pop(l);
        const pair *p = &l->pairs[e.pair];
        if (p->banned || p->count < 2)
            continue;
        if (p->count == e.count) {
            *best = e.pair;
            return MIXT_OK;
        }
        MIXT_TRY(heap_push(l, (entry){p->count, e.pair}));
    }
    return MIXT_OK;
}

/* ---- tokens ---- */

/** Appends a token's bytes; *id is GONE where such a token is there already. */
static mixt_status add_token(learner *l, const unsigned char *bytes, int64_t size, int64_t *id)
{
    int64_t before = l->tokens.count;
    *id = mixt__names_add(&l->tokens, (const char *)bytes, size);
    if (*id < 0)
        return no_memory();
    if (l->tokens.count == before)
        *id = GONE;
    return MIXT_OK;
}

static mixt__span token_at(const learner *l, int64_t id)
{
    int64_t end = id + 1 < l->tokens.count ? l->tokens.begin[id + 1] : l->tokens.text_size;
    return (mixt__span){(const unsigned char *)l->tokens.text + l->tokens.begin[id], end - l->tokens.begin[id] - 1};
}

/** The token that a pair makes. */
static mixt_status join_tokens(learner *l, const pair *p, int64_t *id)
{
    mixt__span left = token_at(l, p->left), right = token_at(l, p->right);
    unsigned char *both = mixt__alloc_uninit((size_t)(left.size + right.size));
    if (!both)
        return no_memory();
    memcpy(both, left.bytes, (size_t)left.size);
    memcpy(both + left.size, right.bytes, (size_t)right.size);
    mixt_status status = add_token(l, both, left.size + right.size, id);
    mixt__free(both);
    return status;
}

/* ---- learning ---- */

/** Joins a pair at one place. */
static mixt_status join_at(learner *l, int32_t at, uint32_t made)
{
    int32_t right = l->next[at], before = l->before[at], after = l->next[right];
    MIXT_TRY(drop_place(l, before));
    MIXT_TRY(drop_place(l, right));
    l->symbol[at] = made;
    l->next[at] = after;
    l->next[right] = l->before[right] = GONE;
    l->symbol[right] = UINT32_MAX; // no symbol: whoever has this place on a list passes over it
    if (after != GONE)
        l->before[after] = at;
    MIXT_TRY(add_place(l, before));
    return add_place(l, at);
}

static mixt_status join_pair(learner *l, int32_t which, uint32_t made)
{
    uint32_t left = l->pairs[which].left, right = l->pairs[which].right;
    for (int64_t n = l->pairs[which].first; n != GONE; n = l->nodes[n].next) {
        int32_t at = l->nodes[n].at;
        if (l->symbol[at] == left && l->next[at] != GONE && l->symbol[l->next[at]] == right)
            MIXT_TRY(join_at(l, at, made));
    }
    l->pairs[which].count = 0;
    return push_fresh(l);
}

static mixt_status prepare(learner *l, const mixt__span *texts, int64_t text_count)
{
    int64_t id;
    for (int64_t i = 0; i < text_count; i++)
        MIXT_TRY(count_pieces(l, texts[i]));
    MIXT_TRY(lay_out(l));
    for (int byte = 0; byte < 256; byte++) {
        unsigned char text = (unsigned char)byte;
        MIXT_TRY(add_token(l, &text, 1, &id));
    }
    for (int64_t at = 0; at < l->places; at++)
        MIXT_TRY(add_place(l, (int32_t)at));
    return push_fresh(l);
}

static mixt_status tell(mixt__teller teller, int64_t done, int64_t total)
{
    mixt_progress p = mixt__progress(MIXT_PROGRESS_DATA, "learning a vocabulary");
    p.unit = "merges";
    p.done = done;
    p.total = total;
    return mixt__tell(teller, &p);
}

static mixt_status learn(learner *l, int64_t most, mixt__teller teller, mixt__bpe_learned *learned)
{
    int32_t best;
    int64_t id = GONE;
    learned->merges = mixt__alloc_uninit((size_t)most * sizeof *learned->merges);
    if (!learned->merges)
        return no_memory();
    while (learned->count < most) {
        if (learned->count % TELL_EVERY == 0)
            MIXT_TRY(tell(teller, learned->count, most));
        MIXT_TRY(best_pair(l, &best));
        if (best == GONE)
            break;
        pair p = l->pairs[best];
        MIXT_TRY(join_tokens(l, &p, &id));
        l->pairs[best].banned = id == GONE;
        if (id == GONE)
            continue;
        learned->merges[learned->count][0] = p.left;
        learned->merges[learned->count++][1] = p.right;
        MIXT_TRY(join_pair(l, best, (uint32_t)id));
    }
    return tell(teller, most, most);
}

mixt_status mixt__bpe_learn(const mixt__span *texts, int64_t text_count, int64_t size, mixt__teller teller,
                            mixt__bpe_learned *learned)
{
    learner l = {0};
    *learned = (mixt__bpe_learned){0};
    if (size < MIXT_BPE_LEAST || size > MIXT_VOCABULARY_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "a vocabulary of %lld tokens: expected %d (all bytes and an end) to %d",
                          (long long)size, MIXT_BPE_LEAST, MIXT_VOCABULARY_MAX);
    mixt_status status = prepare(&l, texts, text_count);
    if (status == MIXT_OK)
        status = learn(&l, size - MIXT_BPE_LEAST, teller, learned);
    close_learner(&l);
    if (status != MIXT_OK)
        mixt__bpe_learned_free(learned);
    return status;
}

void mixt__bpe_learned_free(mixt__bpe_learned *learned)
{
    mixt__free(learned->merges);
    *learned = (mixt__bpe_learned){0};
}
