/* FP32 to BF16 with stochastic rounding, compiled for the baseline, AVX2 and AVX-512. The bits of all levels are those
 * of mixt__stochastic_store.
 *
 * Philox blocks are made side by side, one in each 64-bit lane, whose upper half means nothing: a product reads the
 * lower one. Two registers of blocks at a time, so that one's products fill the wait for the other's. Each element
 * takes the upper half of one word.
 */
#include "num/stochastic.h"

#include "base/isa_at.h"

#include <immintrin.h>

#if defined(__AVX512F__)
enum { LANES = 8 };
#define MULTIPLY(a, b) ((lanes)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
enum { LANES = 4 };
#define MULTIPLY(a, b) ((lanes)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#else
enum { LANES = 2 };
#define MULTIPLY(a, b) ((lanes)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#endif
enum { SETS = 2, BLOCKS = SETS * LANES, ELEMENTS = 4 * BLOCKS };

typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));

/** Random words of so many blocks from a counter on, in the order of elements. */
static inline void draw(uint64_t key, uint64_t counter, uint32_t words[ELEMENTS])
{
    const lanes low = (lanes){0} + 0xffffffffu, m0 = (lanes){0} + 0xD2511F53u, m1 = (lanes){0} + 0xCD9E8D57u;
    lanes c0[SETS], c1[SETS], c2[SETS], c3[SETS];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int s = 0; s < SETS; s++) {
        uint64_t counters[LANES];
        for (int i = 0; i < LANES; i++)
            counters[i] = counter + (uint64_t)(s * LANES + i);
        memcpy(&c0[s], counters, sizeof counters);
        c1[s] = c0[s] >> 32;
        c2[s] = c3[s] = (lanes){0};
    }
    for (int round = 0; round < 10; round++) {
#pragma GCC unroll 2
        for (int s = 0; s < SETS; s++) {
            lanes p0 = MULTIPLY(m0, c0[s]), p1 = MULTIPLY(m1, c2[s]);
            c0[s] = (p1 >> 32) ^ c1[s] ^ ((lanes){0} + k0);
            c2[s] = (p0 >> 32) ^ c3[s] ^ ((lanes){0} + k1);
            c1[s] = p1;
            c3[s] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int s = 0; s < SETS; s++) {
        lanes first = (c0[s] & low) | c1[s] << 32, second = (c2[s] & low) | c3[s] << 32;
        uint64_t pairs[2 * LANES], halves[2][LANES];
        memcpy(halves[0], &first, sizeof first);
        memcpy(halves[1], &second, sizeof second);
        for (int i = 0; i < 2 * LANES; i++)
            pairs[i] = halves[i % 2][i / 2];
        memcpy(words + 4 * s * LANES, pairs, sizeof pairs);
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

static void round_bf16(uint16_t *restrict dst, const float *restrict src, int64_t count, uint64_t key, int64_t first)
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

static void random_words(uint32_t *words, int64_t count, uint64_t key, int64_t first)
{
    uint32_t some[ELEMENTS];
    for (int64_t done = 0; done < count; done += ELEMENTS) {
        int64_t here = count - done < ELEMENTS ? count - done : ELEMENTS;
        draw(key, (uint64_t)(first + done) / 4, some);
        memcpy(words + done, some, (size_t)here * sizeof *words);
    }
}

mixt__random_words_fn *const MIXT_AT(mixt__random_words) = random_words;
mixt__stochastic_bf16_fn *const MIXT_AT(mixt__stochastic_bf16) = round_bf16;
