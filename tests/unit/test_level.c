/* Where the loss is against where it began: courses of healthy runs are fine, those that explode are told in time, and
 * what was accepted counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "monitor/level.h"

#include <math.h>

static double uniform(uint64_t key, int64_t i)
{
    mixt__rng at = mixt__rng_start_at(mixt__rng_key(key, 78, 0), (uint64_t)i);
    return ((double)mixt__rng_u32(&at) + 0.5) / 4294967296.0;
}

static double normal(uint64_t key, int64_t i)
{
    return sqrt(-2 * log(uniform(key, 2 * i))) * cos(6.283185307179586 * uniform(key, 2 * i + 1));
}

/** Losses that fall to `end` within `fall` updates, or rise, with a normal deviation of `noise` of their logarithm.
 *  @param since the update that is judged first. @return updates that are not fine */
static int64_t count_signs(uint64_t key, int64_t updates, double end, double fall, double noise, int64_t since)
{
    mixt__level l = {0};
    int64_t found = 0;
    double now;
    for (int64_t i = 0; i < updates; i++) {
        double at = fmin(1, (double)i / fall);
        mixt__level_take(&l, log(1 + (end - 1) * at) + noise * normal(key, i));
        found += i >= since && mixt__level_sign_of(&l, &now) != MIXT_LEVEL_FINE;
    }
    return found;
}

static void healthy_courses_are_fine(void **state)
{
    (void)state;
    int64_t found = 0;
    for (uint64_t key = 1; key <= 100; key++) {
        found += count_signs(key, 2000, 0.3, 300, 0.1, 0);
        found += count_signs(key + 200, 2000, 0.01, 100, 0.3, 0);
        found += count_signs(key + 400, 500, 0.9, 30, 0.02, 0);
    }
    assert_in_range(found, 0, 900); // of 450000 updates
}

static void explosions_are_told(void **state)
{
    (void)state;
    for (uint64_t key = 1; key <= 100; key++) {
        assert_true(count_signs(key, 16, 5, 4, 0.1, 0) >
                    0); // within 16 updates, where the loss is five times the first
        assert_true(count_signs(key, 120, 1.15, 2, 0.02, 100) > 0); // a plateau a little above the first
    }
}

static void a_best_level_is_kept(void **state)
{
    (void)state;
    mixt__level l = {0};
    double now;
    for (int i = 0; i < 100; i++)
        mixt__level_take(&l, i ? log(0.5) : 0);
    assert_true(mixt__level_healthy(&l) == log(0.5));
    for (int i = 0; i < 8; i++)
        mixt__level_take(&l, log(0.7));
    assert_int_equal(mixt__level_sign_of(&l, &now), MIXT_LEVEL_RISEN);
    json_t *packed = mixt__level_pack(&l);
    mixt__level again;
    mixt__level_unpack(&again, packed);
    json_decref(packed);
    assert_int_equal(mixt__level_sign_of(&again, &now), MIXT_LEVEL_RISEN);
    for (int i = 0; i < 24; i++)
        mixt__level_take(&l, log(0.7)); // a window that moves along would call that usual
    assert_int_equal(mixt__level_sign_of(&l, &now), MIXT_LEVEL_RISEN);
    mixt__level_accept(&l);
    assert_int_equal(mixt__level_sign_of(&l, &now), MIXT_LEVEL_FINE);
    mixt__level_unpack(&again, NULL);
    assert_true(isnan(mixt__level_healthy(&again)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_courses_are_fine),
        cmocka_unit_test(explosions_are_told),
        cmocka_unit_test(a_best_level_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
