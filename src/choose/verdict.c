/* Which candidate, which requirement decided, and why each of the others lost.
 *
 * A candidate counts when the machine has units for its format, when it fits and when it loses no more than may be
 * lost. Of those the fastest wins, but a simpler one that is as fast, within a margin, wins over it: nobody should take
 * a lower precision for nothing. */
#include "choose/advice.h"

#include "base/sizes.h"
#include "mixt/compare.h"

#include <math.h>
#include <string.h>

/** A lower precision must win by this much: what a trial can tell apart, and what a model can. Of small ops a model
 *  knows little but that they are launched: where launches are everything, it must win by more. */
static const double margin_measured = 0.01, margin_modelled = 0.03, margin_launches = 0.17;
/** Share of launches from which they are the reason for everything. */
static const double launch_bound = 0.5;
/** Share of products that a format's units cannot take from which that is the reason. */
static const double odd_products = 0.2;

/** Requirements that can be left out, to see which one decided. */
typedef struct wishes {
    bool memory, accuracy, units;
} wishes;

static const char *format_name(const mixt__contender *c)
{
    return mixt_dtype_name(c->format);
}

static bool measured(const mixt__contender *c)
{
    return !strcmp(c->out.source, "measured");
}

static double margin_of(const mixt__contender *c)
{
    return measured(c) ? fmax(margin_measured, 2 * c->noise)
                       : margin_modelled + margin_launches * c->cost.bound[MIXT_BOUND_LAUNCH] / c->cost.seconds;
}

/* ---- choosing ---- */

/** Whoever may lose nothing at all gets FP32: no trial can show that. */
static bool loses(const mixt_advice *a, const mixt__contender *c)
{
    return c->out.lost > a->lose || (a->lose == 0 && c->rank != MIXT_RANK_FP32);
}

static bool counts(const mixt_advice *a, const mixt__contender *c, wishes w)
{
    return c->compiled && c->policy && (!w.units || c->units || c->storage) && (!w.memory || c->fits) &&
           (!w.accuracy || !loses(a, c));
}

/** Whether it took more than a precision to fit. */
static bool made_to_fit(const mixt_advice *a, const mixt__contender *c)
{
    return c->split > a->split || c->recompute;
}

/** Low storage without units is for those who need the memory, unless it was measured to be faster. */
static bool needed(const mixt_advice *a, const mixt__contender *c, wishes w)
{
    if (!c->storage || measured(c))
        return true;
    for (int i = 0; i < a->count; i++) {
        const mixt__contender *other = &a->candidates[i];
        if (!other->storage && counts(a, other, w) && !made_to_fit(a, other))
            return false;
    }
    return true;
}

static mixt__contender *pick(mixt_advice *a, wishes w)
{
    mixt__contender *best = NULL, *chosen = NULL;
    for (int i = 0; i < a->count; i++) {
        mixt__contender *c = &a->candidates[i];
        if (counts(a, c, w) && needed(a, c, w) && (!best || c->out.seconds < best->out.seconds))
            best = c;
    }
    if (!best)
        return NULL;
    double margin = margin_of(best);
    for (int i = 0; i < a->count; i++) {
        mixt__contender *c = &a->candidates[i];
        if (counts(a, c, w) && needed(a, c, w) && c->out.seconds <= best->out.seconds * (1 + margin) &&
            (!chosen || c->rank < chosen->rank))
            chosen = c;
    }
    return chosen;
}

/** Where nothing fits: what needs least. */
static mixt__contender *smallest(mixt_advice *a)
{
    mixt__contender *least = NULL;
    for (int i = 0; i < a->count; i++) {
        mixt__contender *c = &a->candidates[i];
        if (counts(a, c, (wishes){.accuracy = true, .units = true}) && (!least || c->out.memory < least->out.memory))
            least = c;
    }
    return least;
}

static const char *deciding(mixt_advice *a, const mixt__contender *chosen)
{
    if (pick(a, (wishes){.accuracy = true, .units = true}) != chosen)
        return "memory";
    if (made_to_fit(a, chosen) || (chosen->storage && !measured(chosen)))
        return "memory";
    if (pick(a, (wishes){.memory = true, .units = true}) != chosen)
        return "accuracy";
    bool launches = chosen->cost.bound[MIXT_BOUND_LAUNCH] > launch_bound * chosen->cost.seconds;
    for (int i = 0; i < a->count; i++)
        if (a->candidates[i].rank == MIXT_RANK_BF16 && !a->candidates[i].units && chosen->rank != MIXT_RANK_BF16)
            return launches && chosen->rank == MIXT_RANK_FP32 ? "time" : "hardware";
    return "time";
}

/* ---- reasons ---- */

