/* Which layers tolerate which format? Measured before training or at the checkpoints of a run.
 *
 *   mixt_sensitivity *s;
 *   if (mixt_sensitivity_new(run, &s, .formats = "fp16,bf16") == MIXT_OK)
 *       for (int64_t i = 0; i < mixt_sensitivity_rows(s); i++)
 *           printf("%s %g\n", mixt_sensitivity_row_at(s, i)->layer, mixt_sensitivity_row_at(s, i)->score);
 *   mixt_sensitivity_free(s);
 *
 * A cell is a layer, a format and a mode: the layer alone lowered to the format while all others compute in FP32, or
 * the layer alone kept in FP32 while all others are lowered. Each cell is compared with FP32 on the same batches, from
 * the same weights. Nothing of the run changes but that its trainer takes its memory and the weights it begins with.
 *
 * Rows are in the order of their ranks: layers that suffer most when lowered come first, then those that gain most by
 * being kept.
 */
#ifndef MIXT_SENSITIVITY_H
#define MIXT_SENSITIVITY_H

#include "mixt/judge.h"
#include "mixt/progress.h"
#include "mixt/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_sensitivity mixt_sensitivity;

typedef enum mixt_sensitivity_mode {
    MIXT_SENSITIVITY_LOWERED, /**< this layer in the format, all others in FP32 */
    MIXT_SENSITIVITY_KEPT,    /**< this layer in FP32, all others in the format */
    MIXT_SENSITIVITY_MODES
} mixt_sensitivity_mode;
/** "lowered" or "kept". */
MIXT_API const char *mixt_sensitivity_mode_name(mixt_sensitivity_mode mode);

/** One cell: means over all batches and all points of training. NaN: not known, or not finite. */
typedef struct mixt_sensitivity_row {
    const char *layer; /**< dotted path, as the rules of policies name it */
    mixt_dtype format;
    mixt_sensitivity_mode mode;
    double loss_change;     /**< loss minus that of FP32 */
    double snr_db;          /**< signal to noise, in decibels: lowered, of the layer's output; kept, of the model's */
    double grad_cosine;     /**< of the gradients of the layer's parameters (of all, where it has none) with FP32's */
    double grad_norm_error; /**< length of those gradients over FP32's, minus 1, without sign */
    double update_error;    /**< length of the difference of the updates that the optimizer would make, over FP32's */
    double overflow;        /**< share of the values in the format that are beyond its largest number */
    double underflow;       /**< share of the values in the format that FP32 has and the format flushes to 0 */
    double accuracy_score;  /**< 1: as FP32; 0.5: the loss changes by 0.5% or gradients by half; 0: destroyed */
    double stability_score; /**< 1: far from both ends of the format's range; 0: values overflow */
    double score;           /**< the product of both */
    double spread;          /**< standard deviation of the score over batches and points of training */
    const char *recommend;  /**< format for this layer in a model of this format: it, another low one, or "fp32" */
    mixt_judgement safe;    /**< the recommendation as a judgement: predicted, or measured once; of how much the score
                                 lacks of 1 */
    bool measured;          /**< by running the model with this cell's policy; else estimated */
} mixt_sensitivity_row;

/** A layer of the model. */
typedef struct mixt_sensitivity_layer {
    const char *name;
    const char *group;     /**< first layer of those that read one value, and so share its cast; NULL: it is alone */
    const char *recommend; /**< the formats that it bears: "any", "bf16, tf32", or "fp32" where it bears none */
    double share;          /**< of the matrix work of a step, 0 to 1 */
} mixt_sensitivity_layer;

