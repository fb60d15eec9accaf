/* Which op made the first number that is not finite, and where does the error against FP32 grow? One training step,
 * looked into: statistics of every value that its kernels make, forward and backward, and what to do.
 *
 *   mixt_debug *debug;
 *   if (mixt_debug_step(trainer, data, &debug) == MIXT_OK)
 *       for (int64_t i = 0; i < mixt_debug_describe(debug).issues; i++)
 *           puts(mixt_debug_issue_at(debug, i)->text);
 *   mixt_debug_free(debug);
 *
 * The step is a real one, with the same kernels and the same bits as any other: it goes on with training. Before it,
 * more passes run over the same batch from the same weights, and change nothing: one with the bits of the step, one in
 * FP32 beside it, and where a number is not finite one with each op by itself, so that none hides in a fused kernel.
 */
#ifndef MIXT_DEBUG_H
#define MIXT_DEBUG_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_debug mixt_debug;

/** All fields have defaults: 0. */
typedef struct mixt_debug_options {
    size_t struct_size;
    bool look;   /**< make no update: the trainer stays as it is; default: the next update is made */
    bool single; /**< only the real step: half the memory and time, but no errors against FP32, and an op that training
                      fuses with others hides in the last of them. Not with look or dump */
    const char *dump;   /**< write the values whose names match this glob (mixt_debug_value.tensor, or the name of a
                             parameter, as it is before the step) as NumPy files NAME.npy; default NULL: none */
    const char *folder; /**< dump: where to; it is made where it is not there. Default ".". Nothing is written when a
                           name matches nothing, or a file is there already */
    bool overwrite;     /**< dump: replace files */
} mixt_debug_options;
MIXT_API void mixt_debug_options_default(mixt_debug_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_debug_options .struct_size = sizeof(mixt_debug_options)

/**
 * Makes the next update and keeps statistics of its values.
 * @param data whose next batch is taken, as by mixt_trainer_step.
 * @param debug set to NULL on failure; free it with mixt_debug_free. It does not need the trainer any more.
 */
MIXT_API mixt_status mixt_debug_step(mixt_trainer *trainer, mixt_data *data, mixt_debug **debug);
/** The same with options; NULL: all defaults. */
MIXT_API mixt_status mixt_debug_step_with(mixt_trainer *trainer, mixt_data *data, const mixt_debug_options *options,
                                          mixt_debug **debug);
/** NULL is allowed. */
MIXT_API void mixt_debug_free(mixt_debug *debug);

/** The step as a whole. Texts belong to the debug. */
typedef struct mixt_debug_info {
    mixt_step step;          /**< its result; without overflow_layer. Of a look: number and scale alone */
    int64_t values, issues;  /**< how many there are */
    int64_t first_nonfinite; /**< the first value, in the order in which they are made, that is not finite; -1: all are
                                  finite. What made it: mixt_debug_origin_of */
    const char *source;      /**< what was not finite before the step began: the name of a parameter; "": nothing */
    bool shadow;             /**< values were held against FP32 */
    double full_loss;        /**< the loss in FP32; NaN: not known, or the update is made in several passes */
    const char *why_not;     /**< where there was no memory for that: the reason; else "" */
    int64_t full_nonfinite;  /**< with shadow: values that are not finite in FP32 either; above 0, more precision does
                                  not help */
} mixt_debug_info;
/** NULL has no values. */
MIXT_API mixt_debug_info mixt_debug_describe(const mixt_debug *debug);

/** Exponents in a histogram: number e counts magnitudes from 2^(e - 127) to below its double, 0 those that are 0 or
 *  below 2^-126, 255 what is not finite. */
enum { MIXT_DEBUG_EXPONENTS = 256 };

/** Statistics of one value; of numbers over those that are finite. Gradients are as the step makes them: multiplied by
 *  the loss scale. Texts belong to the debug. */
typedef struct mixt_debug_value {
    const char *layer, *op; /**< the layer that it belongs to, and the op that made it ("matmul", "relu", "cast") */
    const char *name;       /**< of the parameter, where it is one's gradient; else "" */
    const char *tensor;     /**< its own name, that no other value has: "fc.0.matmul.forward", "fc.0.weight.grad" */
    bool backward;          /**< made in the backward pass */
    mixt_dtype dtype;       /**< the format in which it is stored */
    int64_t count, zeros, nan, inf;
    double mean, std, min, max, amax; /**< amax: the largest magnitude */
    double margin;                    /**< powers of two between amax and the largest number of its format */
    double tiny;                      /**< share of numbers below the smallest normal one of its format, but not 0 */
    double beyond_fp16, flushed_fp16; /**< shares that FP16 could not hold, or would make 0 */
    const int64_t *exponents;         /**< MIXT_DEBUG_EXPONENTS counts */
    bool compared;                    /**< with FP32: the rest is known, else NaN */
    double error;     /**< size of the difference to FP32 as a share of FP32's own (root mean squares) */
    double inherited; /**< the largest error among what its op read: less than `error` by the op's own */
    double snr;       /**< `error` in decibels: 20 dB less are ten times the error */
    double flushed;   /**< share of numbers that are 0 here and not 0 in FP32 */
    double reference; /**< FP32's largest magnitude */
} mixt_debug_value;
/** @param index from 0 to below `values`, in the order in which they are made; NULL past that. */
MIXT_API const mixt_debug_value *mixt_debug_value_at(const mixt_debug *debug, int64_t index);

/** One layer in one pass; of values that were not held against FP32 errors are NaN. */
typedef struct mixt_debug_side {
    int64_t values;         /**< that it makes; 0: the rest means nothing */
    double error;           /**< the largest error among them */
    double inherited;       /**< the largest error among what its ops read from other layers */
    double flushed, margin; /**< the largest share that became 0; the fewest powers of two before an overflow */
    int64_t nonfinite;      /**< numbers that are not finite */
} mixt_debug_side;

/** How errors grow from layer to layer. Texts belong to the debug. */
typedef struct mixt_debug_layer {
    const char *name;
    mixt_debug_side forward, backward;
    bool jumps;      /**< it adds much more error than it reads, forward or backward */
    double blame;    /**< how much of the step's trouble with formats begins in this layer: 2 and more: it made numbers
                          that are not finite and FP32's are; up to 1: the share that it lost, or its own error; 0: no
                          trouble */
    const char *why; /**< what that is: "overflow", "underflow", "error"; "": no trouble */
} mixt_debug_layer;
/** @param index from 0, in the order of the forward pass; NULL past the last. */
MIXT_API const mixt_debug_layer *mixt_debug_layer_at(const mixt_debug *debug, int64_t index);
/** The same, the most to blame first. Layers that are not to blame come last. */
MIXT_API const mixt_debug_layer *mixt_debug_blamed_at(const mixt_debug *debug, int64_t index);

/** Where a number that is not finite comes from. */
typedef enum mixt_debug_cause {
    MIXT_DEBUG_CAUSE_OP,        /**< an op made it out of finite ones */
    MIXT_DEBUG_CAUSE_PARAMETER, /**< a parameter held it before the step */
    MIXT_DEBUG_CAUSE_INPUT,     /**< a sample's input holds it */
    MIXT_DEBUG_CAUSE_TARGET,    /**< a sample's target holds it */
    MIXT_DEBUG_CAUSE_SCALE,     /**< the loss scale is not finite */
} mixt_debug_cause;
/** "op", "parameter", "input", "target", "scale". */
MIXT_API const char *mixt_debug_cause_name(mixt_debug_cause cause);

enum { MIXT_DEBUG_INPUTS_MAX = 8 };

/** The first op whose result was not finite. All values before it are finite; those behind it, made of its result, only
 *  pass that on. Texts belong to the debug. */
typedef struct mixt_debug_origin {
    mixt_debug_cause cause;
    bool backward;          /**< it belongs to the backward pass */
    const char *layer, *op; /**< of the op */
    const char *source;     /**< cause PARAMETER: its name; else "" */
    int64_t sample, place;  /**< cause INPUT, TARGET: number of the sample in the data set and in the batch; else -1 */
    bool rounded;           /**< cause PARAMETER, INPUT: the number itself is finite, but too large for the format in
                                 which the step reads it */
    int64_t pass;           /**< which of the passes of the update, from 0 */
    bool fused;             /**< in training it is part of a larger kernel */
    mixt_debug_value value; /**< what it made */
    mixt_debug_value inputs[MIXT_DEBUG_INPUTS_MAX]; /**< what it read; from outside: op is "parameter", "input",
                                                         "target" or "scale" */
    int input_count;
} mixt_debug_origin;
/** NULL: every number of the step is finite. */
MIXT_API const mixt_debug_origin *mixt_debug_origin_of(const mixt_debug *debug);

/** What is in one format. */
typedef struct mixt_debug_use {
    mixt_dtype dtype;
    int64_t values, numbers; /**< values that the step makes, and their numbers */
    int64_t value_bytes;     /**< of all of them; fewer exist at once */
    int64_t ops;             /**< ops that compute in it: matrix work multiplies, the rest gives its result */
    int64_t parameters, parameter_bytes; /**< numbers of masters (FP32) and of working copies */
} mixt_debug_use;
/** Formats that the step uses, the widest first. @param index from 0; NULL past the last. */
MIXT_API const mixt_debug_use *mixt_debug_use_at(const mixt_debug *debug, int64_t index);

typedef enum mixt_debug_kind { MIXT_DEBUG_NONFINITE, MIXT_DEBUG_GRADIENT, MIXT_DEBUG_PRECISION } mixt_debug_kind;

/** Something that is wrong, or nearly, and what to do about it. */
typedef struct mixt_debug_issue {
    mixt_debug_kind kind;
    int64_t value;      /**< index; -1: none */
    const char *text;   /**< what was found */
    const char *remedy; /**< what to do */
} mixt_debug_issue;
/** The worst first. @param index from 0 to below `issues`; NULL past that. */
MIXT_API const mixt_debug_issue *mixt_debug_issue_at(const mixt_debug *debug, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
