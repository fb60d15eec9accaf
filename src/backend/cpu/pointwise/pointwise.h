/* The instruction loops of pointwise programs: one per instruction and instruction-set level. */
#ifndef MIXT_BACKEND_CPU_POINTWISE_POINTWISE_H
#define MIXT_BACKEND_CPU_POINTWISE_POINTWISE_H

#include "base/isa.h"
#include "ops/attrs.h"

/** One instruction over `count` elements; dst may be any of the operands. */
typedef struct mixt__pw_span {
    void *dst;
    const void *a, *b, *c; // as many as the instruction has
    int64_t count;
    float imm, imm2;
    uint64_t key;  // of the dropout stream, already mixed
    int64_t index; // of the first element in the domain; a multiple of 4 for DROPOUT
} mixt__pw_span;

typedef void mixt__pw_loop(const mixt__pw_span *span);

/** Operands and result all FP32, or all BF16 (computed in FP32). */
typedef struct mixt__pw_loops {
    mixt__pw_loop *fp32[MIXT_PW_COUNT], *bf16[MIXT_PW_COUNT];
} mixt__pw_loops;

extern const mixt__pw_loops mixt__pw_loops_scalar, mixt__pw_loops_avx2, mixt__pw_loops_avx512;

/** Those of a level; every level gives the same bits. */
const mixt__pw_loops *mixt__pw_loops_at(mixt__isa level);

/** Dropout keeps element i of the domain when word i % 4 of random block i / 4, shifted right by 8, is at least this:
 *  that is, when its 24-bit uniform number in [0, 1) is at least the rate. */
uint32_t mixt__pw_dropout_threshold(float rate);
/** The key of a dropout instruction in a run. */
uint64_t mixt__pw_dropout_key(uint64_t rng_key, uint32_t stream);
/** What a kept element is multiplied by: 1 / (1 - rate). */
float mixt__pw_dropout_scale(float rate);

extern const struct mixt__kernel mixt__cpu_pointwise_tiled, mixt__cpu_pointwise_plain;

#endif