typedef struct mixt_sensitivity_options {
    size_t struct_size;
    const char *formats; /**< separated by commas, of "fp16", "bf16", "tf32"; default: those that the device has */
    int64_t trials;      /**< batches at each point of training, 1 to 1000; default 5 */
    int64_t confirm;     /**< cells to measure directly, the worst first; 0 or less: none; default 8 */
    bool replay_all;     /**< measure every cell directly, not only the worst */
    const char *folder;  /**< of this configuration's run: its checkpoints are points of training too, after the weights
                              as they are; default: none */
    /** Hears of passes over a batch, done and in all (`what` is the layer or the format, the part a point of training);
     *  false ends it. Default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user; /**< for it */
} mixt_sensitivity_options;
MIXT_API void mixt_sensitivity_options_default(mixt_sensitivity_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_sensitivity_options                                                                         \
    .struct_size = sizeof(mixt_sensitivity_options), .trials = 5, .confirm = 8

/**
 * Measures a run's model at the weights that it has, or begins with.
 * @param run of mixt_run_open, mixt_run_resume or mixt_run_load; it must not be training.
 * @param options NULL: all defaults.
 * @param sensitivity set to NULL on failure; free it with mixt_sensitivity_free.
 */
MIXT_API mixt_status mixt_sensitivity_new_with(mixt_run *run, const mixt_sensitivity_options *options,
                                               mixt_sensitivity **sensitivity);
#ifndef __cplusplus
#define mixt_sensitivity_new(run, sensitivity, ...)                                                                    \
    mixt_sensitivity_new_with((run), MIXT_OPTIONS_AT(mixt_sensitivity_options, __VA_ARGS__), (sensitivity))
#endif
/**
 * The same of a trainer of your own.
 * @param trainer of mixt_trainer_new; it is compiled for the data where it is not yet.
 * @param data whose training batches are used.
 */
MIXT_API mixt_status mixt_sensitivity_of(mixt_trainer *trainer, mixt_data *data,
                                         const mixt_sensitivity_options *options, mixt_sensitivity **sensitivity);
/** NULL is allowed. */
MIXT_API void mixt_sensitivity_free(mixt_sensitivity *sensitivity);

MIXT_API int64_t mixt_sensitivity_rows(const mixt_sensitivity *sensitivity);
/** @param index from 0; NULL where there is none. Valid until the analysis is freed. */
MIXT_API const mixt_sensitivity_row *mixt_sensitivity_row_at(const mixt_sensitivity *sensitivity, int64_t index);
/** The row of a cell; NULL where there is none. */
MIXT_API const mixt_sensitivity_row *mixt_sensitivity_find(const mixt_sensitivity *sensitivity, const char *layer,
                                                           mixt_dtype format, mixt_sensitivity_mode mode);
MIXT_API int64_t mixt_sensitivity_layers(const mixt_sensitivity *sensitivity);
/** @param index from 0, in the order of the model; NULL where there is none. */
MIXT_API const mixt_sensitivity_layer *mixt_sensitivity_layer_at(const mixt_sensitivity *sensitivity, int64_t index);

typedef struct mixt_sensitivity_info {
    double loss;               /**< of FP32, mean over batches and points */
    double loss_scale;         /**< that FP16 was measured with, at the last point */
    int64_t points, trials;    /**< points of training; batches at each */
    int64_t batch;             /**< samples in one of these batches */
    double steps;              /**< work of the estimates: in training steps of the run, by their matrix FLOPs */
    int64_t measured;          /**< cells that were measured directly */
    int format_count;          /**< formats tried */
    mixt_dtype formats[4];     /**< they */
    double all_low_loss[4];    /**< loss minus that of FP32 with every layer in the format */
    double all_low_score[4];   /**< score of that */
    mixt_judgement all_low[4]; /**< whether that is safe, by the loss: measured once, on weights as they are */
} mixt_sensitivity_info;
MIXT_API mixt_sensitivity_info mixt_sensitivity_describe(const mixt_sensitivity *sensitivity);

/**
 * Draws the heat map of scores, layers from top to bottom.
 * @param path ends in .svg or .png.
 * @param overwrite whether a file of that name is replaced.
 */
MIXT_API mixt_status mixt_sensitivity_draw(const mixt_sensitivity *sensitivity, const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
