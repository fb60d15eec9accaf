/* How often verdicts are wrong, and how often there is one: a thousand simulated experiments of each kind, each planned
 * from a pilot of its own as mixt compare plans them. Seeds are fixed: the shares are the same everywhere.
 * Usage: test_stats_calibration [EXPERIMENTS]; beyond a thousand, over more spreads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "mixt/compare.h"

#include <math.h>
#include <stdlib.h>

enum { PILOT = MIXT_STATS_PAIRS_MIN, PAIRS_MAX = 4096, LOOKS = 3 };

static int experiments = 1000;

/** Verdicts of the experiments of one kind. */
typedef struct tally {
    int verdicts[3]; // by mixt_stats_verdict
    int64_t pairs;   // of all experiments
} tally;

/** Draws differences up to a number of them. */
static void draw(mixt__rng *rng, double truth, double spread, int64_t *drawn, int64_t count, double *worse)
{
    for (; *drawn < count; ++*drawn)
        worse[*drawn] = truth + spread * (double)mixt__rng_normal(rng);
}

/** One experiment: pilot, plan, look; where it stays undecided and more looks are allowed, what is asked for is added.
 *  @param truth the true difference; @param spread its deviation, both in margins
 *  @param grow share of the pairs that each look adds; 0: what the verdict asks for */
static mixt_stats_verdict experiment(uint64_t seed, double truth, double spread, int looks, double grow, int64_t *pairs)
{
    static double worse[PAIRS_MAX];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(20261116, seed, (uint64_t)(1000 * spread)));
    int64_t earlier[LOOKS];
    mixt_stats_judgement j = {.verdict = MIXT_STATS_UNDECIDED};
    int64_t drawn = 0, count = PILOT;
    draw(&rng, truth, spread, &drawn, count, worse);
    count = mixt_stats_plan(worse, PILOT, 1);
    for (int look = 0; look < looks && count <= PAIRS_MAX; look++) {
        draw(&rng, truth, spread, &drawn, count, worse);
        assert_int_equal(mixt_stats_judge(worse, count, 1, earlier, look, &j), MIXT_OK);
        earlier[look] = *pairs = count;
        if (j.verdict != MIXT_STATS_UNDECIDED)
            break;
        count += grow > 0 ? (int64_t)ceil(grow * (double)count) : j.more;
    }
    return j.verdict;
}

static tally simulate(double truth, double spread, int looks, double grow)
{
    tally t = {0};
    for (uint64_t i = 0; i < (uint64_t)experiments; i++) {
        int64_t pairs = 0;
        t.verdicts[experiment(i, truth, spread, looks, grow, &pairs)]++;
        t.pairs += pairs;
    }
    print_message("  truth %g, spread %g, %d look%s: non-inferior %.1f%%, inferior %.1f%%, %.1f pairs\n", truth, spread,
                  looks, looks == 1 ? "" : "s", 100.0 * t.verdicts[MIXT_STATS_NON_INFERIOR] / experiments,
                  100.0 * t.verdicts[MIXT_STATS_INFERIOR] / experiments, (double)t.pairs / experiments);
    return t;
}

/** Spreads from "the pilot is enough" to "it takes many pairs". */
static void check(int looks)
{
    const double spreads[] = {0.6, 0.4, 0.8, 1, 1.5, 3};
    int count = experiments > 1000 ? 6 : 1;
    for (int i = 0; i < count; i++) {
        tally margin = simulate(1, spreads[i], looks, 0), none = simulate(0, spreads[i], looks, 0),
              twice = simulate(2, spreads[i], looks, 0);
        assert_true(margin.verdicts[MIXT_STATS_NON_INFERIOR] <= experiments * MIXT_STATS_ALPHA);
        assert_true(margin.verdicts[MIXT_STATS_INFERIOR] <= experiments * MIXT_STATS_ALPHA);
        assert_true(none.verdicts[MIXT_STATS_INFERIOR] <= experiments * MIXT_STATS_ALPHA);
        assert_true(none.verdicts[MIXT_STATS_NON_INFERIOR] >= experiments * MIXT_STATS_POWER);
        assert_true(twice.verdicts[MIXT_STATS_INFERIOR] >= experiments * MIXT_STATS_POWER);
    }
}

static void test_one_look(void **state)
{
    (void)state;
    check(1);
}

static void test_more_looks(void **state)
{
    (void)state;
    check(LOOKS);
}

/** One who adds a third and looks again, whatever the verdict asks for, is wrong no more often. */
static void test_impatient(void **state)
{
    (void)state;
    experiments *= 2;
    tally t = simulate(1, 0.9, LOOKS, 1.0 / 3);
    assert_true(t.verdicts[MIXT_STATS_NON_INFERIOR] <= experiments * MIXT_STATS_ALPHA);
    assert_true(t.verdicts[MIXT_STATS_INFERIOR] <= experiments * MIXT_STATS_ALPHA);
}

/** Judging is refused where it makes no sense. */
static void test_misuse(void **state)
{
    (void)state;
    const double worse[6] = {0.1, -0.2, 0.1, 0, 0.3, -0.1}, broken[2] = {0, INFINITY};
    const int64_t later[1] = {6};
    mixt_stats_judgement j;
    assert_int_equal(mixt_stats_judge(worse, 4, 1, NULL, 0, &j), MIXT_OK);
    assert_true(j.verdict == MIXT_STATS_UNDECIDED && j.more >= 1); // too few, however clear
    assert_int_equal(mixt_stats_judge(worse, 6, 1, NULL, 0, &j), MIXT_OK);
    assert_true(j.verdict == MIXT_STATS_NON_INFERIOR && !j.more && j.confidence > 0.9499 && j.confidence < 0.9501);
    assert_int_equal(mixt_stats_judge(worse, 1, 1, NULL, 0, &j), MIXT_OK);
    assert_true(j.verdict == MIXT_STATS_UNDECIDED && j.more == MIXT_STATS_PAIRS_MIN - 1);
    assert_int_equal(mixt_stats_judge(broken, 2, 1, NULL, 0, &j), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_judge(worse, 6, 0, NULL, 0, &j), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_judge(worse, 6, 1, later, 1, &j), MIXT_ERROR_ARGUMENT); // as many as now
    assert_int_equal(mixt_stats_judge(NULL, 6, 1, NULL, 0, &j), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_plan(worse, 1, 1), 0);
    assert_int_equal(mixt_stats_plan(broken, 2, 1), 0);
}

int main(int argc, char **argv)
{
    experiments = argc > 1 ? atoi(argv[1]) : experiments;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_one_look),
        cmocka_unit_test(test_more_looks),
        cmocka_unit_test(test_impatient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
