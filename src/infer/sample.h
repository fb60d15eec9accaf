/* Drawing a token from logits, on the host. A pure function: the random number comes from the caller. */
#ifndef MIXT_INFER_SAMPLE_H
#define MIXT_INFER_SAMPLE_H

#include "mixt/generate.h"

/** A token with its probability. */
typedef struct mixt__candidate {
    float logit;
    int32_t token;
    double weight; // unnormalised probability
} mixt__candidate;

/** Fails on a temperature, k or p that makes no sense. */
mixt_status mixt__sampling_check(const mixt_sampling *sampling);

/** Draws by `uniform` in [0, 1). Equal logits stand in the order of their tokens.
 *  @param scratch room for `count` candidates
 *  @return MIXT_ERROR_DATA when the logits have no largest finite one */
mixt_status mixt__sample(const float *logits, int64_t count, const mixt_sampling *sampling, double uniform,
                         mixt__candidate *scratch, int32_t *token);

#endif