/** "measured" or "modelled", once for a comparison. */
static const char *how(const mixt__contender *a, const mixt__contender *b)
{
    return measured(a) && measured(b) ? "measured" : "modelled";
}

static void judge_slower(mixt_advice *a, mixt__contender *c, const mixt__contender *chosen)
{
    double ratio = c->out.seconds / chosen->out.seconds;
    c->out.verdict = "slower";
    c->out.why = mixt__advice_text(a, ratio < 1.995 ? "%.0f%% slower than %s (%s)" : "%.1f times the time of %s (%s)",
                                   ratio < 1.995 ? 100 * (ratio - 1) : ratio, chosen->out.name, how(c, chosen));
}

/** About as fast as the chosen one, or faster by less than it would take. */
static void judge_no_gain(mixt_advice *a, mixt__contender *c, const mixt__contender *chosen)
{
    double wins = 1 - c->out.seconds / chosen->out.seconds, launches = chosen->cost.bound[MIXT_BOUND_LAUNCH];
    c->out.verdict = "no gain";
    if (c->rank == MIXT_RANK_FP16 && chosen->rank == MIXT_RANK_BF16)
        c->out.why = mixt__advice_text(a, "no faster than bf16, and its range ends at 65504: it needs loss scaling, "
                                          "and activations can overflow");
    else if (c->cost.odd > odd_products * c->cost.seconds)
        c->out.why = mixt__advice_text(a,
                                       "%.0f%% of its time are products by a dimension of %lld, which is not a "
                                       "multiple of 8: the units cannot take them",
                                       100 * c->cost.odd / c->cost.seconds, (long long)c->cost.odd_dimension);
    else if (c->rank > chosen->rank && launches > launch_bound * chosen->cost.seconds)
        c->out.why = mixt__advice_text(
            a, "gains %.0f%%: %.0f%% of the step are launches of small ops, which no format speeds up",
            fmax(0, 100 * wins), 100 * launches / chosen->cost.seconds);
    else
        c->out.why = mixt__advice_text(a, "as fast as %s within the accuracy of a %s: no reason to change",
                                       chosen->out.name, measured(c) ? "trial" : "model");
}

static void judge(mixt_advice *a, mixt__contender *c, const mixt__contender *chosen)
{
    char need[MIXT_SIZE_TEXT], limit[MIXT_SIZE_TEXT];
    const char *name = format_name(c);
    if (!c->policy) {
        c->out.verdict = "not trained";
        c->out.why =
            mixt__advice_text(a, c->units ? "this machine has units for it, but mixt trains in it on CPUs only"
                                          : "this machine has no units for it: mixt emulates it on CPUs, slower "
                                            "than bf16, to show what a model loses by it");
    } else if (!c->units && !c->storage) {
        c->out.verdict = "no units";
        c->out.why = mixt__advice_text(a,
                                       c->format == MIXT_DTYPE_TF32
                                           ? "this machine has no units for %s: products would run as in fp32"
                                           : "this machine has no units for %s: it is emulated, slower than bf16",
                                       name);
    } else if (loses(a, c)) {
        c->out.verdict = "loses";
        c->out.why =
            isinf(c->out.lost) ? mixt__advice_text(a, "its loss became NaN or Inf where fp32's did not")
            : c->paired
                ? mixt__advice_text(a, "its loss was %.2g%% worse than fp32's on the same batches; %.2g%% is tolerated",
                                    100 * c->out.lost, 100 * a->lose)
                : mixt__advice_text(a, "rounds to %.2g%%, and only %.2g%% is tolerated", 100 * c->out.lost,
                                    100 * a->lose);
    } else if (!c->fits) {
        c->out.verdict = "too large";
        c->out.why = mixt__advice_text(a, "needs %s in the smallest plan, but only %s are there",
                                       mixt__size_text(c->out.memory, need), mixt__size_text(a->limit, limit));
    } else if (!needed(a, c, (wishes){true, true, true})) {
        c->out.verdict = "no gain";
        c->out.why = mixt__advice_text(a, "no units for %s: it would only save memory, which is not needed", name);
    } else {
        // a simpler one that is as fast would have been chosen
        bool slower = c->rank < chosen->rank || c->out.seconds > chosen->out.seconds * (1 + margin_of(chosen));
        (slower ? judge_slower : judge_no_gain)(a, c, chosen);
    }
}

/* ---- the chosen one ---- */

static mixt__contender *find(mixt_advice *a, mixt__rank rank)
{
    for (int i = 0; i < a->count; i++)
        if (a->candidates[i].rank == rank && a->candidates[i].compiled)
            return &a->candidates[i];
    return NULL;
}

