/* From measurements to judgements: is it safe, and is it worth it here? */
#include "verify/verify.h"

#include "judge/judge.h"
#include "num/num.h"

#include <math.h>

/** By how many times outputs may differ more than rounding the weights alone explains. The step rounds activations too,
 *  behind every op, and each of them as much as a weight: models that train well stay below 2 (docs/judge.md). */
static const double outputs_margin = 8;

/* ---- safe ---- */

static mixt_judgement of(mixt_verdict verdict, const char *statistic, mixt_unit unit, double value, double margin)
{
    mixt_judgement j = {.claim = MIXT_CLAIM_SAFE, .verdict = verdict, .evidence = MIXT_EVIDENCE_MEASURED};
    j.statistic = statistic;
    j.unit = unit;
    j.value = value;
    j.margin = margin;
    j.low = j.high = NAN;
    return j;
}

/** @param unit SHARE: the loss; POINTS: the accuracy. A seed whose loss was not finite counts in another part. */
static mixt_status judge_metric(const mixt_verification *v, mixt_unit unit, mixt_judgement *j)
{
    double worse[MIXT_VERIFY_SEEDS_MAX], margin = mixt__config_float(v->config, MIXT_KEY_VERIFY_LOST) / 100;
    bool points = unit == MIXT_UNIT_POINTS;
    int64_t pairs = 0;
    for (int64_t i = 0; i < v->seeds; i++) {
        const mixt_verify_run *x = &v->runs[i][MIXT_VERIFY_FP32], *y = &v->runs[i][MIXT_VERIFY_MIXED];
        worse[pairs] = points ? x->accuracy - y->accuracy : y->loss / x->loss - 1;
        pairs += isfinite(worse[pairs]);
    }
    *j = of(MIXT_VERDICT_UNDECIDED, points ? "accuracy lost" : "loss", unit, NAN, margin);
    if (pairs && margin > 0)
        MIXT_TRY(mixt_judge_worse(worse, pairs, margin, unit, j));
    else if (pairs) // nobody can show that nothing at all is lost
        *j = mixt_judge_value(MIXT_CLAIM_SAFE, worse[0], margin, MIXT_EVIDENCE_MEASURED);
    j->updates = v->runs[0][MIXT_VERIFY_MIXED].steps;
    return MIXT_OK;
}

/** Of a classifier by loss or accuracy, whichever scatters less over the seeds next to the margin: the accuracy of few
 *  samples scatters, and so does a loss that is nearly 0. That is decided by spread alone, so that no result is picked;
 *  but neither may be shown to be worse. */
static mixt_status judge_loss(const mixt_verification *v, mixt_judgement *j)
{
    mixt_judgement accuracy;
    MIXT_TRY(judge_metric(v, MIXT_UNIT_SHARE, j));
    if (!v->classes)
        return MIXT_OK;
    MIXT_TRY(judge_metric(v, MIXT_UNIT_POINTS, &accuracy));
    bool loss = j->high - j->low < accuracy.high - accuracy.low;
    if (accuracy.verdict == MIXT_VERDICT_NO || (!loss && j->verdict != MIXT_VERDICT_NO))
        *j = accuracy;
    return MIXT_OK;
}

static mixt_judgement judge_finite(const mixt_verification *v)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < v->seeds; i++)
        bad += v->runs[i][MIXT_VERIFY_MIXED].not_finite;
    mixt_judgement j =
        of(bad ? MIXT_VERDICT_NO : MIXT_VERDICT_YES, "numbers that are not finite", MIXT_UNIT_PLAIN, (double)bad, 0);
    j.updates = v->runs[0][MIXT_VERIFY_MIXED].steps;
    return j;
}

/** The difference of the outputs over what rounding the weights explains. That is nothing where weights have the format
 *  already, so it counts as at least a rounding of the outputs themselves. */
static mixt_judgement judge_outputs(const mixt_verification *v, bool end)
{
    double worst = 0;
    for (int64_t i = 0; i < v->seeds; i++) {
        const mixt_verify_run *r = &v->runs[i][MIXT_VERIFY_MIXED];
        double rounding = end ? r->trained_rounding : r->rounding, size = end ? r->trained_size : r->output_size;
        double roundoff =
            r->format == MIXT_DTYPE_NONE ? mixt__dtype_roundoff(MIXT_DTYPE_FP32) : mixt__dtype_roundoff(r->format);
        double allowed = fmax(isnan(rounding) ? 0 : rounding, roundoff * size);
        double ratio = (end ? r->trained : r->difference) / allowed;
        worst = ratio <= worst ? worst : ratio; // NaN stays
    }
    const char *statistic = end ? "outputs at the end, compared with rounding the weights,"
                                : "outputs at the start, compared with rounding the weights,";
    return of(worst < outputs_margin ? MIXT_VERDICT_YES : MIXT_VERDICT_NO, statistic, MIXT_UNIT_TIMES, worst,
              outputs_margin);
}

/* ---- worth it ---- */

static mixt_status judge_worth(mixt_verification *v)
{
    double speed[MIXT_VERIFY_SEEDS_MAX], cost[MIXT_VERIFY_SEEDS_MAX];
    int64_t pairs = 0;
    const mixt_verify_run(*runs)[MIXT_VERIFY_SIDES] = (const mixt_verify_run(*)[MIXT_VERIFY_SIDES])v->runs;
    for (int64_t i = 0; i < v->seeds; i++) {
        const mixt_verify_run *x = &runs[i][MIXT_VERIFY_FP32], *y = &runs[i][MIXT_VERIFY_MIXED];
        speed[pairs] = x->step_seconds / y->step_seconds;
        cost[pairs] = speed[pairs] * (double)x->steps / (double)y->steps;
        pairs += cost[pairs] > 0 && isfinite(cost[pairs]);
    }
    v->judgements[MIXT_CLAIM_FASTER] = mixt_judge_value(MIXT_CLAIM_FASTER, NAN, 1, MIXT_EVIDENCE_MEASURED);
    if (pairs)
        MIXT_TRY(mixt_judge_ratios(MIXT_CLAIM_FASTER, speed, pairs, 1, &v->judgements[MIXT_CLAIM_FASTER]));
    if (pairs && !isnan(v->price))
        MIXT_TRY(mixt_judge_ratios(MIXT_CLAIM_CHEAPER, cost, pairs, 0, &v->judgements[MIXT_CLAIM_CHEAPER]));
    double saved = 1 - (double)runs[0][MIXT_VERIFY_MIXED].memory.total / (double)runs[0][MIXT_VERIFY_FP32].memory.total;
    v->judgements[MIXT_CLAIM_SMALLER] = mixt_judge_value(MIXT_CLAIM_SMALLER, saved, 0, MIXT_EVIDENCE_MEASURED);
    for (mixt_claim c = MIXT_CLAIM_FASTER; c < MIXT_CLAIM_COUNT; c++)
        v->judgements[c].updates = c == MIXT_CLAIM_SMALLER ? 0 : runs[0][MIXT_VERIFY_MIXED].steps;
    return MIXT_OK;
}

mixt_status mixt__verify_judge(mixt_verification *v)
{
    MIXT_TRY(judge_loss(v, &v->parts[0]));
    v->parts[1] = judge_finite(v);
    v->parts[2] = judge_outputs(v, false);
    v->parts[3] = judge_outputs(v, true);
    v->judgements[MIXT_CLAIM_SAFE] = mixt_judge_all(v->parts, MIXT_VERIFY_PARTS);
    return judge_worth(v);
}
