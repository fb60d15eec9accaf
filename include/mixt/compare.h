/* Two strategies compared as an experiment: pairs of runs that share seed, initial weights and order of data, and what
 * can be concluded from them.
 *
 *   mixt_comparison *c;
 *   if (mixt_compare(fp32, bf16, &c, .name = "bf16", .margin = 0.005) == MIXT_OK)
 *       printf("%s\n", mixt_compare_verdict_name(mixt_comparison_describe(c).verdict));
 *   mixt_comparison_free(c);
 *
 * A pilot of MIXT_STATS_PAIRS_MIN pairs tells how much pairs differ by chance, and so how many it takes; that number is
 * kept to, and only then is there a verdict. Runs alternate (A B, B A, …) so that what slows the machine down meets
 * both. All is kept in runs/compare-NAME: a second call with the same arguments goes on where the first one ended,
 * however it ended, and one that asks for more pairs adds them; each verdict that was given counts as a look.
 */
#ifndef MIXT_COMPARE_H
#define MIXT_COMPARE_H

#include "mixt/config.h"
#include "mixt/progress.h"
#include "mixt/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_comparison mixt_comparison;

typedef enum mixt_compare_side { MIXT_COMPARE_A, MIXT_COMPARE_B, MIXT_COMPARE_SIDES } mixt_compare_side;

/** Pairs of an experiment at most; and those that are made without being asked for, where a pilot says so. */
enum { MIXT_COMPARE_PAIRS_MAX = 1000, MIXT_COMPARE_PAIRS_PLANNED = 64 };

/** "non-inferior", "inferior", "undecided". */
MIXT_API const char *mixt_compare_verdict_name(mixt_stats_verdict verdict);

/** Figures of one run, measured from its directory. NaN: not there. */
typedef struct mixt_compare_run {
    bool diverged;        /**< its loss did not stay finite */
    int64_t steps;        /**< updates made */
    int64_t skipped;      /**< of those, skipped for gradients that were not finite */
    int64_t spikes;       /**< losses that stood out (alerts of the monitor) */
    int64_t alerts;       /**< alerts about gradients: norms that stood out, were too large or too small */
    double start_loss;    /**< of the first updates */
    double train_loss;    /**< mean of the last tenth of the updates */
    double loss;          /**< of the last validation; without one: train_loss */
    double best_loss;     /**< of the best validation */
    double accuracy;      /**< of the last validation */
    double step_seconds;  /**< of an update: the median, without the first tenth */
    double samples_s;     /**< at that pace */
    double seconds;       /**< of all updates at that pace */
    double memory;        /**< bytes of the training step */
    double energy;        /**< joules of the device */
    double grad_norm;     /**< median norm of the gradient */
    double grad_norm_max; /**< the largest, in medians */
    double equal_steps;   /**< updates until its loss was as low as the higher of the pair's losses at the end */
    double equal_seconds; /**< the same in seconds of updates */
} mixt_compare_run;

