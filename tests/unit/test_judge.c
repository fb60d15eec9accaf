/* Judgements: verdicts on either side of the margin, the sentence and the JSON of each, and bad arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "judge/judge.h"
#include "mixt/mixt.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static void assert_text(const mixt_judgement *j, const char *expected)
{
    char *text;
    assert_int_equal(mixt_judgement_text(j, &text), MIXT_OK);
    assert_string_equal(text, expected);
    mixt_free(text);
}

static void test_worse(void **state)
{
    (void)state;
    const double calm[8] = {0.001, -0.001, 0.002, 0, -0.002, 0.001, 0.0005, -0.0015};
    double noisy[8], bad[8];
    mixt_judgement j;
    for (int i = 0; i < 8; i++) {
        noisy[i] = 10 * calm[i];
        bad[i] = 0.03 + calm[i];
    }
    assert_int_equal(mixt_judge_worse(calm, 8, 0.005, MIXT_UNIT_SHARE, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_YES);
    assert_true(j.high < 0.005 && j.low < j.value && j.value < j.high && j.needs == 0 && j.pairs == 8);
    assert_text(&j, "safe: yes; loss +0.00% (-0.30% to +0.28%), margin 0.5%; 8 pairs; failures in fewer than 31% of "
                    "runs are not ruled out");
    assert_int_equal(mixt_judge_worse(noisy, 8, 0.005, MIXT_UNIT_SHARE, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_UNDECIDED);
    assert_true(j.low < 0.005 && j.high > 0.005 && j.needs > 0);
    assert_int_equal(mixt_judge_worse(bad, 8, 0.005, MIXT_UNIT_POINTS, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_NO);
    assert_true(j.low > 0.005);
    assert_text(&j, "safe: no; accuracy lost +3.00 points (+2.70 points to +3.28 points), margin 0.5 points; 8 pairs");
    assert_int_equal(mixt_judge_worse(calm, 1, 0.005, MIXT_UNIT_SHARE, &j), MIXT_OK); // one pair decides nothing
    assert_int_equal(j.verdict, MIXT_VERDICT_UNDECIDED);
    assert_int_equal(j.evidence, MIXT_EVIDENCE_MEASURED);
    assert_true(j.needs >= MIXT_STATS_PAIRS_MIN - 1);
}

/** Numbers that depend on the one before: how often a mean at the margin is called worse, and how often one above it.
 */
static void test_series(void **state)
{
    enum { SERIES = 2000 };
    static const struct {
        int64_t length;
        double share; // that a number has of the one before
        double by_chance, seen;
    } cases[] = {{16, 0, 0.01, 0.95}, {16, 0.5, 0.03, 0.9}, {64, 0.5, 0.015, 0.99}, {64, 0.8, 0.03, 0.9}};
    mixt_judgement j;
    double worse[64];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(78, 1, 1));
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t n = cases[c].length, wrong[2] = {0, 0}, missed = 0;
        for (int s = 0; s < SERIES; s++) {
            double at = 0;
            for (int64_t i = 0; i < n; i++) {
                double fresh = (double)mixt__rng_normal(&rng), share = i ? cases[c].share : 0;
                at = share * at + sqrt(1 - share * share) * fresh;
                worse[i] = 0.005 + 0.004 * at;
            }
            mixt_verdict verdict = mixt__judge_series(worse, n, 0.005, MIXT_UNIT_SHARE).verdict;
            wrong[0] += verdict == MIXT_VERDICT_NO;
            wrong[1] += verdict == MIXT_VERDICT_YES;
            for (int64_t i = 0; i < n; i++)
                worse[i] += 0.015;
            missed += mixt__judge_series(worse, n, 0.005, MIXT_UNIT_SHARE).verdict != MIXT_VERDICT_NO;
        }
        print_message(
            "%lld numbers, %g of the one before: %.2f%% called worse, %.2f%% not worse at the margin; %.2f%% of "
            "those that are worse are not seen\n",
            (long long)n, cases[c].share, 100.0 * (double)wrong[0] / SERIES, 100.0 * (double)wrong[1] / SERIES,
            100.0 * (double)missed / SERIES);
        assert_true((double)wrong[0] <= cases[c].by_chance * SERIES && (double)wrong[1] <= cases[c].by_chance * SERIES);
        assert_true((double)missed <= (1 - cases[c].seen) * SERIES);
    }
    for (int i = 0; i < 8; i++)
        worse[i] = 0.02 + 0.001 * (i % 2);
    j = mixt__judge_series(worse, 8, 0.005, MIXT_UNIT_SHARE);
    assert_int_equal(j.verdict, MIXT_VERDICT_NO);
    assert_text(&j, "safe: no; loss +2.05% (+2.01% to +2.09%), margin 0.5%; 8 updates of this run, replayed");
    assert_int_equal(mixt__judge_series(worse, 7, 0.005, MIXT_UNIT_SHARE).verdict, MIXT_VERDICT_UNDECIDED);
    worse[3] = NAN;
    assert_int_equal(mixt__judge_series(worse, 8, 0.005, MIXT_UNIT_SHARE).verdict, MIXT_VERDICT_UNDECIDED);
}

