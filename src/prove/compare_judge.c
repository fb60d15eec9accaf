/* What follows from a comparison: judgements of the four claims, and advice for one who has to choose. */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/status.h"
#include "judge/judge.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- safe ---- */

static const char *statistic_of(const char *metric)
{
    return !strcmp(metric, "accuracy")     ? "accuracy lost"
           : !strcmp(metric, "train_loss") ? "training loss"
           : !strcmp(metric, "best_loss")  ? "best loss"
                                           : "loss";
}

/** Pairs to add, where more pairs would tell. */
static int64_t needs_of(const mixt_comparison *c)
{
    int64_t asked = c->info.stopped ? c->info.wanted : 0;
    int64_t more = c->info.used ? c->info.judgement.more : MIXT_STATS_PAIRS_MIN;
    if (asked > c->info.pairs)
        more = asked - c->info.pairs;
    return more > MIXT_COMPARE_PAIRS_MAX ? MIXT_JUDGE_NEVER : more;
}

static mixt_judgement judge_safe(const mixt_comparison *c)
{
    const mixt_comparison_info *i = &c->info;
    mixt_unit unit = !c->metric->share ? MIXT_UNIT_POINTS : i->absolute ? MIXT_UNIT_PLAIN : MIXT_UNIT_SHARE;
    mixt_judgement j = mixt__judgement_of(&i->judgement, i->margin, unit);
    j.verdict = i->verdict == MIXT_STATS_NON_INFERIOR ? MIXT_VERDICT_YES
                : i->verdict == MIXT_STATS_INFERIOR   ? MIXT_VERDICT_NO
                                                      : MIXT_VERDICT_UNDECIDED;
    j.statistic = statistic_of(i->metric);
    j.needs = j.verdict == MIXT_VERDICT_UNDECIDED ? needs_of(c) : 0;
    if (j.verdict == MIXT_VERDICT_NO && i->diverged[MIXT_COMPARE_B]) { // that is why, not the difference of the rest
        j.statistic = "runs that diverged";
        j.unit = MIXT_UNIT_SHARE;
        j.value = (double)i->diverged[MIXT_COMPARE_B] / (double)i->pairs;
        j.margin = (double)i->diverged[MIXT_COMPARE_A] / (double)i->pairs;
        j.low = j.high = NAN;
        j.pairs = i->pairs;
        j.evidence = MIXT_EVIDENCE_PAIRED;
    }
    return j;
}

/* ---- worth it ---- */

/** From A's over B's figure in each pair. @param ratios room for a number a pair */
static mixt_status judge_worth(mixt_comparison *c, mixt_claim claim, size_t offset, double margin, double *ratios)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const mixt_compare_run *a = &c->pairs[i].runs[MIXT_COMPARE_A], *b = &c->pairs[i].runs[MIXT_COMPARE_B];
        bool whole = c->pairs[i].done[0] && c->pairs[i].done[1] && !a->diverged && !b->diverged;
        double x = *(const double *)(const void *)((const char *)a + offset),
               y = *(const double *)(const void *)((const char *)b + offset);
        if (whole && x > 0 && y > 0 && isfinite(x / y))
            ratios[count++] = x / y;
    }
    c->judged[claim] = count > 0 && count == c->info.used; // as the figures: all pairs or none
    return c->judged[claim] ? mixt_judge_ratios(claim, ratios, count, margin, &c->judgements[claim]) : MIXT_OK;
}

/* ---- what to do ---- */

#define ADVISE(...) snprintf(c->advice, sizeof c->advice, __VA_ARGS__)

/** "62% of A's time and 71% of its memory": of those figures that are asked for; "" where there is none.
 *  @param time the figure of time; NULL: none */
static const char *shares(const mixt_comparison *c, const char *time, bool memory, char text[96])
{
    char parts[2][48] = {"", ""};
    if (time)
        snprintf(parts[0], sizeof parts[0], "%.3g%% of A's time%s", 100 * mixt_comparison_find(c, time)->ratio,
                 strcmp(time, "equal_seconds") ? " per update" : "");
    if (memory)
        snprintf(parts[1], sizeof parts[1], "%.3g%% of %s memory", 100 * mixt_comparison_find(c, "memory")->ratio,
                 time ? "its" : "A's");
    snprintf(text, 96, "%s%s%s", parts[0], time && memory ? " and " : "", parts[1]);
    return text;
}

