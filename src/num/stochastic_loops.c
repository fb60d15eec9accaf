/* FP32 to BF16 with stochastic rounding, compiled for the baseline, AVX2 and AVX-512. The bits of all levels are those
 * of mixt__stochastic_store.
 *
 * Sixteen Philox blocks are made side by side: 64 elements, of which each takes the upper half of one word.
 */
#include "num/stochastic.h"

#include "base/isa_at.h"

enum { BLOCKS = 16, ELEMENTS = 4 * BLOCKS };

/** Random words of so many blocks from a counter on, in the order of elements. */
static void draw(uint64_t key, uint64_t counter, uint32_t words[ELEMENTS])
{
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < BLOCKS; i++) {
        c0[i] = (uint32_t)(counter + (uint64_t)i);
        c1[i] = (uint32_t)((counter + (uint64_t)i) >> 32);
        c2[i] = c3[i] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
            c0[i] = n0;
            c2[i] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < BLOCKS; i++) {
        words[4 * i] = c0[i];
        words[4 * i + 1] = c1[i];
        words[4 * i + 2] = c2[i];
        words[4 * i + 3] = c3[i];
    }
}

/** Away from zero where what is cut off is more than the random number. NaN and infinity stay, NaN quiet. */
static inline uint16_t round_one(float value, uint32_t word)
{
    uint32_t bits = mixt__fp32_bits(value), infinity = 0x7f800000u;
    uint32_t rounded = (bits + (0xffffu - (word >> 16))) >> 16;
    uint32_t special = bits >> 16 | ((bits & ~0x80000000u) > infinity ? 0x40u : 0u);
    return (uint16_t)((bits & infinity) == infinity ? special : rounded);
}

static void round_bf16(uint16_t *dst, const float *src, int64_t count, uint64_t key, int64_t first)
{
    uint32_t words[ELEMENTS];
    int64_t done = 0, skip = first % 4; // of the first block
    for (uint64_t counter = (uint64_t)first / 4; done < count; counter += BLOCKS, skip = 0) {
        int64_t left = count - done, here = ELEMENTS - skip < left ? ELEMENTS - skip : left;
        draw(key, counter, words);
        if (here == ELEMENTS)
            for (int64_t i = 0; i < ELEMENTS; i++)
                dst[done + i] = round_one(src[done + i], words[i]);
        else
            for (int64_t i = 0; i < here; i++)
                dst[done + i] = round_one(src[done + i], words[skip + i]);
        done += here;
    }
}

mixt__stochastic_bf16_fn *const MIXT_AT(mixt__stochastic_bf16) = round_bf16;
