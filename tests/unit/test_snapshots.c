/* Snapshots in a loop of one's own (mixt/monitor.h): what goes in is checked, a diagnosis leaves the trainer in the
 * last good state, and a weight that changed behind the trainer's back is found. Public functions only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_fixture.h"

enum { EVERY = 10 };

/** Makes `count` updates and notes each of them. */
static void update(fixture *f, mixt_snapshots *states, int count, bool calm)
{
    mixt_step step;
    for (int i = 0; i < count; i++) {
        assert_int_equal(mixt_trainer_step(f->trainer, f->data, &step), MIXT_OK);
        if (states)
            assert_int_equal(mixt_snapshots_note(states, &step, calm), MIXT_OK);
    }
}

static void weights_of(const fixture *f, float weights[PIXELS * CLASSES])
{
    mixt_param_info info;
    assert_int_equal(mixt_trainer_param(f->trainer, 0, &info), MIXT_OK);
    assert_int_equal(info.count, PIXELS * CLASSES);
    assert_int_equal(mixt_trainer_param_get(f->trainer, 0, weights), MIXT_OK);
}

static void expect_same_weights(const fixture *a, const fixture *b)
{
    static float x[PIXELS * CLASSES], y[PIXELS * CLASSES];
    weights_of(a, x);
    weights_of(b, y);
    assert_memory_equal(x, y, sizeof x);
}

static mixt_snapshots *snapshots_of(fixture *f)
{
    mixt_snapshots *states;
    assert_int_equal(mixt_snapshots_new(f->trainer, f->data, EVERY, &states), MIXT_OK);
    assert_non_null(states);
    return states;
}

static void refuses_arguments(void **state)
{
    fixture f = start();
    mixt_snapshots *states = (mixt_snapshots *)&f;
    mixt_diagnosis d;
    mixt_step step = {0};
    (void)state;
    expect_refused(mixt_snapshots_new(f.trainer, f.data, 0, &states), "every 0 updates: must be from 1 to 100000");
    assert_null(states);
    expect_refused(mixt_snapshots_new(f.trainer, f.data, 100001, &states), "every 100001 updates");
    assert_int_not_equal(mixt_snapshots_new(f.trainer, f.data, EVERY, NULL), MIXT_OK);
    assert_int_not_equal(mixt_snapshots_new(NULL, f.data, EVERY, &states), MIXT_OK);
    assert_int_not_equal(mixt_snapshots_new(f.trainer, NULL, EVERY, &states), MIXT_OK);
    mixt_trainer *other = mixt_trainer_new(f.model, .batch = BATCH);
    assert_int_equal(mixt_snapshots_new(other, f.data, EVERY, &states), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "compile the trainer first"));
    assert_null(states);
    states = snapshots_of(&f);
    assert_int_not_equal(mixt_snapshots_note(states, NULL, true), MIXT_OK);
    assert_int_not_equal(mixt_snapshots_diagnose(states, MIXT_CAUSE_LOSS_ANOMALY, NULL), MIXT_OK);
    mixt_snapshots_free(states);
    assert_int_not_equal(mixt_snapshots_note(states, &step, true), MIXT_OK); // freed
    assert_int_not_equal(mixt_snapshots_diagnose(states, MIXT_CAUSE_LOSS_ANOMALY, &d), MIXT_OK);
    mixt_snapshots_free(NULL);
    mixt_close(f.context);
}

/** Updates 21 to 25 are gone after it, and come again with the bits of a run that nobody asked. */
static void goes_back_to_the_last_good_state(void **state)
{
    fixture asked = start(), plain = start();
    mixt_snapshots *states = snapshots_of(&asked);
    mixt_diagnosis d;
    (void)state;
    update(&asked, states, 25, true);
    assert_int_equal(mixt_snapshots_diagnose(states, MIXT_CAUSE_LOSS_ANOMALY, &d), MIXT_OK);
    assert_int_equal(d.kind, MIXT_DIAGNOSIS_UNKNOWN);
    assert_int_equal(d.symptom, MIXT_CAUSE_LOSS_ANOMALY);
    assert_int_equal(d.good, 2 * EVERY);
    assert_true(d.replayed > 0);
    assert_true(*d.text);
    assert_int_equal(mixt_trainer_steps(asked.trainer), 2 * EVERY);
    update(&plain, NULL, 2 * EVERY, true);
    expect_same_weights(&asked, &plain);
    update(&asked, states, 12, true);
    update(&plain, NULL, 12, true);
    expect_same_weights(&asked, &plain);
    mixt_snapshots_free(states);
    mixt_close(asked.context);
    mixt_close(plain.context);
}

/** A state that something stood out before is not taken as a good one. */
static void keeps_no_state_that_is_not_calm(void **state)
{
    fixture f = start();
    mixt_snapshots *states = snapshots_of(&f);
    mixt_diagnosis d;
    (void)state;
    update(&f, states, EVERY + 1, true);
    update(&f, states, EVERY, false);
    assert_int_equal(mixt_snapshots_diagnose(states, MIXT_CAUSE_LOSS_ANOMALY, &d), MIXT_OK);
    assert_int_equal(d.good, EVERY);
    assert_int_equal(mixt_trainer_steps(f.trainer), EVERY);
    mixt_snapshots_free(states);
    mixt_close(f.context);
}

/** As memory that loses a bit: the update after it gives other numbers when it is computed again. */
static void finds_a_weight_that_changed(void **state)
{
    static float weights[PIXELS * CLASSES];
    fixture f = start();
    mixt_snapshots *states = snapshots_of(&f);
    mixt_param_info info;
    mixt_diagnosis d;
    (void)state;
    update(&f, states, 2 * EVERY + 3, true);
    weights_of(&f, weights);
    weights[5] = 1e6f;
    assert_int_equal(mixt_trainer_param_set(f.trainer, 0, weights), MIXT_OK);
    update(&f, states, 1, false);
    assert_int_equal(mixt_snapshots_diagnose(states, MIXT_CAUSE_LOSS_ANOMALY, &d), MIXT_OK);
    assert_int_equal(d.kind, MIXT_DIAGNOSIS_HARDWARE);
    assert_string_equal(mixt_diagnosis_name(d.kind), "hardware");
    assert_int_equal(d.cause, MIXT_CAUSE_HARDWARE);
    assert_int_equal(d.step, 2 * EVERY + 4);
    assert_int_equal(d.good, 2 * EVERY);
    assert_int_equal(mixt_trainer_param(f.trainer, 0, &info), MIXT_OK);
    assert_string_equal(d.parameter, info.name);
    assert_int_equal(mixt_trainer_steps(f.trainer), 2 * EVERY);
    weights_of(&f, weights);
    assert_true(weights[5] < 1e3f);
    mixt_snapshots_free(states);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_arguments),
        cmocka_unit_test(goes_back_to_the_last_good_state),
        cmocka_unit_test(keeps_no_state_that_is_not_calm),
        cmocka_unit_test(finds_a_weight_that_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
