/* How fast are well-known models here? Whole training steps are timed.
 *
 * Models, sizes, optimizers and data are fixed, so that figures compare between machines and with other systems. A step
 * is forward, loss, backward, clipping where the model has it, and the optimizer, on random data that lie in the
 * device's memory in the format that the step reads.
 */
#ifndef MIXT_BENCH_H
#define MIXT_BENCH_H

#include "mixt/machine.h"
#include "mixt/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_bench_model {
    const char *name;    /**< "gpt2", "resnet50", … */
    const char *summary; /**< a few words */
    int64_t batch;       /**< samples in a step by default */
    int64_t seq;         /**< tokens in a sample by default; 0: it has no sequences */
} mixt_bench_model;

/** How many models there are. */
MIXT_API int mixt_bench_count(void);
/** The model at a position from 0; false past the last. */
MIXT_API bool mixt_bench_at(int position, mixt_bench_model *model);
/** Floating-point operations of one step, forward and backward; 0 for a name that there is not. */
MIXT_API double mixt_bench_flops(const char *model, int64_t batch, int64_t seq);

/** Zero or NULL means the default. */
typedef struct mixt_bench_options {
    size_t struct_size;
    const char *precision; /**< "fp32" (default), "tf32", "fp16", "bf16", or a policy file */
    const char *device;    /**< as in mixt_context_options */
    int threads;           /**< CPU threads, as in mixt_context_options */
    int64_t batch, seq;    /**< default: the model's own; seq only where the model has sequences */
    int64_t steps; /**< to time; default: 20, but fast ones for half a second and slow ones for 5 seconds only */
    size_t memory; /**< bytes that the step may take, weights and all: what does not fit is computed again in the
                      backward pass; default: no limit */
    bool profile;  /**< then time each op by itself as well */
} mixt_bench_options;
MIXT_API void mixt_bench_options_default(mixt_bench_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_bench_options .struct_size = sizeof(mixt_bench_options)

typedef struct mixt_bench_result {
    const char *device;       /**< "cpu" or "cuda" */
    int threads;              /**< CPU threads in use */
    int64_t batch, seq;       /**< that were used */
    int64_t items;            /**< tokens of a step, or samples where the model has no sequences */
    int64_t steps;            /**< timed */
    double seconds;           /**< of a step: the median of groups of steps */
    double spread;            /**< (ninth - first decile) / median of those groups */
    double flops;             /**< of a step: mixt_bench_flops */
    double loss;              /**< of the last step */
    mixt_memory memory;       /**< of the trainer */
    int64_t recomputed;       /**< nodes that run again to keep the options' memory */
    double recompute_seconds; /**< predicted, of those */
    double watts;             /**< NaN: the device does not count its energy */
    double items_j;           /**< items a joule; NaN with watts */
    bool counted;             /**< the device counts what its units do: the next three are known */
    double multiprocessors_active, tensor_cores_active, memory_active; /**< shares of the time, 0 to 1 */
    bool gpu;                                                          /**< it ran on a GPU: the next two are known */
    mixt_gpu_info gpu_info;
    double gpu_other;      /**< bytes of its memory in use beside mixt's own: context, libraries, other programs */
    mixt_profile *profile; /**< NULL unless asked for */
} mixt_bench_result;

/**
 * Runs a benchmark. Opens a context of its own and closes it.
 * @param model a name of the list.
 * @param options NULL: all defaults.
 * @param result filled in; give it to mixt_bench_free, also after a failure.
 * @return MIXT_ERROR_ARGUMENT for a model that there is not and for options that it cannot have.
 */
MIXT_API mixt_status mixt_bench_run_with(const char *model, const mixt_bench_options *options,
                                         mixt_bench_result *result);
#define mixt_bench_run(model, result, ...)                                                                             \
    mixt_bench_run_with((model), MIXT_OPTIONS_AT(mixt_bench_options, __VA_ARGS__), (result))
/** Frees what the result holds. */
MIXT_API void mixt_bench_free(mixt_bench_result *result);

#ifdef __cplusplus
}
#endif
#endif
