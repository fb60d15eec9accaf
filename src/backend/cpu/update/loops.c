/* The loops that loops.h declares, compiled for the baseline, AVX2 and AVX-512.
 *
 * Lanes are explicit (whatever the register width), so that every level adds in the same order.
 */
#include "backend/cpu/update/loops.h"

#include "backend/cpu/update/squares.h"
#include "base/isa_at.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
enum { SETS = SUMS / LANES };

typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));

typedef struct stat_lanes {
    square_sum squares;
    lanes_i32 amax[SETS]; // the bits of a magnitude, which order like the magnitudes; NaN and Inf are largest
    lanes_i32 zeros[SETS];
} stat_lanes;

/** SUMS more. */
static inline void add_stats(stat_lanes *s, const float *x)
{
#pragma GCC unroll 2
    for (int set = 0; set < SETS; set++) {
        lanes_i32 bits;
        memcpy(&bits, x + set * LANES, sizeof bits);
        bits &= 0x7fffffff;
#if defined(__AVX512F__)
        __m512i zeros = (__m512i)s->zeros[set];
        __mmask16 where = _mm512_testn_epi32_mask((__m512i)bits, (__m512i)bits);
        s->zeros[set] = (lanes_i32)_mm512_mask_add_epi32(zeros, where, zeros, _mm512_set1_epi32(1));
#else
        s->zeros[set] -= bits == 0; // -1 where true
#endif
        for (int i = 0; i < LANES; i++)
            s->amax[set][i] = bits[i] > s->amax[set][i] ? bits[i] : s->amax[set][i];
    }
    add_squares(&s->squares, x);
}

/** Where some are NaN or Inf, which is rare: their count, and the largest of the others. */
static void count_nonfinite(const float *g, int64_t count, mixt__chunk_stats *result)
{
    result->amax = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(g[i]))
            result->nonfinite++;
        else if (fabsf(g[i]) > result->amax)
            result->amax = fabsf(g[i]);
}

static void stats(const float *g, int64_t count, mixt__chunk_stats *result)
{
    stat_lanes s;
    memset(&s, 0, sizeof s);
    int64_t whole = count / SUMS * SUMS;
    for (int64_t i = 0; i < whole; i += SUMS)
        add_stats(&s, g + i);
    float rest[SUMS] = {0};
    memcpy(rest, g + whole, (size_t)(count - whole) * sizeof(float));
    add_stats(&s, rest);
    int32_t amax = 0, zeros = (int32_t)(count - whole) - SUMS; // the padding of the rest is not counted
    for (int i = 0; i < SUMS; i++) {
        int32_t largest = s.amax[i / LANES][i % LANES];
        zeros += s.zeros[i / LANES][i % LANES];
        amax = largest > amax ? largest : amax;
    }
    *result = (mixt__chunk_stats){.sum_squares = total_squares(&s.squares), .zeros = (uint16_t)zeros};
    memcpy(&result->amax, &amax, sizeof amax);
    if (!isfinite(result->amax))
        count_nonfinite(g, count, result);
}

typedef uint64_t lanes_u64 __attribute__((vector_size(4 * LANES)));

static uint64_t words(const void *src, int64_t count)
{
    enum { WORDS = LANES / 2, TOGETHER = 4 };
    const char *at = src;
    lanes_u64 sums[TOGETHER] = {0};
    int64_t i = 0;
    for (; i + TOGETHER * WORDS <= count; i += TOGETHER * WORDS)
#pragma GCC unroll 4
        for (int k = 0; k < TOGETHER; k++) {
            lanes_u64 x;
            memcpy(&x, at + (i + k * WORDS) * (int64_t)sizeof(uint64_t), sizeof x);
            sums[k] += x;
        }
    lanes_u64 all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    uint64_t sum = 0;
    for (int k = 0; k < WORDS; k++)
        sum += all[k];
    for (; i < count; i++) {
        uint64_t x;
        memcpy(&x, at + i * (int64_t)sizeof x, sizeof x);
        sum += x;
    }
    return sum;
}

const mixt__update_loops MIXT_AT(mixt__update_loops) = {.stats = stats, .words = words};
