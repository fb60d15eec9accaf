/* State that changes in memory: any bit of weights, moments, working copies, running statistics, frozen weights and the
 * control block is found at the next update and named; with a controller the run ends with the bits of one without,
 * without one it stops in words; nothing of it is saved; what users themselves write is no damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/flips.h"
#include "../support/sanitized.h"
#include "../support/temp_folder.h"

#include "api/api.h"
#include "api_fixture.h"
#include "store/checkpoint.h"
#include "train/checkpoint.h"

#include <stdlib.h>
#include <unistd.h>

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/* ---- live runs ---- */

/** Trains without flips and with some: all found at once, by name, and the same weights at the end. */
static void compare_runs(const flip_model *m, int count, uint64_t seed, const char *const *more)
{
    char folder[400], plain[500], disturbed[500], a[600], b[600];
    flips f = {.rng = mixt__rng_start(mixt__rng_key(seed, 77, 0)), .wanted = count};
    snprintf(folder, sizeof folder, "%s", temp_path("runs"));
    snprintf(plain, sizeof plain, "%s/%s-%s-plain", folder, m->name, more ? more[0] : "");
    snprintf(disturbed, sizeof disturbed, "%s/%s-%s-flips", folder, m->name, more ? more[0] : "");
    ok(flip_train(m, plain, NULL, more));
    ok(flip_train(m, disturbed, &f, more));
    assert_int_equal(f.made, count);
    assert_int_equal(f.found, count);
    assert_int_equal(f.wrong, 0);
    assert_int_equal(f.late, 0);
    snprintf(a, sizeof a, "%s/model.safetensors", plain);
    snprintf(b, sizeof b, "%s/model.safetensors", disturbed);
    assert_true(flip_same(a, b));
}

static void test_flips_are_found_and_undone(void **state)
{
    (void)state;
    for (int i = CASE_STRIDE > 1; i < FLIP_MODELS; i += CASE_STRIDE)
        compare_runs(&flip_models[i], 6, 31 + (uint64_t)i, NULL);
}

/** On a device with memory of its own, with several passes an update. */
static void test_flips_on_a_device_of_its_own(void **state)
{
    static const char *const more[] = {"train.accumulate=2", NULL};
    (void)state;
    setenv("MIXT_DISCRETE", "1", 1);
    compare_runs(&flip_models[1], 4, 51, more);
    unsetenv("MIXT_DISCRETE");
}

/** Without a controller: an error in words, no model. */
static void test_a_run_without_controller_stops(void **state)
{
    static const char *const more[] = {"auto.steer=false", NULL};
    char out[500], model[600];
    flips f = {.rng = mixt__rng_start(9), .wanted = 1, .wait = 20};
    (void)state;
    snprintf(out, sizeof out, "%s", temp_path("stops"));
    assert_int_equal(flip_train(&flip_models[0], out, &f, more), MIXT_ERROR_DATA);
    assert_int_equal(f.made, 1);
    assert_non_null(strstr(mixt_error_text(), f.what));
    assert_non_null(strstr(mixt_error_text(), f.parameter));
    assert_non_null(strstr(mixt_error_text(), "--resume"));
    snprintf(model, sizeof model, "%s/model.safetensors", out);
    assert_int_not_equal(access(model, F_OK), 0);
}

/** Summing changes no bit, and where it is off a flip passes. */
static void test_sums_change_nothing(void **state)
{
    static const char *const off[] = {"integrity.sums=false", NULL};
    char with[500], without[500], a[600], b[600];
    (void)state;
    for (int i = CASE_STRIDE > 1; i < FLIP_MODELS; i += CASE_STRIDE) {
        snprintf(with, sizeof with, "%s-%d", temp_path("with"), i);
        snprintf(without, sizeof without, "%s-%d", temp_path("without"), i);
        ok(flip_train(&flip_models[i], with, NULL, NULL));
        ok(flip_train(&flip_models[i], without, NULL, off));
        snprintf(a, sizeof a, "%s/model.safetensors", with);
        snprintf(b, sizeof b, "%s/model.safetensors", without);
        assert_true(flip_same(a, b));
    }
}

/* ---- a trainer by itself ---- */

static mixt__trainer *inside(const fixture *f)
{
    return f->trainer->inner;
}

static void steps(fixture *f, int count)
{
    mixt_step step;
    for (int i = 0; i < count; i++)
        ok(mixt_trainer_step(f->trainer, f->data, &step));
}

static void flip_bit(fixture *f, int role, int64_t bit)
{
    char *bytes = inside(f)->params->roles[role].data;
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
}

static void test_the_lowest_bit_is_found(void **state)
{
    mixt_step step;
    static const int roles[] = {MIXT_PARAM_WEIGHT, MIXT_PARAM_MOMENT1, MIXT_PARAM_MOMENT2};
    static const char *const words[] = {"update 4 found the weights of 'fc.weight' changed",
                                        "update 4 found the first moments of 'fc.weight' changed",
                                        "update 4 found the second moments of 'fc.weight' changed"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        fixture f = start();
        steps(&f, 3);
        flip_bit(&f, roles[i], 32 * 77);
        assert_int_equal(mixt_trainer_step(f.trainer, f.data, &step), MIXT_ERROR_DATA);
        assert_non_null(strstr(mixt_error_text(), words[i]));
        assert_int_equal(mixt_trainer_save(f.trainer, temp_path("spoilt")), MIXT_ERROR_DATA);
        mixt_close(f.context);
    }
}

