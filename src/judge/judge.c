/* From pairs, ratios and single numbers to judgements. */
#include "judge/judge.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>

static const char *statistic_of(mixt_claim claim, mixt_unit unit)
{
    static const char *const names[MIXT_CLAIM_COUNT] = {
        [MIXT_CLAIM_SAFE] = "loss",
        [MIXT_CLAIM_FASTER] = "speed",
        [MIXT_CLAIM_SMALLER] = "memory saved",
        [MIXT_CLAIM_CHEAPER] = "cost saved",
    };
    return claim == MIXT_CLAIM_SAFE && unit == MIXT_UNIT_POINTS ? "accuracy lost" : names[claim];
}

static mixt_judgement blank(mixt_claim claim, mixt_unit unit, double margin)
{
    mixt_judgement j = {.claim = claim, .unit = unit, .margin = margin, .statistic = statistic_of(claim, unit)};
    j.value = j.low = j.high = NAN;
    return j;
}

static mixt_unit unit_of(mixt_claim claim)
{
    return claim == MIXT_CLAIM_FASTER ? MIXT_UNIT_TIMES : MIXT_UNIT_SHARE;
}

mixt_judgement mixt__judgement_of(const mixt_stats_judgement *found, double margin, mixt_unit unit)
{
    mixt_judgement j = blank(MIXT_CLAIM_SAFE, unit, margin);
    j.verdict = found->verdict == MIXT_STATS_NON_INFERIOR ? MIXT_VERDICT_YES
                : found->verdict == MIXT_STATS_INFERIOR   ? MIXT_VERDICT_NO
                                                          : MIXT_VERDICT_UNDECIDED;
    j.value = found->summary.mean;
    j.low = found->interval.low;
    j.high = found->interval.high;
    j.pairs = found->summary.count;
    j.evidence = j.pairs > 1 ? MIXT_EVIDENCE_PAIRED : MIXT_EVIDENCE_MEASURED;
    j.needs = found->more > MIXT_STATS_PAIRS_MAX ? MIXT_JUDGE_NEVER : found->more;
    return j;
}

mixt_status mixt_judge_worse(const double *worse, int64_t count, double margin, mixt_unit unit,
                             mixt_judgement *judgement)
{
    mixt_stats_judgement found;
    MIXT_TRY(mixt__need(judgement));
    MIXT_TRY(mixt_stats_judge(worse, count, margin, NULL, 0, &found));
    *judgement = mixt__judgement_of(&found, margin, unit);
    return MIXT_OK;
}

/** What the first of several leaves of MIXT_STATS_ALPHA, nearly: later ones spend it by halves, and so do their looks.
 */
static const double later_spend = 0.02;

mixt_status mixt__judge_finalist(const double *worse, int64_t count, double margin, const int64_t *earlier, int looks,
                                 int64_t finalist, mixt_judgement *judgement)
{
    mixt_stats_judgement found;
    MIXT_TRY(mixt_stats_judge(worse, count, margin, earlier, looks, &found));
    *judgement = mixt__judgement_of(&found, margin, MIXT_UNIT_SHARE);
    if (finalist <= 1 || count < 2)
        return MIXT_OK;
    double level = later_spend * pow(0.5, (double)(finalist - 1 + (earlier ? looks : 0) + 1));
    mixt_stats_interval strict = mixt_stats_skew_interval(&found.summary, 1 - 2 * level);
    judgement->low = fmin(judgement->low, strict.low);
    judgement->high = fmax(judgement->high, strict.high);
    if (judgement->high < margin || judgement->low > margin || judgement->verdict == MIXT_VERDICT_UNDECIDED)
        return MIXT_OK;
    judgement->verdict = MIXT_VERDICT_UNDECIDED;
    int64_t all = mixt_stats_skew_pairs(found.summary.deviation, (double)(count - 1), fabs(margin - found.summary.mean),
                                        level / 2, MIXT_STATS_POWER, NAN);
    judgement->needs = all > MIXT_STATS_PAIRS_MAX ? MIXT_JUDGE_NEVER : all > count ? all - count : 1;
    return MIXT_OK;
}

/** count^3 (mean - truth)^2 over the sum of squares of the running sums stays below this in 99 of 100 long series,
 *  however far neighbours depend on each other: a Brownian motion's end over the integral of its bridge, 400000 of them
 *  simulated. 99 and not 95, for series here are short. */
static const double bridge = 100.8;

