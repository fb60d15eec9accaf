/* The last stage of an adoption: is the policy safe, and is it worth it here? Two questions, with a judgement each.
 * Where the tuned policy is shown not to be safe, they are asked of the one format of `mixed`, which may be.
 *
 * Safe: by pairs of whole runs. Where the search's own fresh pairs are as long as the run, they are the proof, and
 * nothing is trained again; else mixt compare makes them. Worth it: faster or smaller than FP32, as the goal
 * says, by anything that can be measured; by verify.speedup or verify.memory where the configuration sets them.
 */
#include "prove/adopt.h"

#include "base/alloc.h"
#include "base/status.h"
#include "judge/judge.h"
#include "page/lead.h"
#include "prove/compare.h"
#include "prove/prove.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** The pairs of a proof saw the data of the baseline. */
static mixt_status same_data(const mixt_adoption *a, const char *proof)
{
    char baseline[MIXT_ADOPT_PATH], first[MIXT_ADOPT_PATH + 20];
    snprintf(first, sizeof first, "%s/pair-0001-a", proof);
    return mixt__prove_same_data(mixt__adopt_file(a, "baseline", baseline), first);
}

/* ---- judgements ---- */

static double speed_asked(const mixt_adoption *a)
{
    bool asked = mixt__config_was_set(a->config, MIXT_KEY_VERIFY_SPEEDUP);
    return asked ? fmax(mixt__config_float(a->config, MIXT_KEY_VERIFY_SPEEDUP), 1e-3) : 1;
}

static double memory_asked(const mixt_adoption *a)
{
    bool asked = mixt__config_was_set(a->config, MIXT_KEY_VERIFY_MEMORY);
    return asked ? fmin(mixt__config_float(a->config, MIXT_KEY_VERIFY_MEMORY) / 100, 0.999) : 0;
}

static mixt_judgement judge_safe(const mixt_adoption *a, const mixt_comparison *c)
{
    static const mixt_verdict verdicts[] = {[MIXT_STATS_UNDECIDED] = MIXT_VERDICT_UNDECIDED,
                                            [MIXT_STATS_NON_INFERIOR] = MIXT_VERDICT_YES,
                                            [MIXT_STATS_INFERIOR] = MIXT_VERDICT_NO};
    mixt_comparison_info i = mixt_comparison_describe(c);
    const mixt_compare_run *run = mixt_comparison_run(c, 0, MIXT_COMPARE_B);
    mixt_judgement j = mixt__judgement_of(&i.judgement, a->options.margin, MIXT_UNIT_SHARE);
    j.verdict = verdicts[i.verdict]; // which also counts runs that diverged
    j.needs = i.verdict == MIXT_STATS_UNDECIDED ? j.needs : 0;
    if (isnan(j.value) && i.diverged[MIXT_COMPARE_B])
        j.value = INFINITY;
    j.updates = run ? run->steps : 0;
    return j;
}

/** Over the pairs; left as it is where none has times. */
static mixt_status judge_faster(const mixt_adoption *a, const mixt_comparison *c, mixt_judgement *j)
{
    const mixt_compare_run *fp32, *low;
    int64_t count = 0;
    double *ratios = mixt__alloc(MIXT_COMPARE_PAIRS_MAX * sizeof *ratios);
    if (!ratios)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the times of a proof");
    for (int64_t k = 0; k < MIXT_COMPARE_PAIRS_MAX; k++) {
        fp32 = mixt_comparison_run(c, k, MIXT_COMPARE_A);
        low = mixt_comparison_run(c, k, MIXT_COMPARE_B);
        if (fp32 && low && fp32->step_seconds > 0 && low->step_seconds > 0)
            ratios[count++] = fp32->step_seconds / low->step_seconds;
    }
    mixt_status status = count ? mixt_judge_ratios(MIXT_CLAIM_FASTER, ratios, count, speed_asked(a), j) : MIXT_OK;
    mixt__free(ratios);
    return status;
}

void mixt__adopt_worth(const mixt_adoption *a, double faster, double saved, mixt_judgement found[2])
{
    found[0] = mixt_judge_value(MIXT_CLAIM_FASTER, faster, speed_asked(a), MIXT_EVIDENCE_MEASURED);
    found[1] = mixt_judge_value(MIXT_CLAIM_SMALLER, saved, memory_asked(a), MIXT_EVIDENCE_MEASURED);
}

/* ---- the proof ---- */

