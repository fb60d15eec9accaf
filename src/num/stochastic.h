/* Stochastic rounding to a narrower format. */
#ifndef MIXT_NUM_STOCHASTIC_H
#define MIXT_NUM_STOCHASTIC_H

#include "num/num.h"

/** True for the formats below: FP32, TF32, FP16, BF16, FP8, INT8 and UINT8. */
bool mixt__stochastic_possible(mixt_dtype dtype);

/**
 * Rounds each value away from zero with probability equal to its distance from the neighbour toward zero (integers:
 * up and down). The random bits of element i depend on `key` and `first` + i only.
 */
void mixt__stochastic_store(void *dst, mixt_dtype dtype, const double *src, int64_t count, uint64_t key, int64_t first);

/** The random words behind it: `count` of them from number `first` on, both multiples of 4. */
typedef void mixt__random_words_fn(uint32_t *words, int64_t count, uint64_t key, int64_t first);
extern mixt__random_words_fn *const mixt__random_words_scalar, *const mixt__random_words_avx2,
                                                                   *const mixt__random_words_avx512;
void mixt__random_words(uint32_t *words, int64_t count, uint64_t key, int64_t first);

/** The same from FP32 to BF16, to the same bits, for inner loops. */
typedef void mixt__stochastic_bf16_fn(uint16_t *dst, const float *src, int64_t count, uint64_t key, int64_t first);
extern mixt__stochastic_bf16_fn *const mixt__stochastic_bf16_scalar, *const mixt__stochastic_bf16_avx2,
                                                                         *const mixt__stochastic_bf16_avx512;
void mixt__stochastic_bf16(uint16_t *dst, const float *src, int64_t count, uint64_t key, int64_t first);

#endif
