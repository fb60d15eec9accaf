/* From differences to a verdict: the one rule by which mixt compare, and whoever asks for it, decides.
 *
 * Both ways to be wrong are kept small at the margin itself: non-inferior where all of the interval lies below the
 * margin, inferior where all of it lies above. So a B that is no worse, and one that is worse by twice the margin, are
 * equally far from the margin and need the same number of pairs.
 */
#include "mixt/compare.h"

#include "base/status.h"

#include <math.h>

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

/** By what the next look spends alone: it may ask for a few pairs too many, never for too few. Skewness that was seen
 *  is taken to stay where it widens the interval, and to be chance where it does not. */
static int64_t more_pairs(const mixt_stats_summary *s, double margin, double level)
{
    double distance = fabs(margin - s->mean), towards = s->mean < margin ? s->skewness : -s->skewness;
    if (s->count < 2 || distance == 0)
        return s->count < 2 ? MIXT_STATS_PAIRS_MIN - s->count : MIXT_STATS_PAIRS_MAX + 1;
    int64_t all = mixt_stats_skew_pairs(s->deviation, (double)(s->count - 1), distance, level, MIXT_STATS_POWER,
                                        fmax(towards, 0));
    if (all > MIXT_STATS_PAIRS_MAX)
        return all;
    return all > s->count ? all - s->count : 1;
}

/** All but the verdict, for numbers that can be judged. */
static mixt_status describe(const double *worse, int64_t count, double margin, double level, mixt_stats_judgement *j)
{
    MIXT_TRY(mixt__need(worse));
    MIXT_TRY(mixt__need(j));
    *j = (mixt_stats_judgement){.summary = mixt_stats_summarise(worse, count), .confidence = 1 - 2 * level};
    if (count < 1 || isnan(j->summary.mean) || !(margin > 0) || isinf(margin))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%lld differences of mean %g, margin %g: finite differences and a margin "
                          "above 0 are needed",
                          (long long)count, j->summary.mean, margin);
    j->interval = mixt_stats_skew_interval(&j->summary, j->confidence);
    j->student = mixt_stats_t_interval(&j->summary, j->confidence);
    j->p = mixt_stats_skew_p(&j->summary, margin, MIXT_STATS_BELOW);
    j->p_inferior = mixt_stats_skew_p(&j->summary, margin, MIXT_STATS_ABOVE);
    j->p_any = mixt_stats_skew_p(&j->summary, 0, MIXT_STATS_BOTH);
    j->effect = mixt_stats_effect(&j->summary);
    j->unseen = mixt_stats_unseen(count);
    return MIXT_OK;
}

mixt_status mixt_stats_judge(const double *worse, int64_t count, double margin, const int64_t *earlier, int looks,
                             mixt_stats_judgement *judgement)
{
    int64_t pairs[MIXT_STATS_LOOKS_MAX];
    double level = first_spends;
    looks = earlier ? looks : 0;
    if (looks < 0 || looks >= MIXT_STATS_LOOKS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%d looks before this one: at most %d", looks, MIXT_STATS_LOOKS_MAX - 1);
    for (int k = 0; k < looks; k++)
        pairs[k] = earlier[k];
    pairs[looks] = count;
    if (count > 0) // what is refused is refused by its own words
        MIXT_TRY(level_of(pairs, looks + 1, &level));
    MIXT_TRY(describe(worse, count, margin, level, judgement));
    if (count >= MIXT_STATS_PAIRS_MIN)
        judgement->verdict = side_of(judgement->interval, margin);
    if (judgement->verdict == MIXT_STATS_UNDECIDED)
        judgement->more = more_pairs(&judgement->summary, margin, spent_by(looks + 2) - spent_by(looks + 1));
    return MIXT_OK;
}

int64_t mixt_stats_plan(const double *worse, int64_t count, double margin)
{
    mixt_stats_summary s = mixt_stats_summarise(worse, count);
    if (count < 2 || isnan(s.deviation))
        return 0;
    return mixt_stats_skew_pairs(s.deviation, (double)(count - 1), margin, first_spends, planned_power, NAN);
}

int64_t mixt_stats_plan_inferior(const double *worse, int64_t count, double margin)
{
    mixt_stats_summary s = mixt_stats_summarise(worse, count);
    if (count < 2 || isnan(s.deviation) || !(s.mean > margin))
        return 0;
    return mixt_stats_skew_pairs(s.deviation, (double)(count - 1), s.mean - margin, first_spends, planned_power,
                                 fmax(-s.skewness, 0));
}
