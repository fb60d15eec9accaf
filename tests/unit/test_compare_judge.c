/* What compare concludes of pairs that are made up: the judgements of all claims, advice that agrees with them, and
 * what is said beside a verdict.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "prove/compare.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 8 };

/** Pairs of a B that loses, takes time and takes memory as shares of A's, each with some noise but the memory. */
static mixt_comparison *made(double loss, double time, double memory)
{
    static const double noise[PAIRS] = {0.001, -0.002, 0, 0.002, -0.001, 0.0015, -0.0015, 0.0005};
    const mixt_compare_options options = MIXT_OPTIONS(mixt_compare_options, .name = "made", .margin = 0.01);
    mixt_comparison *c;
    assert_int_equal(mixt__compare_new(&c), MIXT_OK);
    assert_int_equal(mixt__compare_take_options(c, &options), MIXT_OK);
    assert_int_equal(mixt__compare_state_grow(c, PAIRS), MIXT_OK);
    for (int i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++) {
            bool b = side == MIXT_COMPARE_B;
            double pace = 0.01 * (b ? time * (1 + noise[PAIRS - 1 - i]) : 1);
            c->pairs[i].done[side] = true;
            c->pairs[i].runs[side] = (mixt_compare_run){.steps = 100,
                                                        .start_loss = 2,
                                                        .train_loss = 1,
                                                        .loss = b ? loss * (1 + noise[i]) : 1,
                                                        .best_loss = 1,
                                                        .accuracy = NAN,
                                                        .step_seconds = pace,
                                                        .samples_s = 1 / pace,
                                                        .seconds = 100 * pace,
                                                        .memory = b ? 1e6 * memory : 1e6,
                                                        .energy = NAN,
                                                        .grad_norm = 1,
                                                        .grad_norm_max = 1,
                                                        .equal_steps = 90,
                                                        .equal_seconds = 90 * pace};
        }
    c->info.needed = c->info.wanted = PAIRS;
    return c;
}

static mixt_comparison *concluded(double loss, double time, double memory)
{
    mixt_comparison *c = made(loss, time, memory);
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    return c;
}

static void assert_advice(double time, double memory, const char *expected)
{
    mixt_comparison *c = concluded(1, time, memory);
    assert_int_equal(mixt_comparison_describe(c).verdict, MIXT_STATS_NON_INFERIOR);
    assert_string_equal(mixt_comparison_describe(c).advice, expected);
    mixt_comparison_free(c);
}

static void test_advice(void **state)
{
    (void)state;
    assert_advice(0.5, 0.6, "take B: as good within the margin, in 50% of A's time and 60% of its memory");
    assert_advice(1, 0.6, "take B: as good within the margin, in 60% of A's memory");
    assert_advice(1, 1,
                  "either will do: B is as good within the margin, and neither was shown to be faster or is smaller");
    assert_advice(2, 1.5, "keep A: B is as good within the margin, but takes 200% of A's time and 150% of its memory");
    assert_advice(2, 1, "keep A: B is as good within the margin, but takes 200% of A's time");
    assert_advice(1, 1.5, "keep A: B is as good within the margin, but takes 150% of A's memory");
    assert_advice(
        0.5, 1.5,
        "take B where time counts more than memory: as good within the margin, in 50% of A's time, but in 150% "
        "of A's memory");
    assert_advice(2, 0.6,
                  "take B where memory counts more than time: as good within the margin, in 60% of A's memory, but in "
                  "200% of A's time");
    mixt_comparison *c = made(1, 2, 1.5); // the time to equal loss says nothing: that of an update does
    for (int i = 0; i < PAIRS; i++)
        c->pairs[i].runs[MIXT_COMPARE_B].equal_seconds *= i % 2 ? 0.1 : 1;
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    assert_string_equal(
        mixt_comparison_describe(c).advice,
        "keep A: B is as good within the margin, but takes 200% of A's time per update and 150% of its memory");
    mixt_comparison_free(c);
    c = concluded(1.5, 0.5, 0.6);
    assert_int_equal(mixt_comparison_describe(c).verdict, MIXT_STATS_INFERIOR);
    assert_string_equal(mixt_comparison_describe(c).advice, "keep A");
    mixt_comparison_free(c);
}

