/* Statistics against numbers worked out by hand, printed tables and other ways to the same number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "mixt/compare.h"

#include <math.h>

static void assert_close(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("got %.12g, expected %.12g", got, expected);
}

static void test_distributions(void **state)
{
    (void)state;
    assert_close(mixt_stats_normal_below(0), 0.5, 0);
    assert_close(mixt_stats_normal_below(1.959963984540054), 0.975, 1e-15);
    assert_close(mixt_stats_normal_at(0.975), 1.959963984540054, 1e-14);
    assert_close(mixt_stats_normal_at(1e-9), -5.997807015007687, 1e-12);
    assert_true(isnan(mixt_stats_normal_at(0)) && isnan(mixt_stats_normal_at(1.5)));
    assert_close(mixt_stats_t_quantile(0.975, 4), 2.776445105197793, 1e-12);
    assert_close(mixt_stats_t_quantile(0.05, 9), -1.833112932656237, 1e-12);
    assert_close(mixt_stats_t_quantile(0.5, 3), 0, 1e-15);
    assert_true(isnan(mixt_stats_t_quantile(0.5, 0)) && isnan(mixt_stats_t_cdf(NAN, 3)));
    for (double freedom = 1; freedom < 1000; freedom *= 3) // without a shift it is Student's
        for (double t = -3; t <= 3; t += 0.75)
            assert_close(mixt_stats_noncentral_t_cdf(t, freedom, 0), mixt_stats_t_cdf(t, freedom), 1e-10);
    for (double shift = -2; shift < 5; shift += 0.5) { // P(T <= 0) = P(Z <= -shift), whatever the freedom
        assert_close(mixt_stats_noncentral_t_cdf(0, 3, shift), mixt_stats_normal_below(-shift), 1e-10);
        assert_close(mixt_stats_noncentral_t_cdf(1, 1e9, shift), mixt_stats_normal_below(1 - shift), 1e-6);
    }
}

static void test_summary(void **state)
{
    (void)state;
    const double x[5] = {1, 2, 3, 4, 10}, broken[2] = {1, NAN}, same[3] = {2, 2, 2};
    mixt_stats_summary s = mixt_stats_summarise(x, 5);
    assert_close(s.mean, 4, 1e-15);
    assert_close(s.deviation, sqrt(12.5), 1e-14);
    assert_close(s.error, sqrt(2.5), 1e-14);
    assert_close(s.skewness, 36 / pow(10, 1.5), 1e-14); // offsets -3 -2 -1 0 6: squares 50, cubes 180
    mixt_stats_interval i = mixt_stats_t_interval(&s, 0.95);
    assert_close(i.low, 4 - 2.776445105197793 * sqrt(2.5), 1e-10);
    assert_close(i.high, 4 + 2.776445105197793 * sqrt(2.5), 1e-10);
    assert_close(mixt_stats_t_p(&s, i.high, MIXT_STATS_BELOW), 0.025, 1e-12); // an interval is where p is 0.05
    assert_close(mixt_stats_t_p(&s, i.low, MIXT_STATS_ABOVE), 0.025, 1e-12);
    assert_close(mixt_stats_t_p(&s, i.low, MIXT_STATS_BOTH), 0.05, 1e-12);
    assert_close(mixt_stats_effect(&s), 4 / sqrt(12.5) * sqrt(2 / M_PI), 1e-12); // G(2) / (G(1.5) sqrt 2)
    s = mixt_stats_summarise(broken, 2);
    assert_true(isnan(s.mean) && isnan(mixt_stats_t_p(&s, 0, MIXT_STATS_BOTH)) && isnan(mixt_stats_effect(&s)));
    s = mixt_stats_summarise(x, 1);
    assert_true(s.mean == 1 && isnan(s.deviation) && isnan(mixt_stats_t_interval(&s, 0.95).low));
    s = mixt_stats_summarise(x, 0);
    assert_true(!s.count && isnan(s.mean));
    s = mixt_stats_summarise(same, 3);
    i = mixt_stats_t_interval(&s, 0.95);
    assert_true(i.low == 2 && i.high == 2 && isnan(mixt_stats_effect(&s)));
    assert_true(mixt_stats_t_p(&s, 2, MIXT_STATS_BOTH) == 1 && mixt_stats_t_p(&s, 3, MIXT_STATS_BELOW) == 0);
}

static void test_flips(void **state)
{
    (void)state;
    const double x[4] = {1, 2, 3, -1}, far[25] = {0};
    // Sums of +-1 +-2 +-3 +-1: 5 is seen; 7 and, in two ways, 5 are as far: 3 of 16.
    assert_close(mixt_stats_flip_p(x, 4, 0, MIXT_STATS_ABOVE, 0), 3.0 / 16, 0);
    assert_close(mixt_stats_flip_p(x, 4, 0, MIXT_STATS_BOTH, 0), 6.0 / 16, 0);
    assert_close(mixt_stats_flip_p(x, 4, 0, MIXT_STATS_BELOW, 0), 15.0 / 16, 0); // all but 7
    assert_close(mixt_stats_flip_p(x, 4, 10, MIXT_STATS_BELOW, 0), 1.0 / 16, 0);
    assert_close(mixt_stats_flip_p(far, 25, 0, MIXT_STATS_BOTH, 0), 1, 0);
    assert_close(mixt_stats_flip_p(far, 25, 1, MIXT_STATS_BELOW, 7), 1.0 / (MIXT_STATS_FLIPS_DRAWN + 1), 1e-4);
    assert_true(isnan(mixt_stats_flip_p(x, 0, 0, MIXT_STATS_BOTH, 0)));
    // Drawn signs tell what all of them do: 21 numbers, of which one says nothing, against the other 20.
    double y[21];
    mixt__rng rng = mixt__rng_start(3);
    for (int i = 0; i < 20; i++)
        y[i] = (double)mixt__rng_normal(&rng) + 0.3;
    y[20] = 0;
    double exact = mixt_stats_flip_p(y, 20, 0, MIXT_STATS_ABOVE, 0);
    assert_close(mixt_stats_flip_p(y, 21, 0, MIXT_STATS_ABOVE, 5), exact, 4 * sqrt(exact / MIXT_STATS_FLIPS_DRAWN));
    assert_close(mixt_stats_sign_p(5, 0), 1.0 / 32, 1e-15);
    assert_close(mixt_stats_sign_p(3, 1), 5.0 / 16, 1e-15);
    assert_close(mixt_stats_sign_p(0, 4), 1, 0);
}

static void test_bootstrap(void **state)
{
    (void)state;
    double x[40];
    mixt__rng rng = mixt__rng_start(9);
    for (int i = 0; i < 40; i++)
        x[i] = exp((double)mixt__rng_normal(&rng)); // skewed to the right
    mixt_stats_summary s = mixt_stats_summarise(x, 40);
    mixt_stats_interval bca, again, plain, t = mixt_stats_t_interval(&s, 0.95);
    assert_int_equal(mixt_stats_bootstrap(x, 40, NULL, &bca), MIXT_OK);
    assert_int_equal(mixt_stats_bootstrap(x, 40, NULL, &again), MIXT_OK);
    assert_true(bca.low == again.low && bca.high == again.high);
    mixt_stats_bootstrap_options options = MIXT_OPTIONS(mixt_stats_bootstrap_options, .percentile = true);
    assert_int_equal(mixt_stats_bootstrap(x, 40, &options, &plain), MIXT_OK);
    assert_close(plain.high - plain.low, t.high - t.low, 0.1 * (t.high - t.low));
    assert_true(bca.low > plain.low && bca.high > plain.high &&
                bca.high - s.mean > s.mean - bca.low); // it leans with the data
    const double same[3] = {2, 2, 2};
    assert_int_equal(mixt_stats_bootstrap(same, 3, NULL, &bca), MIXT_OK);
    assert_true(bca.low == 2 && bca.high == 2);
    options.confidence = 1;
    assert_int_equal(mixt_stats_bootstrap(x, 1, NULL, &bca), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_bootstrap(x, 40, &options, &bca), MIXT_ERROR_ARGUMENT);
    x[3] = NAN;
    assert_int_equal(mixt_stats_bootstrap(x, 40, NULL, &bca), MIXT_ERROR_ARGUMENT);
}

static void test_power(void **state)
{
    (void)state;
    // power.t.test(n = 20, delta = 1, sd = 1, type = "one.sample", alternative = "one.sided") and G*Power agree.
    assert_close(mixt_stats_power(20, 1, 1, 0.05), 0.9961, 1e-4);
    assert_close(mixt_stats_power(20, 2, 1, 0.05), 0.6951, 1e-4);
    assert_close(mixt_stats_power(50, 1, 0, 0.05), 0.05, 1e-9); // at the bound the power is the level
    assert_true(mixt_stats_power(5, 0, 1, 0.05) == 1 && isnan(mixt_stats_power(1, 1, 1, 0.05)));
    for (double deviation = 0.2; deviation < 5; deviation *= 1.7) {
        int64_t n = mixt_stats_pairs(deviation, INFINITY, 1, 0.025, 0.9);
        assert_true(mixt_stats_power(n, deviation, 1, 0.025) >= 0.9);
        assert_true(n == 2 || mixt_stats_power(n - 1, deviation, 1, 0.025) < 0.9);
        assert_true(mixt_stats_pairs(deviation, 4, 1, 0.025, 0.9) >= n); // a small pilot is paid for
        assert_true(mixt_stats_pairs(deviation, 1e6, 1, 0.025, 0.9) - n <= 2 + n / 10);
    }
    assert_int_equal(mixt_stats_pairs(0, 4, 1, 0.025, 0.9), 2);
    assert_int_equal(mixt_stats_pairs(1, 4, 1e-9, 0.025, 0.9), MIXT_STATS_PAIRS_MAX + 1);
    assert_int_equal(mixt_stats_pairs(1, 4, 0, 0.025, 0.9), 0);
    assert_int_equal(mixt_stats_pairs(NAN, 4, 1, 0.025, 0.9), 0);
}

/** Wider than Student's, by less the more numbers there are; p is where the interval ends. */
static void test_skew(void **state)
{
    (void)state;
    double x[60];
    mixt__rng rng = mixt__rng_start(11);
    for (int i = 0; i < 60; i++)
        x[i] = exp((double)mixt__rng_normal(&rng)); // skewed to the right
    for (int64_t n = 2; n <= 60; n = n < 6 ? n + 1 : 2 * n) {
        mixt_stats_summary s = mixt_stats_summarise(x, n);
        for (double confidence = 0.5; confidence < 0.9999; confidence += (1 - confidence) / 2) {
            mixt_stats_interval wide = mixt_stats_skew_interval(&s, confidence),
                                t = mixt_stats_t_interval(&s, confidence);
            double level = (1 - confidence) / 2;
            assert_true(wide.low <= t.low && wide.high >= t.high);
            assert_true(s.skewness <= 0 || wide.high - s.mean >= s.mean - wide.low); // it leans with the data
            assert_close(mixt_stats_skew_p(&s, wide.high, MIXT_STATS_BELOW), level, 1e-9);
            assert_close(mixt_stats_skew_p(&s, wide.low, MIXT_STATS_ABOVE), level, 1e-9);
            assert_close(mixt_stats_skew_p(&s, wide.high, MIXT_STATS_BOTH), 2 * level, 1e-9);
        }
        assert_close(mixt_stats_skew_p(&s, s.mean, MIXT_STATS_BOTH), 1, 1e-9);
        assert_close(mixt_stats_skew_p(&s, s.mean - s.error, MIXT_STATS_BELOW),
                     mixt_stats_t_p(&s, s.mean - s.error, MIXT_STATS_BELOW),
                     1e-12); // what is likely needs no allowance
    }
    assert_close(mixt_stats_skew_allowance(6, 0, 0.025), 4, 1e-3); // 6 / 4 (22 / 6 - 1)
    assert_close(mixt_stats_skew_allowance(60, 2, 0.025), 4.1, 1e-3);
    assert_true(mixt_stats_skew_allowance(60, 0.6, 0.025) == 0 && mixt_stats_skew_allowance(10000, 3, 0.025) < 0.04);
    assert_true(isnan(mixt_stats_skew_allowance(1, 0, 0.025)) && isnan(mixt_stats_skew_allowance(9, NAN, 0.025)));
    const double same[3] = {2, 2, 2};
    mixt_stats_summary s = mixt_stats_summarise(same, 3);
    assert_true(mixt_stats_skew_interval(&s, 0.95).high == 2 && mixt_stats_skew_p(&s, 3, MIXT_STATS_BELOW) == 0);
    s = mixt_stats_summarise(same, 1);
    assert_true(isnan(mixt_stats_skew_interval(&s, 0.95).low) && isnan(mixt_stats_skew_p(&s, 1, MIXT_STATS_BELOW)));
}