typedef struct mixt_compare_options {
    size_t struct_size;
    const char *name;   /**< of the experiment: letters, digits, '.', '_' and '-'; must be given */
    int64_t pairs;      /**< MIXT_STATS_PAIRS_MIN to MIXT_COMPARE_PAIRS_MAX; default: as many as a pilot says, where
                             that is at most MIXT_COMPARE_PAIRS_PLANNED */
    double margin;      /**< by which B may be worse: a share of A's loss in the same pair, 0.005 for 0.5%; of accuracy
                             points, 0.005 for half a point. Default 0.005 */
    bool absolute;      /**< the margin is in the metric's own unit */
    const char *metric; /**< "loss", "accuracy", "train_loss", "best_loss"; default: loss */
    double budget;      /**< seconds of this call, after which it ends where it is; default MIXT_AUTO: no limit */
    double price;       /**< of an hour of this machine; default MIXT_AUTO: not known */
    /** Hears of updates of all runs, done and in all (`what` is "A" or "B", the part a pair), what came of each run,
     * and of a text that is tokenised; false ends the experiment there. Default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user; /**< for it */
} mixt_compare_options;
MIXT_API void mixt_compare_options_default(mixt_compare_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_compare_options                                                                             \
    .struct_size = sizeof(mixt_compare_options), .margin = 0.005, .budget = MIXT_AUTO, .price = MIXT_AUTO

/**
 * Makes the experiment, or goes on with it.
 * @param a the strategy that is trusted, and @param b the one in question: configurations of the same model on the same
 * data; seeds of pairs begin with A's. Both are only read; `out` does not count.
 * @param options NULL is refused: `name` must be given.
 * @param comparison set to what is known now, or to NULL on failure; free it with mixt_comparison_free.
 * @return MIXT_ERROR_CONFIG where the two cannot be compared, MIXT_ERROR_STATE where another experiment has that name:
 * the text says what differs.
 */
MIXT_API mixt_status mixt_compare_with(const mixt_config *a, const mixt_config *b, const mixt_compare_options *options,
                                       mixt_comparison **comparison);
#ifndef __cplusplus
#define mixt_compare(a, b, comparison, ...)                                                                            \
    mixt_compare_with((a), (b), MIXT_OPTIONS_AT(mixt_compare_options, __VA_ARGS__), (comparison))
#endif
/**
 * What one run of each says: figures, and no verdict.
 * @param a, @param b directories of runs. @param options NULL: the defaults; only metric, margin and price count.
 * @return MIXT_ERROR_FILE or MIXT_ERROR_DATA where a run cannot be read.
 */
MIXT_API mixt_status mixt_compare_runs(const char *a, const char *b, const mixt_compare_options *options,
                                       mixt_comparison **comparison);
/** NULL is allowed. */
MIXT_API void mixt_comparison_free(mixt_comparison *comparison);

/* ---- what is known ---- */

typedef struct mixt_comparison_info {
    mixt_stats_verdict verdict;
    const char *reason; /**< why, in a sentence */
    const char *advice; /**< what to do now, in a sentence */
    const char *metric; /**< "loss", … */
    const char *folder; /**< of the experiment; "" for finished runs */
    double margin;
    bool absolute;                  /**< margin and differences are in the metric's own unit, not shares of A's */
    mixt_stats_judgement judgement; /**< of how much worse B is; all NaN where there are no pairs to judge */
    double p_flip;                  /**< exact permutation test beside judgement.p */
    int64_t pairs;                  /**< made */
    int64_t used;                   /**< of those, with both runs to their end */
    int64_t wanted;                 /**< to be made: asked for, or by the pilot; 0: the pilot is not done */
    int64_t needed;                 /**< by the pilot, for a power of MIXT_STATS_POWER; 0: the pilot is not done */
    int64_t looks;                  /**< verdicts asked for, this one included */
    int64_t diverged[MIXT_COMPARE_SIDES];
    bool stopped; /**< `progress` or the budget ended it before its end: the same call goes on */
} mixt_comparison_info;
/** Texts belong to the comparison. Of none, or one that was freed, nothing is known. */
MIXT_API mixt_comparison_info mixt_comparison_describe(const mixt_comparison *comparison);

/** A figure of both sides, over the pairs that were used. NaN: not known. */
typedef struct mixt_compare_figure {
    const char *name; /**< for scripts: "samples_s", … */
    const char *what; /**< for people */
    const char *unit; /**< "s", "bytes", … ; "" */
    double a, b;      /**< means */
    double ratio;     /**< B's over A's, the geometric mean over pairs */
    double low, high; /**< its 95% interval */
} mixt_compare_figure;
/** @param index from 0; NULL past the last. The first is the headline: time to equal loss. */
MIXT_API const mixt_compare_figure *mixt_comparison_figure(const mixt_comparison *comparison, int64_t index);
/** By its name; NULL where there is none. */
MIXT_API const mixt_compare_figure *mixt_comparison_find(const mixt_comparison *comparison, const char *name);

/** A key in which A and B differ. */
typedef struct mixt_compare_change {
    const char *key, *a, *b;
    bool policy; /**< it is about precision: what is to be compared. Else the two differ in more than the policy */
} mixt_compare_change;
/** @param index from 0; NULL past the last. */
MIXT_API const mixt_compare_change *mixt_comparison_change(const mixt_comparison *comparison, int64_t index);

/** @param pair from 0; NULL past the last, and for a run that is not done. */
MIXT_API const mixt_compare_run *mixt_comparison_run(const mixt_comparison *comparison, int64_t pair,
                                                     mixt_compare_side side);

/** By how much B is worse than A in a pair, as the verdict takes it: above 0 worse, a share of A's or in points; NaN
 *  where a run is not done, diverged or has no such number. @param pair from 0. */
MIXT_API double mixt_comparison_worse(const mixt_comparison *comparison, int64_t pair);

#ifdef __cplusplus
}
#endif
#endif
