/* Looking into a compiled trainer: what its step computes, in which formats and by which kernels, and what it needs.
 *
 * Everything here is known once the trainer is compiled, before any memory is taken or anything has run. Strings belong
 * to the trainer and are valid until it is compiled again, for another shape or precision, or until its context is
 * closed.
 */
#ifndef MIXT_PLAN_H
#define MIXT_PLAN_H

#include "mixt/train.h"

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
    char device_name[128];   /**< of a GPU; "" on the CPU, and so are the next three 0 */
    size_t device_bytes;     /**< memory of the GPU */
    size_t device_free;      /**< free there now */
    size_t device_other;     /**< in use there beside mixt's own: context, libraries, other programs */
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
 * @param text room for `size` bytes; what does not fit is cut.
 */
MIXT_API mixt_status mixt_plan_explain(const mixt_trainer *trainer, int64_t index, char *text, size_t size);

/**
 * The typed graph as text, a line a node: number, pass (f, b, or r for a forward node that runs
 * again in the backward pass), layer, op, what it writes, what it reads.
 * @param layer only nodes whose layer matches this glob; NULL: all.
 * @param write called with each line, without a line break.
 * @param user given to write.
 */
MIXT_API mixt_status mixt_plan_text(const mixt_trainer *trainer, const char *layer,
                                    void (*write)(void *user, int64_t index, const char *line), void *user);

#ifdef __cplusplus
}
#endif
#endif