/** The power against that of drawn experiments, and the smallest number of pairs that has it. */
static void test_skew_power(void **state)
{
    (void)state;
    enum { DRAWN = 4000 };
    for (int64_t n = 6; n <= 48; n *= 2) {
        double distance = (n == 6 ? 8 : n == 12 ? 5.5 : 3.5) / sqrt((double)n), x[48];
        int found = 0;
        mixt__rng rng = mixt__rng_start((uint64_t)n);
        for (int i = 0; i < DRAWN; i++) {
            for (int k = 0; k < n; k++)
                x[k] = (double)mixt__rng_normal(&rng);
            mixt_stats_summary s = mixt_stats_summarise(x, n);
            found += mixt_stats_skew_interval(&s, 0.95).high < distance;
        }
        double power = mixt_stats_skew_power(n, 1, distance, 0.025);
        assert_true(power > 0.5 && power < mixt_stats_power(n, 1, distance, 0.025));
        assert_close((double)found / DRAWN, power, 0.025);
        int64_t pairs = mixt_stats_skew_pairs(1, INFINITY, distance, 0.025, 0.8, NAN);
        assert_true(mixt_stats_skew_power(pairs, 1, distance, 0.025) >= 0.8);
        assert_true(pairs == 6 || mixt_stats_skew_power(pairs - 1, 1, distance, 0.025) < 0.8);
        assert_true(mixt_stats_skew_pairs(1, 5, distance, 0.025, 0.8, NAN) >= pairs); // a small pilot is paid for
        assert_true(mixt_stats_skew_pairs(1, INFINITY, distance, 0.025, 0.8, 2) > pairs);
    }
    assert_int_equal(mixt_stats_skew_pairs(0, 5, 1, 0.025, 0.9, NAN), 6);
    assert_int_equal(mixt_stats_skew_pairs(1, 5, 1e-9, 0.025, 0.9, NAN), MIXT_STATS_PAIRS_MAX + 1);
    assert_int_equal(mixt_stats_skew_pairs(1, 5, 0, 0.025, 0.9, NAN), 0);
    assert_true(isnan(mixt_stats_skew_power(5, 1, 1, 0.025)) && mixt_stats_skew_power(6, 0, 1, 0.025) == 1);
    assert_close(mixt_stats_unseen(6), 1 - pow(0.05, 1.0 / 6), 1e-15);
    assert_int_equal(mixt_stats_pairs_to_see(0.1), 29);
    assert_int_equal(mixt_stats_pairs_to_see(0.05), 59);
    assert_int_equal(mixt_stats_pairs_to_see(mixt_stats_unseen(17)), 17);
    assert_true(mixt_stats_unseen(0) == 1 && !mixt_stats_pairs_to_see(0) && !mixt_stats_pairs_to_see(NAN));
}

