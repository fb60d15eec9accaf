/* How often verdicts are wrong, and how often there is one: simulated experiments of each kind, each planned from a
 * pilot of its own as mixt compare plans them. Seeds are fixed: the shares are the same everywhere.
 * Usage: test_stats_calibration [EXPERIMENTS]; from five thousand on, over more spreads. Shares may be two standard
 * errors above what is promised.
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

enum { PILOT = MIXT_STATS_PAIRS_MIN, PAIRS_MAX = 4096, LOOKS = 3, MANY = 5000 };

static int experiments = 250;

/** How differences lie around their mean; of deviation 1. Right: rare ones are worse. */
typedef enum kind {
    NORMAL,
    STUDENT_3,
    EXPONENTIAL_RIGHT,
    EXPONENTIAL_LEFT,
    LOGNORMAL_RIGHT,
    LOGNORMAL_LEFT,
    KINDS,
    FAILURES = KINDS // B is as good but for a share of its runs, which are so much worse that the mean is the truth
} kind;
static const char *const names[] = {
    "normal", "t3", "exponential, right", "exponential, left", "lognormal, right", "lognormal, left", "failures"};

typedef struct design {
    kind kind;
    double truth;  // the mean difference, in margins
    double spread; // the deviation, in margins; FAILURES: of the runs that do not fail
    double rate;   // FAILURES: of runs that fail
    bool exclude;  // FAILURES: as many pairs as exclude that rate
    int looks;
    double grow; // share of the pairs that each look adds; 0: what the verdict asks for
} design;

/** Verdicts of the experiments of one kind. */
typedef struct tally {
    int verdicts[3]; // by mixt_stats_verdict
    int claims;      // that were false: non-inferior where the rate of failures is one that the verdict excludes
    int64_t pairs;   // of all experiments
} tally;

static double draw_one(mixt__rng *rng, const design *d)
{
    const double e = exp(1), size = sqrt((e - 1) * e); // of a lognormal number
    double z = (double)mixt__rng_normal(rng), u = 1 - (double)mixt__rng_uniform(rng), chi = 0;
    switch (d->kind) {
    case STUDENT_3:
        for (int i = 0; i < 3; i++) {
            double y = (double)mixt__rng_normal(rng);
            chi += y * y;
        }
        return d->truth + d->spread * z / sqrt(chi); // of variance 3, before it is divided by sqrt 3
    case EXPONENTIAL_RIGHT:
        return d->truth + d->spread * (-log(u) - 1);
    case EXPONENTIAL_LEFT:
        return d->truth - d->spread * (-log(u) - 1);
    case LOGNORMAL_RIGHT:
        return d->truth + d->spread * (exp(z) - sqrt(e)) / size;
    case LOGNORMAL_LEFT:
        return d->truth - d->spread * (exp(z) - sqrt(e)) / size;
    case FAILURES:
        return d->spread * z + (u <= d->rate ? d->truth / d->rate : 0);
    default:
        return d->truth + d->spread * z;
    }
}

/** mixt_stats_plan, for deviations that are rounded up by at most 1% and looked up from then on. */
static int64_t plan_of(const double *pilot)
{
    static int64_t known[2000];
    double deviation = mixt_stats_summarise(pilot, PILOT).deviation, like[PILOT];
    int at = (int)fmin(fmax(ceil(log(deviation / 1e-3) / log(1.01)), 0), 1999);
    for (int i = 0; i < PILOT; i++)
        like[i] = (i % 2 ? 1 : -1) * 1e-3 * pow(1.01, at) * sqrt((PILOT - 1.0) / PILOT);
    return known[at] = known[at] ? known[at] : mixt_stats_plan(like, PILOT, 1);
}

/** One experiment: pilot, plan, look; where it stays undecided and more looks are allowed, pairs are added. */
static mixt_stats_judgement experiment(uint64_t seed, const design *d)
{
    static double worse[PAIRS_MAX];
    mixt__rng rng =
        mixt__rng_start(mixt__rng_key(20261116, seed, (uint64_t)(1000 * d->spread) + 10000 * (uint64_t)d->kind));
    int64_t earlier[LOOKS], drawn = 0, count = PILOT, least = d->exclude ? mixt_stats_pairs_to_see(d->rate) : 0;
    mixt_stats_judgement j = {.verdict = MIXT_STATS_UNDECIDED};
    for (; drawn < PILOT; drawn++)
        worse[drawn] = draw_one(&rng, d);
    count = plan_of(worse);
    count = count > least ? count : least;
    for (int look = 0; look < d->looks && count <= PAIRS_MAX; look++) {
        for (; drawn < count; drawn++)
            worse[drawn] = draw_one(&rng, d);
        assert_int_equal(mixt_stats_judge(worse, count, 1, earlier, look, &j), MIXT_OK);
        earlier[look] = count;
        if (j.verdict != MIXT_STATS_UNDECIDED)
            break;
        count += d->grow > 0 ? (int64_t)ceil(d->grow * (double)count) : j.more;
    }
    return j;
}

static tally simulate(design d)
{
    tally t = {0};
    for (uint64_t i = 0; i < (uint64_t)experiments; i++) {
        mixt_stats_judgement j = experiment(i, &d);
        t.verdicts[j.verdict]++;
        t.claims += j.verdict == MIXT_STATS_NON_INFERIOR && d.rate >= j.unseen;
        t.pairs += j.summary.count;
    }
    print_message("  %-18s truth %g, spread %-4g looks %d: non-inferior %5.2f%%, inferior %5.2f%%, %.1f pairs\n",
                  names[d.kind], d.truth, d.spread, d.looks, 100.0 * t.verdicts[MIXT_STATS_NON_INFERIOR] / experiments,
                  100.0 * t.verdicts[MIXT_STATS_INFERIOR] / experiments, (double)t.pairs / experiments);
    return t;
}

