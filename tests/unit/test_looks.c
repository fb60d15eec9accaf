/* Looks without being asked: how often chance makes a suspicion, how many looks a real loss takes, when they come, and
 * that a run that is stopped goes on with the same odds. */
#include "base/alloc.h"
#include "steer/looks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 12 };

static uint64_t turn(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static bool chance(uint64_t *state, double p)
{
    return (double)(turn(state) >> 11) < p * 9007199254740992.0;
}

static void name(mixt__glance_layer layers[LAYERS])
{
    for (int i = 0; i < LAYERS; i++) {
        snprintf(layers[i].name, sizeof layers[i].name, "h.%d.fc", i);
        layers[i].counts = true;
        layers[i].kept = 1;
    }
}

/** Looks until one suspects, `most` at most. @param p that a look finds a layer's gradient lost; of the first layer */
static int64_t look(mixt__looks *l, uint64_t *state, int64_t most, double p, double first)
{
    mixt__glance_layer layers[LAYERS];
    mixt__glance g = {.count = LAYERS, .layers = layers};
    bool suspects = false;
    name(layers);
    for (int64_t n = 1; n <= most; n++) {
        for (int i = 0; i < LAYERS; i++)
            layers[i].kept = chance(state, i ? p : first) ? 0.1 : 0.98;
        assert_int_equal(mixt__looks_take(l, n, &g, &suspects), MIXT_OK);
        if (suspects)
            return n;
    }
    return 0;
}

static void chance_makes_few_suspicions(void **state)
{
    enum { RUNS = 2000, LOOKS = 200 };
    uint64_t rng = 0x9e3779b97f4a7c15u;
    int64_t false_ones = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        mixt__looks l = {0};
        false_ones += look(&l, &rng, LOOKS, 0.05, 0.05) > 0;
        mixt__looks_free(&l);
    }
    print_message("%lld of %d runs of %d looks at %d layers have a suspicion by chance\n", (long long)false_ones, RUNS,
                  LOOKS, LAYERS);
    assert_true((double)false_ones <= MIXT_LOOKS_ERROR * RUNS);
}

static void a_loss_is_suspected_soon(void **state)
{
    uint64_t rng = 88172645463325252u;
    int64_t sum = 0, worst = 0;
    const char *names[4];
    (void)state;
    for (int i = 0; i < 200; i++) {
        mixt__looks l = {0};
        assert_int_equal(look(&l, &rng, 20, 0.01, 0.01), 0); // it begins behind 20 looks
        int64_t n = look(&l, &rng, 100, 0.01, 0.9);
        assert_true(n > 1);
        assert_int_equal(mixt__looks_suspects(&l, names, 4), 1);
        assert_string_equal(names[0], "h.0.fc");
        sum += n;
        worst = n > worst ? n : worst;
        mixt__looks_free(&l);
    }
    print_message("a loss is suspected after %.1f looks, %lld at most\n", (double)sum / 200, (long long)worst);
    assert_true(sum < 200 * 8 && worst <= 30);
}

static void what_cannot_change_the_loss_does_not_count(void **state)
{
    mixt__glance_layer layers[LAYERS];
    mixt__glance g = {.count = LAYERS, .layers = layers};
    mixt__looks l = {0};
    bool suspects;
    (void)state;
    name(layers);
    layers[3].kept = 0;
    layers[3].counts = false;
    for (int64_t n = 1; n <= 100; n++) {
        assert_int_equal(mixt__looks_take(&l, n, &g, &suspects), MIXT_OK);
        assert_false(suspects);
    }
    mixt__looks_free(&l);
}

/** The updates after which looks come where nothing is seen, and where something is. */
static void looks_are_dense_early_and_where_something_is_seen(void **state)
{
    static const int64_t calm[] = {8, 16, 32, 64, 128, 256, 512, 768, 1024};
    mixt__glance_layer layers[LAYERS];
    mixt__glance g = {.count = LAYERS, .layers = layers};
    mixt__looks l = {0};
    bool suspects;
    int64_t found = 0, first = 0;
    (void)state;
    name(layers);
    for (int64_t step = 1; step <= 1024; step++)
        if (mixt__looks_due(&l, step)) {
            assert_int_equal(step, calm[found++]);
            assert_int_equal(mixt__looks_take(&l, step, &g, &suspects), MIXT_OK);
        }
    assert_int_equal(found, sizeof calm / sizeof *calm);
    layers[0].kept = 0.2;
    for (int64_t step = 1025; step <= 1400 && !first; step++)
        if (mixt__looks_due(&l, step)) {
            assert_int_equal(mixt__looks_take(&l, step, &g, &suspects), MIXT_OK);
            first = suspects ? step : 0;
        }
    assert_true(first > 1280 && first < 1290);
    mixt__looks_measured(&l, first, 8, true); // it means nothing
    assert_false(mixt__looks_due(&l, first + 1));
    for (int64_t step = first + 1; step < first + 512; step++)
        if (mixt__looks_due(&l, step)) {
            assert_int_equal(mixt__looks_take(&l, step, &g, &suspects), MIXT_OK);
            assert_false(suspects);
        }
    mixt__looks_free(&l);
}

static void a_stop_changes_nothing(void **state)
{
    uint64_t rng = 12345, again;
    mixt__looks one = {0}, two = {0};
    (void)state;
    assert_int_equal(look(&one, &rng, 30, 0.05, 0.05), 0);
    json_t *packed = mixt__looks_pack(&one);
    assert_non_null(packed);
    mixt__looks_unpack(&two, packed);
    json_decref(packed);
    again = rng;
    assert_int_equal(two.next, one.next);
    assert_int_equal(look(&one, &rng, 300, 0.05, 0.9), look(&two, &again, 300, 0.05, 0.9));
    for (int64_t i = 0; i < one.count; i++)
        assert_memory_equal(&one.layers[i].odds, &two.layers[i].odds, sizeof(double));
    mixt__looks_unpack(&two, NULL); // of a run from before there were looks
    assert_true(mixt__looks_due(&two, 8) && !mixt__looks_due(&two, 7));
    mixt__looks_free(&one);
    mixt__looks_free(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chance_makes_few_suspicions),
        cmocka_unit_test(a_loss_is_suspected_soon),
        cmocka_unit_test(what_cannot_change_the_loss_does_not_count),
        cmocka_unit_test(looks_are_dense_early_and_where_something_is_seen),
        cmocka_unit_test(a_stop_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
