/* The loops that pointwise.h declares: plain ones that the compiler turns into vectors, for the baseline, AVX2 and
 * AVX-512.
 *
 * A loop is one always-inlined function with the instruction and the format as constants; MIXT_POINTWISE_LIST makes an
 * instance of it for each instruction. Elements do not depend on each other, so dst may be an operand: hence ivdep.
 */
#include "backend/cpu/pointwise/pointwise.h"

#include "backend/cpu/core/maths.h"
#include "base/isa_at.h"

/** Comparisons, choices and functions of a few pieces. */
MIXT__INLINE float apply_pieces(mixt__pw_code code, float a, float b, float c, const mixt__pw_span *s)
{
    float line = fmaf(a, s->imm, s->imm2);
    switch (code) {
    case MIXT_PW_ABS:
        return fabsf(a);
    case MIXT_PW_ABS_GRAD:
        return a > 0.0f ? b : a < 0.0f ? -b : 0.0f;
    case MIXT_PW_FLOOR:
        return floorf(a);
    case MIXT_PW_CEIL:
        return ceilf(a);
    case MIXT_PW_ROUND:
        return rintf(a);
    case MIXT_PW_RECIPROCAL:
        return 1.0f / a;
    case MIXT_PW_RECIPROCAL_GRAD:
        return -(a * a) * b;
    case MIXT_PW_LEAKY_RELU:
        return a > 0.0f ? a : a * s->imm;
    case MIXT_PW_LEAKY_RELU_GRAD:
        return a > 0.0f ? b : b * s->imm;
    case MIXT_PW_HARD_SIGMOID:
        return line < 0.0f ? 0.0f : line > 1.0f ? 1.0f : line;
    case MIXT_PW_HARD_SIGMOID_GRAD:
        return line > 0.0f && line < 1.0f ? b * s->imm : 0.0f;
    case MIXT_PW_HARD_SWISH:
        return a <= -3.0f ? 0.0f : a >= 3.0f ? a : a * fmaf(a, 1.0f / 6, 0.5f);
    case MIXT_PW_HARD_SWISH_GRAD:
        return a <= -3.0f ? 0.0f : a >= 3.0f ? b : fmaf(a, 1.0f / 3, 0.5f) * b;
    case MIXT_PW_CLIP:
        return a < s->imm ? s->imm : a > s->imm2 ? s->imm2 : a;
    case MIXT_PW_CLIP_GRAD:
        return a >= s->imm && a <= s->imm2 ? b : 0.0f;
    case MIXT_PW_EQUAL:
        return a == b ? 1.0f : 0.0f;
    case MIXT_PW_LESS:
        return a < b ? 1.0f : 0.0f;
    case MIXT_PW_WHERE_NOT:
        return a > 0.0f ? 0.0f : b;
    default:
        return a > 0.0f ? b : c; // SELECT
    }
}

/** What stands behind DROPOUT in the list. */
MIXT__INLINE float apply_more(mixt__pw_code code, float a, float b, float c, const mixt__pw_span *s)
{
    float rest;
    switch (code) {
    case MIXT_PW_SIN:
        return sinf(a);
    case MIXT_PW_COS:
        return cosf(a);
    case MIXT_PW_ERF:
        return mixt__maths_erf(a);
    case MIXT_PW_ERF_GRAD:
        return mixt__maths_erf_slope(a) * b;
    case MIXT_PW_POW:
        return powf(a, b);
    case MIXT_PW_POWER:
        return powf(a, s->imm);
    case MIXT_PW_ELU:
        return s->imm2 * (a > 0.0f ? a : s->imm * mixt__maths_expm1_nonpositive(a));
    case MIXT_PW_ELU_GRAD:
        return s->imm2 * (a > 0.0f ? 1.0f : s->imm * mixt__maths_exp_nonpositive(a)) * b;
    case MIXT_PW_SOFTPLUS:
        return mixt__maths_softplus(a);
    case MIXT_PW_SOFTPLUS_GRAD:
        return mixt__maths_sigmoid(a) * b;
    case MIXT_PW_MISH:
        return a * mixt__maths_mish_gate(a, &rest);
    case MIXT_PW_MISH_GRAD:
        return mixt__maths_mish_slope(a) * b;
    default:
        return apply_pieces(code, a, b, c, s);
    }
}

