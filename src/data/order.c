/* The order of an epoch: a keyed permutation, computed one element at a time.
 *
 * A Feistel network permutes the smallest power of two that holds the count; an image outside the count is permuted
 * again until it falls inside (cycle walking, fewer than two rounds on average), which keeps it a bijection. Unlike
 * Fisher-Yates it needs no array and no state, so any thread can ask for any sample of any epoch.
 */
#include "data/data.h"

enum { ROUNDS = 8 };

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

int64_t mixt__order_at(uint64_t key, int64_t count, int64_t index)
{
    if (count < 2)
        return index;
    int bits = 64 - __builtin_clzll((uint64_t)count - 1);
    if (bits < 2)
        bits = 2; // both halves need a bit
    int low_bits = bits / 2;
    uint64_t low_mask = ((uint64_t)1 << low_bits) - 1, high_mask = ((uint64_t)1 << (bits - low_bits)) - 1;
    uint64_t x = (uint64_t)index;
    do {
        uint64_t low = x & low_mask, high = x >> low_bits;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint64_t round_key = key + 0x9E3779B97F4A7C15u * (2 * round + 1);
            low ^= scramble(round_key ^ (high << 1)) & low_mask;
            high ^= scramble((round_key + 0x9E3779B97F4A7C15u) ^ (low << 1 | 1)) & high_mask;
        }
        x = high << low_bits | low;
    } while (x >= (uint64_t)count);
    return (int64_t)x;
}
