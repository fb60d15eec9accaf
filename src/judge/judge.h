/* Judgements, for the tools that make them. */
#ifndef MIXT_JUDGE_JUDGE_H
#define MIXT_JUDGE_JUDGE_H

#include "mixt/judge.h"
#include "mixt/compare.h"

#include <jansson.h>

/** What mixt_stats_judge found about a margin, as a judgement of SAFE: for experiments that are looked at more than
 *  once. */
mixt_judgement mixt__judgement_of(const mixt_stats_judgement *found, double margin, mixt_unit unit);
/** As JSON; what memory fails for is not whole (store/json.h). */
json_t *mixt__judgement_object(const mixt_judgement *judgement);

#endif