/** The figure in which B was shown to take less time, or more: until equal loss, or else for an update; NULL: none. */
static const char *shown_time(const mixt_comparison *c, bool more)
{
    const mixt_compare_figure *equal = mixt_comparison_find(c, "equal_seconds");
    if (more ? equal->low > 1 : equal->high < 1)
        return "equal_seconds";
    bool judged = c->judged[MIXT_CLAIM_FASTER] && !(equal->low > 1) && !(equal->high < 1);
    mixt_verdict wanted = more ? MIXT_VERDICT_NO : MIXT_VERDICT_YES;
    return judged && c->judgements[MIXT_CLAIM_FASTER].verdict == wanted ? "step_seconds" : NULL;
}

/** Of a B that is as good: what was shown of its time and its memory decides. */
static void advise_good(mixt_comparison *c)
{
    double memory = mixt_comparison_find(c, "memory")->ratio;
    const char *faster = shown_time(c, false), *slower = shown_time(c, true);
    char gain[96], loss[96];
    shares(c, faster, memory < 0.99, gain);
    shares(c, slower, memory > 1.01, loss);
    if (*gain && *loss)
        ADVISE("take B where %s counts more than %s: as good within the margin, in %s, but in %s",
               faster ? "time" : "memory", faster ? "memory" : "time", gain, loss);
    else if (*gain)
        ADVISE("take B: as good within the margin, in %s", gain);
    else if (*loss)
        ADVISE("keep A: B is as good within the margin, but takes %s", loss);
    else
        ADVISE("either will do: B is as good within the margin, and neither was shown to be faster or is smaller");
}

static void advise(mixt_comparison *c)
{
    int64_t pairs = c->info.used + c->info.judgement.more;
    if (c->info.wanted < c->info.needed && pairs < c->info.needed)
        pairs = c->info.needed;
    if (c->info.verdict == MIXT_STATS_INFERIOR)
        ADVISE("keep A");
    else if (c->info.verdict == MIXT_STATS_NON_INFERIOR)
        advise_good(c);
    else if (c->info.stopped)
        ADVISE("continue: the same command makes the remaining pairs");
    else if (c->info.used == c->info.pairs && c->info.used >= MIXT_STATS_PAIRS_MIN && pairs <= MIXT_COMPARE_PAIRS_MAX)
        ADVISE("make %lld pairs (--seeds %lld), or choose a larger margin", (long long)pairs, (long long)pairs);
    else
        ADVISE("keep A until there are more pairs");
}

mixt_status mixt__compare_judge(mixt_comparison *c)
{
    double *ratios = mixt__alloc((size_t)(c->count + 1) * sizeof *ratios);
    if (!ratios)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    c->judgements[MIXT_CLAIM_SAFE] = judge_safe(c);
    c->judged[MIXT_CLAIM_SAFE] = true;
    mixt_status status = judge_worth(c, MIXT_CLAIM_FASTER, offsetof(mixt_compare_run, step_seconds), 1, ratios);
    if (status == MIXT_OK)
        status = judge_worth(c, MIXT_CLAIM_SMALLER, offsetof(mixt_compare_run, memory), 0, ratios);
    if (status == MIXT_OK)
        status = judge_worth(c, MIXT_CLAIM_CHEAPER, offsetof(mixt_compare_run, equal_seconds), 0, ratios);
    mixt__free(ratios);
    MIXT_TRY(status);
    for (int claim = 0; claim < MIXT_CLAIM_COUNT; claim++)
        c->judgements[claim].updates = c->count && c->pairs[0].done[0] ? c->pairs[0].runs[MIXT_COMPARE_A].steps : 0;
    advise(c);
    return MIXT_OK;
}

const mixt_judgement *mixt_comparison_judgement(const mixt_comparison *c, mixt_claim claim)
{
    bool there = mixt__need_open(c, "comparison") == MIXT_OK && (unsigned)claim < MIXT_CLAIM_COUNT;
    return there && c->judged[claim] ? &c->judgements[claim] : NULL;
}
