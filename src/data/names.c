/* A table of names: open addressing, at most half full, names in one block of text. */
#include "data/names.h"

#include "data/hash.h"

static uint64_t slot_of(const mixt__names *n, const char *text, int64_t length)
{
    return mixt__hash_bytes(0, text, length) & (uint64_t)(n->slot_count - 1);
}

/** Puts number `id` where its name belongs; there is room. */
static void place(mixt__names *n, int64_t id)
{
    const char *text = n->text + n->begin[id];
    uint64_t at = slot_of(n, text, (int64_t)strlen(text));
    while (n->slots[at])
        at = (at + 1) & (uint64_t)(n->slot_count - 1);
    n->slots[at] = (int32_t)(id + 1);
}

static bool grow_slots(mixt__names *n)
{
    if (2 * (n->count + 1) <= n->slot_count)
        return true;
    int64_t count = n->slot_count ? 2 * n->slot_count : 1024;
    int32_t *slots = mixt__alloc((size_t)count * sizeof *slots);
    if (!slots)
        return false;
    mixt__free(n->slots);
    n->slots = slots;
    n->slot_count = count;
    for (int64_t i = 0; i < n->count; i++)
        place(n, i);
    return true;
}

static bool grow_text(mixt__names *n, int64_t more)
{
    int64_t capacity = n->text_capacity ? n->text_capacity : 4096;
    while (capacity < n->text_size + more)
        capacity *= 2;
    if (capacity == n->text_capacity)
        return true;
    char *text = mixt__realloc(n->text, (size_t)capacity);
    if (!text)
        return false;
    n->text = text;
    n->text_capacity = capacity;
    return true;
}

int64_t mixt__names_number(const mixt__names *n, const char *text, int64_t length)
{
    if (!n->slot_count)
        return -1;
    for (uint64_t at = slot_of(n, text, length); n->slots[at]; at = (at + 1) & (uint64_t)(n->slot_count - 1)) {
        const char *known = n->text + n->begin[n->slots[at] - 1];
        if ((int64_t)strlen(known) == length && !memcmp(known, text, (size_t)length))
            return n->slots[at] - 1;
    }
    return -1;
}

int64_t mixt__names_add(mixt__names *n, const char *text, int64_t length)
{
    int64_t known = mixt__names_number(n, text, length);
    if (known >= 0)
        return known;
    if (!grow_slots(n) || n->count == INT32_MAX - 1 || !grow_text(n, length + 1) ||
        !mixt__grow((void **)&n->begin, &n->capacity, n->count, sizeof *n->begin))
        return -1;
    n->begin[n->count] = n->text_size;
    memcpy(n->text + n->text_size, text, (size_t)length);
    n->text[n->text_size + length] = '\0';
    n->text_size += length + 1;
    place(n, n->count);
    return n->count++;
}

const char *const *mixt__names_list(const mixt__names *n, mixt__arena *arena)
{
    char *text = mixt__arena_alloc(arena, (size_t)n->text_size + 1);
    const char **list = mixt__arena_alloc(arena, (size_t)(n->count + 1) * sizeof *list);
    if (!text || !list)
        return NULL;
    memcpy(text, n->text, (size_t)n->text_size);
    for (int64_t i = 0; i < n->count; i++)
        list[i] = text + n->begin[i];
    return list;
}

void mixt__names_free(mixt__names *n)
{
    mixt__free(n->text);
    mixt__free(n->begin);
    mixt__free(n->slots);
    *n = (mixt__names){0};
}
