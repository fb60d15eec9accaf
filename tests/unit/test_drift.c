/* A loss that rises slowly: how often chance makes one, and how soon a rise of 2% is noticed. */
#include "monitor/drift.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t turn(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/** About normal, deviation 1. */
static double noise(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)(turn(state) >> 11) / 9007199254740992.0;
    return sum;
}

/** Updates of a loss that falls to a floor. @return the update at which it is told to rise; 0: never */
static int64_t run(uint64_t *rng, int64_t updates, double floor, double scatter, int64_t from, double rise)
{
    mixt__drift d = {0};
    for (int64_t i = 1; i <= updates; i++) {
        double level = floor + 2 * exp(-(double)i / 300);
        if (mixt__drift_take(&d, level * (from && i > from ? 1 + rise : 1) * exp(scatter * noise(rng))))
            return i;
    }
    return 0;
}

static void a_loss_that_does_not_rise_is_let_alone(void **state)
{
    enum { RUNS = 600, UPDATES = 4000 };
    uint64_t rng = 0x9e3779b97f4a7c15u;
    int64_t found = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++)
        found += run(&rng, UPDATES, i % 3 ? 1 : 0.01, 0.01 + 0.1 * (double)(i % 5), 0, 0) > 0;
    print_message("%lld of %d runs of %d updates that do not rise\n", (long long)found, RUNS, UPDATES);
    assert_true((double)found <= MIXT_DRIFT_ERROR * RUNS);
}

static void a_rise_of_two_percent_is_noticed(void **state)
{
    uint64_t rng = 88172645463325252u;
    int64_t sum = 0, worst = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        int64_t at = run(&rng, 5000, 1, 0.01, 2500, 0.02);
        assert_true(at > 2500);
        sum += at - 2500;
        worst = at - 2500 > worst ? at - 2500 : worst;
    }
    print_message("2%% up in noise of 1%%: noticed after %.0f updates, %lld at most\n", (double)sum / 100,
                  (long long)worst);
    assert_true(worst <= 600);
}

static void a_stop_changes_nothing(void **state)
{
    uint64_t rng = 12345;
    mixt__drift one = {0}, two = {0};
    (void)state;
    for (int i = 0; i < 333; i++)
        assert_false(mixt__drift_take(&one, exp(0.01 * noise(&rng))));
    json_t *packed = mixt__drift_pack(&one);
    mixt__drift_unpack(&two, packed);
    json_decref(packed);
    for (int i = 0; i < 2000; i++) {
        double loss = 1.1 * exp(0.01 * noise(&rng));
        assert_int_equal(mixt__drift_take(&one, loss), mixt__drift_take(&two, loss));
    }
    assert_true(one.odds >= 1 / MIXT_DRIFT_ERROR && two.odds >= 1 / MIXT_DRIFT_ERROR);
    mixt__drift_unpack(&two, NULL);
    assert_int_equal(two.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_that_does_not_rise_is_let_alone),
        cmocka_unit_test(a_rise_of_two_percent_is_noticed),
        cmocka_unit_test(a_stop_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
