/* Is a precision safe for a configuration, and is it worth it here? Measured.
 *
 *   mixt_verification *v;
 *   if (mixt_verify(config, &v, .seeds = 6) == MIXT_OK)
 *       printf("safe: %s\n", mixt_verdict_name(mixt_verification_describe(v).safe));
 *   mixt_verification_free(v);
 *
 * Strict FP32 and the configuration's own precision are trained from the same weights on the same batches, once for
 * each seed, and compared. The precision is *safe* where it loses less than verify.lost, makes no number that is not
 * finite beyond what a loss scaler handles, and its outputs are as close to FP32's as its formats allow. It is *worth
 * it* where it is faster, smaller or cheaper. Beside both stands the acceptance checklist, whose thresholds are
 * verify.speedup, verify.memory, verify.lost, verify.tensor_cores and verify.output: it decides nothing.
 */
#ifndef MIXT_VERIFY_H
#define MIXT_VERIFY_H

#include "mixt/compare.h"
#include "mixt/config.h"
#include "mixt/judge.h"
#include "mixt/progress.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_verification mixt_verification;

enum { MIXT_VERIFY_SEEDS_MAX = 100, MIXT_VERIFY_LINES = 6, MIXT_VERIFY_FIGURES = 5 };

typedef enum mixt_verify_side { MIXT_VERIFY_FP32, MIXT_VERIFY_MIXED, MIXT_VERIFY_SIDES } mixt_verify_side;

