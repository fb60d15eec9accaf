/* A hash table over one block of bytes. */
#include "data/text/vocabulary.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/hash.h"

static uint64_t hash_of(const void *bytes, int64_t size)
{
    uint64_t h = mixt__hash_bytes(0, bytes, size);
    return h ^ h >> 32;
}

mixt__span mixt__vocabulary_at(const mixt__vocabulary *v, int64_t id)
{
    return (mixt__span){v->bytes + v->offsets[id], v->offsets[id + 1] - v->offsets[id]};
}

int64_t mixt__vocabulary_find(const mixt__vocabulary *v, const void *bytes, int64_t size)
{
    if (size > v->longest)
        return -1;
    for (uint64_t slot = hash_of(bytes, size) & v->mask; v->slots[slot]; slot = (slot + 1) & v->mask) {
        int64_t id = (int64_t)v->slots[slot] - 1;
        mixt__span token = mixt__vocabulary_at(v, id);
        if (token.size == size && !memcmp(token.bytes, bytes, (size_t)size))
            return id;
    }
    return -1;
}

static mixt_status take_memory(mixt__vocabulary *v, const mixt__span *tokens, int64_t count)
{
    int64_t total = 0;
    uint64_t slots = 16;
    for (int64_t i = 0; i < count; i++) {
        total += tokens[i].size;
        if (tokens[i].size > v->longest)
            v->longest = tokens[i].size;
    }
    while (slots < (uint64_t)count * 2)
        slots *= 2;
    v->bytes = mixt__alloc_uninit((size_t)total);
    v->offsets = mixt__alloc((size_t)(count + 1) * sizeof *v->offsets);
    v->slots = mixt__alloc((size_t)slots * sizeof *v->slots);
    v->mask = slots - 1;
    if (!v->bytes || !v->offsets || !v->slots)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a vocabulary of %lld tokens", (long long)count);
    return MIXT_OK;
}

mixt_status mixt__vocabulary_make(mixt__vocabulary *v, const mixt__span *tokens, int64_t count, int64_t *twice)
{
    *v = (mixt__vocabulary){0};
    mixt_status status = take_memory(v, tokens, count);
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        memcpy(v->bytes + v->offsets[i], tokens[i].bytes, (size_t)tokens[i].size);
        v->offsets[i + 1] = v->offsets[i] + tokens[i].size;
        if (mixt__vocabulary_find(v, tokens[i].bytes, tokens[i].size) >= 0) {
            *twice = i;
            status = mixt__fail(MIXT_ERROR_FORMAT, "token %lld is there twice", (long long)i);
            break;
        }
        uint64_t slot = hash_of(tokens[i].bytes, tokens[i].size) & v->mask;
        while (v->slots[slot])
            slot = (slot + 1) & v->mask;
        v->slots[slot] = (uint32_t)i + 1;
        v->count = i + 1;
    }
    if (status != MIXT_OK)
        mixt__vocabulary_free(v);
    return status;
}

void mixt__vocabulary_free(mixt__vocabulary *v)
{
    mixt__free(v->bytes);
    mixt__free(v->offsets);
    mixt__free(v->slots);
    *v = (mixt__vocabulary){0};
}