/** Limits of five looks as printed by Lan and DeMets and by Jennison and Turnbull. */
static void test_looks(void **state)
{
    (void)state;
    const double obrien[5] = {4.8769, 3.3569, 2.6803, 2.2898, 2.0310};
    const double pocock[5] = {2.4380, 2.4268, 2.4101, 2.3966, 2.3859};
    const int64_t pairs[5] = {20, 40, 60, 80, 100};
    double spent[2][5], levels[2][5];
    for (int k = 0; k < 5; k++) {
        spent[0][k] = mixt_stats_spent(MIXT_STATS_SPEND_OBRIEN_FLEMING, 0.025, k + 1, (k + 1) / 5.0);
        spent[1][k] = mixt_stats_spent(MIXT_STATS_SPEND_POCOCK, 0.025, k + 1, (k + 1) / 5.0);
    }
    assert_close(spent[0][4], 0.025, 1e-12);
    assert_close(spent[1][4], 0.025, 1e-12);
    for (int s = 0; s < 2; s++)
        assert_int_equal(mixt_stats_look_levels(spent[s], pairs, 5, levels[s]), MIXT_OK);
    for (int k = 0; k < 5; k++) {
        assert_close(-mixt_stats_normal_at(levels[0][k]), obrien[k], 1e-3);
        assert_close(-mixt_stats_normal_at(levels[1][k]), pocock[k], 1e-3);
    }
    assert_close(mixt_stats_spent(MIXT_STATS_SPEND_HALVES, 0.05, 1, 0), 0.025, 1e-15);
    assert_close(mixt_stats_spent(MIXT_STATS_SPEND_HALVES, 0.05, 3, 0), 0.04375, 1e-15);
    const double halves[2] = {0.025, 0.0375}, falling[2] = {0.025, 0.02};
    double level[2];
    const int64_t grown[2] = {10, 20};
    assert_int_equal(mixt_stats_look_levels(halves, grown, 2, level), MIXT_OK);
    assert_close(level[0], 0.025, 1e-9);
    assert_true(level[1] > 0.0125 && level[1] < 0.0375); // what was seen before is made use of
    assert_int_equal(mixt_stats_look_levels(falling, grown, 2, level), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_look_levels(halves, pairs + 1, 0, level), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_stats_look_levels(halves, (const int64_t[]){10, 10}, 2, level), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions), cmocka_unit_test(test_summary), cmocka_unit_test(test_flips),
        cmocka_unit_test(test_bootstrap),     cmocka_unit_test(test_power),   cmocka_unit_test(test_skew),
        cmocka_unit_test(test_skew_power),    cmocka_unit_test(test_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