static mixt_status keep_proof(mixt_adoption *a, const json_t *stage, const char *name, const mixt_comparison *c)
{
    char title[120];
    mixt_comparison_info i = mixt_comparison_describe(c);
    const mixt_compare_figure *memory = mixt_comparison_find(c, "memory");
    mixt_judgement found[3] = {judge_safe(a, c)};
    mixt__adopt_worth(a, NAN, memory->a > 0 ? 1 - memory->b / memory->a : (double)NAN, &found[1]);
    MIXT_TRY(judge_faster(a, c, &found[1]));
    mixt_adopt_figure f = {.stage = MIXT_ADOPT_VALIDATED,
                           .name = name,
                           .loss = mixt_comparison_find(c, "loss")->b,
                           .accuracy = mixt_comparison_find(c, "accuracy")->b,
                           .step_seconds = mixt_comparison_find(c, "step_seconds")->b,
                           .memory = memory->b,
                           .good = found[0].verdict == MIXT_VERDICT_YES,
                           .note = i.reason};
    const char *precision = mixt__adopt_text(stage, "precision");
    snprintf(title, sizeof title, "The validation: FP32 against %s, %lld pairs", precision, (long long)i.pairs);
    return mixt__adopt_state_figure(a, &f, mixt_verdict_name(found[0].verdict), found, 3,
                                    mixt__compare_part(c, title, "fp32", precision));
}

/** Pairs of whole runs, with the policy of a stage, as the figure `figure`. */
static mixt_status compare(mixt_adoption *a, const json_t *stage, const char *figure)
{
    char folder[MIXT_ADOPT_PATH];
    const char *name = mixt__adopt_proof(a, stage, folder) + strlen("runs/compare-");
    mixt_config *fp32 = NULL, *trial = NULL;
    mixt_comparison *c = NULL;
    mixt_status status = mixt__adopt_in_precision(a, mixt__adopt_text(stage, "policy"), &trial);
    if (status == MIXT_OK)
        status = mixt__adopt_in_precision(a, "fp32", &fp32);
    if (status == MIXT_OK)
        status = mixt_compare(fp32, trial, &c, .name = name, .pairs = a->options.pairs, .margin = a->options.margin,
                              .progress = mixt__adopt_hear, .user = a);
    mixt_config_free(fp32);
    mixt_config_free(trial);
    MIXT_TRY(status);
    status = same_data(a, folder);
    if (status == MIXT_OK && !a->halted && !mixt_comparison_describe(c).stopped)
        status = keep_proof(a, stage, figure, c);
    mixt_comparison_free(c);
    return status;
}

/** What the search has paired of the policy in question, as a figure of this stage, where that decides: it was judged,
 * on runs as long as this one. *found: it does. */
static mixt_status take_over(mixt_adoption *a, bool *found)
{
    const json_t *row, *searched = NULL;
    char folder[MIXT_ADOPT_PATH];
    mixt_judgement safe;
    mixt_compare_run base;
    size_t k;
    *found = false;
    json_array_foreach(a->figures, k, row)
    {
        if (!strcmp(mixt__adopt_text(row, "figure"), "search") && json_is_true(json_object_get(row, "good")))
            searched = row;
    }
    if (!searched || !mixt__judgement_read(json_array_get(json_object_get(searched, "judgements"), 0), &safe))
        return MIXT_OK;
    MIXT_TRY(mixt__adopt_measure(a, mixt__adopt_file(a, "baseline", folder), &base));
    if (safe.updates < base.steps || a->options.pairs > safe.pairs)
        return MIXT_OK;
    mixt_judgement all[3];
    for (size_t i = 0; i < 3; i++)
        if (!mixt__judgement_read(json_array_get(json_object_get(searched, "judgements"), i), &all[i]))
            return MIXT_OK;
    mixt_adopt_figure f = {.stage = MIXT_ADOPT_VALIDATED,
                           .name = "search",
                           .loss = NAN,
                           .accuracy = NAN,
                           .step_seconds = mixt__adopt_number(searched, "step_seconds"),
                           .memory = mixt__adopt_number(searched, "memory"),
                           .good = safe.verdict == MIXT_VERDICT_YES,
                           .note = "the search's new pairs are runs of this length: nothing is trained again"};
    *found = true;
    return mixt__adopt_state_figure(a, &f, mixt_verdict_name(safe.verdict), all, 3, NULL);
}

/* ---- the conclusion ---- */

/** What the proof says, of the policy that is in question last. */
static const json_t *proof_of(const mixt_adoption *a)
{
    static const char *const figures[] = {MIXT_ADOPT_SECOND, "compare", "search"};
    const json_t *row = NULL;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0] && !row; i++)
        row = mixt__adopt_state_find(a, figures[i]);
    return row;
}

static mixt_status read_proof(const mixt_adoption *a, const json_t *proof, mixt_judgement *safe, mixt_judgement *worth)
{
    const json_t *list = json_object_get(proof, "judgements");
    size_t other = a->options.goal == MIXT_SEARCH_TIME ? 1 : 2;
    if (mixt__judgement_read(json_array_get(list, 0), safe) && mixt__judgement_read(json_array_get(list, other), worth))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FORMAT,
                      "%s/history.jsonl: the validation has no verdicts: --from validated makes them", a->folder);
}

/** Whether there is another policy to ask about: tuned was shown not to be safe, and one format for all layers trained
 * to its end. Each of the two has its own error of 2.5%, so a policy that loses is called safe in 5% at most. */
