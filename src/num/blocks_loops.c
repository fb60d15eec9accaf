/* The loops of blocks.h, compiled for the baseline, AVX2 and AVX-512. No step of them rounds in another way at another
 * level.
 *
 * The map of E + 1 decades, in units of a code's magnitude p: g(p) = 10^(k - E)·(9·p/2^k - 8) for p from 2^k to
 * 2^(k+1), and p·10^-E below 1. Which piece a number is in is found by comparing it with all their begins: that is one
 * vector compare and two blends for each, and no table to gather from.
 */
#include "num/blocks.h"

#include "base/isa_at.h"

#include <string.h>

#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))

static const float ten_below[8] = {1e0f, 1e-1f, 1e-2f, 1e-3f, 1e-4f, 1e-5f, 1e-6f, 1e-7f};

/** g of a whole number. @param last E */
INLINE float value_of(float p, int last)
{
    float slope = ten_below[last], base = 0;
    UNROLLED
    for (int k = 0; k <= 7; k++)
        if (k <= last) {
            const float begin = (float)(1 << k);
            slope = p >= begin ? 9 * ten_below[last - k] / begin : slope;
            base = p >= begin ? -8 * ten_below[last - k] : base;
        }
    return slope * p + base;
}

/** Its inverse, of a number that is not negative. */
INLINE float place_of(float x, int last)
{
    float slope = 1 / ten_below[last], base = 0;
    UNROLLED
    for (int k = 0; k <= 7; k++)
        if (k <= last) {
            const float begin = ten_below[last - k], steps = (float)(1 << k);
            slope = x >= begin ? steps / (9 * begin) : slope;
            base = x >= begin ? 8 * steps / 9 : base;
        }
    return slope * x + base;
}

static void open_signed(float *restrict dst, const int8_t *restrict codes, float unit)
{
    for (int i = 0; i < MIXT_BLOCK; i++) {
        float p = (float)codes[i], magnitude = value_of(p < 0 ? -p : p, 6) * unit;
        dst[i] = p < 0 ? -magnitude : magnitude;
    }
}

/** Numbers first, of which the compiler knows nothing then: of bytes it would make a chain of branches. */
static void open_unsigned(float *restrict dst, const uint8_t *restrict codes, float unit)
{
    float places[MIXT_BLOCK];
    for (int i = 0; i < MIXT_BLOCK; i++)
        places[i] = (float)codes[i];
    __asm__ volatile("" : : "r"(places) : "memory");
    for (int i = 0; i < MIXT_BLOCK; i++)
        dst[i] = value_of(places[i], 7) * unit;
}

/** As integers, in which NaN is the largest. */
static float amax(const float *src)
{
    int32_t most = 0;
    for (int i = 0; i < MIXT_BLOCK; i++) {
        int32_t bits;
        memcpy(&bits, &src[i], sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float result;
    memcpy(&result, &most, sizeof result);
    return result;
}

static void close_signed(int8_t *restrict codes, const float *restrict src, float up, float factor,
                         const float *restrict shift)
{
    for (int i = 0; i < MIXT_BLOCK; i++) {
        float x = src[i] * up * factor;
        int32_t p = (int32_t)(place_of(x < 0 ? -x : x, 6) + shift[i]);
        p = p > 127 ? 127 : p;
        codes[i] = (int8_t)(x < 0 ? -p : p);
    }
}

static void close_unsigned(uint8_t *restrict codes, const float *restrict src, float up, float factor,
                           const float *restrict shift)
{
    for (int i = 0; i < MIXT_BLOCK; i++) {
        int32_t p = (int32_t)(place_of(src[i] * up * factor, 7) + shift[i]);
        p = p > 255 ? 255 : p;
        p = p == 0 && src[i] > 0 ? 1 : p;
        codes[i] = (uint8_t)p;
    }
}

/** 16 bits of each element: those of even ones are the lower half of a word. */
INLINE uint32_t bits_of(const uint32_t *words, int i)
{
    return words[i / 2] >> (i % 2 * 16) & 0xffff;
}

static void shifts(float *restrict shift, const uint32_t *restrict words)
{
    for (int i = 0; i < MIXT_BLOCK; i++)
        shift[i] = (float)bits_of(words, i) * 0x1p-16f;
}

static void dither_e5m2(float *restrict dst, const float *restrict src, float up, float factor,
                        const uint32_t *restrict words)
{
    for (int i = 0; i < MIXT_BLOCK; i++) {
        float x = src[i] * up * factor;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint32_t rounded = (bits + (bits_of(words, i) << 5)) & ~0x1fffffu; // 2 bits of the fraction stay
        bits = x < 0x1p-14f ? bits : rounded; // what is subnormal there goes to the nearest
        memcpy(&dst[i], &bits, sizeof bits);
    }
}

const mixt__block_loops MIXT_AT(mixt__block_loops) = {open_signed,    open_unsigned, amax,  close_signed,
                                                      close_unsigned, dither_e5m2,   shifts};
