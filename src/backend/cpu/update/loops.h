/* The inner loops of gradient statistics and optimizers, by instruction-set level.
 *
 * All levels are compiled from one source (loops.c) without fused multiply-add and with the same order of
 * additions, so that they give the same bits.
 */
#ifndef MIXT_BACKEND_CPU_UPDATE_LOOPS_H
#define MIXT_BACKEND_CPU_UPDATE_LOOPS_H

#include "backend/training.h"

/** One chunk's statistics: small, since one thread reads those of all. */
typedef struct mixt__chunk_stats {
    double sum_squares;
    float amax;
    uint16_t nonfinite, zeros;
} mixt__chunk_stats;

/** What one segment's update needs, all constants folded. */
typedef struct mixt__rule {
    float grad_factor;  // unscale and clip by norm
    float clip;         // bound of the gradient's elements; infinity: none
    float lr;           // times the segment's lr_scale; LAMB: times the trust ratio in its second pass
    float weight_decay; // SGD, Adam: added to the gradient; AdamW: lr·decay taken off the weight; LAMB: in the update
    float momentum;
    float beta1, beta2, one_minus_beta1, one_minus_beta2;
    float inv_bias1;      // 1/(1 - beta1^t)
    float inv_sqrt_bias2; // 1/sqrt(1 - beta2^t)
    float eps;
    float others, share; // see mixt__optimizer; 1/(1 + others)
} mixt__rule;

/** What one thread has read and written of a segment so far; each sum in parts, which it has as they come. */
enum { MIXT_SUM_PARTS = 8 };
typedef struct mixt__chunk_sums {
    uint64_t read[MIXT_SUMMED][MIXT_SUM_PARTS], written[MIXT_SUMMED][MIXT_SUM_PARTS];
} mixt__chunk_sums;

/** Arrays of one length that do not overlap; what an optimizer has no use for may be NULL. */
typedef struct mixt__update_block {
    float *w;
    const float *g;
    float *m, *v;
    void *low; // copy of the weights that is rounded anew, in BF16 or FP16; NULL: none
    mixt_dtype low_format;
    int64_t count;
    bool apart[2];          // m, v: memory of their own is summed elsewhere
    mixt__chunk_sums *sums; // of all of these but g, as 64-bit words from the arrays' begin; NULL: nobody sums
} mixt__update_block;

/** Updates weights and moments from gradients, and the copy. */
typedef void mixt__update_fn(const mixt__rule *rule, const mixt__update_block *block);

typedef struct mixt__optimizer_loops {
    mixt__update_fn *sgd, *momentum, *nesterov, *adam, *adamw;
    /** LAMB's first pass: new moments, and norms[0] = sum of w², norms[1] = sum of u². Weights stay. */
    void (*lamb_moments)(const mixt__rule *rule, const mixt__update_block *block, double *norms);
    mixt__update_fn *lamb_apply; // its second pass; g is not read, moments stay
} mixt__optimizer_loops;

typedef struct mixt__update_loops {
    void (*stats)(const float *g, int64_t count, mixt__chunk_stats *stats);
    /** Sum of so many 64-bit words, modulo 2^64. */
    uint64_t (*words)(const void *words, int64_t count);
} mixt__update_loops;

extern const mixt__update_loops mixt__update_loops_scalar, mixt__update_loops_avx2, mixt__update_loops_avx512;
extern const mixt__optimizer_loops mixt__optimizer_loops_scalar, mixt__optimizer_loops_avx2,
    mixt__optimizer_loops_avx512;

/** The loops for this processor. */
const mixt__update_loops *mixt__update_loops_get(void);
const mixt__optimizer_loops *mixt__optimizer_loops_get(void);

#endif