static mixt_status is_second_due(const mixt_adoption *a, bool *due)
{
    const json_t *mixed = a->stack[MIXT_ADOPT_MIXED], *proof = proof_of(a);
    const char *format = mixt__adopt_text(mixed, "precision");
    mixt_judgement safe, worth;
    *due = false;
    if (!proof || !strcmp(format, "fp32") || !strcmp(format, mixt__adopt_text(a->current, "precision")) ||
        mixt__adopt_state_find(a, MIXT_ADOPT_SECOND))
        return MIXT_OK;
    MIXT_TRY(read_proof(a, proof, &safe, &worth));
    *due = safe.verdict == MIXT_VERDICT_NO;
    return MIXT_OK;
}

/** Where the tuned policy was asked about first: that it was, and what came of it. @param text "" where it was not */
static mixt_status tell_first(const mixt_adoption *a, const json_t *proof, char *text, size_t size)
{
    const json_t *first = mixt__adopt_state_find(a, "compare");
    mixt_judgement safe, worth;
    char *said;
    text[0] = '\0';
    if (strcmp(mixt__adopt_text(proof, "figure"), MIXT_ADOPT_SECOND))
        return MIXT_OK;
    MIXT_TRY(read_proof(a, first ? first : mixt__adopt_state_find(a, "search"), &safe, &worth));
    MIXT_TRY(mixt_judgement_text(&safe, &said));
    snprintf(text, size, "; asked about because %s is not (%s)", mixt__adopt_text(a->current, "precision"), said);
    mixt_free(said);
    return MIXT_OK;
}

/** From judgements to what is to be used: FP32 stays where it is shown that the policy loses, or wins nothing. */
static void decide(const mixt_judgement *safe, const mixt_judgement *worth, const json_t *question,
                   const char *texts[2], const char *first, mixt__adopt_end *end)
{
    const char *name = mixt__adopt_text(question, "precision");
    bool refused = safe->verdict == MIXT_VERDICT_NO || worth->verdict == MIXT_VERDICT_NO;
    bool adopted = safe->verdict == MIXT_VERDICT_YES && worth->verdict == MIXT_VERDICT_YES;
    snprintf(end->precision, sizeof end->precision, "fp32");
    if (adopted) {
        snprintf(end->precision, sizeof end->precision, "%s", mixt__adopt_text(question, "policy"));
        snprintf(end->shown, sizeof end->shown, "%s", name);
    }
    end->outcome = mixt_adopt_outcome_name(adopted   ? MIXT_ADOPT_ADOPTED
                                           : refused ? MIXT_ADOPT_KEPT
                                                     : MIXT_ADOPT_UNDECIDED);
    mixt__adopt_reason(end,
                       adopted                            ? "adopt it"
                       : safe->verdict == MIXT_VERDICT_NO ? "keep FP32: it is not safe"
                       : refused                          ? "keep FP32: it is not worth it here"
                                                          : "undecided",
                       "%s: %s; %s%s", name, texts[0], texts[1], first);
}

static mixt_status conclude(const mixt_adoption *a, mixt__adopt_end *end)
{
    const json_t *proof = proof_of(a), *question = mixt__adopt_question(a);
    mixt_judgement safe, worth;
    char *texts[2] = {NULL, NULL}, first[400];
    MIXT_TRY(read_proof(a, proof, &safe, &worth));
    MIXT_TRY(tell_first(a, proof, first, sizeof first));
    if (!strcmp(mixt__adopt_text(proof, "figure"), "search"))
        mixt__adopt_file(a, "tuned.yaml.search", end->evidence);
    else
        mixt__adopt_proof(a, question, end->evidence);
    mixt_status status = mixt_judgement_text(&safe, &texts[0]);
    if (status == MIXT_OK)
        status = mixt_judgement_text(&worth, &texts[1]);
    if (status == MIXT_OK)
        decide(&safe, &worth, question, (const char *[]){texts[0], texts[1]}, first, end);
    mixt_free(texts[0]);
    mixt_free(texts[1]);
    return status;
}

mixt_status mixt__adopt_validated(mixt_adoption *a, mixt__adopt_end *end)
{
    bool found = proof_of(a) != NULL, second = false;
    if (!strcmp(mixt__adopt_text(a->current, "precision"), "fp32")) {
        snprintf(end->precision, sizeof end->precision, "fp32");
        snprintf(end->evidence, sizeof end->evidence, "%s", mixt__adopt_text(a->current, "evidence"));
        end->outcome = mixt_adopt_outcome_name(MIXT_ADOPT_KEPT);
        mixt__adopt_reason(end, "keep FP32", "%.800s", mixt__adopt_text(a->current, "reason"));
        return MIXT_OK;
    }
    if (!found)
        MIXT_TRY(take_over(a, &found));
    if (!found)
        MIXT_TRY(compare(a, a->current, "compare"));
    if (!a->halted)
        MIXT_TRY(is_second_due(a, &second));
    if (second)
        MIXT_TRY(compare(a, a->stack[MIXT_ADOPT_MIXED], MIXT_ADOPT_SECOND));
    second = second && !mixt__adopt_state_find(a, MIXT_ADOPT_SECOND); // stopped on the way
    return a->halted || second || !proof_of(a) ? MIXT_OK : conclude(a, end);
}
