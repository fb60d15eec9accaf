/* One training step, looked into: statistics of every value that its kernels make, forward and backward, and what is
 * wrong with them.
 *
 *   mixt_debug *debug;
 *   if (mixt_debug_step(trainer, data, &debug) == MIXT_OK)
 *       for (int64_t i = 0; i < mixt_debug_describe(debug).issues; i++)
 *           puts(mixt_debug_issue_at(debug, i)->text);
 *   mixt_debug_free(debug);
 *
 * The step is a real one, with the same kernels and the same bits as any other: it goes on with training. Values that
 * fused kernels hold in registers are not seen; MIXT_FUSION=0 shows them, with their own roundings.
 */
#ifndef MIXT_DEBUG_H
#define MIXT_DEBUG_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_debug mixt_debug;

/**
 * Makes the next update and keeps statistics of its values.
 * @param data whose next batch is taken, as by mixt_trainer_step.
 * @param debug set to NULL on failure; free it with mixt_debug_free. It does not need the trainer any more.
 */
mixt_status mixt_debug_step(mixt_trainer *trainer, mixt_data *data, mixt_debug **debug);
/** NULL is allowed. */
void mixt_debug_free(mixt_debug *debug);

/** The step as a whole. Texts belong to the debug. */
typedef struct mixt_debug_info {
    mixt_step step;          /**< its result; without overflow_layer */
    int64_t values, issues;  /**< how many there are */
    int64_t first_nonfinite; /**< the first value, in the order in which they are made, that is not finite: its op
                                  made that out of finite numbers, unless `source` names others; -1: all are finite */
    const char *source;      /**< what was not finite before the step began: the name of a parameter; "": nothing */
} mixt_debug_info;
/** NULL has no values. */
mixt_debug_info mixt_debug_describe(const mixt_debug *debug);

/** Statistics of one value; of numbers over those that are finite. Gradients are as the step makes them: multiplied by
 *  the loss scale. Texts belong to the debug. */
typedef struct mixt_debug_value {
    const char *layer, *op; /**< the layer that it belongs to, and the op that made it */
    const char *name;       /**< of the parameter, where it is one's gradient; else "" */
    bool backward;          /**< made in the backward pass */
    mixt_dtype dtype;       /**< the format in which it is stored */
    int64_t count, zeros, nan, inf;
    double mean, std, min, max, amax; /**< amax: the largest magnitude */
    double margin;                    /**< powers of two between amax and the largest number of its format */
    double tiny;                      /**< share of numbers below the smallest normal one of its format, but not 0 */
    double beyond_fp16, flushed_fp16; /**< shares that FP16 could not hold, or would make 0 */
} mixt_debug_value;
/** @param index from 0 to below `values`, in the order in which they are made; NULL past that. */
const mixt_debug_value *mixt_debug_value_at(const mixt_debug *debug, int64_t index);

typedef enum mixt_debug_kind { MIXT_DEBUG_NONFINITE, MIXT_DEBUG_GRADIENT, MIXT_DEBUG_PRECISION } mixt_debug_kind;

/** Something that is wrong, or nearly, and what to do about it. */
typedef struct mixt_debug_issue {
    mixt_debug_kind kind;
    int64_t value;      /**< index; -1: a parameter */
    char text[256];     /**< what was found */
    const char *remedy; /**< what to do */
} mixt_debug_issue;
/** The worst first. @param index from 0 to below `issues`; NULL past that. */
const mixt_debug_issue *mixt_debug_issue_at(const mixt_debug *debug, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
