/* Whether a run ends worse than it began: healthy courses do not, whatever their length and noise, diverged ones do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "run/course.h"

#include <math.h>

typedef enum noise {
    NORMAL,      // 3%
    LOGNORMAL,   // a third
    EXPONENTIAL, // as much as the loss
    NOISES
} noise;

static double uniform(uint64_t key, int64_t i)
{
    mixt__rng at = mixt__rng_start_at(mixt__rng_key(key, 77, 0), (uint64_t)i);
    return ((double)mixt__rng_u32(&at) + 0.5) / 4294967296.0;
}

/** With a mean or a median of 1. */
static double draw(noise kind, uint64_t key, int64_t i)
{
    double z = sqrt(-2 * log(uniform(key, 2 * i))) * cos(6.283185307179586 * uniform(key, 2 * i + 1));
    return kind == NORMAL ? 1 + 0.03 * z : kind == LOGNORMAL ? exp(0.33 * z) : -log(uniform(key, 2 * i));
}

/** Losses that go from 1 to `end` times a level in their first half and stay there, with noise around that. */
static bool ends_worse(noise kind, uint64_t key, int64_t updates, double level, double end)
{
    mixt__course c = {0};
    double ended;
    for (int64_t i = 0; i < updates; i++) {
        double at = fmin(1, 2 * (double)i / (double)updates);
        mixt__course_take(&c, level * (1 + (end - 1) * at) * draw(kind, key, i));
    }
    json_t *kept = mixt__course_pack(&c);
    mixt__course_unpack(&c, kept); // as a resume has it
    json_decref(kept);
    return mixt__course_worse(&c, false, 0, &ended);
}

static void healthy_runs_never_do(void **state)
{
    (void)state;
    const int64_t lengths[] = {1, 5, 33, 64, 65, 70, 100, 200, 400};
    const double ends[] = {1, 0.99, 0.5};
    int64_t wrong = 0, runs = 0;
    for (uint64_t key = 1; key <= 3000; key++)
        for (int kind = 0; kind < NOISES; kind++)
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++, runs++)
                wrong += ends_worse((noise)kind, key * 100 + l, lengths[l], 2.3, ends[key % 3]);
    if (wrong * 20000 > runs) // of those that learn nothing at all, one in ten thousand
        fail_msg("%lld of %lld healthy runs are called diverged", (long long)wrong, (long long)runs);
}

static void diverged_runs_do(void **state)
{
    (void)state;
    int64_t found = 0;
    for (uint64_t key = 1; key <= 300; key++) {
        assert_true(ends_worse(NORMAL, key, 100 + (int64_t)key, 5.56, 1.5));
        found += ends_worse(LOGNORMAL, key, 400, 5.56, 60);
    }
    assert_true(found >= 297);
    // at once, and chaotic: 5.56, then 150 to 500 for ever
    mixt__course c = {0};
    double ended;
    mixt__course_take(&c, 5.56);
    for (int64_t i = 1; i < 100; i++)
        mixt__course_take(&c, i == 7 ? (double)INFINITY : 150 + 350 * uniform(9, i));
    assert_true(mixt__course_worse(&c, false, 0, &ended));
    assert_true(mixt__course_worse(&c, true, 0, &ended));
    assert_true(ended > 150 && ended < 500);
}

/** Samples in an order of their own: twice the loss may be what they are of. */
static void data_may_drift(void **state)
{
    (void)state;
    mixt__course c = {0};
    double ended;
    for (int64_t i = 0; i < 200; i++)
        mixt__course_take(&c, (1 + (double)i / 200) * draw(NORMAL, 3, i));
    assert_true(mixt__course_worse(&c, false, 0, &ended));
    assert_false(mixt__course_worse(&c, true, 0, &ended));
}

/** Losses of classes that scatter by a factor of ten: lost where all of them cost more than guessing, and only there.
 */
static void classes_have_a_scale(void **state)
{
    (void)state;
    const double guess = log(256);
    mixt__course lost = {0}, wild = {0};
    double ended;
    mixt__course_take(&lost, 5.56);
    mixt__course_take(&wild, 0.2);
    for (int64_t i = 1; i < 100; i++) {
        mixt__course_take(&lost, 20 * exp(3 * uniform(5, i)));
        mixt__course_take(&wild, 2 * exp(3 * uniform(6, i)));
    }
    assert_false(mixt__course_worse(&lost, false, 0, &ended));
    assert_true(mixt__course_worse(&lost, false, guess, &ended));
    assert_true(mixt__course_worse(&lost, true, guess, &ended));
    assert_false(mixt__course_worse(&wild, false, guess, &ended)); // some are below it
    lost.first = 1000;
    assert_false(mixt__course_worse(&lost, false, guess, &ended)); // it began worse
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_runs_never_do),
        cmocka_unit_test(diverged_runs_do),
        cmocka_unit_test(data_may_drift),
        cmocka_unit_test(classes_have_a_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
