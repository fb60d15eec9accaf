/* Stochastic rounding: cut each value into a kept part and a 32-bit fraction, and compare that with 32 random bits.
 *
 * Works on double, which holds every FP32 exactly, so that FP64 sources are rounded once. Bits past 2^-32 of a step are
 * cut off: the bias that leaves is below 2^-32 of a step.
 */
#include "num/stochastic.h"

#include "base/isa.h"
#include "base/rng.h"

#include <math.h>

typedef struct target {
    int mantissa_bits, min_exponent; // of the smallest normal value
} target;

static const target targets[MIXT_DTYPE_COUNT] = {
    [MIXT_DTYPE_FP32] = {23, -126}, [MIXT_DTYPE_TF32] = {10, -126},  [MIXT_DTYPE_FP16] = {10, -14},
    [MIXT_DTYPE_BF16] = {7, -126},  [MIXT_DTYPE_FP8_E4M3] = {3, -6}, [MIXT_DTYPE_FP8_E5M2] = {2, -14},
};

static bool is_integer(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_INT8 || dtype == MIXT_DTYPE_UINT8;
}

bool mixt__stochastic_possible(mixt_dtype dtype)
{
    return is_integer(dtype) || targets[dtype].mantissa_bits > 0;
}

static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** `value` as a multiple of the target's step there, rounded by `random`. Finite and below 2^128 in magnitude. */
static double round_float(double value, target t, uint32_t random)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)((bits >> 52) & 0x7ff) - 1023;
    if (exponent < t.min_exponent)
        exponent = t.min_exponent;
    double step = power_of_two(exponent - t.mantissa_bits);
    double scaled = fabs(value) * power_of_two(t.mantissa_bits - exponent);
    double kept = floor(scaled);
    if ((double)random < floor((scaled - kept) * 0x1p32))
        kept += 1;
    return copysign(kept * step, value);
}

static double round_integer(double value, uint32_t random)
{
    double kept = floor(value);
    return (double)random < floor((value - kept) * 0x1p32) ? kept + 1 : kept;
}

void mixt__stochastic_store(void *dst, mixt_dtype dtype, const double *src, int64_t count, uint64_t key, int64_t first)
{
    mixt__narrow_fn *narrow = mixt__narrow(dtype);
    const size_t size = mixt_dtype_size(dtype);
    const target t = targets[dtype];
    enum { BATCH = 64 };
    float rounded[BATCH];
    mixt__rng_block block = mixt__rng_block_at(key, (uint64_t)first / 4);
    for (int64_t done = 0; done < count; done += BATCH) {
        int64_t batch = count - done < BATCH ? count - done : BATCH;
        for (int64_t i = 0; i < batch; i++) {
            uint64_t index = (uint64_t)(first + done + i);
            if (index % 4 == 0)
                block = mixt__rng_block_at(key, index / 4);
            double value = src[done + i];
            uint32_t random = block.word[index % 4];
            // Past FP32's range nothing is left to choose: the narrowing below gives infinity or the clamped value.
            if (fabs(value) < 0x1p128)
                value = is_integer(dtype) ? round_integer(value, random) : round_float(value, t, random);
            rounded[i] = (float)value;
        }
        narrow((char *)dst + (size_t)done * size, rounded, batch); // exact, but for values out of range
    }
}

void mixt__random_words(uint32_t *words, int64_t count, uint64_t key, int64_t first)
{
    mixt__isa level = mixt__isa_level();
    mixt__random_words_fn *loop = level >= MIXT_ISA_AVX512 ? mixt__random_words_avx512
                                  : level >= MIXT_ISA_AVX2 ? mixt__random_words_avx2
                                                           : mixt__random_words_scalar;
    loop(words, count, key, first);
}

void mixt__stochastic_bf16(uint16_t *dst, const float *src, int64_t count, uint64_t key, int64_t first)
{
    mixt__isa level = mixt__isa_level();
    mixt__stochastic_bf16_fn *loop = level >= MIXT_ISA_AVX512 ? mixt__stochastic_bf16_avx512
                                     : level >= MIXT_ISA_AVX2 ? mixt__stochastic_bf16_avx2
                                                              : mixt__stochastic_bf16_scalar;
    loop(dst, src, count, key, first);
}
