/* The time of each op of a training step, held against what the device could do.
 *
 * Ops run one by one, in order, with a time mark between them: what a profile adds up to is a little more than a step
 * that runs as a whole. Bytes are the fewest that an op can move: each input read and each output written once.
 */
#ifndef MIXT_PROFILE_H
#define MIXT_PROFILE_H

#include "mixt/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_profile mixt_profile;

/**
 * Runs the step of a compiled trainer on the first batch of `data` and times each op, then the passes that end a step.
 * Takes the trainer's memory, if it has none yet. The updates are real: to go on training afterwards, restore a
 * checkpoint or use a trainer of its own for this.
 * @param runs whose mean is taken, at least 1.
 * @param profile set to the result, or to NULL on failure; free it with mixt_profile_free. It does not need the
 *   trainer any more.
 */
MIXT_API mixt_status mixt_profile_new(mixt_trainer *trainer, const mixt_data *data, int64_t runs,
                                      mixt_profile **profile);
/** NULL is allowed. */
MIXT_API void mixt_profile_free(mixt_profile *profile);

typedef struct mixt_profile_info {
    int64_t rows;
    double seconds;      /**< of all rows */
    bool limits;         /**< the device says what it can do at most: shares of that are known */
    double tensor_cores; /**< share of the matrix FLOPs that ran on Tensor Cores; NaN where there are none */
} mixt_profile_info;
MIXT_API mixt_profile_info mixt_profile_describe(const mixt_profile *profile);

/** One op, or one pass of the update (layer "update"). Strings belong to the profile. */
typedef struct mixt_profile_row {
    const char *layer, *op, *kernel;
    mixt_work work;
    mixt_dtype format; /**< of its operands; TF32 where FP32 operands may be rounded */
    bool backward;     /**< of the backward pass */
    bool recomputed;   /**< a forward node that runs again there */
    bool matrix;       /**< its FLOPs are what Tensor Cores or AMX can do */
    bool tensor_cores; /**< and they ran there */
    double seconds, flops, bytes;
    /** Share of the limit that binds it: the larger of its FLOP/s and its bytes/s over what the device can do. NaN
     *  where that is not known. */
    double limit_share;
} mixt_profile_row;
/** In the order in which they ran. @param index from 0 to below `rows`; NULL past that. */
MIXT_API const mixt_profile_row *mixt_profile_at(const mixt_profile *profile, int64_t index);

/** All rows of one kind of work. */
typedef struct mixt_profile_sum {
    int64_t ops;
    double seconds, flops, bytes;
    double limit_share; /**< of `seconds`, what the device's limits alone would take; NaN where that is not known */
} mixt_profile_sum;
/** With `ops` 0 where the step has no such work. */
MIXT_API mixt_profile_sum mixt_profile_work(const mixt_profile *profile, mixt_work work);

#ifdef __cplusplus
}
#endif
#endif