static const char *praise(mixt_advice *a, const mixt__contender *chosen)
{
    const mixt__contender *fp32 = find(a, MIXT_RANK_FP32);
    double launches = chosen->cost.bound[MIXT_BOUND_LAUNCH] / chosen->cost.seconds;
    if (chosen == fp32 && launches > launch_bound)
        return mixt__advice_text(a, "launch-bound: %.0f%% of the step, so that no lower format is faster",
                                 100 * launches);
    if (chosen == fp32)
        return mixt__advice_text(a, "no format that fits, is accurate enough and has units is faster");
    double times = fp32->out.seconds / chosen->out.seconds;
    double saved = 1 - (double)chosen->out.memory / (double)fp32->out.memory;
    const char *range = mixt__format_of(chosen->format)->loss_scaling ? "; its range is small: with loss scaling"
                        : mixt__format_low(chosen->format)            ? "; the range of fp32: no loss scaling"
                                                                      : "";
    if (chosen->storage && saved >= 0.005)
        return mixt__advice_text(a, "stored in 16 bits, computed in fp32: %.0f%% less memory%s", 100 * saved, range);
    if (saved < 0.005)
        return mixt__advice_text(a, "%.1f times as fast as fp32 (%s)%s", times, how(chosen, fp32), range);
    return mixt__advice_text(a, "%.1f times as fast as fp32 (%s), %.0f%% less memory%s", times, how(chosen, fp32),
                             100 * saved, range);
}

/* ---- judgements ---- */

/** What a format rounds to, and one short pair, show that nothing is lost no more than compare's rule lets so few pairs
 *  show it: they leave it open. That much is lost they may show. */
static mixt_judgement judge_safe(const mixt_advice *a, const mixt__contender *c)
{
    bool fp32 = c->rank == MIXT_RANK_FP32;
    mixt_judgement j = mixt_judge_value(MIXT_CLAIM_SAFE, fp32 ? 0 : c->out.lost, a->lose,
                                        c->paired && !fp32 ? MIXT_EVIDENCE_MEASURED : MIXT_EVIDENCE_PREDICTED);
    if (fp32)
        j.verdict = MIXT_VERDICT_YES;
    else if (isinf(c->out.lost))
        j.verdict = MIXT_VERDICT_NO;
    else if (!c->paired || j.verdict == MIXT_VERDICT_YES)
        j.verdict = MIXT_VERDICT_UNDECIDED;
    j.needs = j.verdict == MIXT_VERDICT_UNDECIDED ? MIXT_STATS_PAIRS_MIN : 0;
    return j;
}

static void judge_all(mixt_advice *a, const mixt__contender *chosen)
{
    const mixt__contender *fp32 = find(a, MIXT_RANK_FP32);
    bool times = measured(chosen) && fp32 && measured(fp32);
    double faster = fp32 ? fp32->out.seconds / chosen->out.seconds : (double)NAN;
    double saved = fp32 && fp32->out.memory ? 1 - (double)chosen->out.memory / (double)fp32->out.memory : (double)NAN;
    for (int i = 0; i < a->count; i++)
        a->candidates[i].out.safe = judge_safe(a, &a->candidates[i]);
    a->choice.safe = chosen->out.safe;
    a->choice.faster =
        mixt_judge_value(MIXT_CLAIM_FASTER, faster, 1, times ? MIXT_EVIDENCE_MEASURED : MIXT_EVIDENCE_PREDICTED);
    a->choice.smaller = mixt_judge_value(MIXT_CLAIM_SMALLER, saved, 0, MIXT_EVIDENCE_PREDICTED);
}

mixt__contender *mixt__verdict(mixt_advice *a)
{
    mixt__contender *chosen = pick(a, (wishes){true, true, true});
    char need[MIXT_SIZE_TEXT], limit[MIXT_SIZE_TEXT];
    a->choice.found = chosen != NULL;
    if (!chosen)
        chosen = smallest(a);
    if (!chosen)
        chosen = &a->candidates[0]; // FP32, which loses nothing and needs no units
    judge_all(a, chosen);
    for (int i = 0; i < a->count; i++)
        if (&a->candidates[i] != chosen || !a->choice.found)
            judge(a, &a->candidates[i], chosen);
    if (!a->choice.found) {
        a->choice.decided = "memory";
        a->choice.why = mixt__advice_text(a, "nothing fits: %s comes closest and needs %s of %s", chosen->out.name,
                                          mixt__size_text(chosen->out.memory, need), mixt__size_text(a->limit, limit));
        return chosen;
    }
    chosen->out.verdict = "chosen";
    a->choice.decided = deciding(a, chosen);
    a->choice.why = praise(a, chosen);
    if (chosen->split > a->split)
        a->choice.why = mixt__advice_text(a, "%s; its batch split in %lld parts, so that it fits", a->choice.why,
                                          (long long)chosen->split);
    chosen->out.why = a->choice.why;
    return chosen;
}
