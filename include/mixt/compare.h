/* Is B as good as A, and how is that shown? Experiments, the statistics below them, and a table for a paper.
 *
 *   mixt_comparison *c;
 *   if (mixt_compare(fp32, bf16, &c, .name = "bf16", .margin = 0.005) == MIXT_OK)
 *       printf("%s\n", mixt_compare_verdict_name(mixt_comparison_describe(c).verdict));
 *   mixt_comparison_free(c);
 *
 * An experiment is pairs of runs that share seed, initial weights and order of data. A pilot of MIXT_STATS_PAIRS_MIN
 * pairs tells how much pairs differ by chance, and so how many it takes; that number is kept to, and only then is there
 * a verdict. Runs alternate (A B, B A, …) so that what slows the machine down meets both. All is kept in
 * runs/compare-NAME: a second call with the same arguments goes on where the first one ended, however it ended, and one
 * that asks for more pairs adds them; each verdict that was given counts as a look.
 */
#ifndef MIXT_COMPARE_H
#define MIXT_COMPARE_H

#include "mixt/config.h"
#include "mixt/judge.h"
#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statistics of paired experiments ----
 *
 * What a few differences tell about the true one, and how many it would take.
 *
 *   const double worse[] = {0.011, 0.004, 0.013, 0.009, 0.006}; // B's loss less A's, seed by seed
 *   mixt_stats_summary s = mixt_stats_summarise(worse, 5);
 *   mixt_stats_interval i = mixt_stats_t_interval(&s, 0.95);
 *   bool fine = i.high < margin;                                // B is non-inferior
 *
 * All functions are pure: the same numbers in, the same numbers out; what draws at random takes its seed. Where there
 * is no answer (too few numbers, a probability outside of 0 to 1) the answer is NaN. `mixt compare` is built on these.
 */

/* distributions */

/** Probability that a standard normal number is at most x. */
MIXT_API double mixt_stats_normal_below(double x);
/** The number that a standard normal one is below with this probability, 0 < p < 1. */
MIXT_API double mixt_stats_normal_at(double probability);
/** Probability that Student's t is at most t. @param freedom degrees of freedom, above 0. */
MIXT_API double mixt_stats_t_cdf(double t, double freedom);
/** The number that Student's t is below with this probability, 0 < p < 1. */
MIXT_API double mixt_stats_t_quantile(double probability, double freedom);
/** Probability that the noncentral t is at most t: (Z + shift) / sqrt(chi² / freedom). */
MIXT_API double mixt_stats_noncentral_t_cdf(double t, double freedom, double shift);

/* what some numbers say */

typedef struct mixt_stats_summary {
    int64_t count;
    double mean;
    double deviation; /**< standard deviation, n - 1 below; NaN for one number */
    double error;     /**< standard error of the mean; NaN for one number */
    double skewness;  /**< third moment over the deviation (n below) cubed; 0 where nothing varies */
} mixt_stats_summary;
/** @param values differences of pairs, or any numbers; `count` of them. One that is not finite makes all of it NaN. */
MIXT_API mixt_stats_summary mixt_stats_summarise(const double *values, int64_t count);

typedef struct mixt_stats_interval {
    double low, high; /**< NaN: not known */
} mixt_stats_interval;

/** Which means speak against "the true mean is this number". */
typedef enum mixt_stats_side {
    MIXT_STATS_BELOW, /**< those below it */
    MIXT_STATS_ABOVE, /**< those above it */
    MIXT_STATS_BOTH,  /**< both */
} mixt_stats_side;

/** Student's interval of the true mean. @param confidence 0.95: it holds the true mean in 95 of 100 experiments. */
MIXT_API mixt_stats_interval mixt_stats_t_interval(const mixt_stats_summary *summary, double confidence);
/** The p value of the t test that the true mean is `value`; of numbers that do not vary 0, or 1 at their own value. */
MIXT_API double mixt_stats_t_p(const mixt_stats_summary *summary, double value, mixt_stats_side side);
/** Cohen's d_z, the mean in deviations, with Hedges' correction for few pairs; 0 where all is 0, NaN where only the
 *  deviation is. */