/** An update whose gradients overflow reads nothing, and finds it all the same. */
static void test_a_skipped_update_finds_it(void **state)
{
    mixt_step step;
    fixture f = start();
    (void)state;
    mixt_trainer *t = mixt_trainer_new(f.model, .precision = "fp16", .batch = BATCH, .inject_overflow = 4);
    f.trainer = t;
    steps(&f, 3);
    flip_bit(&f, MIXT_PARAM_MOMENT1, 32 * 77 + 30);
    assert_int_equal(mixt_trainer_step(t, f.data, &step), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "first moments of 'fc.weight'"));
    mixt_close(f.context);
}

/** What changed after the last update is found when it is to be saved; the old checkpoint stays. */
static void test_nothing_damaged_is_saved(void **state)
{
    char folder[500];
    mixt__checkpoint *c;
    (void)state;
    snprintf(folder, sizeof folder, "%s", temp_path("kept"));
    for (int role = 0; role < 4; role++) {
        static const int roles[] = {MIXT_PARAM_WEIGHT, MIXT_PARAM_MOMENT1, MIXT_PARAM_MOMENT2};
        fixture f = start();
        steps(&f, 3);
        ok(mixt_trainer_checkpoint(f.trainer, folder));
        steps(&f, 2);
        if (role < 3)
            flip_bit(&f, roles[role], 32 * 5 + 3);
        else
            inside(&f)->control->scale *= 2;
        assert_int_equal(mixt_trainer_checkpoint(f.trainer, folder), MIXT_ERROR_DATA);
        assert_non_null(strstr(mixt_error_text(), "changed in memory since"));
        ok(mixt__checkpoint_open(folder, &c));
        assert_int_equal(json_integer_value(json_object_get(json_object_get(c->scalars, "trainer"), "step")), 3);
        mixt__checkpoint_close(c);
        ok(mixt_trainer_restore(f.trainer, folder)); // and from there on all is well
        steps(&f, 2);
        mixt_close(f.context);
    }
}

/** Between the state that was verified and the file: the copy that is written, each tensor of it. */
static void test_a_flip_while_it_is_written_is_found(void **state)
{
    char folder[500];
    fixture f = start();
    mixt__snapshot s;
    (void)state;
    snprintf(folder, sizeof folder, "%s", temp_path("written"));
    steps(&f, 3);
    ok(mixt__snapshot_open(&s, inside(&f), MIXT_SNAPSHOT_WHOLE, false));
    ok(mixt__snapshot_take(&s, inside(&f)));
    mixt__checkpoint_content content = {.tensors = s.tensors, .count = s.count, .scalars = s.scalars};
    ok(mixt__checkpoint_write(folder, &content));
    for (int64_t i = 0; i < s.count; i++) {
        assert_true(s.tensors[i].summed);
        unsigned char *byte = (unsigned char *)(uintptr_t)s.tensors[i].data + 6;
        *byte ^= 4;
        assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_ERROR_DATA);
        assert_non_null(strstr(mixt_error_text(), s.tensors[i].name));
        *byte ^= 4;
        mixt__checkpoint *c;
        ok(mixt__checkpoint_open(folder, &c));
        mixt__checkpoint_close(c);
    }
    ok(mixt__checkpoint_write(folder, &content));
    mixt__snapshot_close(&s);
    mixt_close(f.context);
}

/** Writes through public functions, steps by hand, and what follows. */
static void test_no_false_alarms(void **state)
{
    static float weights[PIXELS * CLASSES], input[BATCH * PIXELS];
    int32_t label[BATCH];
    fixture f = start();
    double loss;
    (void)state;
    steps(&f, 2);
    ok(mixt_trainer_param_get(f.trainer, 0, weights));
    weights[9] += 0.5f;
    ok(mixt_trainer_param_set(f.trainer, 0, weights));
    steps(&f, 2);
    for (int i = 0; i < 3; i++) {
        ok(mixt_data_next(f.data, BATCH, input, label));
        ok(mixt_trainer_backward(f.trainer, input, label, 1, &loss));
        ok(mixt_trainer_apply(f.trainer, 1e-3f));
    }
    ok(mixt_trainer_param_set(f.trainer, 0, weights));
    ok(mixt_data_next(f.data, BATCH, input, label));
    ok(mixt_trainer_backward(f.trainer, input, label, 1, &loss));
    ok(mixt_trainer_apply(f.trainer, 1e-3f));
    steps(&f, 2);
    ok(mixt_trainer_checkpoint(f.trainer, temp_path("calm")));
    steps(&f, 1);
    ok(mixt_trainer_restore(f.trainer, temp_path("calm")));
    steps(&f, 3);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips_are_found_and_undone),
        cmocka_unit_test(test_flips_on_a_device_of_its_own),
        cmocka_unit_test(test_a_run_without_controller_stops),
        cmocka_unit_test(test_sums_change_nothing),
        cmocka_unit_test(test_the_lowest_bit_is_found),
        cmocka_unit_test(test_a_skipped_update_finds_it),
        cmocka_unit_test(test_nothing_damaged_is_saved),
        cmocka_unit_test(test_a_flip_while_it_is_written_is_found),
        cmocka_unit_test(test_no_false_alarms),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
