/* Four accumulators in turn, so that the multiplications of four groups overlap: several bytes a cycle. */
#include "store/checksum.h"

#include <string.h>

enum { LANES = 4, GROUP = 8 };

static const uint64_t odd_a = 0x9fb21c651e98df25u, odd_b = 0xd6e8feb86659fd93u; // any odd numbers with mixed bits

static uint64_t absorb(uint64_t sum, uint64_t group)
{
    sum = (sum ^ group) * odd_a;
    return sum ^ (sum >> 29);
}

static uint64_t load(const unsigned char *from, size_t bytes)
{
    uint64_t group = 0;
    memcpy(&group, from, bytes);
    return group;
}

uint64_t mixt__checksum(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t lanes[LANES] = {odd_a, odd_b, ~odd_a, ~odd_b}, sum = (uint64_t)bytes * odd_b;
    size_t left = bytes;
    for (; left >= LANES * GROUP; left -= LANES * GROUP, at += LANES * GROUP)
        for (int i = 0; i < LANES; i++)
            lanes[i] = absorb(lanes[i], load(at + i * GROUP, GROUP));
    for (int i = 0; left; i++) { // the last groups, one possibly short: its length is in the sum already
        size_t piece = left < GROUP ? left : GROUP;
        lanes[i] = absorb(lanes[i], load(at, piece));
        at += piece;
        left -= piece;
    }
    for (int i = 0; i < LANES; i++) {
        sum = absorb(sum, lanes[i]);
        sum = (sum ^ (sum >> 32)) * odd_b;
    }
    return sum ^ (sum >> 31);
}

uint64_t mixt__checksum_words(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t sum = 0;
    size_t words = bytes / sizeof(uint64_t);
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, at + i * sizeof word, sizeof word);
        sum += word;
    }
    uint64_t last = 0;
    memcpy(&last, at + words * sizeof last, bytes % sizeof last);
    return sum + last;
}
