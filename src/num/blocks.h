/* Numbers in 8 bits with one FP32 scale for each block: what an optimizer's moments are kept in.
 *
 * INT8 and UINT8 hold a dynamic map: the code's magnitude counts through decades, each cut into twice as many equal
 * steps as the one below. INT8 has a sign and 7 decades, its largest step 1.4% of the block's largest number; UINT8 has
 * none, and 8 decades with steps of 0.7%. Between two codes the map is a straight line, and so it is from 0 to the
 * smallest. FP8 (E4M3 and E5M2) is the format itself, scaled to its largest number.
 */
#ifndef MIXT_NUM_BLOCKS_H
#define MIXT_NUM_BLOCKS_H

#include "num/num.h"

enum { MIXT_BLOCK = 256 }; // elements of one scale; the last of a tensor may have fewer

/** Whether numbers can be kept so. */
bool mixt__blocks_possible(mixt_dtype format);

/** dst = what the codes of one block mean. @param count at most MIXT_BLOCK */
void mixt__block_open(float *dst, const void *codes, float scale, mixt_dtype format, int64_t count);

/** Random bits of whoever rounds stochastically, by element. */
typedef struct mixt__block_random {
    uint64_t key;
    int64_t first; // number of the block's first element, a multiple of 16
} mixt__block_random;

/** Rounds one block. What is not 0 does not become 0 in a format without a sign, and in E5M2: a second moment that did
 *  would let a weight leap. Not for blocks that are not finite: their scale becomes NaN.
 *  @param random NULL: to the nearest @return the scale */
float mixt__block_close(void *codes, const float *src, mixt_dtype format, int64_t count,
                        const mixt__block_random *random);

/** The inner loops, by instruction set; all give the same bits. Arrays are of MIXT_BLOCK elements. */
typedef struct mixt__block_loops {
    void (*open_signed)(float *dst, const int8_t *codes, float unit);
    void (*open_unsigned)(float *dst, const uint8_t *codes, float unit);
    float (*amax)(const float *src);
    /** @param shift of each element, from 0 to below 1: what is added before the rest is cut off */
    void (*close_signed)(int8_t *codes, const float *src, float up, float factor, const float *shift);
    void (*close_unsigned)(uint8_t *codes, const float *src, float up, float factor, const float *shift);
    /** dst = src·up·factor, with the lowest 21 bits rounded by `words`, 16 bits of each element. */
    void (*dither_e5m2)(float *dst, const float *src, float up, float factor, const uint32_t *words);
    void (*shifts)(float *shift, const uint32_t *words);
} mixt__block_loops;
extern const mixt__block_loops mixt__block_loops_scalar, mixt__block_loops_avx2, mixt__block_loops_avx512;

#endif
