/* From differences to a verdict: the one rule by which mixt compare, and whoever asks for it, decides.
 *
 * Both ways to be wrong are kept small at the margin itself: non-inferior where all of the interval lies below the
 * margin, inferior where all of it lies above. So a B that is no worse, and one that is worse by twice the margin, are
 * equally far from the margin and need the same number of pairs.
 */
#include "mixt/compare.h"

#include "base/status.h"

#include <math.h>

/** Differences whose skewness is beyond this, of so many, are not left to the t interval alone. */
static const double skewness_limit = 1;
enum { SKEWED_MIN = 8 };

/** A little more than is promised: the formula leaves out that the test's own deviation is an estimate too. */
static const double planned_power = MIXT_STATS_POWER + 0.02;

/** What looks may spend: the first one's interval is the usual 95% one. The rest of MIXT_STATS_ALPHA is kept back for
 *  what the levels leave out: the number of pairs is not fixed but follows from the deviation seen, and that makes the
 *  deviation look a little smaller than it is. */
static const double first_spends = 0.025, later_spend = 0.004;

static double spent_by(int look)
{
    return first_spends + mixt_stats_spent(MIXT_STATS_SPEND_HALVES, later_spend, look - 1, 0);
}

/** The level of the newest look. @param pairs of all looks, the newest last */
static mixt_status level_of(const int64_t *pairs, int looks, double *level)
{
    double spent[MIXT_STATS_LOOKS_MAX], levels[MIXT_STATS_LOOKS_MAX];
    for (int k = 0; k < looks; k++)
        spent[k] = spent_by(k + 1);
    MIXT_TRY(mixt_stats_look_levels(spent, pairs, looks, levels));
    *level = levels[looks - 1];
    return MIXT_OK;
}

static mixt_stats_verdict side_of(mixt_stats_interval i, double margin)
{
    return i.high < margin ? MIXT_STATS_NON_INFERIOR : i.low > margin ? MIXT_STATS_INFERIOR : MIXT_STATS_UNDECIDED;
}

/** By what the next look spends alone: it may ask for a few pairs too many, never for too few. */
static int64_t more_pairs(const mixt_stats_summary *s, double margin, int looks)
{
    double level = spent_by(looks + 1) - spent_by(looks), distance = fabs(margin - s->mean);
    if (s->count < 2 || distance == 0)
        return s->count < 2 ? MIXT_STATS_PAIRS_MIN - s->count : MIXT_STATS_PAIRS_MAX + 1;
    int64_t all = mixt_stats_pairs(s->deviation, (double)(s->count - 1), distance, level, MIXT_STATS_POWER);
    if (all > MIXT_STATS_PAIRS_MAX)
        return all;
    all = all < MIXT_STATS_PAIRS_MIN ? MIXT_STATS_PAIRS_MIN : all;
    return all > s->count ? all - s->count : 1;
}

static mixt_status judge(const double *worse, double margin, int looks, mixt_stats_judgement *j)
{
    int64_t count = j->summary.count;
    j->interval = mixt_stats_t_interval(&j->summary, j->confidence);
    j->p = mixt_stats_t_p(&j->summary, margin, MIXT_STATS_BELOW);
    j->p_inferior = mixt_stats_t_p(&j->summary, margin, MIXT_STATS_ABOVE);
    j->p_any = mixt_stats_t_p(&j->summary, 0, MIXT_STATS_BOTH);
    j->effect = mixt_stats_effect(&j->summary);
    j->skewed = count >= SKEWED_MIN && fabs(j->summary.skewness) > skewness_limit;
    j->verdict = count < MIXT_STATS_PAIRS_MIN ? MIXT_STATS_UNDECIDED : side_of(j->interval, margin);
    if (j->skewed) {
        mixt_stats_bootstrap_options options = MIXT_OPTIONS(mixt_stats_bootstrap_options, .confidence = j->confidence);
        MIXT_TRY(mixt_stats_bootstrap(worse, count, &options, &j->bootstrap));
        if (side_of(j->bootstrap, margin) != j->verdict)
            j->verdict = MIXT_STATS_UNDECIDED;
    }
    if (j->verdict == MIXT_STATS_UNDECIDED)
        j->more = more_pairs(&j->summary, margin, looks);
    return MIXT_OK;
}

mixt_status mixt_stats_judge(const double *worse, int64_t count, double margin, const int64_t *earlier, int looks,
                             mixt_stats_judgement *judgement)
{
    int64_t pairs[MIXT_STATS_LOOKS_MAX];
    double level;
    MIXT_TRY(mixt__need(worse));
    MIXT_TRY(mixt__need(judgement));
    looks = earlier ? looks : 0;
    *judgement = (mixt_stats_judgement){.summary = mixt_stats_summarise(worse, count), .bootstrap = {NAN, NAN}};
    if (count < 1 || isnan(judgement->summary.mean) || !(margin > 0) || isinf(margin))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%lld differences of mean %g, margin %g: finite differences and a margin "
                          "above 0 are needed",
                          (long long)count, judgement->summary.mean, margin);
    if (looks < 0 || looks >= MIXT_STATS_LOOKS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%d looks before this one: at most %d", looks, MIXT_STATS_LOOKS_MAX - 1);
    for (int k = 0; k < looks; k++)
        pairs[k] = earlier[k];
    pairs[looks] = count;
    MIXT_TRY(level_of(pairs, looks + 1, &level));
    judgement->confidence = 1 - 2 * level;
    return judge(worse, margin, looks + 1, judgement);
}

int64_t mixt_stats_plan(const double *worse, int64_t count, double margin)
{
    mixt_stats_summary s = mixt_stats_summarise(worse, count);
    if (count < 2 || isnan(s.deviation))
        return 0;
    int64_t pairs = mixt_stats_pairs(s.deviation, (double)(count - 1), margin, first_spends, planned_power);
    return pairs && pairs < MIXT_STATS_PAIRS_MIN ? MIXT_STATS_PAIRS_MIN : pairs;
}
