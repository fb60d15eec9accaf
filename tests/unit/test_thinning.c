/* Which updates get a row of metrics: ever fewer, and all whose loss stands out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/report/thinning.h"

#include <math.h>

static void test_intervals(void **state)
{
    (void)state;
    assert_int_equal(mixt__row_interval(1), 1);
    assert_int_equal(mixt__row_interval(10000), 1);
    assert_int_equal(mixt__row_interval(10001), 10);
    assert_int_equal(mixt__row_interval(100000), 10);
    assert_int_equal(mixt__row_interval(100001), 100);
    int64_t rows = 0;
    for (int64_t step = 1; step <= 1000000; step++)
        rows += step % mixt__row_interval(step) == 0;
    assert_int_equal(rows, 10000 + 9000 + 9000);
    assert_true(mixt__row_interval(INT64_MAX) > 0);
}

/** Numbers between 0 and 1 that are the same on every machine. */
static double noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void test_spikes(void **state)
{
    (void)state;
    mixt__usual usual = {0};
    uint64_t seed = 1;
    int spikes = 0;
    for (int i = 0; i < 20000; i++)
        spikes += mixt__usual_spike(&usual, 2 + 0.5 * noise(&seed));
    assert_int_equal(spikes, 0); // noise is none
    assert_true(mixt__usual_spike(&usual, 4));
    assert_false(mixt__usual_spike(&usual, 1)); // a fall is none
    assert_true(mixt__usual_spike(&usual, NAN));
    assert_true(mixt__usual_spike(&usual, INFINITY));
    assert_true(fabs(usual.mean - 2.25) < 0.2); // neither counts as usual
}

/** Loss falls, rises slowly, or stays to the bit: nothing stands out. */
static void test_calm(void **state)
{
    (void)state;
    mixt__usual falling = {0}, level = {0}, rising = {0};
    for (int i = 0; i < 5000; i++) {
        assert_false(mixt__usual_spike(&falling, 3 * exp(-i / 500.0)));
        assert_false(mixt__usual_spike(&level, 0.25));
        assert_false(mixt__usual_spike(&rising, 1 + 1e-3 * i));
    }
}

/** However wild the losses, few of them stand out. */
static void test_wild(void **state)
{
    (void)state;
    mixt__usual usual = {0};
    uint64_t seed = 7;
    int spikes = 0;
    for (int i = 0; i < 100000; i++)
        spikes += mixt__usual_spike(&usual, pow(noise(&seed), -1.5));
    assert_true(spikes > 0 && spikes < 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_spikes),
        cmocka_unit_test(test_calm),
        cmocka_unit_test(test_wild),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
