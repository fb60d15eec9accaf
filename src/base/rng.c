/* Philox 4x32-10 (Salmon et al., SC'11) and the distributions that the host side needs. */
#include "base/rng.h"

#include <math.h>

mixt__rng_block mixt__rng_block_at(uint64_t key, uint64_t counter)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (mixt__rng_block){{c0, c1, c2, c3}};
}

uint64_t mixt__rng_key(uint64_t seed, uint64_t stream, uint64_t substream)
{
    uint64_t x = seed; // three rounds of splitmix64's finaliser: every input bit reaches every key bit
    const uint64_t mix[3] = {0x9E3779B97F4A7C15u, stream, substream};
    for (int i = 0; i < 3; i++) {
        x += mix[i] + 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        x ^= x >> 31;
    }
    return x;
}

mixt__rng mixt__rng_start(uint64_t key)
{
    return (mixt__rng){.key = key, .used = 4};
}

mixt__rng mixt__rng_start_at(uint64_t key, uint64_t words)
{
    mixt__rng rng = {.key = key, .counter = words / 4, .used = 4};
    if (words % 4) {
        rng.block = mixt__rng_block_at(key, rng.counter++);
        rng.used = (int)(words % 4);
    }
    return rng;
}

uint32_t mixt__rng_u32(mixt__rng *rng)
{
    if (rng->used == 4) {
        rng->block = mixt__rng_block_at(rng->key, rng->counter++);
        rng->used = 0;
    }
    return rng->block.word[rng->used++];
}

uint64_t mixt__rng_below(mixt__rng *rng, uint64_t limit)
{
    uint64_t threshold = (0 - limit) % limit, draw;
    do
        draw = (uint64_t)mixt__rng_u32(rng) << 32 | mixt__rng_u32(rng);
    while (draw < threshold);
    return draw % limit;
}

float mixt__rng_uniform(mixt__rng *rng)
{
    return (float)(mixt__rng_u32(rng) >> 8) * 0x1p-24f;
}

float mixt__rng_normal(mixt__rng *rng)
{
    double u = ((double)mixt__rng_u32(rng) + 1.0) * 0x1p-32, v = (double)mixt__rng_u32(rng) * 0x1p-32;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}