MIXT__INLINE float apply(mixt__pw_code code, float a, float b, float c, const mixt__pw_span *s)
{
    switch (code) {
    case MIXT_PW_COPY:
        return a;
    case MIXT_PW_ADD:
        return a + b;
    case MIXT_PW_SUB:
        return a - b;
    case MIXT_PW_MUL:
        return a * b;
    case MIXT_PW_DIV:
        return a / b;
    case MIXT_PW_MAX:
        return a != a ? a : a > b ? a : b;
    case MIXT_PW_MIN:
        return a != a ? a : a < b ? a : b;
    case MIXT_PW_SELECT_GE:
        return a >= b ? c : 0.0f;
    case MIXT_PW_SELECT_LT:
        return a < b ? c : 0.0f;
    case MIXT_PW_WHERE:
        return a > 0.0f ? b : 0.0f;
    case MIXT_PW_AFFINE:
        return fmaf(a, s->imm, s->imm2);
    case MIXT_PW_RELU:
        return a <= 0.0f ? 0.0f : a;
    case MIXT_PW_RELU_GRAD:
        return a > 0.0f ? b : 0.0f;
    case MIXT_PW_GELU:
        return mixt__maths_gelu(a);
    case MIXT_PW_GELU_GRAD:
        return mixt__maths_gelu_slope(a) * b;
    case MIXT_PW_GELU_ERF:
        return mixt__maths_gelu_erf(a);
    case MIXT_PW_GELU_ERF_GRAD:
        return mixt__maths_gelu_erf_slope(a) * b;
    case MIXT_PW_SILU:
        return a * mixt__maths_sigmoid(a);
    case MIXT_PW_SILU_GRAD:
        return mixt__maths_silu_slope(a) * b;
    case MIXT_PW_SWIGLU:
        return a * mixt__maths_sigmoid(a) * b;
    case MIXT_PW_SIGMOID:
        return mixt__maths_sigmoid(a);
    case MIXT_PW_SIGMOID_GRAD:
        return a * (1.0f - a) * b;
    case MIXT_PW_TANH:
        return mixt__maths_tanh(a);
    case MIXT_PW_TANH_GRAD:
        return fmaf(-a, a, 1.0f) * b;
    case MIXT_PW_EXP:
        return mixt__maths_exp(a);
    case MIXT_PW_LOG:
        return mixt__maths_log(a);
    case MIXT_PW_SQRT:
        return sqrtf(a);
    case MIXT_PW_SQUARE:
        return a * a;
    default:
        return apply_more(code, a, b, c, s); // DROPOUT has a loop of its own
    }
}

/** Whether every NaN that the instruction makes of BF16 operands is quiet with zeros in its low half: arithmetic made
 * it, from an operand's NaN or from none, and no operand or immediate goes through as it is. */
MIXT__INLINE bool makes_plain_nan(mixt__pw_code code)
{
    return code == MIXT_PW_GELU || code == MIXT_PW_GELU_GRAD || code == MIXT_PW_GELU_ERF ||
           code == MIXT_PW_GELU_ERF_GRAD || code == MIXT_PW_SILU || code == MIXT_PW_SILU_GRAD ||
           code == MIXT_PW_SWIGLU || code == MIXT_PW_SIGMOID || code == MIXT_PW_TANH;
}

/** As num's BF16 conversion: nearest-even, NaN made quiet; a plain NaN is right without a look at it. */
MIXT__INLINE uint16_t bf16_of(float value, bool plain_nan)
{
    uint32_t bits = mixt__fp32_bits(value);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
    return (uint16_t)((!plain_nan && value != value ? bits | 0x400000u : rounded) >> 16);
}

