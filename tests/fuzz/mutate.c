/* Mutations: each takes the input and one random number generator, and changes it in place. */
#include "mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/** xorshift64: small, and the same everywhere. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/** A number below `limit`, 0 for a limit of 0. */
static size_t below(uint64_t *state, size_t limit)
{
    return limit ? (size_t)((next(state) >> 11) % limit) : 0;
}

static void append(fuzz_entry **list, int64_t *count, int64_t *capacity, const uint8_t *data, size_t size)
{
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 64;
        *list = realloc(*list, (size_t)*capacity * sizeof **list);
    }
    uint8_t *copy = malloc(size ? size : 1);
    if (!*list || !copy)
        exit(2);
    memcpy(copy, data, size);
    (*list)[(*count)++] = (fuzz_entry){copy, size};
}

void fuzz_corpus_add(fuzz_corpus *corpus, const uint8_t *data, size_t size)
{
    append(&corpus->entries, &corpus->count, &corpus->capacity, data, size);
}

bool fuzz_corpus_dictionary(fuzz_corpus *corpus, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return false;
    }
    char line[512];
    while (fgets(line, sizeof line, file)) {
        uint8_t word[512];
        size_t size = 0;
        const char *at = *line == '#' ? NULL : strchr(line, '"');
        for (at = at ? at + 1 : ""; *at && *at != '"'; at++) {
            unsigned code;
            if (at[0] == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &code) == 1) {
                word[size++] = (uint8_t)code;
                at += 3;
            } else {
                at += at[0] == '\\' && at[1];
                word[size++] = (uint8_t)*at;
            }
        }
        if (size)
            append(&corpus->words, &corpus->word_count, &corpus->word_capacity, word, size);
    }
    return !fclose(file);
}

void fuzz_corpus_free(fuzz_corpus *corpus)
{
    for (int64_t i = 0; i < corpus->count; i++)
        free(corpus->entries[i].data);
    for (int64_t i = 0; i < corpus->word_count; i++)
        free(corpus->words[i].data);
    free(corpus->entries);
    free(corpus->words);
    *corpus = (fuzz_corpus){0};
}

/** Puts bytes in at a place; what no longer fits falls off the end. */
static void insert(fuzz_bytes *bytes, size_t at, const uint8_t *data, size_t size)
{
    if (size > FUZZ_INPUT_MAX - at)
        size = FUZZ_INPUT_MAX - at;
    size_t tail = bytes->size - at;
    if (tail > FUZZ_INPUT_MAX - at - size)
        tail = FUZZ_INPUT_MAX - at - size;
    memmove(bytes->data + at + size, bytes->data + at, tail);
    memcpy(bytes->data + at, data, size);
    bytes->size = at + size + tail;
}

static void flip_bit(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    if (bytes->size)
        bytes->data[below(state, bytes->size)] ^= (uint8_t)(1u << below(state, 8));
}

static void set_byte(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    static const uint8_t telling[] = {0, 1, 9, 10, 13, 32, 34, 35, 39, 44, 45, 58, 91, 92, 123, 127, 128, 255};
    uint8_t value = below(state, 2) ? (uint8_t)next(state) : telling[below(state, sizeof telling)];
    if (bytes->size)
        bytes->data[below(state, bytes->size)] = value;
}

/** A number at the edge of something, of 1 to 8 bytes, either end first. */
static void set_integer(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    size_t width = (size_t)1 << below(state, 4), shift = below(state, 64);
    uint64_t value = below(state, 3) ? ((uint64_t)1 << shift) - below(state, 2) : 0 - below(state, 3);
    bool big = below(state, 2);
    if (bytes->size < width)
        return;
    uint8_t *at = bytes->data + below(state, bytes->size - width + 1);
    for (size_t i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * (big ? width - 1 - i : i));
}

/** Another number in place of one written in digits. */
static void set_digits(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "7",
                                          "255",
                                          "65536",
                                          "2147483648",
                                          "4294967296",
                                          "1e39",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "0.5",
                                          "nan",
                                          "1e-46"};
    size_t start = below(state, bytes->size), end;
    while (start < bytes->size && !isdigit(bytes->data[start]))
        start++;
    for (end = start; end < bytes->size && isdigit(bytes->data[end]);)
        end++;
    if (start == end)
        return;
    memmove(bytes->data + start, bytes->data + end, bytes->size - end);
    bytes->size -= end - start;
    const char *number = numbers[below(state, sizeof numbers / sizeof numbers[0])];
    insert(bytes, start, (const uint8_t *)number, strlen(number));
}

static void insert_run(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    uint8_t run[64];
    size_t size = 1 + below(state, below(state, 8) ? 4 : sizeof run);
    memset(run, (int)(next(state) & 255), size);
    insert(bytes, below(state, bytes->size + 1), run, size);
}

static void remove_range(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    size_t at = below(state, bytes->size), left = bytes->size - at;
    size_t size = below(state, (left < 32 || !below(state, 8) ? left : 32) + 1);
    memmove(bytes->data + at, bytes->data + at + size, left - size);
    bytes->size -= size;
}

static void repeat_range(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    uint8_t range[256];
    size_t at = below(state, bytes->size), left = bytes->size - at;
    size_t size = below(state, (left < sizeof range ? left : sizeof range) + 1);
    memcpy(range, bytes->data + at, size);
    for (size_t times = 1 + below(state, 3); times > 0; times--)
        insert(bytes, below(state, 2) ? at : below(state, bytes->size + 1), range, size);
}

static void cut_off(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    (void)corpus;
    if (!below(state, 4))
        bytes->size = below(state, bytes->size + 1);
}

/** The end of another input after the beginning of this one. */
static void splice(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    const fuzz_entry *other = &corpus->entries[below(state, (size_t)corpus->count)];
    size_t from = below(state, other->size + 1);
    bytes->size = below(state, bytes->size + 1);
    insert(bytes, bytes->size, other->data + from, other->size - from);
}

static void put_word(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    if (!corpus->word_count)
        return;
    const fuzz_entry *word = &corpus->words[below(state, (size_t)corpus->word_count)];
    size_t at = below(state, bytes->size + 1);
    if (below(state, 2) && bytes->size - at >= word->size)
        memcpy(bytes->data + at, word->data, word->size);
    else
        insert(bytes, at, word->data, word->size);
}

void fuzz_mutate(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes)
{
    static void (*const changes[])(const fuzz_corpus *, uint64_t *, fuzz_bytes *) = {
        flip_bit,     set_byte, set_integer, set_digits, insert_run, remove_range,
        repeat_range, cut_off,  splice,      put_word,   put_word,
    };
    const fuzz_entry *from = &corpus->entries[below(state, (size_t)corpus->count)];
    memcpy(bytes->data, from->data, from->size);
    bytes->size = from->size;
    for (size_t count = (size_t)1 << below(state, 4); count > 0; count--)
        changes[below(state, sizeof changes / sizeof changes[0])](corpus, state, bytes);
}