static void test_ratios(void **state)
{
    (void)state;
    const double fast[3] = {1.60, 1.62, 1.64}, same[3] = {0.97, 1.03, 1.0}, slow[3] = {0.8, 0.81, 0.79};
    mixt_judgement j;
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_FASTER, fast, 3, 1, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_YES);
    assert_true(fabs(j.value - cbrt(1.60 * 1.62 * 1.64)) < 1e-12 && j.low > 1.55 && j.high < 1.7);
    j.updates = 200;
    assert_text(&j, "faster: yes; speed 1.62x (1.57x to 1.67x), margin 1x; 3 pairs of 200 updates each");
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_FASTER, fast, 3, 2, &j), MIXT_OK); // twice was asked for
    assert_int_equal(j.verdict, MIXT_VERDICT_NO);
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_FASTER, same, 3, 1, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_UNDECIDED);
    assert_true(j.needs > 0 || j.needs == MIXT_JUDGE_NEVER);
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_FASTER, slow, 3, 1, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_NO);
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_SMALLER, fast, 3, 0.3, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_YES);
    assert_true(fabs(j.value - (1 - 1 / cbrt(1.60 * 1.62 * 1.64))) < 1e-12);
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_CHEAPER, slow, 1, 0, &j), MIXT_OK);
    assert_int_equal(j.verdict, MIXT_VERDICT_NO);
    assert_text(&j, "cheaper: no; cost saved -25.00%, margin 0%; measured once");
    const double none[2] = {1, 0};
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_FASTER, none, 2, 1, &j), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "ratio 1 is 0"));
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_SAFE, fast, 3, 1, &j), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_judge_ratios(MIXT_CLAIM_SMALLER, fast, 3, 1, &j), MIXT_ERROR_ARGUMENT);
}

static void test_values(void **state)
{
    (void)state;
    mixt_judgement all[3] = {mixt_judge_value(MIXT_CLAIM_SAFE, 0.001, 0.005, MIXT_EVIDENCE_PREDICTED),
                             mixt_judge_value(MIXT_CLAIM_SAFE, (double)NAN, 0.005, MIXT_EVIDENCE_MEASURED),
                             mixt_judge_value(MIXT_CLAIM_SAFE, 0.01, 0.005, MIXT_EVIDENCE_MEASURED)};
    assert_int_equal(all[0].verdict, MIXT_VERDICT_YES);
    assert_text(&all[0], "safe: yes; loss +0.10%, margin 0.5%; predicted");
    assert_int_equal(all[1].verdict, MIXT_VERDICT_UNDECIDED);
    assert_text(&all[1], "safe: undecided; loss not known, margin 0.5%; measured once");
    assert_int_equal(all[2].verdict, MIXT_VERDICT_NO);
    assert_int_equal(mixt_judge_all(all, 3).verdict, MIXT_VERDICT_NO);
    assert_int_equal(mixt_judge_all(all, 2).verdict, MIXT_VERDICT_UNDECIDED);
    assert_int_equal(mixt_judge_all(all, 1).verdict, MIXT_VERDICT_YES);
    assert_int_equal(mixt_judge_all(NULL, 0).verdict, MIXT_VERDICT_UNDECIDED);
    mixt_judgement smaller = mixt_judge_value(MIXT_CLAIM_SMALLER, 0.48, 0.3, MIXT_EVIDENCE_MEASURED);
    assert_text(&smaller, "smaller: yes; memory saved 48.00%, margin 30%; measured once");
}