typedef struct mixt_verify_options {
    size_t struct_size;
    int64_t seeds; /**< runs of each precision, with seeds from the configuration's on; default MIXT_STATS_PAIRS_MIN:
                        fewer decide nothing */
    int64_t steps; /**< updates of each run; default: as the configuration says */
    /** What counts as there, for "time to target" and what goes with it: the loss of training, as the mean over a
     *  twentieth of the updates. Default MIXT_AUTO: the higher of a seed's two losses at the end, so that both get
     * there. */
    double target_loss;
    double target_accuracy; /**< instead of it: the accuracy of training, from 0 to 1 */
    double price;           /**< of an hour of this machine; default MIXT_AUTO: not known */
    /** Hears of updates of all runs, done and in all (`what` is the precision, the part a run), what came of each run,
     *  and of a text that is tokenised; false ends it without a verdict. Default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user; /**< for it */
} mixt_verify_options;
MIXT_API void mixt_verify_options_default(mixt_verify_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_verify_options                                                                              \
    .struct_size = sizeof(mixt_verify_options), .seeds = MIXT_STATS_PAIRS_MIN, .price = MIXT_AUTO,                     \
    .target_loss = MIXT_AUTO, .target_accuracy = MIXT_AUTO

/**
 * Trains every seed in both precisions and measures each run.
 * @param config only read; its precision must not be fp32.
 * @param options NULL: all defaults.
 * @param verification set to the result, or to NULL on failure; free it with mixt_verification_free.
 * @return MIXT_ERROR_STATE when `progress` ended it.
 */
MIXT_API mixt_status mixt_verify_with(const mixt_config *config, const mixt_verify_options *options,
                                      mixt_verification **verification);
#define mixt_verify(config, verification, ...)                                                                         \
    mixt_verify_with((config), MIXT_OPTIONS_AT(mixt_verify_options, __VA_ARGS__), (verification))
/** NULL is allowed. */
MIXT_API void mixt_verification_free(mixt_verification *verification);

/* ---- what was found ---- */

typedef struct mixt_verification_info {
    mixt_verdict safe;
    mixt_verdict worth_it; /**< faster, smaller or cheaper: yes where one is, no where none is */
    bool checklist;        /**< no line of the checklist that could be measured failed */
    const char *precision; /**< that was held against FP32 */
    const char *model;
    int64_t seeds, first_seed;
} mixt_verification_info;
/** Strings belong to the verification. Of none, or one that was freed, nothing is known. */
MIXT_API mixt_verification_info mixt_verification_describe(const mixt_verification *verification);

/** SAFE, FASTER, SMALLER, and CHEAPER where a price is given. NULL: not judged. */
MIXT_API const mixt_judgement *mixt_verification_judgement(const mixt_verification *verification, mixt_claim claim);

/** What SAFE rests on: all of these must hold. */
enum { MIXT_VERIFY_PARTS = 4 };
/** Loss or accuracy over the seeds, numbers that are not finite, outputs at the weights that training begins with, and
 *  at those that it ends with. @param index from 0 to below MIXT_VERIFY_PARTS; NULL past that. */
MIXT_API const mixt_judgement *mixt_verification_part(const mixt_verification *verification, int index);

/** What a value must be next to its threshold. */
typedef enum mixt_verify_rule { MIXT_VERIFY_ABOVE, MIXT_VERIFY_BELOW, MIXT_VERIFY_AT_MOST } mixt_verify_rule;

/** A line of the checklist. */
typedef struct mixt_verify_line {
    const char *name;        /**< for scripts: "speedup", "memory_saved", … */
    const char *what, *unit; /**< for people */
    double value, threshold;
    double low, high; /**< 95% interval over the seeds; NaN: none */
    mixt_verify_rule rule;
    bool measured; /**< false: this machine cannot say; the line counts for nothing */
    bool pass;
    const char *note; /**< what stands behind the value, in words */
    const char *key;  /**< of the configuration, which sets the threshold: "verify.speedup"; "": none does */
} mixt_verify_line;
/** @param index from 0 to below MIXT_VERIFY_LINES; NULL past that. */
MIXT_API const mixt_verify_line *mixt_verification_line(const mixt_verification *verification, int index);

/** What it takes to get somewhere, which nothing is judged by. NaN: not known, or no seed got there. */
typedef struct mixt_verify_figure {
    const char *name;   /**< for scripts: "seconds_to_target", "steps_to_target", "reached", "seconds", "cost" */
    const char *what;   /**< for people */
    const char *unit;   /**< "s", …; "" */
    double fp32, mixed; /**< means over the seeds in which both got there; "reached": shares of all seeds */
    double ratio;       /**< mixed over FP32, the geometric mean over those seeds */
    double low, high;   /**< its 95% interval */
} mixt_verify_figure;
/** @param index from 0 to below MIXT_VERIFY_FIGURES; NULL past that. */
MIXT_API const mixt_verify_figure *mixt_verification_figure(const mixt_verification *verification, int index);

/** One training run. */
typedef struct mixt_verify_run {
    const double *losses;     /**< of each update */
    const double *accuracies; /**< of each update; NaN: none */
    int64_t steps;            /**< updates */
    double step_seconds;      /**< of an update: the median, without the first tenth */
    double loss, accuracy;    /**< on the validation part; without one: of the last tenth of the updates. Accuracy NaN:
                                   none */
    int64_t skipped;          /**< updates skipped by the loss scaler: they change nothing */
    int64_t not_finite;       /**< losses and gradients that were not and that no loss scaler caught; outputs */
    mixt_memory memory;       /**< of the trainer */
    double tensor_cores;      /**< share of the matrix work on Tensor Cores, by the plan; NaN: not a GPU */
    double tensor_active;     /**< share of the time of training in which Tensor Cores were at work, by the device's own
                                   counters; NaN: it has none that may be read */
    double products_share;   /**< mixed, first seed: share of a step's time in matrix products, timed op by op; NaN: not
                                  known, as are the next two */
    double products_flops;   /**< operations a second in them */
    double products_active;  /**< share of their time in which Tensor Cores were at work, by the device's own counters,
                                  read while steps ran op by op; NaN: it has none that may be read */
    double target_steps;     /**< updates until the target was reached; NaN: it was not */
    double difference;       /**< mixed: mean size of the outputs' difference to FP32, at the weights it begins with */
    double trained;          /**< mixed: the same at the weights it ends with */
    double output_size;      /**< mixed: mean size of FP32's outputs at the weights it begins with */
    double rounding;         /**< mixed: the difference that rounding the weights to their format makes, all arithmetic
                                  in FP32: what the format itself allows. NaN: no weights are rounded */
    double trained_rounding; /**< mixed: the same at the weights it ends with */
    double trained_size;     /**< mixed: mean size of FP32's outputs there */
    mixt_dtype format;       /**< mixed: the coarsest format that weights are rounded to; MIXT_DTYPE_NONE: none are */
} mixt_verify_run;
/** @param seed from 0 to below `seeds`; NULL past that. */
MIXT_API const mixt_verify_run *mixt_verification_run(const mixt_verification *verification, int64_t seed,
                                                      mixt_verify_side side);

/**
 * Keeps all of it in a file of JSON: the configuration, the checklist, and every run with its figures and its memory by
 * role. mixt_table_read takes it.
 * @param overwrite replace a file that exists; else it is an error.
 */
MIXT_API mixt_status mixt_verification_write(const mixt_verification *verification, const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