mixt_judgement mixt__judge_series(const double *worse, int64_t count, double margin, mixt_unit unit)
{
    mixt_judgement j = mixt_judge_value(MIXT_CLAIM_SAFE, NAN, margin, MIXT_EVIDENCE_REPLAYED);
    double mean = 0, running = 0, squares = 0, n = (double)count;
    j.unit = unit;
    j.statistic = statistic_of(MIXT_CLAIM_SAFE, unit);
    for (int64_t i = 0; i < count; i++)
        mean += worse[i] / n;
    if (count < MIXT_JUDGE_SERIES_LEAST || !isfinite(mean))
        return j;
    for (int64_t i = 0; i < count; i++) {
        running += worse[i] - mean;
        squares += running * running;
    }
    double half = sqrt(bridge * squares / (n * n * n));
    j.updates = count;
    j.value = mean;
    j.low = mean - half;
    j.high = mean + half;
    j.verdict = j.high < margin ? MIXT_VERDICT_YES : j.low > margin ? MIXT_VERDICT_NO : MIXT_VERDICT_UNDECIDED;
    return j;
}

/* ---- faster, smaller, cheaper ---- */

/** A ratio of A's over B's as what the claim tells: itself, or the share that B saves. */
static double told(mixt_claim claim, double ratio)
{
    return claim == MIXT_CLAIM_FASTER ? ratio : 1 - 1 / ratio;
}

/** Pairs in all after which the interval ends at the margin, if the mean and the deviation stay. */
static int64_t pairs_to_add(const mixt_stats_summary *s, double distance)
{
    if (s->count < 2 || distance == 0)
        return s->count < 2 ? 2 : MIXT_JUDGE_NEVER;
    int64_t all = mixt_stats_pairs(s->deviation, (double)(s->count - 1), fabs(distance), 0.025, MIXT_STATS_POWER);
    if (all > MIXT_STATS_PAIRS_MAX)
        return MIXT_JUDGE_NEVER;
    return all > s->count ? all - s->count : 1;
}

static mixt_status judge_logs(const double *logs, int64_t count, mixt_judgement *j)
{
    mixt_stats_summary s = mixt_stats_summarise(logs, count);
    mixt_stats_interval i = mixt_stats_t_interval(&s, 0.95);
    j->pairs = count;
    j->evidence = count > 1 ? MIXT_EVIDENCE_PAIRED : MIXT_EVIDENCE_MEASURED;
    j->value = told(j->claim, exp(s.mean));
    if (count > 1) {
        j->low = told(j->claim, exp(i.low));
        j->high = told(j->claim, exp(i.high));
    }
    double low = count > 1 ? j->low : j->value, high = count > 1 ? j->high : j->value;
    double bound = j->claim == MIXT_CLAIM_FASTER ? j->margin : 1 / (1 - j->margin);
    j->verdict = low > j->margin ? MIXT_VERDICT_YES : high <= j->margin ? MIXT_VERDICT_NO : MIXT_VERDICT_UNDECIDED;
    j->needs = j->verdict == MIXT_VERDICT_UNDECIDED ? pairs_to_add(&s, s.mean - log(bound)) : 0;
    return MIXT_OK;
}

mixt_status mixt_judge_ratios(mixt_claim claim, const double *ratios, int64_t count, double margin,
                              mixt_judgement *judgement)
{
    MIXT_TRY(mixt__need(ratios));
    MIXT_TRY(mixt__need(judgement));
    bool known = claim == MIXT_CLAIM_FASTER || claim == MIXT_CLAIM_SMALLER || claim == MIXT_CLAIM_CHEAPER;
    if (!known || count < 1 || !(claim == MIXT_CLAIM_FASTER ? margin > 0 && isfinite(margin) : margin < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%lld ratios, claim %d, margin %g: expected at least one ratio, a claim other than safe, and "
                          "as the margin a ratio above 0 (faster) or a share below 1",
                          (long long)count, (int)claim, margin);
    for (int64_t i = 0; i < count; i++)
        if (!(ratios[i] > 0) || isinf(ratios[i]))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "ratio %lld is %g: expected a finite one above 0", (long long)i,
                              ratios[i]);
    double *logs = mixt__alloc_uninit((size_t)count * sizeof *logs);
    if (!logs)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld ratios", (long long)count);
    for (int64_t i = 0; i < count; i++)
        logs[i] = log(ratios[i]);
    *judgement = blank(claim, unit_of(claim), margin);
    mixt_status status = judge_logs(logs, count, judgement);
    mixt__free(logs);
    return status;
}

mixt_judgement mixt_judge_value(mixt_claim claim, double value, double margin, mixt_evidence evidence)
{
    mixt_judgement j = blank(claim, unit_of(claim), margin);
    bool yes = claim == MIXT_CLAIM_SAFE ? value < margin : value > margin;
    j.value = value;
    j.evidence = evidence;
    j.verdict = !isfinite(value) ? MIXT_VERDICT_UNDECIDED : yes ? MIXT_VERDICT_YES : MIXT_VERDICT_NO;
    return j;
}

mixt_judgement mixt_judge_all(const mixt_judgement *judgements, int count)
{
    static const mixt_verdict order[] = {MIXT_VERDICT_NO, MIXT_VERDICT_UNDECIDED, MIXT_VERDICT_YES};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++)
            if (judgements[i].verdict == order[k])
                return judgements[i];
    return blank(MIXT_CLAIM_SAFE, MIXT_UNIT_SHARE, NAN);
}