static void test_json(void **state)
{
    (void)state;
    const double worse[8] = {0.01, -0.01, 0.02, 0, -0.02, 0.01, 0.005, -0.015};
    mixt_judgement j;
    char *text;
    assert_int_equal(mixt_judge_worse(worse, 8, 0.005, MIXT_UNIT_SHARE, &j), MIXT_OK);
    assert_int_equal(mixt_judgement_json(&j, &text), MIXT_OK);
    json_t *o = json_loads(text, 0, NULL);
    mixt_free(text);
    assert_non_null(o);
    assert_string_equal(json_string_value(json_object_get(o, "claim")), "safe");
    assert_string_equal(json_string_value(json_object_get(o, "verdict")), "undecided");
    assert_string_equal(json_string_value(json_object_get(o, "evidence")), "paired over seeds");
    assert_true(json_real_value(json_object_get(o, "low")) == j.low);
    assert_int_equal(json_integer_value(json_object_get(o, "pairs")), 8);
    assert_int_equal(json_integer_value(json_object_get(o, "needs")), j.needs);
    assert_true(json_is_null(json_object_get(o, "updates")));
    assert_true(fabs(json_real_value(json_object_get(o, "unseen")) - (1 - pow(0.05, 1.0 / 8))) < 1e-12);
    json_decref(o);
    j = mixt_judge_value(MIXT_CLAIM_SAFE, (double)INFINITY, 0.005, MIXT_EVIDENCE_MEASURED);
    assert_int_equal(mixt_judgement_json(&j, &text), MIXT_OK);
    o = json_loads(text, 0, NULL);
    mixt_free(text);
    assert_true(json_is_null(json_object_get(o, "value")) && json_is_null(json_object_get(o, "high")));
    assert_true(json_is_null(json_object_get(o, "unseen")));
    json_decref(o);
}

enum { SEARCHES = 300 };

/** Policies judged one after the other until one is called safe, each of them worse by just the margin: in how many of
 *  SEARCHES such searches one is. */
static int64_t false_yes(int64_t finalists, mixt__rng *rng)
{
    int64_t wrong = 0;
    for (int search = 0; search < SEARCHES; search++) {
        mixt_judgement j = {.verdict = MIXT_VERDICT_NO};
        for (int64_t f = 1; f <= finalists && j.verdict != MIXT_VERDICT_YES; f++) {
            double worse[12];
            int64_t six = 6;
            for (int i = 0; i < 12; i++)
                worse[i] = 0.005 + 0.01 * (double)mixt__rng_normal(rng);
            assert_int_equal(mixt__judge_finalist(worse, 6, 0.005, NULL, 0, f, &j), MIXT_OK);
            if (j.verdict == MIXT_VERDICT_UNDECIDED) // a second look
                assert_int_equal(mixt__judge_finalist(worse, 12, 0.005, &six, 1, f, &j), MIXT_OK);
        }
        wrong += j.verdict == MIXT_VERDICT_YES;
    }
    return wrong;
}

static void test_finalists(void **state)
{
    (void)state;
    mixt__rng rng = mixt__rng_start(mixt__rng_key(77, 1, 1));
    const double calm[6] = {0.0004, 0.0016, -0.0007, 0.0011, 0.0001, 0.0010};
    mixt_judgement first, third;
    int64_t one = false_yes(1, &rng), eight = false_yes(8, &rng);
    assert_true(one < 24 && eight < 28); // 15, and two or three of its deviations
    assert_int_equal(mixt__judge_finalist(calm, 6, 0.005, NULL, 0, 1, &first), MIXT_OK);
    assert_int_equal(mixt__judge_finalist(calm, 6, 0.005, NULL, 0, 3, &third), MIXT_OK);
    assert_int_equal(first.verdict, MIXT_VERDICT_YES);
    assert_true(third.low < first.low && third.high > first.high && third.value == first.value);
    assert_true(third.verdict == MIXT_VERDICT_UNDECIDED && third.needs > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worse),  cmocka_unit_test(test_ratios),
                                       cmocka_unit_test(test_series), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_json),   cmocka_unit_test(test_finalists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
