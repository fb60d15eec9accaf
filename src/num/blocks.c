/* One block, from its numbers to codes and back. */
#include "num/blocks.h"

#include "base/isa.h"
#include "num/stochastic.h"

#include <math.h>

/** The largest number of each format, to which a block's largest is scaled: of the dynamic maps in their own units. */
static float largest_of(mixt_dtype format)
{
    switch (format) {
    case MIXT_DTYPE_INT8:
        return 9.0f * 127 / 64 - 8;
    case MIXT_DTYPE_UINT8:
        return 9.0f * 255 / 128 - 8;
    default:
        return format == MIXT_DTYPE_FP8_E4M3 ? 448.0f : 57344.0f;
    }
}

static const mixt__block_loops *loops(void)
{
    mixt__isa level = mixt__isa_level();
    if (level >= MIXT_ISA_AVX512)
        return &mixt__block_loops_avx512;
    return level >= MIXT_ISA_AVX2 ? &mixt__block_loops_avx2 : &mixt__block_loops_scalar;
}

bool mixt__blocks_possible(mixt_dtype format)
{
    return format == MIXT_DTYPE_INT8 || format == MIXT_DTYPE_UINT8 || format == MIXT_DTYPE_FP8_E4M3 ||
           format == MIXT_DTYPE_FP8_E5M2;
}

static bool is_integer(mixt_dtype format)
{
    return format == MIXT_DTYPE_INT8 || format == MIXT_DTYPE_UINT8;
}

void mixt__block_open(float *dst, const void *codes, float scale, mixt_dtype format, int64_t count)
{
    uint8_t room[MIXT_BLOCK];
    float wide[MIXT_BLOCK], *to = count == MIXT_BLOCK ? dst : wide;
    const void *from = codes;
    if (count < MIXT_BLOCK) {
        memset(room, 0, sizeof room);
        memcpy(room, codes, (size_t)count);
        from = room;
    }
    bool tiny = scale < 0x1p-60f; // whose part may not be a number any more
    float unit = (tiny ? scale * 0x1p60f : scale) / largest_of(format);
    if (format == MIXT_DTYPE_INT8) {
        loops()->open_signed(to, from, unit);
    } else if (format == MIXT_DTYPE_UINT8) {
        loops()->open_unsigned(to, from, unit);
    } else {
        mixt__widen(format)(to, from, MIXT_BLOCK);
        for (int i = 0; i < MIXT_BLOCK; i++)
            to[i] *= unit;
    }
    for (int i = 0; i < MIXT_BLOCK && tiny; i++)
        to[i] *= 0x1p-60f;
    if (to != dst)
        memcpy(dst, to, (size_t)count * sizeof *dst);
}

static void close_fp8(uint8_t *codes, const float *src, mixt_dtype format, float up, float factor,
                      const uint32_t *words)
{
    float scaled[MIXT_BLOCK];
    if (words && format == MIXT_DTYPE_FP8_E5M2)
        loops()->dither_e5m2(scaled, src, up, factor, words);
    else
        for (int i = 0; i < MIXT_BLOCK; i++)
            scaled[i] = src[i] * up * factor;
    mixt__narrow(format)(codes, scaled, MIXT_BLOCK);
    for (int i = 0; i < MIXT_BLOCK && format == MIXT_DTYPE_FP8_E5M2; i++)
        codes[i] = (uint8_t)(codes[i] | (codes[i] == 0 && src[i] > 0)); // the smallest
}

float mixt__block_close(void *codes, const float *src, mixt_dtype format, int64_t count,
                        const mixt__block_random *random)
{
    float room[MIXT_BLOCK], shift[MIXT_BLOCK];
    uint8_t made[MIXT_BLOCK];
    uint32_t words[MIXT_BLOCK / 2];
    if (count < MIXT_BLOCK) {
        memset(room, 0, sizeof room);
        memcpy(room, src, (size_t)count * sizeof *src);
        src = room;
    }
    float amax = loops()->amax(src);
    if (!isfinite(amax) || amax == 0) {
        memset(codes, 0, (size_t)count);
        return amax == 0 ? 0.0f : NAN;
    }
    float up = amax < 0x1p-60f ? 0x1p60f : 1.0f, factor = largest_of(format) / (amax * up);
    if (random)
        mixt__random_words(words, MIXT_BLOCK / 2, random->key, random->first / 2);
    if (random && is_integer(format))
        loops()->shifts(shift, words);
    for (int i = 0; i < MIXT_BLOCK && !random; i++)
        shift[i] = 0.5f;
    if (format == MIXT_DTYPE_INT8)
        loops()->close_signed((int8_t *)made, src, up, factor, shift);
    else if (format == MIXT_DTYPE_UINT8)
        loops()->close_unsigned(made, src, up, factor, shift);
    else
        close_fp8(made, src, format, up, factor, random ? words : NULL);
    memcpy(codes, made, (size_t)count);
    return amax;
}