static void assert_claim(const mixt_comparison *c, mixt_claim claim, mixt_verdict verdict, double value)
{
    const mixt_judgement *j = mixt_comparison_judgement(c, claim);
    assert_non_null(j);
    assert_int_equal(j->claim, claim);
    assert_int_equal(j->verdict, verdict);
    assert_int_equal(j->evidence, MIXT_EVIDENCE_PAIRED);
    assert_true(fabs(j->value - value) < 1e-3 && j->pairs == PAIRS && j->updates == 100);
}

static void test_judgements(void **state)
{
    (void)state;
    mixt_comparison *c = concluded(1, 2, 0.6);
    assert_claim(c, MIXT_CLAIM_SAFE, MIXT_VERDICT_YES, 0);
    assert_claim(c, MIXT_CLAIM_FASTER, MIXT_VERDICT_NO, 0.5);
    assert_claim(c, MIXT_CLAIM_SMALLER, MIXT_VERDICT_YES, 0.4);
    assert_claim(c, MIXT_CLAIM_CHEAPER, MIXT_VERDICT_NO, -1);
    assert_true(mixt_comparison_judgement(c, MIXT_CLAIM_SAFE)->margin == 0.01);
    assert_null(mixt_comparison_judgement(c, MIXT_CLAIM_COUNT));
    assert_null(mixt_comparison_judgement(NULL, MIXT_CLAIM_SAFE));
    mixt_comparison_free(c);
    c = made(1, 1, 1);
    for (int i = 0; i < PAIRS; i++)
        c->pairs[i].runs[MIXT_COMPARE_B].diverged = true;
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    assert_claim(c, MIXT_CLAIM_SAFE, MIXT_VERDICT_NO, 1);
    assert_string_equal(mixt_comparison_judgement(c, MIXT_CLAIM_SAFE)->statistic, "runs that diverged");
    assert_null(mixt_comparison_judgement(c, MIXT_CLAIM_FASTER));
    mixt_comparison_free(c);
}

/** One run that fails forbids "non-inferior": one that diverges is worse than any margin, one that ends worse counts
 *  with its difference. */
static void test_failures(void **state)
{
    (void)state;
    mixt_comparison *c = made(1, 1, 1);
    c->pairs[3].runs[MIXT_COMPARE_B].diverged = true;
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    assert_int_equal(mixt_comparison_describe(c).verdict, MIXT_STATS_UNDECIDED);
    assert_non_null(
        strstr(mixt_comparison_describe(c).reason, "pairs, A in none: B is not shown to be non-inferior, but so"));
    mixt_comparison_free(c);
    c = made(1, 1, 1);
    c->pairs[3].runs[MIXT_COMPARE_B].loss = 1.06; // its mean is 0.75% above A's, and may be 1%
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    assert_int_equal(mixt_comparison_describe(c).verdict, MIXT_STATS_UNDECIDED);
    mixt_comparison_free(c);
}

/** Fewer pairs than the pilot asked for, and what so few cannot show, stand in the sentence. */
static void test_scope(void **state)
{
    (void)state;
    mixt_comparison *c = concluded(1, 1, 1);
    const char *reason = mixt_comparison_describe(c).reason;
    assert_non_null(strstr(reason, "; failures in fewer than 31% of runs are not ruled out"));
    assert_null(strstr(reason, "that the pilot asked for"));
    mixt_comparison_free(c);
    c = made(1, 1, 1);
    c->info.needed = 9;
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    assert_int_equal(mixt_comparison_describe(c).verdict, MIXT_STATS_NON_INFERIOR);
    assert_non_null(
        strstr(mixt_comparison_describe(c).reason, "; 8 of the 9 pairs that the pilot asked for; failures"));
    mixt_comparison_free(c);
    c = made(1, 1, 1);
    c->info.pilot = true; // however clear: what it asks for was not made
    c->info.needed = 100;
    assert_int_equal(mixt__compare_conclude(c), MIXT_OK);
    mixt_comparison_info info = mixt_comparison_describe(c);
    assert_true(info.verdict == MIXT_STATS_UNDECIDED && info.looks == 0 && info.judgement.more == 100 - PAIRS);
    assert_non_null(strstr(info.reason, "100 pairs are needed by the pilot"));
    assert_int_equal(mixt_comparison_judgement(c, MIXT_CLAIM_SAFE)->verdict, MIXT_VERDICT_UNDECIDED);
    assert_int_equal(mixt_comparison_judgement(c, MIXT_CLAIM_SAFE)->needs, 100 - PAIRS);
    mixt_comparison_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_advice), cmocka_unit_test(test_judgements),
                                       cmocka_unit_test(test_failures), cmocka_unit_test(test_scope)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
