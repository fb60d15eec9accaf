/* What does a step compute, does it fit in memory, and where does its time go?
 *
 * What a step computes, in which formats and by which kernels, is known once the trainer is compiled, before any memory
 * is taken or anything has run. Strings belong to the trainer and are valid until it is compiled again, for another
 * shape or precision, or until its context is closed.
 */
#ifndef MIXT_PLAN_H
#define MIXT_PLAN_H

#include "mixt/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory ---- */

/** What memory is for: one field of mixt_memory, with words for people. */
typedef struct mixt_memory_role {
    const char *name; /**< "parameters", "activations", …, "total" */
    const char *text; /**< what that is, in a few words */
    size_t bytes;
} mixt_memory_role;

enum { MIXT_MEMORY_ROLES = 10 };

/** The roles of planned memory in a fixed order; the last is the total of the others. */
MIXT_API void mixt_memory_roles(const mixt_memory *memory, mixt_memory_role roles[MIXT_MEMORY_ROLES]);

/** Frozen parameters that are kept in one format. */
typedef struct mixt_plan_frozen {
    int64_t parameters; /**< 0: none are */
    int64_t numbers;    /**< in all of them */
    int64_t scales;     /**< what rows of them are multiplied by, in FP32 */
    size_t bytes;       /**< in mixt_memory.state: with scales, and gaps that align */
} mixt_plan_frozen;
/** Those of a format. Needs a compiled trainer. */
MIXT_API mixt_status mixt_plan_frozen_in(const mixt_trainer *trainer, mixt_dtype format, mixt_plan_frozen *frozen);

/* ---- the step ---- */

/** A training step as a whole, forward and backward; what the optimizer does is not in it. */
typedef struct mixt_plan_info {
    const char *device;          /**< "cpu" or "cuda" */
    int64_t nodes;               /**< steps of computation, views included */
    double flops;                /**< floating-point operations of one pass over a batch */
    double matrix_flops;         /**< of those, products that Tensor Cores or AMX can do */
    size_t activations_unshared; /**< bytes that activations would take if none reused another's memory */
    size_t recompute_budget;     /**< bytes that activations may take; 0: no limit */
    int64_t recomputed;          /**< nodes that run again in the backward pass to keep that budget */
    double recompute_flops;      /**< of those; they are part of `flops` */
    double recompute_seconds;    /**< predicted, of those */
    double recompute_bound;      /**< seconds that any choice costs; less than the above: the search ended early */
    size_t activations_kept_all; /**< bytes that activations take without recomputation; 0: no budget is set */
    int64_t ranks;               /**< processes that share each update; 1: it is alone */
    int64_t rank_sent;           /**< bytes that one of them sends in an update */
    int64_t rank_gradients;  /**< of those: gradients and their sums, or differences of weights that are compressed */
    int64_t rank_weights;    /**< weights, where state is sharded */
    int64_t rank_whole;      /**< updates at first that ranks make together, before they compress */
    int64_t rank_whole_sent; /**< bytes that one of them sends in each of those */
    int64_t rank_run_sent;   /**< and in all updates of the run; 0: nobody knows how many there will be */
    const char *device_name; /**< of a GPU; "" on the CPU, and so are the next three 0 */
    size_t device_bytes;     /**< memory of the GPU */
    size_t device_free;      /**< free there now */
    size_t device_other;     /**< in use there beside mixt's own: context, libraries, other programs */
    bool checks_state;       /**< each update checks that its state is as the last one wrote it: not where
                                  mixt_trainer_options.no_integrity is set, and not on GPUs */
} mixt_plan_info;
/** Needs a compiled trainer, as does everything below: MIXT_ERROR_STATE otherwise. */
MIXT_API mixt_status mixt_plan_describe(const mixt_trainer *trainer, mixt_plan_info *info);

/** "products", "attention", …; "none" for anything else. */
MIXT_API const char *mixt_work_name(mixt_work work);

/** One node: an op on values. */
typedef struct mixt_plan_node {
    const char *layer;     /**< dotted path of the layer it came from: "h.0.attn.qkv" */
    const char *op;        /**< "matmul", "layer_norm_grad", … */
    const char *kernel;    /**< that was chosen; "view" where nothing runs */
    mixt_work work;        /**< never MIXT_WORK_OPTIMIZER */
    mixt_dtype arithmetic; /**< matrix work: the format in which operands are multiplied; else FP32 */
    bool backward;         /**< of the backward pass */
    bool recomputed;       /**< a forward node that runs again there: see mixt_trainer_options.recompute_budget */
    bool view;             /**< its output is its input's memory: nothing runs */
    bool matrix;           /**< its FLOPs are what Tensor Cores or AMX can do */
    bool tensor_cores;     /**< and on this GPU the kernel does them there */
    double flops;          /**< floating-point operations of one run */
    double bytes;          /**< the fewest that it can move: each input read and each output written once */
    int inputs, outputs;   /**< values read and written */
    int refusals;          /**< kernels that stood before the chosen one in the list */
    int64_t rule;          /**< of the policy that decided its formats, from 0, as in mixt_policy_get; -1: none did */
} mixt_plan_node;
/** @param index from 0 to below mixt_plan_info.nodes, in the order in which nodes run. */
MIXT_API mixt_status mixt_plan_node_at(const mixt_trainer *trainer, int64_t index, mixt_plan_node *node);
/**
 * The next node whose layer matches, at `index` or after it.
 * @param layer a glob over the whole layer path, as in a policy's rule: "h.*.attn*"; NULL: every layer.
 * @return its index; -1 when there is none, or when the trainer is not compiled.
 */
MIXT_API int64_t mixt_plan_next(const mixt_trainer *trainer, const char *layer, int64_t index);

