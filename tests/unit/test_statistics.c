/* Intervals against numbers worked out by hand, Student's limits against printed tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/statistics.h"
#include "mixt/compare.h"

#include <math.h>

static void assert_close(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("got %.12g, expected %.12g", got, expected);
}

static void test_student(void **state)
{
    (void)state;
    const struct {
        double confidence, freedom, limit;
    } table[] = {{0.95, 1, 12.7062},  {0.95, 2, 4.30265}, {0.95, 4, 2.77645}, {0.95, 9, 2.26216},
                 {0.95, 30, 2.04227}, {0.90, 2, 2.91999}, {0.99, 4, 4.60409}, {0.999, 1, 636.619}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_close(mixt__student_limit(table[i].confidence, table[i].freedom), table[i].limit, 6e-6 * table[i].limit);
    assert_close(mixt__student_limit(0.95, 1e7), 1.959964, 1e-5); // the normal distribution's
    assert_close(mixt__student_below(0, 3), 0.5, 1e-15);
    assert_close(mixt__student_below(1, 1), 0.75, 1e-14); // Cauchy: 1/2 + atan(1)/pi
    assert_close(mixt__student_below(-1, 1), 0.25, 1e-14);
    assert_close(mixt__student_below(1, 2), 0.5 + 0.5 / sqrt(3), 1e-14); // 1/2 + t / (2 sqrt(2 + t²))
}

typedef struct interval {
    double mean, low, high;
} interval;

/** Of the differences a[i] - b[i], as the checklist of mixt verify has it. */
static interval paired_interval(const double *a, const double *b, int64_t count, double confidence)
{
    double differences[3];
    for (int64_t i = 0; i < count; i++)
        differences[i] = a[i] - b[i];
    mixt_stats_summary s = mixt_stats_summarise(differences, count);
    mixt_stats_interval i = mixt_stats_t_interval(&s, confidence);
    return (interval){s.mean, i.low, i.high};
}

static void test_paired_interval(void **state)
{
    (void)state;
    const double a[3] = {10, 20, 33}, b[3] = {9, 18, 30}; // differences 1, 2, 3: mean 2, deviation 1, error 1/sqrt 3
    interval r = paired_interval(a, b, 3, 0.95);
    assert_close(r.mean, 2, 1e-14);
    assert_close(r.low, 2 - 4.302653 / sqrt(3), 1e-6);
    assert_close(r.high, 2 + 4.302653 / sqrt(3), 1e-6);
    r = paired_interval(b, a, 3, 0.95);
    assert_close(r.mean, -2, 1e-14);
    assert_close(r.high, -2 + 4.302653 / sqrt(3), 1e-6);
    r = paired_interval(a, a, 3, 0.95); // no difference at all: an interval of no width
    assert_true(r.mean == 0 && r.low == 0 && r.high == 0);
    r = paired_interval(a, b, 1, 0.95);
    assert_close(r.mean, 1, 0);
    assert_true(isnan(r.low) && isnan(r.high));
}

static void test_small_samples(void **state)
{
    (void)state;
    double odd[3] = {3, 1, 2}, even[4] = {4, 1, 3, 2};
    assert_close(mixt__median(odd, 3), 2, 0);
    assert_close(mixt__median(even, 4), 2.5, 0);
    assert_true(isnan(mixt__median(odd, 0)));
    assert_close(mixt__mean(even, 4), 2.5, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_student), cmocka_unit_test(test_paired_interval),
                                       cmocka_unit_test(test_small_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
