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

/** Updates `count` weights w and moments m, v from gradients g; arrays do not overlap; unused moments are NULL. */
typedef void mixt__update_fn(const mixt__rule *rule, float *w, const float *g, float *m, float *v, int64_t count);

typedef struct mixt__update_loops {
    void (*stats)(const float *g, int64_t count, mixt__chunk_stats *stats);
    mixt__update_fn *sgd, *momentum, *nesterov, *adam, *adamw;
    /** LAMB's first pass: new moments, and sums[0] = sum of w², sums[1] = sum of u². */
    void (*lamb_moments)(const mixt__rule *rule, const float *w, const float *g, float *m, float *v, int64_t count,
                         double *sums);
    mixt__update_fn *lamb_apply; // its second pass; g is not read
    /** Sum of whole words, at most MIXT_WORDS_MOST. */
    uint64_t (*words)(const void *words, int64_t count);
} mixt__update_loops;

enum { MIXT_WORDS_MOST = 1 << 15 }; // of one sum: its upper and lower halves are exact in 32 bits

extern const mixt__update_loops mixt__update_loops_scalar, mixt__update_loops_avx2, mixt__update_loops_avx512;

/** The loops for this processor. */
const mixt__update_loops *mixt__update_loops_get(void);

#endif