/** A value that a node reads or writes. */
typedef struct mixt_plan_value {
    const char *name; /**< of a parameter, an input or a layer; "" where it has none of its own */
    const char *role; /**< "activation", "input", "target", "parameter", "gradient", "state" or "seed" */
    mixt_dtype dtype;
    int rank;
    int64_t dims[MIXT_MAX_RANK];
} mixt_plan_value;
/** @param index of the node. @param position from 0 to below its `inputs` or `outputs`. */
MIXT_API mixt_status mixt_plan_input(const mixt_trainer *trainer, int64_t index, int position, mixt_plan_value *value);
MIXT_API mixt_status mixt_plan_output(const mixt_trainer *trainer, int64_t index, int position, mixt_plan_value *value);

/** Why a kernel that stood before the chosen one was not taken. @param position from 0 to below `refusals`. */
MIXT_API mixt_status mixt_plan_refusal(const mixt_trainer *trainer, int64_t index, int position, const char **kernel,
                                       const char **reason);

/**
 * Why a node has its formats, in words: a rule of the policy and where that stands, the policy's default, or the class
 * of the op; of a cast, which node wanted it and what it was given. Of matrix work, behind its arithmetic: "bf16: …".
 * @param index of the node.
 * @param text receives it, for mixt_free; NULL on failure.
 */
MIXT_API mixt_status mixt_plan_explain(const mixt_trainer *trainer, int64_t index, char **text);

/**
 * The typed graph as text, a line a node: number, pass (f, b, or r for a forward node that runs
 * again in the backward pass), layer, op, what it writes, what it reads.
 * @param layer only nodes whose layer matches this glob; NULL: all.
 * @param write called with each line, without a line break.
 * @param user given to write.
 */
MIXT_API mixt_status mixt_plan_text(const mixt_trainer *trainer, const char *layer,
                                    void (*write)(void *user, int64_t index, const char *line), void *user);

/* ---- within an amount of memory ----
 *
 * How a run is planned to fit, and how large a batch can be. All of it is calculated: plans are compiled, which takes
 * milliseconds, and their memory is known to the byte; nothing is run. Memory is that of the GPU where the run trains
 * on one (what mixt takes there: CUDA's context and libraries come beside it), else all that the run holds on the host.
 */

enum { MIXT_FIT_LINES = 6 };

/** How a run is planned within its memory. */
typedef struct mixt_fit {
    size_t budget; /**< bytes that it may take: train.memory; 0: there is no limit, and nothing was changed */
    bool device;   /**< of the GPU; else of the host */
    size_t memory; /**< bytes that it will take */
    size_t asked;  /**< bytes that it would take as the configuration has it */
    int64_t batch; /**< samples in one pass */
    int64_t
        accumulate; /**< passes of an update: batch × accumulate is what the configuration says, whatever the split */
    int64_t split;  /**< parts that a batch of the configuration is passed in */
    size_t recompute;   /**< bytes that activations may take; 0: nothing is computed again */
    int64_t recomputed; /**< ops that run again in the backward pass for that */
    mixt_dtype keep;    /**< format in which activations wait for the backward pass; MIXT_DTYPE_NONE: as they are */
    int64_t eval_batch; /**< samples in one pass of validation */
    double cost; /**< time that this adds to training, validation included, as a share of it, predicted: 0.05 is 5% */
    bool batch_norm; /**< the split changes what batch norm takes its statistics from */
    bool compares;   /**< the split changes which samples the loss compares with each other */
    const char
        *lines[MIXT_FIT_LINES]; /**< the same for people, NULL behind the last; the run's until it is planned anew */
} mixt_fit;

/**
 * Plans a run within an amount of memory, by what train.memory_may lists: the cheapest plan that fits. Opening a run
 * with train.memory does this. Before training; the run then trains so, and its configuration (train.split,
 * train.recompute) says so.
 * @param memory bytes; 0: nothing is planned anew, `fit` tells how the run is planned.
 * @param fit may be NULL. Where nothing fits it has the smallest plan.
 * @return MIXT_ERROR_MEMORY where nothing fits: the text has the least that would do, and what else to list.
 */
MIXT_API mixt_status mixt_plan_fit(mixt_run *run, size_t memory, mixt_fit *fit);

/** The largest batch of a configuration. */
typedef struct mixt_largest_batch {
    int64_t batch; /**< for train.batch: training and validation both fit */
    size_t memory; /**< bytes that the run then takes */
    size_t next;   /**< bytes that it would take with one sample more; 0: there cannot be one more, see `reason` */
    size_t limit;  /**< bytes that there are */
    bool device;   /**< of the GPU; else of the host */
    char *reason;  /**< what stops it: memory, the number of samples, …; for mixt_free */
} mixt_largest_batch;

/**
 * The largest train.batch that fits, all else as the configuration has it: such a run is within the limit, one with a
 * sample more in its batch is not. Validation takes batches as large, or of train.eval_batch, or smaller ones where
 * those do not fit and the loss does not compare samples of a batch.
 * @param options as for mixt_run_open_config; NULL: none. The observer hears NOTEs of a search that takes long.
 * @param memory bytes that the run may take; 0: train.memory, else what is free now.
 * @return MIXT_ERROR_MEMORY where not even a batch of 1 fits.
 */
MIXT_API mixt_status mixt_plan_largest_batch(const mixt_config *config, const mixt_run_options *options, size_t memory,
                                             mixt_largest_batch *largest);

/* ---- the time of each op ----
 *
 * Held against what the device could do. Ops run one by one, in order, with a time mark between them: what a profile
 * adds up to is a little more than a step that runs as a whole. Bytes are the fewest that an op can move: each input
 * read and each output written once.
 */

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