MIXT_API double mixt_stats_effect(const mixt_stats_summary *summary);

/** Numbers up to which every combination of signs is tried, and the draws that stand for all of them past that. */
enum { MIXT_STATS_FLIPS_EXACT = 20, MIXT_STATS_FLIPS_DRAWN = 100000 };
/**
 * The p value of the sign-flip permutation test that the numbers lie symmetrically around `value`: the share of all
 * combinations of signs whose mean is as far out as the one seen. Asks for no normal distribution.
 * @param seed of the draws; not used up to MIXT_STATS_FLIPS_EXACT numbers.
 */
MIXT_API double mixt_stats_flip_p(const double *values, int64_t count, double value, mixt_stats_side side,
                                  uint64_t seed);

typedef struct mixt_stats_bootstrap_options {
    size_t struct_size;
    double confidence; /**< default 0.95 */
    int64_t draws;     /**< resamples; default 10000, at most 10 million */
    uint64_t seed;     /**< default 0 */
    bool percentile;   /**< the plain percentiles, not corrected for bias and skew (BCa) */
} mixt_stats_bootstrap_options;
MIXT_API void mixt_stats_bootstrap_options_default(mixt_stats_bootstrap_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_stats_bootstrap_options                                                                     \
    .struct_size = sizeof(mixt_stats_bootstrap_options), .confidence = 0.95, .draws = 10000
/** The bootstrap interval of the mean: for numbers that are skewed. @return MIXT_ERROR_ARGUMENT for fewer than two
 *  numbers or one that is not finite. */
MIXT_API mixt_status mixt_stats_bootstrap(const double *values, int64_t count,
                                          const mixt_stats_bootstrap_options *options, mixt_stats_interval *interval);
/** Of n pairs that differ in something that happens or does not, `one` the one way and `other` the other way: the
 *  probability of so many the one way, or more, if both ways were as likely (exact sign test, McNemar). */
MIXT_API double mixt_stats_sign_p(int64_t one, int64_t other);

/* how many it takes */

/** Fewer pairs decide nothing: of five, even all signs alike come about by chance in one of 32. */
enum { MIXT_STATS_PAIRS_MIN = 6 };
/** Share of wrong verdicts, over all looks together, at most. */
#define MIXT_STATS_ALPHA 0.05
/** Power that experiments are planned for. */
#define MIXT_STATS_POWER 0.9

/**
 * Power of the one-sided paired t test: the probability that the mean of `pairs` differences is found to be below
 * (above) a bound when it truly is `distance` below (above) it.
 * @param deviation of a difference, known.
 * @param level one-sided, 0.025 for the 95% interval.
 */
MIXT_API double mixt_stats_power(int64_t pairs, double deviation, double distance, double level);
/** More pairs than this are never asked for. */
#define MIXT_STATS_PAIRS_MAX INT64_C(1000000)
/**
 * The smallest number of pairs with that power; at least 2.
 * @param freedom of the estimate that `deviation` is, one less than the pairs of the pilot: what a small pilot leaves
 * open is paid for in pairs, so that the power is kept on the average over pilots. INFINITY: the deviation is known.
 * @return MIXT_STATS_PAIRS_MAX + 1 where no number up to it will do; 0 for arguments that make no sense.
 */
MIXT_API int64_t mixt_stats_pairs(double deviation, double freedom, double distance, double level, double power);

/* where numbers are skewed */

/**
 * By how much a limit of t is raised for numbers that may be skewed towards that side: what few numbers cannot show of
 * skewness is allowed for, and what they show. It goes to 0 with many numbers.
 * @param count of numbers, from 2. @param skewness of them, above 0: towards the side in question. @param level
 * one-sided: the further out a limit is, the more skewness moves it.
 */
MIXT_API double mixt_stats_skew_allowance(int64_t count, double skewness, double level);
/** An interval of the true mean that holds for skewed numbers too: Student's, each side of it further out by the
 *  allowance. @param confidence as for normal numbers, of which it holds more. */
MIXT_API mixt_stats_interval mixt_stats_skew_interval(const mixt_stats_summary *summary, double confidence);
/** The p value that belongs to it, as mixt_stats_t_p. */
MIXT_API double mixt_stats_skew_p(const mixt_stats_summary *summary, double value, mixt_stats_side side);
/** As mixt_stats_power, of the test by that interval, for normal differences. @param pairs from
 *  MIXT_STATS_PAIRS_MIN. */
MIXT_API double mixt_stats_skew_power(int64_t pairs, double deviation, double distance, double level);
/** As mixt_stats_pairs, for that test; at least MIXT_STATS_PAIRS_MIN. @param skewness towards the bound, that is taken
 *  to stay as it is; NaN: as it comes about by chance among normal differences. */
MIXT_API int64_t mixt_stats_skew_pairs(double deviation, double freedom, double distance, double level, double power,
                                       double skewness);

/** What so many pairs cannot exclude, with 95% confidence: a failure, worse than any pair that was seen, in a share of
 *  runs below this. 6 pairs: 0.39. */
MIXT_API double mixt_stats_unseen(int64_t pairs);
/** The pairs that exclude failures in this share of runs, 0 < rate < 1: 29 for 0.1, 59 for 0.05. Else 0. */
MIXT_API int64_t mixt_stats_pairs_to_see(double rate);

/* looking more than once */

/** How much of the allowed error is spent by which look. */
typedef enum mixt_stats_spending {
    MIXT_STATS_SPEND_HALVES,         /**< half of what is left at each look: any number of looks, whenever they come */
    MIXT_STATS_SPEND_OBRIEN_FLEMING, /**< almost nothing early, all of it at fraction 1 */
    MIXT_STATS_SPEND_POCOCK,         /**< evenly, all of it at fraction 1 */
} mixt_stats_spending;
/** Error spent by a look and all before it.
 *  @param alpha all that may be spent, one-sided.
 *  @param look from 1: HALVES. @param fraction of the planned pairs, above 0: the others. */
MIXT_API double mixt_stats_spent(mixt_stats_spending spending, double alpha, int64_t look, double fraction);

enum { MIXT_STATS_LOOKS_MAX = 32 };
/**
 * The level at which to test at each look, so that all looks together are wrong no more often than was spent: later
 * looks hold the numbers of earlier ones, and that is made use of. An interval of confidence 1 - 2 level is a repeated
 * confidence interval: it may be looked at again and again.
 * @param spent by each look and all before it, rising; @param pairs of each look, rising; @param looks 1 to
 * MIXT_STATS_LOOKS_MAX. @param levels receives one number a look, one-sided.
 */
MIXT_API mixt_status mixt_stats_look_levels(const double *spent, const int64_t *pairs, int looks, double *levels);

/* the verdict */

/** What can be concluded. */
typedef enum mixt_stats_verdict {
    MIXT_STATS_UNDECIDED,
    MIXT_STATS_NON_INFERIOR, /**< not worse by as much as the margin */
    MIXT_STATS_INFERIOR,     /**< worse by more than the margin */
} mixt_stats_verdict;

/** What some differences say about a margin. NaN: not known. */
typedef struct mixt_stats_judgement {
    mixt_stats_verdict verdict;
    mixt_stats_summary summary;   /**< of the differences */
    double confidence;            /**< of the intervals: 0.95 at the first look, another at later ones */
    mixt_stats_interval interval; /**< mixt_stats_skew_interval; the verdict is where the margin lies beside it */
    mixt_stats_interval student;  /**< Student's, for those who know that the differences are normal */
    double p;          /**< of seeing this, or better, if the true difference were the margin: small speaks for
                            non-inferior (mixt_stats_skew_p) */
    double p_inferior; /**< of seeing this, or worse, if the true difference were the margin */
    double p_any;      /**< of seeing so large a difference, either way, if there were none */
    double effect;     /**< see mixt_stats_effect */
    double unseen;     /**< see mixt_stats_unseen: the verdict is about all runs but failures rarer than this */
    int64_t more; /**< undecided: pairs to add so that the next look decides with MIXT_STATS_POWER if the difference
                       stays as it is; MIXT_STATS_PAIRS_MAX + 1: more than anyone makes; else 0 */
} mixt_stats_judgement;

/**
 * Judges an experiment. Over all looks together a true difference of just the margin is called non-inferior in at most
 * MIXT_STATS_ALPHA of experiments, and inferior in at most as many: of normal differences, and of skewed ones up to
 * lognormal ones. Failures that are rarer than `unseen` no test of so few pairs can tell of.
 * @param worse by how much B is worse than A, pair by pair; above 0: worse. `count` of them.
 * @param margin by which B may be worse, above 0, in the same unit.
 * @param earlier pairs that earlier looks had, rising, below `count`: verdicts that were asked for before. NULL: none.
 * @return MIXT_ERROR_ARGUMENT for numbers that are not finite, too many looks or a margin that is not above 0. Fewer
 * than MIXT_STATS_PAIRS_MIN pairs are undecided.
 */
MIXT_API mixt_status mixt_stats_judge(const double *worse, int64_t count, double margin, const int64_t *earlier,
                                      int looks, mixt_stats_judgement *judgement);
/** Pairs that a first look needs for MIXT_STATS_POWER: to call B non-inferior if it is no worse, and inferior if it is
 *  worse by twice the margin. From the differences of a pilot, which count among them; at least MIXT_STATS_PAIRS_MIN.
 *  0: the pilot has fewer than two numbers, or one that is not finite. */
MIXT_API int64_t mixt_stats_plan(const double *worse, int64_t count, double margin);
/** Pairs that a first look needs to call B inferior if it is as much worse as the pilot shows: for a B that is far from
 *  being as good, and too uneven for mixt_stats_plan. 0 where the mean of the pilot is not above the margin, too. */
MIXT_API int64_t mixt_stats_plan_inferior(const double *worse, int64_t count, double margin);

/* ---- the experiment ---- */

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
    double failures;    /**< B is called non-inferior only after so many pairs that runs which fail, worse than any that
                             was seen, are shown to be rarer than this share: 0.1 takes 29 pairs (mixt_stats_unseen).
                             Default 0: as the pairs happen to show, and the verdict says what that is */
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
    int64_t needed;                 /**< by the pilot, for a power of MIXT_STATS_POWER, and by `failures`; 0: the pilot
                                         is not done */
    int64_t looks;                  /**< verdicts asked for, this one included; a pilot is none */
    int64_t diverged[MIXT_COMPARE_SIDES];
    bool pilot;   /**< it ended with the pilot, without a look: it asks for more pairs than are made by themselves */
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

/**
 * Whether B is safe (as `verdict` says), and whether it is worth it: faster by an update's time, smaller by the memory
 * of a step, cheaper by the time to equal loss, whatever an hour costs. NULL where nothing is known of a claim.
 */
MIXT_API const mixt_judgement *mixt_comparison_judgement(const mixt_comparison *comparison, mixt_claim claim);

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

/* ---- the table for a paper or a README ----
 *
 * FP32 beside mixed precision, from runs, results of mixt_verify and experiments of mixt_compare.
 *
 *   const char *const paths[] = {"runs/fp32", "runs/bf16"};
 *   mixt_table *t;
 *   if (mixt_table_read(paths, 2, &t) == MIXT_OK)
 *       (void)mixt_table_write(t, MIXT_TABLE_LATEX, "speed.tex", false);
 *   mixt_table_free(t);
 *
 * Runs of one configuration that differ in precision and seed find each other by themselves; what finds no partner has
 * a row with one side, and a note. What a source does not say is NaN here and "–" in a text: nothing is guessed.
 */

typedef struct mixt_table mixt_table;

enum { MIXT_TABLE_SOURCES_MAX = 10000 };

/**
 * Reads runs and pairs them.
 * @param paths `count` of them, from 1 to MIXT_TABLE_SOURCES_MAX: a run directory, a file of mixt_verification_write,
 * or the folder of an experiment (runs/compare-NAME), in any mix. "NAME=PATH" gives the model of that source a name to
 * show; a path that exists as a whole is a path.
 * @param table set to NULL on failure; free it with mixt_table_free.
 * @return MIXT_ERROR_FILE where one of them is not there, MIXT_ERROR_DATA where none has a run that can be read: the
 * text names it. One of several that cannot be read is left out, with a note.
 */
MIXT_API mixt_status mixt_table_read(const char *const *paths, int64_t count, mixt_table **table);
/** NULL is allowed. */
MIXT_API void mixt_table_free(mixt_table *table);

typedef enum mixt_table_side { MIXT_TABLE_FP32, MIXT_TABLE_MIXED, MIXT_TABLE_SIDES } mixt_table_side;

/** Bytes of a training step by role. NaN: the run does not say, as those of older versions. */
typedef struct mixt_table_memory {
    double weights; /**< masters, working copies, running statistics and frozen ones */
    double gradients, moments, activations, workspace;
    double other; /**< input buffers on a GPU, control */
    double total;
} mixt_table_memory;

/** A mean over runs and its 95% interval (Student's); interval NaN: of one run. */
typedef struct mixt_table_mean {
    double mean;
    mixt_stats_interval interval;
} mixt_table_mean;

/** The runs of one side. */
typedef struct mixt_table_cell {
    const char *precision;          /**< "fp32", "bf16", a policy file's name; "": there are no runs */
    int64_t runs;                   /**< each with a seed of its own */
    int64_t diverged;               /**< of those: no loss and no accuracy of them counts */
    double samples_s;               /**< the mean over runs of each one's median */
    mixt_table_mean loss, accuracy; /**< of the last validation; accuracy from 0 to 1; NaN: none */
    mixt_table_memory memory;
} mixt_table_cell;

typedef struct mixt_table_row {
    const char *model; /**< its name, and the keys in which it differs from others of that name */
    mixt_table_cell sides[MIXT_TABLE_SIDES];
    double speedup; /**< mixed samples_s over FP32's */
    double saved;   /**< share of FP32's memory that mixed does not need; below 0: it needs more */
} mixt_table_row;
/** @param index from 0; NULL past the last. */
MIXT_API const mixt_table_row *mixt_table_row_at(const mixt_table *table, int64_t index);
/** What could not be paired or was left out, a sentence each. @param index from 0; NULL past the last. */
MIXT_API const char *mixt_table_note(const mixt_table *table, int64_t index);

typedef enum mixt_table_format {
    MIXT_TABLE_TEXT,     /**< for a terminal: a figure a line, models side by side */
    MIXT_TABLE_MARKDOWN, /**< a row a model, as GitHub shows it */
    MIXT_TABLE_CSV,      /**< RFC 4180; plain numbers in bytes, samples a second and shares; missing ones are empty */
    MIXT_TABLE_LATEX,    /**< a tabular without packages */
} mixt_table_format;
/** @param text set to the table in UTF-8; it belongs to the table, until the next call. */
MIXT_API mixt_status mixt_table_print(mixt_table *table, mixt_table_format format, const char **text);
/** Writes it to a file, whole or not at all. @param overwrite replace a file that exists; else it is an error. */
MIXT_API mixt_status mixt_table_write(mixt_table *table, mixt_table_format format, const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
