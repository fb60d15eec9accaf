/* Judgements, for the tools that make them. */
#ifndef MIXT_JUDGE_JUDGE_H
#define MIXT_JUDGE_JUDGE_H

#include "mixt/judge.h"
#include "mixt/compare.h"

#include <jansson.h>

/** What mixt_stats_judge found about a margin, as a judgement of SAFE: for experiments that are looked at more than
 *  once. */
mixt_judgement mixt__judgement_of(const mixt_stats_judgement *found, double margin, mixt_unit unit);
/**
 * Whether one of several policies is safe that are judged one after the other, each on pairs of its own, until one is:
 * by the rule of mixt_stats_judge, and from the second on by a stricter interval as well. Over all of them and all
 * looks together, one that loses just the margin is called safe in at most MIXT_STATS_ALPHA of such searches.
 * @param worse, @param count, @param margin as of mixt_judge_worse; the unit is SHARE.
 * @param earlier, @param looks as of mixt_stats_judge. @param finalist which of them it is, from 1.
 */
mixt_status mixt__judge_finalist(const double *worse, int64_t count, double margin, const int64_t *earlier, int looks,
                                 int64_t finalist, mixt_judgement *judgement);
/**
 * Whether B is safe, from updates of one run that were made once more: what follows each other there is alike, so that
 * an interval for independent numbers would be too short. This one is self-normalised: it is as long as the running sums
 * of the deviations from the mean are large, which grow with what neighbours have in common, and has no width to choose.
 * @param worse by how much B was worse, update after update, `count` of them; fewer than MIXT_JUDGE_SERIES_LEAST, or one
 *  that is not finite, decide nothing. @param margin, @param unit as of mixt_judge_worse.
 */
enum { MIXT_JUDGE_SERIES_LEAST = 8 };
mixt_judgement mixt__judge_series(const double *worse, int64_t count, double margin, mixt_unit unit);
/** As JSON; what memory fails for is not whole (store/json.h). */
json_t *mixt__judgement_object(const mixt_judgement *judgement);
/** From such an object. @return false where it is none */
bool mixt__judgement_read(const json_t *object, mixt_judgement *judgement);

#endif
