/* Decomposed fully, marks put in their order, composed again: Unicode's chapter 3.11, Hangul by arithmetic. */
#include "base/normal.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/unicode.h"

#include <string.h>

typedef struct code_order {
    uint32_t first, last;
    uint8_t order;
} code_order;

typedef struct code_parts {
    uint32_t code, to[2];
} code_parts;

typedef struct code_pair {
    uint32_t first, second, code;
} code_pair;

#include "base/normal_tables.inc"

enum {
    ORDERS = sizeof order / sizeof order[0],
    PARTS = sizeof parts / sizeof parts[0],
    PAIRS = sizeof pairs / sizeof pairs[0],
    FOLLOWERS = sizeof followers / sizeof followers[0],
    HANGUL = 0xac00,
    HANGUL_COUNT = 11172,
    LEAD = 0x1100,
    VOWEL = 0x1161,
    TAIL = 0x11a7,
    VOWELS = 21,
    TAILS = 28,
    GROWTH = 4, // code points that one may become
};

/** How a mark goes behind others; 0: it is none. */
static int order_of(uint32_t code)
{
    int low = 0, high = ORDERS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (code > order[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ORDERS && code >= order[low].first ? order[low].order : 0;
}

static const code_parts *parts_of(uint32_t code)
{
    int low = 0, high = PARTS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (code > parts[middle].code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < PARTS && parts[low].code == code ? &parts[low] : NULL;
}

/** What two code points become; 0: they stay two. */
static uint32_t pair_of(uint32_t first, uint32_t second)
{
    int low = 0, high = PAIRS;
    if (first - LEAD < 19 && second - VOWEL < VOWELS)
        return HANGUL + ((first - LEAD) * VOWELS + (second - VOWEL)) * TAILS;
    if (first - HANGUL < HANGUL_COUNT && (first - HANGUL) % TAILS == 0 && second > TAIL && second - TAIL < TAILS)
        return first + (second - TAIL);
    while (low < high) {
        int middle = (low + high) / 2;
        const code_pair *pair = &pairs[middle];
        if (first > pair->first || (first == pair->first && second > pair->second))
            low = middle + 1;
        else
            high = middle;
    }
    return low < PAIRS && pairs[low].first == first && pairs[low].second == second ? pairs[low].code : 0;
}

/** Whether a code point is other than its composition, or may become part of one before it. */
static bool may_change(uint32_t code)
{
    const code_parts *two = parts_of(code);
    if ((code >= LEAD && code < 0x1200) || order_of(code) || (two && pair_of(two->to[0], two->to[1]) != code))
        return true;
    for (int i = 0; i < FOLLOWERS && followers[i] <= code; i++)
        if (followers[i] == code)
            return true;
    return false;
}

bool mixt__normal_may_change(const unsigned char *text, int64_t size)
{
    int bytes;
    for (int64_t at = 0; at < size; at += bytes) {
        bytes = 1;
        if (text[at] >= 0xcc &&
            may_change(mixt__utf8_decode(text + at, size - at, &bytes))) // below U+0300 all is composed
            return true;
    }
    return false;
}

/** Appends the full decomposition of a code point. */
static int64_t decompose(uint32_t code, uint32_t *to, int64_t count)
{
    if (code - HANGUL < HANGUL_COUNT) {
        uint32_t index = code - HANGUL;
        to[count++] = LEAD + index / (VOWELS * TAILS);
        to[count++] = VOWEL + index % (VOWELS * TAILS) / TAILS;
        if (index % TAILS)
            to[count++] = TAIL + index % TAILS;
        return count;
    }
    const code_parts *two = parts_of(code);
    if (!two) {
        to[count++] = code;
        return count;
    }
    count = decompose(two->to[0], to, count);
    return two->to[1] ? decompose(two->to[1], to, count) : count;
}

/** Marks that follow each other go by their order, those of one order as they came. */
static void put_in_order(uint32_t *codes, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        int own = order_of(codes[i]);
        uint32_t code = codes[i];
        int64_t at = i;
        for (; own && at > 0 && order_of(codes[at - 1]) > own; at--)
            codes[at] = codes[at - 1];
        codes[at] = code;
    }
}

/** Joins what has a composed form, in place; returns how many are left. */
static int64_t compose(uint32_t *codes, int64_t count)
{
    int64_t kept = 0, starter = -1;
    int before = 0; // order of what was kept last behind the starter
    for (int64_t i = 0; i < count; i++) {
        int own = order_of(codes[i]);
        bool blocked = starter < 0 || (kept > starter + 1 && (before == 0 || before >= own));
        uint32_t joined = blocked ? 0 : pair_of(codes[starter], codes[i]);
        if (joined) {
            codes[starter] = joined;
            continue;
        }
        codes[kept] = codes[i];
        if (!own)
            starter = kept;
        before = own;
        kept++;
    }
    return kept;
}

mixt_status mixt__normal_compose(const unsigned char *text, int64_t size, unsigned char **made, int64_t *bytes)
{
    int64_t count = 0, written = 0;
    int step;
    uint32_t *codes = mixt__alloc_uninit(((size_t)size * GROWTH + 1) * sizeof *codes);
    *bytes = 0;
    *made = codes ? mixt__alloc_uninit((size_t)size * GROWTH * MIXT_UTF8_MAX + 1) : NULL;
    if (!*made) {
        mixt__free(codes);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compose a text");
    }
    for (int64_t at = 0; at < size; at += step)
        count = decompose(mixt__utf8_decode(text + at, size - at, &step), codes, count);
    put_in_order(codes, count);
    count = compose(codes, count);
    for (int64_t i = 0; i < count; i++)
        written += mixt__utf8_encode(codes[i], *made + written);
    *bytes = written;
    mixt__free(codes);
    return MIXT_OK;
}
