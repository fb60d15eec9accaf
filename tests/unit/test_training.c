/* Schedules against closed forms, and the loss scale's state machine, move by move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/training.h"

#include <math.h>

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= 1.2e-7 * fabs(expected) + 1e-12)) {
        print_message("got %.10g, expected %.10g\n", got, expected);
        fail();
    }
}

/* ---- schedules ---- */

static void test_warmup(void **state)
{
    (void)state;
    mixt__schedule s = {.kind = MIXT_SCHEDULE_CONSTANT, .lr = 0.6f, .warmup = 5};
    for (int64_t a = 0; a < 5; a++)
        assert_close(mixt__schedule_lr(&s, a), (double)0.6f * (double)(a + 1) / 6);
    assert_close(mixt__schedule_lr(&s, 5), 0.6f);
    assert_close(mixt__schedule_lr(&s, 1000000), 0.6f);
    s.warmup = 0;
    assert_close(mixt__schedule_lr(&s, 0), 0.6f);
}

static void test_step_schedule(void **state)
{
    (void)state;
    mixt__schedule s = {.kind = MIXT_SCHEDULE_STEP, .lr = 1.0f, .gamma = 0.5f, .decay_steps = 10, .warmup = 4};
    assert_close(mixt__schedule_lr(&s, 4), 1.0);
    assert_close(mixt__schedule_lr(&s, 13), 1.0);
    assert_close(mixt__schedule_lr(&s, 14), 0.5);
    assert_close(mixt__schedule_lr(&s, 34), 0.125);
    s.min_lr = 0.3f;
    assert_close(mixt__schedule_lr(&s, 34), 0.3f);
    s.decay_steps = 0;
    assert_close(mixt__schedule_lr(&s, 99), 1.0);
}

static void test_cosine_and_linear(void **state)
{
    (void)state;
    mixt__schedule s = {.kind = MIXT_SCHEDULE_COSINE, .lr = 1.0f, .min_lr = 0.25f, .warmup = 10, .total_steps = 110};
    assert_close(mixt__schedule_lr(&s, 10), 1.0);
    assert_close(mixt__schedule_lr(&s, 60), 0.625);
    assert_close(mixt__schedule_lr(&s, 35), 0.25 + 0.375 * (1 + sqrt(0.5)));
    assert_close(mixt__schedule_lr(&s, 110), 0.25);
    assert_close(mixt__schedule_lr(&s, 5000), 0.25);
    s.kind = MIXT_SCHEDULE_LINEAR;
    assert_close(mixt__schedule_lr(&s, 10), 1.0);
    assert_close(mixt__schedule_lr(&s, 85), 0.4375);
    assert_close(mixt__schedule_lr(&s, 110), 0.25);
    assert_close(mixt__schedule_lr(&s, 111), 0.25);
}

static void test_one_cycle(void **state)
{
    (void)state;
    mixt__schedule s = {.kind = MIXT_SCHEDULE_ONECYCLE, .lr = 0.5f, .min_lr = 0.125f, .warmup = 7, .total_steps = 100};
    assert_close(mixt__schedule_lr(&s, 0), 0.02);
    assert_close(mixt__schedule_lr(&s, 15), 0.26);
    assert_close(mixt__schedule_lr(&s, 30), 0.5);
    assert_close(mixt__schedule_lr(&s, 65), 0.3125);
    assert_close(mixt__schedule_lr(&s, 100), 0.125);
    for (int64_t a = 0; a < 30; a++)
        assert_true(mixt__schedule_lr(&s, a) < mixt__schedule_lr(&s, a + 1));
    for (int64_t a = 30; a < 100; a++)
        assert_true(mixt__schedule_lr(&s, a) > mixt__schedule_lr(&s, a + 1));
}

/* ---- the control block ---- */

static mixt__update dynamic_update(void)
{
    return (mixt__update){
        .schedule = {.kind = MIXT_SCHEDULE_LINEAR, .lr = 1.0f, .total_steps = 10},
        .scaling = {.enabled = true,
                    .dynamic = true,
                    .initial = 1024,
                    .growth = 2,
                    .backoff = 0.5f,
                    .floor = 256,
                    .ceiling = 3000,
                    .interval = 3,
                    .hysteresis = 1},
        .accumulate = 4,
        .gradient_factor = 1,
    };
}

static void clean(mixt__control *c, const mixt__update *u)
{
    mixt__control_advance(c, u, 1.0, false);
}

static void overflow(mixt__control *c, const mixt__update *u)
{
    mixt__control_advance(c, u, INFINITY, true);
}

static void test_growth_and_ceiling(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    mixt__control c = mixt__control_start(&u);
    assert_true(c.scale == 1024 && c.seed == 256 && c.step == 0 && c.skipped == 0 && c.bad_segment == -1);
    clean(&c, &u);
    clean(&c, &u);
    assert_true(c.scale == 1024 && c.clean_steps == 2);
    clean(&c, &u);
    assert_true(c.scale == 2048 && c.clean_steps == 0 && c.seed == 512 && c.step == 3);
    for (int i = 0; i < 3; i++)
        clean(&c, &u);
    assert_true(c.scale == 3000 && c.seed == 750);
}