static void assert_rare(int wrong)
{
    double allowed = MIXT_STATS_ALPHA * experiments;
    allowed += 2 * sqrt(allowed * (1 - MIXT_STATS_ALPHA));
    if (wrong > allowed)
        fail_msg("%d of %d are wrong", wrong, experiments);
}

/** At the margin itself neither verdict is right. */
static void check_margin(design d)
{
    d.truth = 1;
    tally t = simulate(d);
    assert_rare(t.verdicts[MIXT_STATS_NON_INFERIOR]);
    assert_rare(t.verdicts[MIXT_STATS_INFERIOR]);
}

/** From "it takes some pairs", where skew is hardest, to "the pilot is enough" and "it takes many". */
static const double spreads[] = {1.5, 0.15, 0.4, 0.8, 3};

static int spread_count(void)
{
    return experiments < MANY ? 1 : (int)(sizeof spreads / sizeof spreads[0]);
}

static void test_one_look(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < spread_count(); i++)
            check_margin((design){.kind = (kind)k, .spread = spreads[i], .looks = 1});
}

/** Whoever adds half as many and looks again, whatever the verdict asks for, is wrong no more often. */
static void test_more_looks(void **state)
{
    (void)state;
    for (int i = 0; i < spread_count(); i++)
        check_margin((design){.kind = LOGNORMAL_RIGHT, .spread = spreads[i], .looks = LOOKS, .grow = 0.5});
    if (experiments < MANY)
        return;
    check_margin((design){.kind = NORMAL, .spread = 1.5, .looks = LOOKS, .grow = 0.5});
    check_margin((design){.kind = EXPONENTIAL_RIGHT, .spread = 1.5, .looks = LOOKS, .grow = 0.5});
    check_margin((design){.kind = LOGNORMAL_RIGHT, .spread = 0.8, .looks = LOOKS}); // as many as are asked for
}

/** What is promised of normal differences. */
static void test_power(void **state)
{
    (void)state;
    for (int i = 0; i < spread_count(); i++) {
        tally none = simulate((design){.spread = spreads[i], .looks = 1}),
              twice = simulate((design){.truth = 2, .spread = spreads[i], .looks = 1});
        assert_rare(none.verdicts[MIXT_STATS_INFERIOR]);
        assert_true(none.verdicts[MIXT_STATS_NON_INFERIOR] >= experiments * MIXT_STATS_POWER);
        assert_true(twice.verdicts[MIXT_STATS_INFERIOR] >= experiments * MIXT_STATS_POWER);
    }
}

/** Failures that come in 1 of 10 or 1 of 20 runs. Pairs that exclude them are asked for: false verdicts are rare. They
 *  are not: then the verdict does not claim to exclude them. */
static void test_failures(void **state)
{
    (void)state;
    const double rates[] = {0.1, 0.05};
    for (int r = 0; r < (experiments < MANY ? 1 : 2); r++)
        for (int looks = 1; looks <= (experiments < MANY ? 1 : LOOKS); looks += LOOKS - 1) {
            design d = {.kind = FAILURES, .truth = 1, .spread = 0.2, .rate = rates[r], .looks = looks, .grow = 0.5};
            tally t = simulate(d);
            assert_rare(t.claims);
            d.exclude = true;
            t = simulate(d);
            assert_rare(t.verdicts[MIXT_STATS_NON_INFERIOR]);
        }
}

/** A B that looks far worse in a pilot that asks for too many pairs: as many are made as tell if it is so. */
static void test_plainly_worse(void **state)
{
    (void)state;
    enum { PLANNED = 64 };
    const double far[6] = {50, 41, 58, 47, 52, 55}, near[6] = {-50, -41, -58, -47, -52, -55};
    double worse[PLANNED];
    int wrong = 0, seen = 0;
    mixt_stats_judgement j;
    assert_int_equal(mixt_stats_plan_inferior(far, 6, 1), 6);
    assert_int_equal(mixt_stats_plan_inferior(near, 6, 1), 0);
    assert_int_equal(mixt_stats_plan_inferior(far, 1, 1), 0);
    for (uint64_t i = 0; i < 2 * (uint64_t)experiments; i++) { // half of them at the margin, half far from it
        const design d = {.kind = i % 4 < 2 ? LOGNORMAL_LEFT : NORMAL, .truth = i % 2 ? 30 : 1, .spread = 10};
        mixt__rng rng = mixt__rng_start(mixt__rng_key(7, i, 0));
        for (int n = 0; n < PLANNED; n++)
            worse[n] = draw_one(&rng, &d);
        int64_t pairs = mixt_stats_plan_inferior(worse, PILOT, 1);
        if (!pairs || pairs > PLANNED)
            continue;
        assert_int_equal(mixt_stats_judge(worse, pairs, 1, NULL, 0, &j), MIXT_OK);
        *(i % 2 ? &seen : &wrong) += j.verdict == MIXT_STATS_INFERIOR;
    }
    print_message("  plainly worse: inferior %.2f%% at the margin, %.2f%% where it is\n", 100.0 * wrong / experiments,
                  100.0 * seen / experiments);
    assert_rare(wrong);
    assert_true(seen >= experiments * MIXT_STATS_POWER);
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
    assert_true(fabs(j.unseen - 0.393) < 1e-3 && j.interval.high > j.student.high && j.interval.low < j.student.low);
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
        cmocka_unit_test(test_misuse),     cmocka_unit_test(test_plainly_worse), cmocka_unit_test(test_one_look),
        cmocka_unit_test(test_more_looks), cmocka_unit_test(test_power),         cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
