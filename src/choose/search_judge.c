/* What pairs of trials tell of a policy: whether the search goes on with it, and the final word.
 *
 * Screening, by pairs that all policies share with FP32's runs, only sets aside what was shown to lose: nothing is
 * refused because trials scatter. It may be wrong either way, and claims nothing.
 *
 * The final word is a judgement like any other (mixt/judge.h), on fresh pairs: seeds, FP32 runs and validation samples
 * that nothing before has used. Policies get there from the cheapest on. The first one is judged by the rule that mixt
 * compare has; those after it by stricter intervals, so that over all of them, and all looks, a policy that loses just
 * the tolerance is called safe in at most MIXT_STATS_ALPHA of searches (mixt__judge_finalist).
 */
#include "choose/search.h"

#include "base/status.h"
#include "base/threads.h"

#include <math.h>

enum { PLANNED_MAX = 24 }; // fresh pairs of a first look at most: it may be all that a policy needs

/** Of the time that is left, what the first look at a policy may take: where it is refused, the search is to go on. */
static const double share = 0.5;

/** p values by which a policy is set aside: while trials are left, and at the last of them; and by which no more trials
 *  are needed to go on with it. */
static const double out_early = 0.01, out_late = 0.05, in_early = 0.1;

int64_t mixt__search_pairs(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part,
                           double worse[MIXT_SEARCH_TRIALS_ALL])
{
    const mixt__search_losses *low = &tried->losses[part];
    const mixt__search_losses *fp32 = part == MIXT_SEARCH_SEEN ? &s->fp32->losses[part] : &tried->fp32;
    int64_t count = low->count < fp32->count ? low->count : fp32->count;
    for (int64_t i = 0; i < count; i++) {
        double ratio = low->at[i] / fp32->at[i];
        worse[i] = isfinite(ratio) ? ratio - 1 : (double)INFINITY;
    }
    return count;
}

static bool diverged(const double *worse, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (isinf(worse[i]))
            return true;
    return false;
}

mixt_verdict mixt__search_screen(const mixt__search *s, const mixt__search_try *tried)
{
    double worse[MIXT_SEARCH_TRIALS_ALL];
    int64_t count = mixt__search_pairs(s, tried, MIXT_SEARCH_SEEN, worse), most = MIXT_SEARCH_MORE * s->trials;
    if (tried == s->fp32)
        return MIXT_VERDICT_YES;
    if (diverged(worse, count))
        return MIXT_VERDICT_NO;
    if (count < 2)
        return MIXT_VERDICT_UNDECIDED;
    mixt_stats_summary found = mixt_stats_summarise(worse, count);
    double out = mixt_stats_t_p(&found, s->options.lose, MIXT_STATS_ABOVE);
    if (out < (count < most ? out_early : out_late))
        return MIXT_VERDICT_NO;
    bool told = count >= s->trials && mixt_stats_t_p(&found, s->options.lose, MIXT_STATS_BELOW) < in_early;
    return told || count >= most ? MIXT_VERDICT_YES : MIXT_VERDICT_UNDECIDED;
}

/* ---- judgements ---- */

/** Of numbers that the rules of statistics take: one that diverged is worse than any margin. */
static mixt_judgement judge(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part,
                            const double *worse, int64_t count)
{
    double lose = s->options.lose;
    mixt_judgement j = mixt_judge_value(MIXT_CLAIM_SAFE, tried == s->fp32 ? 0 : (double)NAN, lose,
                                        tried == s->fp32 ? MIXT_EVIDENCE_PREDICTED : MIXT_EVIDENCE_MEASURED);
    if (diverged(worse, count)) {
        j.verdict = MIXT_VERDICT_NO;
        j.value = INFINITY;
        j.evidence = count > 1 ? MIXT_EVIDENCE_PAIRED : MIXT_EVIDENCE_MEASURED;
    } else if (count) {
        int earlier = part == MIXT_SEARCH_SEEN ? 0 : tried->look_count - 1;
        int64_t finalist = part == MIXT_SEARCH_SEEN ? 1 : tried->finalist;
        (void)mixt__judge_finalist(worse, count, lose, tried->looks, earlier, finalist, &j);
    }
    j.pairs = count;
    j.updates = count ? s->steps[part] : 0;
    return j;
}

bool mixt__search_has_word(const mixt__search_try *tried)
{
    int64_t count = tried->losses[MIXT_SEARCH_FRESH].count;
    if (count && isinf(tried->losses[MIXT_SEARCH_FRESH].at[count - 1]))
        return true; // no more pairs are made
    return tried->look_count > 0 && count >= tried->looks[tried->look_count - 1];
}