static void test_backoff_and_floor(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    mixt__control c = mixt__control_start(&u);
    clean(&c, &u);
    clean(&c, &u);
    float lr = c.lr;
    overflow(&c, &u);
    assert_true(c.scale == 512 && c.seed == 128 && c.clean_steps == 0 && c.skipped == 1 && c.step == 2 && c.lr == lr);
    assert_true(c.found_inf && !isfinite(c.grad_norm));
    clean(&c, &u);
    assert_true(!c.found_inf && c.step == 3 && c.scale == 512 && c.clean_steps == 1);
    assert_close(c.lr, 0.8); // the third update's, although it is the fourth step
    for (int i = 0; i < 5; i++)
        overflow(&c, &u);
    assert_true(c.scale == 256 && c.skipped == 6 && c.step == 3);
}

static void test_hysteresis(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    u.scaling.hysteresis = 3;
    u.scaling.floor = 1;
    mixt__control c = mixt__control_start(&u);
    overflow(&c, &u);
    overflow(&c, &u);
    assert_true(c.scale == 1024 && c.overflows_left == 1);
    clean(&c, &u); // not in a row: tolerance is whole again
    assert_true(c.overflows_left == 3);
    overflow(&c, &u);
    overflow(&c, &u);
    assert_true(c.scale == 1024);
    overflow(&c, &u);
    assert_true(c.scale == 512);
    overflow(&c, &u); // known to be too high: falls at once
    assert_true(c.scale == 256);
    clean(&c, &u);
    overflow(&c, &u);
    assert_true(c.scale == 256 && c.skipped == 7 && c.step == 2);
}

static void test_static_and_disabled(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    u.scaling.dynamic = false;
    mixt__control c = mixt__control_start(&u);
    for (int i = 0; i < 5; i++)
        clean(&c, &u);
    overflow(&c, &u);
    assert_true(c.scale == 1024 && c.seed == 256 && c.skipped == 1 && c.step == 5);
    u.scaling.enabled = false;
    c = mixt__control_start(&u);
    assert_true(c.scale == 1 && c.seed == 0.25f);
    overflow(&c, &u);
    clean(&c, &u);
    assert_true(c.scale == 1 && c.skipped == 1 && c.step == 1);
}

static void test_unscale_and_clip(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    mixt__control c = mixt__control_start(&u);
    mixt__control_advance(&c, &u, 4.0 * 1024 * 1024, false);
    assert_close(c.grad_norm, 2.0);
    assert_close(c.grad_factor, 1.0 / 1024);
    u.clip_norm = 0.5f;
    mixt__control_advance(&c, &u, 4.0 * 1024 * 1024, false);
    assert_close(c.grad_norm, 2.0);
    assert_close(c.grad_factor, 0.5 / (2.0 + 1e-6) / 1024);
    u.clip_norm = 5;
    mixt__control_advance(&c, &u, 4.0 * 1024 * 1024, false);
    assert_close(c.grad_factor, 1.0 / 1024);
    assert_int_equal(c.clean_steps, 0); // the third clean step doubled the scale
    mixt__control_advance(&c, &u, 4.0 * 1024 * 1024, false);
    assert_close(c.grad_norm, 1.0);
    assert_close(c.grad_factor, 1.0 / 2048);
}

/** Finite as they come, but not once the scale is taken out. */
static void test_unscaled_overflow_is_one(void **state)
{
    (void)state;
    mixt__update u = dynamic_update();
    mixt__control c = mixt__control_start(&u);
    c.scale = 1e-3f;
    mixt__control_advance(&c, &u, 1e72, false);
    assert_true(c.found_inf && c.skipped == 1 && c.step == 0 && c.grad_factor == 0);
    c.scale = 1e-40f;
    mixt__control_advance(&c, &u, 1e-90, false);
    assert_true(c.found_inf && c.skipped == 2 && c.step == 0 && c.grad_factor == 0);
}

static void test_sizes(void **state)
{
    (void)state;
    mixt__segment segments[] = {{.count = 0}, {.count = 1}, {.count = 16384}, {.count = 16384 + 1}};
    assert_int_equal(mixt__update_chunks(segments, 4, 16384), 4);
    assert_true(mixt__update_workspace(segments, 4) >= 10 * 32 + 4 * sizeof(float));
    assert_int_equal(mixt__optimizer_moments(&(mixt__optimizer){.kind = MIXT_OPTIMIZER_SGD}), 0);
    assert_int_equal(mixt__optimizer_moments(&(mixt__optimizer){.kind = MIXT_OPTIMIZER_SGD, .momentum = 0.9f}), 1);
    assert_int_equal(mixt__optimizer_moments(&(mixt__optimizer){.kind = MIXT_OPTIMIZER_ADAM}), 2);
    assert_int_equal(mixt__optimizer_moments(&(mixt__optimizer){.kind = MIXT_OPTIMIZER_ADAMW}), 2);
    assert_int_equal(mixt__optimizer_moments(&(mixt__optimizer){.kind = MIXT_OPTIMIZER_LAMB}), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_step_schedule),
        cmocka_unit_test(test_cosine_and_linear),
        cmocka_unit_test(test_one_cycle),
        cmocka_unit_test(test_growth_and_ceiling),
        cmocka_unit_test(test_backoff_and_floor),
        cmocka_unit_test(test_hysteresis),
        cmocka_unit_test(test_static_and_disabled),
        cmocka_unit_test(test_unscale_and_clip),
        cmocka_unit_test(test_unscaled_overflow_is_one),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
