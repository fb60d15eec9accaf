/* Which is the cheapest policy that loses nothing? It is found by training and measuring: a format for each layer.
 *
 *   mixt_search_result *found;
 *   if (mixt_search(config, &found, .lose = 0.001, .goal = MIXT_SEARCH_MEMORY, .write = "policy.yaml") == MIXT_OK)
 *       printf("%zu bytes\n", mixt_search_describe(found).memory);
 *   mixt_search_free(found);
 *
 * A policy and strict FP32 start from the same weights, train the same updates and are compared on validation samples:
 * a pair. Pairs that all policies share only set aside what was shown to lose more than the tolerance. The final word
 * is a judgement (judge.h) on fresh pairs, with seeds and validation samples that the search has not used: from the
 * cheapest policy on, with an error rate that holds over all that are asked for one. A policy that stays undecided is
 * offered as such; FP32 is left where all others were shown to lose, or nothing is cheaper.
 *
 * Everything is on disk at every moment. From the first moment on the file named by `write` holds a policy that can be
 * trained with: FP32, then the best so far. Beside it lies a folder, its name with ".search" behind: every policy tried
 * (candidates.jsonl), the Pareto front so far (front.json, and front.svg as a picture), the configuration. A second
 * call with the same arguments goes on where the first one ended, however it ended.
 */
#ifndef MIXT_SEARCH_H
#define MIXT_SEARCH_H

#include "mixt/config.h"
#include "mixt/judge.h"
#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_search_result mixt_search_result;

/** What is to be small. */
typedef enum mixt_search_goal {
    MIXT_SEARCH_TIME,   /**< milliseconds of a whole training step, measured, casts and update included */
    MIXT_SEARCH_MEMORY, /**< bytes of a whole training step, as planned: mixt_memory.total */
} mixt_search_goal;

enum { MIXT_SEARCH_TRIALS_MAX = 16, MIXT_SEARCH_PAIRS_MAX = 64 };

typedef struct mixt_search_options {
    size_t struct_size;
    double lose; /**< tolerance: relative change of the validation loss, above 0, up to 1; default 0.005, or 0.5% */
    mixt_search_goal goal; /**< default: time */
    double budget;         /**< seconds of this call, after which it ends with the best so far; default 600 */
    const char *write;     /**< the file for the policy; must be given. A file that no search made is not replaced */
    /** "bf16,fp16": formats beside FP32; "bf16/fp8_e4m3": with what is kept for the backward pass in another one.
     *  Default: bf16, fp16, tf32, and for memory those with what is kept; those that are cheaper than FP32 are tried.
     */
    const char *formats;
    int64_t steps;      /**< updates of a trial; default: as many as the budget has time for, 8 to 200 */
    int64_t trials;     /**< of each policy, 2 to MIXT_SEARCH_TRIALS_MAX; default 3, up to 4 times as many where they do
                             not tell */
    int64_t pairs;      /**< of the final word, MIXT_STATS_PAIRS_MIN to MIXT_SEARCH_PAIRS_MAX; default: as many as tell,
                           where  there is time */
    const char *folder; /**< of this configuration's run: trials go on from its newest checkpoint that leaves at least 8
                             updates, so that a layer is found which is fragile only late; default: they begin as a run
                             does */
    bool fresh;         /**< forget what an earlier search has left there, and replace the file */
    /** Hears of updates and timed steps (`task` is what the search does, `done` policies measured, `text` the cost of
     * the best so far), of each policy that was measured (a part), of another one that is the best now, and of a text
     * that is tokenised; false ends the search after the update under way. Default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user; /**< for it */
} mixt_search_options;
MIXT_API void mixt_search_options_default(mixt_search_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_search_options                                                                              \
    .struct_size = sizeof(mixt_search_options), .lose = 0.005, .budget = 600, .trials = 3

/**
 * Searches until nothing is left to try, the budget is spent or `progress` ends it; all three are a success.
 * @param config only read; its precision and `out` do not count. It needs a validation part.
 * @param options NULL is refused: `write` must be given.
 * @param result set to what was found, or to NULL on failure; free it with mixt_search_free.
 * @return MIXT_ERROR_STATE where an earlier search in that place had another configuration or other options: the text
 * says which. MIXT_ERROR_FILE where `write` is there and no search made it.
 */
MIXT_API mixt_status mixt_search_with(const mixt_config *config, const mixt_search_options *options,
                                      mixt_search_result **result);
#ifndef __cplusplus
#define mixt_search(config, result, ...)                                                                               \
    mixt_search_with((config), MIXT_OPTIONS_AT(mixt_search_options, __VA_ARGS__), (result))
#endif
/** NULL is allowed. */
MIXT_API void mixt_search_free(mixt_search_result *result);

/* ---- what was found ---- */

/** A policy with its figures. */
typedef struct mixt_search_point {
    const char *policy; /**< in a line: "fp16; layer fc.1: fp32" */
    double ms;          /**< of a step; NaN: not measured */
    size_t memory;      /**< bytes of a step */
    mixt_judgement safe;
    bool chosen; /**< the policy in the file */
} mixt_search_point;

typedef struct mixt_search_info {
    const char *policy;   /**< the file */
    const char *folder;   /**< with all that was tried */
    double ms;            /**< of a step in the policy found; NaN: not measured */
    size_t memory;        /**< of the same */
    const char *line;     /**< the policy in a line: "bf16; layer fc.1: fp32" */
    bool lower;           /**< it is not plain FP32 */
    mixt_judgement safe;  /**< the final word; undecided: it is the best that was not shown to lose */
    mixt_judgement worth; /**< faster or smaller than FP32, as the goal says */
    const char *refused;  /**< the policy that was shown to lose more than the tolerance, of several the last that
                               was judged; "": none was */
    mixt_judgement refused_safe; /**< of that one */
    bool complete;               /**< nothing is left to try; else a second call goes on */
    bool stopped;                /**< `progress` ended it */
    double fp32_ms;              /**< of plain FP32; NaN: not measured */
    size_t fp32_memory;
    int64_t steps, trials; /**< updates of a trial, trials of a policy at least */
    int64_t fresh_steps;   /**< updates of a trial of the final word: what the rest of the budget has time for */
    int64_t finalists;     /**< policies whose final word was asked for */
    int64_t tried;         /**< policies measured */
    int64_t groups;        /**< of layers that are decided together */
    int64_t points;        /**< on the front */
} mixt_search_info;
/** Strings belong to the result. */
MIXT_API mixt_search_info mixt_search_describe(const mixt_search_result *result);
/** The Pareto front, the cheapest first. @param index from 0 to below `points`; NULL past that. */
MIXT_API const mixt_search_point *mixt_search_front(const mixt_search_result *result, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