mixt_judgement mixt__search_judge_part(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part)
{
    double worse[MIXT_SEARCH_TRIALS_ALL];
    int64_t count = tried == s->fp32 ? 0 : mixt__search_pairs(s, tried, part, worse);
    if (part == MIXT_SEARCH_FRESH && tried->look_count && !mixt__search_has_word(tried)) {
        mixt__search_try soon = *tried; // as if these were all: for the figures
        soon.look_count = 1;
        mixt_judgement j = judge(s, &soon, part, worse, count);
        j.verdict = tried == s->fp32 ? j.verdict : MIXT_VERDICT_UNDECIDED;
        j.needs = tried->looks[tried->look_count - 1] - count;
        return j;
    }
    return judge(s, tried, part, worse, count);
}

mixt_judgement mixt__search_judge(const mixt__search *s, const mixt__search_try *tried)
{
    if (tried->losses[MIXT_SEARCH_FRESH].count)
        return mixt__search_judge_part(s, tried, MIXT_SEARCH_FRESH);
    mixt_judgement j = mixt__search_judge_part(s, tried, MIXT_SEARCH_SEEN);
    if (tried == s->fp32 || j.verdict != MIXT_VERDICT_YES)
        return j;
    j.verdict = MIXT_VERDICT_UNDECIDED; // chosen among others by these very pairs
    j.needs = mixt__search_planned(s, tried);
    return j;
}

mixt_judgement mixt__search_worth(const mixt__search *s, const mixt__search_try *tried)
{
    if (s->options.goal == MIXT_SEARCH_TIME)
        return mixt_judge_value(MIXT_CLAIM_FASTER, s->fp32->ms / tried->ms, 1, MIXT_EVIDENCE_MEASURED);
    double saved = s->fp32->memory > 0 ? 1 - (double)tried->memory / (double)s->fp32->memory : (double)NAN;
    return mixt_judge_value(MIXT_CLAIM_SMALLER, saved, 0, MIXT_EVIDENCE_PREDICTED);
}

/* ---- the final word ---- */

int64_t mixt__search_planned(const mixt__search *s, const mixt__search_try *tried)
{
    double worse[MIXT_SEARCH_TRIALS_ALL];
    if (s->options.pairs)
        return s->options.pairs;
    int64_t count = mixt__search_pairs(s, tried, MIXT_SEARCH_SEEN, worse);
    int64_t pairs = diverged(worse, count) ? 0 : mixt_stats_plan(worse, count, s->options.lose);
    pairs = pairs < PLANNED_MAX ? pairs : PLANNED_MAX;
    return pairs > MIXT_STATS_PAIRS_MIN ? pairs : MIXT_STATS_PAIRS_MIN;
}

/** Pairs that there is time for, by those made so far. */
static double affordable(const mixt__search *s)
{
    double left = s->budget - (mixt__time_now() - s->started);
    return s->pair_seconds > 0 ? left / s->pair_seconds : (double)INFINITY;
}

/** Settles how many fresh pairs the first look takes. */
static mixt_status begin(mixt__search *s, mixt__search_try *tried)
{
    int64_t pairs = mixt__search_planned(s, tried);
    if (!s->options.pairs && s->trial_seconds > 0) {
        double left = s->budget - (mixt__time_now() - s->started), room = share / (2.2 * s->trial_seconds) * left;
        pairs = (double)pairs > room ? (int64_t)fmax(room, MIXT_STATS_PAIRS_MIN) : pairs;
    }
    MIXT_TRY(mixt__search_settle_fresh(s, pairs));
    tried->finalist = ++s->finalists;
    tried->looks[0] = pairs;
    tried->look_count = 1;
    return mixt__search_save(s, tried);
}

/** Another look, at as many pairs as would tell. *more: there is one. */
static mixt_status look_again(mixt__search *s, mixt__search_try *tried, bool *more)
{
    mixt_judgement j = mixt__search_judge_part(s, tried, MIXT_SEARCH_FRESH);
    int64_t count = tried->losses[MIXT_SEARCH_FRESH].count, all = count + j.needs;
    *more = false;
    if (s->options.pairs)
        all = s->options.pairs; // those that were asked for
    if (j.verdict != MIXT_VERDICT_UNDECIDED || all <= count || tried->look_count == MIXT_SEARCH_LOOKS_MAX)
        return MIXT_OK;
    if (all > MIXT_SEARCH_TRIALS_ALL || (double)(all - count) > affordable(s))
        return MIXT_OK;
    *more = true;
    tried->looks[tried->look_count++] = all;
    return mixt__search_save(s, tried);
}

mixt_status mixt__search_finish(mixt__search *s, mixt__search_try *tried)
{
    bool more = true;
    if (!tried->finalist)
        MIXT_TRY(begin(s, tried));
    while (more && !mixt__search_halted(s)) {
        if (mixt__search_has_word(tried))
            MIXT_TRY(look_again(s, tried, &more));
        else
            MIXT_TRY(mixt__search_measure_pair(s, tried));
    }
    return MIXT_OK;
}
