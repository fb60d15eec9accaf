/* Counter-based random numbers (Philox 4x32-10): a pure function of (key, counter).
 *
 * No state means that a dropout mask is recomputed instead of stored, that threads need no order, and that a
 * resumed run draws the same numbers. Keys come from mixt__rng_key(seed, stream…), one stream per use.
 */
#ifndef MIXT_BASE_RNG_H
#define MIXT_BASE_RNG_H

#include <stdint.h>

typedef struct mixt__rng_block {
    uint32_t word[4];
} mixt__rng_block;

/** 128 random bits for the given key and counter. */
mixt__rng_block mixt__rng_block_at(uint64_t key, uint64_t counter);

/** A key for one use of randomness: mixes a seed with two stream numbers (say step and op). */
uint64_t mixt__rng_key(uint64_t seed, uint64_t stream, uint64_t substream);

/** A sequential view of one key, for host-side use. */
typedef struct mixt__rng {
    uint64_t key, counter;
    mixt__rng_block block;
    int used;
} mixt__rng;

mixt__rng mixt__rng_start(uint64_t key);
/** The same view after `words` calls of mixt__rng_u32: threads begin in the middle. */
mixt__rng mixt__rng_start_at(uint64_t key, uint64_t words);
uint32_t mixt__rng_u32(mixt__rng *rng);
/** Uniform in [0, limit) without bias; limit > 0. */
uint64_t mixt__rng_below(mixt__rng *rng, uint64_t limit);
/** Uniform in [0, 1). */
float mixt__rng_uniform(mixt__rng *rng);
/** Standard normal (Box-Muller); takes two words. */
float mixt__rng_normal(mixt__rng *rng);

#endif