MIXT__INLINE float load(const void *array, int64_t i, bool bf16)
{
    return bf16 ? mixt__bf16_widen(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

MIXT__INLINE void store(void *array, int64_t i, bool bf16, bool plain_nan, float value)
{
    if (bf16)
        ((uint16_t *)array)[i] = bf16_of(value, plain_nan);
    else
        ((float *)array)[i] = value;
}

MIXT__INLINE void map(const mixt__pw_span *span, mixt__pw_code code, int operands, bool bf16)
{
    const mixt__pw_span s = *span; // a copy, so that stores cannot change it
#pragma GCC ivdep
    for (int64_t i = 0; i < s.count; i++) {
        float a = load(s.a, i, bf16), b = operands > 1 ? load(s.b, i, bf16) : 0,
              c = operands > 2 ? load(s.c, i, bf16) : 0;
        store(s.dst, i, bf16, makes_plain_nan(code), apply(code, a, b, c, &s));
    }
}

/** What bf16_of makes of a BF16 number: NaN made quiet, all else as it is. */
MIXT__INLINE uint16_t quiet(uint16_t bits)
{
    return (uint16_t)((bits & 0x7fff) > 0x7f80 ? bits | 0x40 : bits);
}

/** RELU, RELU_GRAD and WHERE only choose, so BF16 needs no widening: twice the elements a vector, and no rounding. */
MIXT__INLINE void choose_bf16(const mixt__pw_span *span, mixt__pw_code code)
{
    const mixt__pw_span s = *span;
    const uint16_t *a = s.a, *b = s.b;
    uint16_t *dst = s.dst;
#pragma GCC ivdep
    for (int64_t i = 0; i < s.count; i++) {
        bool positive = (int16_t)a[i] > 0, nan = (a[i] & 0x7fff) > 0x7f80;
        if (code == MIXT_PW_RELU)
            dst[i] = positive || nan ? quiet(a[i]) : 0;
        else
            dst[i] = positive && !nan ? quiet(b[i]) : 0;
    }
}

enum { RANDOM_BLOCKS = 64 };

/** mixt__rng_block_at for consecutive counters, words in the order of the elements. */
MIXT__INLINE void random_words(uint32_t *words, uint64_t key, uint64_t counter)
{
    for (int64_t j = 0; j < RANDOM_BLOCKS; j++) {
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        uint64_t count = counter + (uint64_t)j;
        uint32_t c0 = (uint32_t)count, c1 = (uint32_t)(count >> 32), c2 = 0, c3 = 0;
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
            c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
            c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)p1;
            c3 = (uint32_t)p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        words[4 * j] = c0;
        words[4 * j + 1] = c1;
        words[4 * j + 2] = c2;
        words[4 * j + 3] = c3;
    }
}

MIXT__INLINE void dropout(const mixt__pw_span *span, bool bf16)
{
    const mixt__pw_span s = *span;
    const uint32_t threshold = mixt__pw_dropout_threshold(s.imm);
    const float scale = mixt__pw_dropout_scale(s.imm);
    uint32_t words[4 * RANDOM_BLOCKS];
    for (int64_t i = 0; i < s.count; i += 4 * RANDOM_BLOCKS) {
        int64_t left = s.count - i, count = left < 4 * RANDOM_BLOCKS ? left : 4 * RANDOM_BLOCKS;
        random_words(words, s.key, (uint64_t)(s.index + i) / 4);
#pragma GCC ivdep
        for (int64_t j = 0; j < count; j++)
            store(s.dst, i + j, bf16, false, words[j] >> 8 >= threshold ? load(s.a, i + j, bf16) * scale : 0.0f);
    }
}

#define INSTANCE(code, name, operands)                                                                                 \
    static void fp32_##code(const mixt__pw_span *span)                                                                 \
    {                                                                                                                  \
        if (MIXT_PW_##code == MIXT_PW_DROPOUT)                                                                         \
            dropout(span, false);                                                                                      \
        else                                                                                                           \
            map(span, MIXT_PW_##code, operands, false);                                                                \
    }                                                                                                                  \
    static void bf16_##code(const mixt__pw_span *span)                                                                 \
    {                                                                                                                  \
        if (MIXT_PW_##code == MIXT_PW_DROPOUT)                                                                         \
            dropout(span, true);                                                                                       \
        else if (MIXT_PW_##code == MIXT_PW_RELU || MIXT_PW_##code == MIXT_PW_RELU_GRAD ||                              \
                 MIXT_PW_##code == MIXT_PW_WHERE)                                                                      \
            choose_bf16(span, MIXT_PW_##code);                                                                         \
        else                                                                                                           \
            map(span, MIXT_PW_##code, operands, true);                                                                 \
    }
MIXT_POINTWISE_LIST(INSTANCE)
#undef INSTANCE

#define FP32_ENTRY(code, name, operands) [MIXT_PW_##code] = fp32_##code,
#define BF16_ENTRY(code, name, operands) [MIXT_PW_##code] = bf16_##code,
const mixt__pw_loops MIXT_AT(mixt__pw_loops) = {
    .fp32 = {MIXT_POINTWISE_LIST(FP32_ENTRY)},
    .bf16 = {MIXT_POINTWISE_LIST(BF16_ENTRY)},
};
