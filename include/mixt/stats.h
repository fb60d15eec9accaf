/* Statistics of paired experiments: what a few differences tell about the true one, and how many it would take.
 *
 *   const double worse[] = {0.011, 0.004, 0.013, 0.009, 0.006}; // B's loss less A's, seed by seed
 *   mixt_stats_summary s = mixt_stats_summarise(worse, 5);
 *   mixt_stats_interval i = mixt_stats_t_interval(&s, 0.95);
 *   bool fine = i.high < margin;                                // B is non-inferior
 *
 * All functions are pure: the same numbers in, the same numbers out; what draws at random takes its seed. Where there
 * is no answer (too few numbers, a probability outside of 0 to 1) the answer is NaN. `mixt compare` is built on these.
 */
#ifndef MIXT_STATS_H
#define MIXT_STATS_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distributions ---- */

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

/* ---- what some numbers say ---- */

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

/* ---- how many it takes ---- */

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

/* ---- looking more than once ---- */

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

/* ---- the verdict ---- */

/** What can be concluded. */
typedef enum mixt_stats_verdict {
    MIXT_STATS_UNDECIDED,
    MIXT_STATS_NON_INFERIOR, /**< not worse by as much as the margin */
    MIXT_STATS_INFERIOR,     /**< worse by more than the margin */
} mixt_stats_verdict;

/** Fewer pairs decide nothing: of five, even all signs alike come about by chance in one of 32. */
enum { MIXT_STATS_PAIRS_MIN = 6 };
/** Share of wrong verdicts, over all looks together, at most. */
#define MIXT_STATS_ALPHA 0.05
/** Power that experiments are planned for. */
#define MIXT_STATS_POWER 0.9

/** What some differences say about a margin. NaN: not known. */
typedef struct mixt_stats_judgement {
    mixt_stats_verdict verdict;
    mixt_stats_summary summary;    /**< of the differences */
    double confidence;             /**< of the interval: 0.95 at the first look, another at later ones */
    mixt_stats_interval interval;  /**< Student's; the verdict is where the margin lies beside it */
    bool skewed;                   /**< the verdict also asks for the bootstrap interval to lie there */
    mixt_stats_interval bootstrap; /**< BCa; NaN where the differences are not skewed */
    double p;          /**< of seeing this, or better, if the true difference were the margin: small speaks for
                            non-inferior (t test) */
    double p_inferior; /**< of seeing this, or worse, if the true difference were the margin (t test) */
    double p_any;      /**< of seeing so large a difference, either way, if there were none (t test) */
    double effect;     /**< see mixt_stats_effect */
    int64_t more; /**< undecided: pairs to add so that the next look decides with MIXT_STATS_POWER if the difference
                       stays as it is; MIXT_STATS_PAIRS_MAX + 1: more than anyone makes; else 0 */
} mixt_stats_judgement;

/**
 * Judges an experiment. Over all looks together a true difference of just the margin is called non-inferior in at most
 * MIXT_STATS_ALPHA of experiments, and inferior in at most as many.
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

#ifdef __cplusplus
}
#endif
#endif
