/* How do I train a model of my own? With a context, a model, a trainer. The trainer compiles the model for the data's
 * shape and the chosen precision at its first step, and again whenever the precision is changed.
 *
 * Two floors: mixt_trainer_step does a whole step (batch, forward, loss, backward, unscale, check, clip, update); below
 * it, mixt_trainer_backward, _unscale, _clip and _apply do the parts by hand.
 */
#ifndef MIXT_TRAIN_H
#define MIXT_TRAIN_H

#include "mixt/data.h"
#include "mixt/graph.h"
#include "mixt/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_context mixt_context;
typedef struct mixt_model mixt_model;
typedef struct mixt_trainer mixt_trainer;

typedef struct mixt_context_options {
    size_t struct_size;
    /** "auto" (default: a GPU when one is usable, else the CPU; see MIXT_DEVICE), "cpu", "cuda" (the first GPU) or
     *  "cuda:1" and so on. Each context has its device: several train at once, on one GPU or on several, each in a
     *  thread of its own. */
    const char *device;
    int threads; /**< its own CPU threads, the caller being one; 0: MIXT_THREADS, else all cores the process may use */
} mixt_context_options;
MIXT_API void mixt_context_options_default(mixt_context_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_context_options .struct_size = sizeof(mixt_context_options)

/** Opens the library. @param context set to NULL on failure. Everything made from a context belongs to it.
 *  Options may be NULL, here as in every function that takes some: all defaults. */
MIXT_API mixt_status mixt_open_with(const mixt_context_options *options, mixt_context **context);
#ifndef __cplusplus
/** mixt_open(.device = "cpu", .threads = 4): what is not named has its default. */
#define mixt_open(...) MIXT_MADE(mixt_context, mixt_open_with, MIXT_OPTIONS_AT(mixt_context_options, __VA_ARGS__))
#endif
/** Frees the context and everything made from it. NULL is allowed. Whoever uses one of these objects later, or closes
 *  the context again, is told so by MIXT_ERROR_STATE (or by mixt_error_text, where a function returns none). */
MIXT_API void mixt_close(mixt_context *context);
/** The first failure of anything made from this context; "" when all went well. Left out: reading a data set yourself
 *  (mixt_data_batch, _read, _next), which several threads may do at once; mixt_error_text tells each its own. */
MIXT_API const char *mixt_error(const mixt_context *context);

/** A data set that the context closes. @param data set to NULL on failure. See mixt_data_open_with for spec and
 * options. */
MIXT_API mixt_status mixt_data_new_with(mixt_context *context, const char *spec, const mixt_data_options *options,
                                        mixt_data **data);
#ifndef __cplusplus
/** mixt_data_new(context, "idx:mnist", .split = "test", .seed = 1): what is not named has its default. */
#define mixt_data_new(context, ...)                                                                                    \
    MIXT_MADE(mixt_data, mixt_data_new_with, (context), MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                            \
              MIXT_OPTIONS_AT(mixt_data_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

typedef struct mixt_model_options {
    size_t struct_size;
    void *user;            /**< mixt_builder_user gives it to the model function */
    float label_smoothing; /**< cross-entropy: share of the target spread over all classes; default 0 */
} mixt_model_options;
MIXT_API void mixt_model_options_default(mixt_model_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_model_options .struct_size = sizeof(mixt_model_options)
/** @param model set to NULL on failure; it belongs to the context. */
MIXT_API mixt_status mixt_model_new_with(mixt_context *context, mixt_model_fn fn, mixt_loss loss,
                                         const mixt_model_options *options, mixt_model **model);
#ifndef __cplusplus
/** mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY, .label_smoothing = 0.1f) */
#define mixt_model_new(context, fn, ...)                                                                               \
    MIXT_MADE(mixt_model, mixt_model_new_with, (context), (fn), MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                    \
              MIXT_OPTIONS_AT(mixt_model_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

/* ---- adapters ---- */

typedef struct mixt_lora_options {
    size_t struct_size;
    int64_t rank;       /**< rows of A, at least 1; default 16 */
    float alpha;        /**< scale is alpha / rank; default 0: twice the rank */
    float dropout;      /**< share of x that adapters do not see in training, from 0 to below 1; default 0 */
    bool rslora;        /**< scale is alpha / sqrt(rank) */
    const char *layers; /**< globs of linear layers, as in "h.*.attn, h.*.mlp.up", of parts as in "h.*.attn.qkv.0"; NULL
                             (default): "all-linear", which is all but the one that makes the outputs */
    const char *also;   /**< globs of parameters that are trained beside, as in "ln_f, h.*.ln1"; default: none */
} mixt_lora_options;
MIXT_API void mixt_lora_options_default(mixt_lora_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_lora_options .struct_size = sizeof(mixt_lora_options), .rank = 16
/** LoRA: gives the linear layers of a model adapters and freezes all else. A layer then makes x W^T + bias +
 *  scale · dropout(x) A^T B^T, and only A and B are trained, with what `also` names. The parameters are called
 *  LAYER.lora_a and LAYER.lora_b, of layers with parts (mixt_linear_options) LAYER.lora_b.0, …; A begins uniform in
 *  ±1/sqrt(inputs) and B with zeros, so that the model begins as it is without them. Counts for trainers and generators
 *  that are made of the model from here on; which names there are is known when one is compiled. */
MIXT_API mixt_status mixt_model_lora(mixt_model *model, const mixt_lora_options *options);

/* ---- a model that is built once, by calls ----
 *
 * Where a callback cannot be given, or is not wanted: what mixt_builder_input and the functions of mixt/graph.h return
 * is used as in a model function, and the calls are kept. The model makes them again for each batch size, for training
 * and for evaluation: dropout and batch norm then do what they do there, and what is made from targets is left out
 * where there are none. While a model is built so, values have shapes for 2 samples: a reshape leaves the samples to
 * -1, and flatten, which keeps them, is the usual one. */

/** @param builder set to NULL on failure. It belongs to the context; mixt_builder_finish ends it. */
MIXT_API mixt_status mixt_builder_new(mixt_context *context, mixt_builder **builder);
/** Declares an input of the model and gives it; those before targets, in the data's order. The data's own shapes count
 *  when the model is compiled.
 *  @param name by which the data offers it; NULL: the first. @param dtype FP32 or INT32. @param dims of one sample */
MIXT_API mixt_value mixt_builder_input(mixt_builder *b, const char *name, mixt_dtype dtype, int rank,
                                       const int64_t *dims);
/** The same of a target, for losses of the model's own (mixt/loss.h). */
MIXT_API mixt_value mixt_builder_target(mixt_builder *b, const char *name, mixt_dtype dtype, int rank,
                                        const int64_t *dims);
/** Makes the model of what was built, and ends the builder, also on failure: of the first call that failed.
 *  @param output what a model function would return. @param options as of mixt_model_new; `user` does not count */
MIXT_API mixt_status mixt_builder_finish(mixt_builder *builder, mixt_value output, mixt_loss loss,
                                         const mixt_model_options *options, mixt_model **model);
/** Ends a builder without a model. NULL is allowed. */
MIXT_API void mixt_builder_free(mixt_builder *builder);

/** How to train. NULL for a text means its default. */
typedef struct mixt_trainer_options {
    size_t struct_size;
    const char *precision; /**< "fp32" (default), "tf32", "fp16", "bf16", a policy file, or "auto": for the device */
    const mixt_policy *policy; /**< in place of precision: copied; default NULL */
    const char *optimizer;     /**< "sgd", "momentum", "nesterov", "adam", "adamw" (default), "lamb" */
    int64_t batch;             /**< samples in one forward and backward pass, below 2^31; default 32 */
    /** Passes per update, at most 2^20; default 1. A pass counts as much as it has targets that count, so that the
     *  gradient is that of one batch of accumulate × batch samples, also where targets are left out. (Batch norm takes
     *  its statistics from each pass.) */
    int64_t accumulate;
    /** Parts of equal size, at most 2^20, that a batch is passed in, one after the other: memory of a part, the update
     *  of the whole, samples and epochs as without. (Batch norm takes its statistics from each part, dropout draws
     *  other numbers.) What is made by hand is made of parts. Default 1. */
    int64_t split;
    /** Parts of each update, of equal size, whose gradients are made apart and added in their order: what so many
     *  processes do together (mixt/ranks.h), done by this one, to the bit. A batch is shared by them: ranks × split
     * must divide it. Takes memory for gradients once more. On the CPU only. Default 1. */
    int64_t ranks;
    float lr;                      /**< 0 or above; default 1e-3 */
    float momentum;                /**< of momentum and nesterov, from 0 to below 1; default 0.9 */
    float beta1, beta2;            /**< from 0 to below 1; default 0.9, 0.999 */
    float eps;                     /**< above 0; default 1e-8 */
    float weight_decay;            /**< default 0; biases and norms have none */
    mixt_policy_settings settings; /**< clipping and loss scaling, before what the policy says; default: nothing */
    /** Format that the optimizer keeps moments in: "fp32" (default); "bf16", which takes half the memory; "int8" or "fp8",
     *  a quarter: 8 bits and an FP32 scale for each 256 numbers of a parameter, where parameters of less than 4096
     *  numbers and tables that are only looked up stay FP32, on CPUs alone. Second moments are then rounded
     *  stochastically. */
    const char *moments;
    const char *schedule;     /**< "constant" (default), "step", "cosine", "linear", "onecycle" */
    float min_lr;             /**< end of cosine, linear and onecycle, floor of step; default 0 */
    float gamma;              /**< factor of step's drops; default 0.1 */
    int64_t warmup;           /**< updates over which the learning rate rises; default 0 */
    int64_t decay_steps;      /**< updates between two drops of step, at least 1; default 1000 */
    int64_t total_steps;      /**< updates after which cosine, linear and onecycle end, which need it; default 0 */
    uint64_t seed;            /**< of weights and dropout; default 0 */
    const char *freeze;       /**< globs of parameters, "h.0, wte*": neither gradient nor update; default: none */
    const char *lr_groups;    /**< "glob=factor, …" of the learning rate; the last match counts; default: 1 for all */
    const char *decay_groups; /**< "glob=weight decay, …", for parameters that decay at all */
    int64_t eval_batch;       /**< samples in one pass of evaluation; 0 (default): as many as in `batch` */
    bool no_fusion;           /**< compile without pointwise fusion */
    /** Bytes that the step's activations may take; 0 (default): as many as they need. What does not fit is computed
     *  again in the backward pass, the cheapest set of it: the same bits, more time. Compiling fails with
     *  MIXT_ERROR_MEMORY where nothing fits, and names the smallest budget that does. */
    size_t recompute_budget;
    int64_t inject_overflow; /**< let the gradients of this update (from 1) overflow, for tests; 0: never */
    const char
        *faults; /**< for tests: "kind@update:layer, …", what is to go wrong (docs/diagnosis.md); default: none */
    /** Format that frozen parameters are kept in: "auto" (default), the one in which each is read; "int8" or "fp8":
     *  weights of linear layers and embeddings as INT8 or FP8 (E4M3) numbers with a scale for each row, the others as
     *  with auto; "nf4": weights of linear layers below adapters in 4 bits. Refused where no frozen weight is such. */
    const char *frozen;
    /** Each update checks that the weights and moments that it reads are, to the bit, what the last one wrote, and the
     *  running statistics and counters with them: a bit that flips in memory, or a stray write, is an error that names
     *  the parameter, after which nothing is saved until a checkpoint is loaded. True: nobody checks; on a GPU nobody
     * does. */
    bool no_integrity;
    int64_t integrity_every; /**< updates between checks of what no update reads: frozen weights;
                                  0: never; default 1 */
} mixt_trainer_options;
MIXT_API void mixt_trainer_options_default(mixt_trainer_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_trainer_options                                                                             \
    .struct_size = sizeof(mixt_trainer_options), .optimizer = "adamw", .batch = 32, .accumulate = 1, .split = 1,       \
    .ranks = 1, .lr = 1e-3f, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .schedule = "constant",   \
    .gamma = 0.1f, .decay_steps = 1000, .integrity_every = 1
/** @param trainer set to NULL on failure; it belongs to the model's context. */
MIXT_API mixt_status mixt_trainer_new_with(mixt_model *model, const mixt_trainer_options *options,
                                           mixt_trainer **trainer);
#ifndef __cplusplus
/** mixt_trainer_new(model, .precision = "bf16", .lr = 0.1f): what is not named has its default. */
#define mixt_trainer_new(...)                                                                                          \
    MIXT_MADE(mixt_trainer, mixt_trainer_new_with, MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                                 \
              MIXT_OPTIONS_AT(mixt_trainer_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

/** What a step did. */
typedef struct mixt_step {
    int64_t step;               /**< updates tried so far, this one included */
    int64_t applied;            /**< of those, updates that changed the weights */
    int64_t epoch;              /**< the pass over the data that its batch is of, from 1; 0: a batch of your own */
    int64_t samples;            /**< in this step */
    double loss;                /**< mean over the step's targets that count, unscaled */
    double accuracy;            /**< share of correct predictions; NaN where the loss has none */
    double lr, scale;           /**< that this step used */
    double grad_norm;           /**< of the unscaled gradient, before clipping */
    bool skipped;               /**< a gradient was not finite: nothing was changed */
    const char *overflow_layer; /**< parameter whose gradient was not finite first in the backward pass; NULL: none */
    double margin; /**< of rewards, the mean over pairs of answers, where preferences are learned; else NaN */
} mixt_step;

/** One update on the data's next batches. result may be NULL. */
MIXT_API mixt_status mixt_trainer_step(mixt_trainer *trainer, mixt_data *data, mixt_step *result);
/** One update on a batch of your own in host memory: accumulate × batch samples, one pass's after the other. The
 * trainer must be compiled. */
MIXT_API mixt_status mixt_trainer_step_on(mixt_trainer *trainer, const void *input, const void *target,
                                          mixt_step *result);
/** Updates tried so far, those before a restored checkpoint included. */
MIXT_API int64_t mixt_trainer_steps(const mixt_trainer *trainer);
/** Whole passes over the data done so far. */
MIXT_API int64_t mixt_trainer_epoch(const mixt_trainer *trainer);

typedef struct mixt_evaluation {
    double loss, accuracy; /**< means over all targets; accuracy NaN where the loss has none */
    int64_t count;         /**< targets */
    double margin;         /**< as in mixt_step */
} mixt_evaluation;
/** Runs the model over the whole set, once, in order. */
MIXT_API mixt_status mixt_trainer_evaluate(mixt_trainer *trainer, const mixt_data *data, mixt_evaluation *result);

/** Numbers that mixt_trainer_predict writes for a sample: logits, one a class, or predicted values. The trainer must be
 *  compiled. */
MIXT_API mixt_status mixt_trainer_outputs(mixt_trainer *trainer, int64_t *outputs);
/**
 * Runs the model on samples of your own, without a loss and in evaluation mode: no dropout, batch norm by its running
 * statistics. The trainer must be compiled.
 * @param input `count` samples in host memory, normalised as the training data was.
 * @param output room for count × outputs numbers.
 */
MIXT_API mixt_status mixt_trainer_predict(mixt_trainer *trainer, const void *input, int64_t count, float *output);

/**
 * Compiles for another policy, between two steps. Weights, moments, counters and the place in the data stay as they
 * are, to the bit; so does the loss scale where it was scaled before and the new policy scales dynamically, within its
 * limits. A fixed scale is the new policy's; scaling that begins does so at its first scale.
 * @param policy copied.
 */
MIXT_API mixt_status mixt_trainer_set_policy(mixt_trainer *trainer, const mixt_policy *policy);
/** The same with a policy by name ("bf16") or from a file. */
MIXT_API mixt_status mixt_trainer_set_precision(mixt_trainer *trainer, const char *precision);
/** The policy that the trainer is compiled for, or will be; valid until it is changed or the context closed. */
MIXT_API const mixt_policy *mixt_trainer_policy(const mixt_trainer *trainer);

/** Compiles for this data's shape now instead of at the first step. */
MIXT_API mixt_status mixt_trainer_compile(mixt_trainer *trainer, const mixt_data *data);

/** The shape of one sample, without the batch dimension. */
typedef struct mixt_sample_shape {
    mixt_dtype input_dtype; /**< FP32, or INT32 for tokens */
    int input_rank;
    int64_t input_dims[MIXT_MAX_RANK];
    int64_t targets; /**< labels or values a sample; 1 for a class */
} mixt_sample_shape;
/** Compiles for samples of this shape; targets are INT32 labels for cross-entropy and FP32 values for other losses. */
MIXT_API mixt_status mixt_trainer_compile_for(mixt_trainer *trainer, const mixt_sample_shape *shape);

/** Weights as a .safetensors file (FP32; "step" of its metadata is the number of updates made), and back. Before the
 *  first step, once compiled: the weights that training begins with. So has mixt_trainer_checkpoint. */
MIXT_API mixt_status mixt_trainer_save(mixt_trainer *trainer, const char *path);
MIXT_API mixt_status mixt_trainer_load(mixt_trainer *trainer, const char *path);
/** MIXT_ERROR_DATA, naming the parameter and the element, where a weight is not finite. mixt_trainer_save and
 *  mixt_trainer_checkpoint refuse such weights: what was saved before stays. */
MIXT_API mixt_status mixt_trainer_check_finite(mixt_trainer *trainer);

/** All that training goes on from, as a folder: weights, moments, running statistics, loss scale, step counts, the
 * place in the data and in the random numbers, with checksums. Written whole or not at all; an earlier checkpoint of
 * that name is replaced, anything else refused. */
MIXT_API mixt_status mixt_trainer_checkpoint(mixt_trainer *trainer, const char *folder);
/** Puts a trainer, made and compiled as the one that was saved, into that state: further steps give the same bits as if
 * it had never stopped. Refused, with what differs, when model, settings, MIXT_FUSION or MIXT_CANDIDATE are not the
 * same; total_steps and eval_batch may differ. So may device, number of threads and instruction set, but then the bits
 * are others. */
MIXT_API mixt_status mixt_trainer_restore(mixt_trainer *trainer, const char *folder);
typedef struct mixt_restore_options {
    size_t struct_size;
    /** The trainer's policy, loss scaling and clipping may be others than those of the one that was saved: the state is
     *  the checkpoint's, the working copies are made anew, and the loss scale goes on as mixt_trainer_set_policy has
     * it. Default: refused. */
    bool allow_policy;
} mixt_restore_options;
MIXT_API void mixt_restore_options_default(mixt_restore_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_restore_options .struct_size = sizeof(mixt_restore_options)
/** @param options NULL: as mixt_trainer_restore. */
MIXT_API mixt_status mixt_trainer_restore_with(mixt_trainer *trainer, const char *folder,
                                               const mixt_restore_options *options);

/** Bytes by role, exact before anything is allocated. */
typedef struct mixt_memory {
    size_t masters, copies, gradients, moments,
        state;                     /**< parameters in each role; state: running statistics, frozen ones, a teacher's */
    size_t activations, workspace; /**< planned arena; scratch */
    size_t batches;   /**< input buffers on a GPU; 0 on the CPU, which reads batches where the loader put them */
    size_t control;   /**< of a step */
    size_t total;     /**< sum of the above: what will be allocated */
    size_t allocated; /**< measured: 0 before anything is taken, the weights alone where nothing is trained yet */
} mixt_memory;
/** Needs a compiled trainer. */
MIXT_API mixt_status mixt_trainer_memory(const mixt_trainer *trainer, mixt_memory *memory);

/* ---- by hand ----
 *
 * Gradients made by mixt_trainer_backward wait until they are applied or discarded. Without any, the functions that
 * take them up fail with MIXT_ERROR_STATE. Scales and limits are finite and above 0.
 */

/** Forward and backward on one batch in host memory; gradients are multiplied by `scale` and added to those that wait.
 *  The trainer must be compiled. loss may be NULL. */
MIXT_API mixt_status mixt_trainer_backward(mixt_trainer *trainer, const void *input, const void *target, float scale,
                                           double *loss);
/** Divides the gradients by `scale`; *finite says whether all are finite, and may be NULL. */
MIXT_API mixt_status mixt_trainer_unscale(mixt_trainer *trainer, float scale, bool *finite);
/** Multiplies gradients whose norm is above `limit` by limit / (norm + 1e-6), as PyTorch does; *norm is the norm
 *  before, and may be NULL. */
MIXT_API mixt_status mixt_trainer_clip(mixt_trainer *trainer, float limit, double *norm);
/** One optimizer update with this learning rate (0 or above) from the gradients as they are; then none wait. */
MIXT_API mixt_status mixt_trainer_apply(mixt_trainer *trainer, float lr);
/** Forgets the gradients that wait, if any, without an update. */
MIXT_API mixt_status mixt_trainer_discard(mixt_trainer *trainer);

/** Number, names and shapes of parameters; valid once compiled. */
MIXT_API int64_t mixt_trainer_param_count(const mixt_trainer *trainer);
typedef struct mixt_param_info {
    const char *name;
    int rank;
    int64_t dims[MIXT_MAX_RANK], count;
    bool trainable;
    /** Format of the working copy, or that a frozen one is kept in; MIXT_DTYPE_NONE: the FP32 master itself is used. */
    mixt_dtype copy;
} mixt_param_info;
MIXT_API mixt_status mixt_trainer_param(const mixt_trainer *trainer, int64_t index, mixt_param_info *info);
/** Values of a parameter, as FP32; `values` has room for info.count. */
MIXT_API mixt_status mixt_trainer_param_get(const mixt_trainer *trainer, int64_t index, float *values);
MIXT_API mixt_status mixt_trainer_param_set(mixt_trainer *trainer, int64_t index, const float *values);
/** The same of its gradient, while gradients made by hand wait. */
MIXT_API mixt_status mixt_trainer_grad_get(const mixt_trainer *trainer, int64_t index, float *values);

#ifdef __cplusplus
}
#endif
#endif
