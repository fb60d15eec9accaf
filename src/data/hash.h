/* One 64-bit hash for tables, fingerprints and checksums of token files. Not for anything an adversary may choose. */
#ifndef MIXT_DATA_HASH_H
#define MIXT_DATA_HASH_H

#include <stdint.h>
#include <string.h>

/** Every step is a bijection of `h`, so that one changed word always changes the result. */
static inline uint64_t mixt__hash_word(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static inline uint64_t mixt__hash_bytes(uint64_t h, const void *bytes, int64_t size)
{
    const unsigned char *at = bytes;
    int64_t left = size;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = mixt__hash_word(h, word);
    }
    uint64_t tail = 0;
    for (int64_t i = 0; i < left; i++)
        tail |= (uint64_t)at[i] << 8 * i;
    return mixt__hash_word(mixt__hash_word(h, tail), (uint64_t)size);
}

#endif
