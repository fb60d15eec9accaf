/* Several contexts, sets and lifetimes at once: what one does must not reach into another's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "mixt/mixt.h"

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_layer_norm(b, "norm", mixt_flatten(b, x));
    x = mixt_relu(b, mixt_linear(b, "hidden", x, .features = 64));
    return mixt_linear(b, "fc", x, .features = 10);
}

static mixt_trainer *trainer_of(mixt_context *context, const char *precision)
{
    return mixt_trainer_new(mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY), .precision = precision, .batch = 64);
}

/** A plan runs with the threads that it was made for, whatever the process uses since. */
static void test_threads_of_another_context(void **state)
{
    (void)state;
    const char *const formats[] = {"fp32", "bf16"};
    for (int k = 0; k < 2; k++) {
        mixt_context *small = mixt_open(.device = "cpu", .threads = 1);
        mixt_data *data = mixt_data_new(small, "digits:", .samples = 256);
        mixt_trainer *trainer = trainer_of(small, formats[k]), *alone = trainer_of(small, formats[k]);
        mixt_step step, expected;
        for (int i = 0; i < 4; i++)
            assert_int_equal(mixt_trainer_step(alone, data, &expected), MIXT_OK);
        assert_int_equal(mixt_trainer_step(trainer, data, &step), MIXT_OK);
        mixt_context *large = mixt_open(.device = "cpu", .threads = 8);
        for (int i = 0; i < 3; i++)
            assert_int_equal(mixt_trainer_step(trainer, data, &step), MIXT_OK);
        assert_true(step.loss == expected.loss);
        mixt_close(large);
        mixt_close(small);
    }
}

/** Evaluation on a set with the same inputs but other targets must not use the buffers of the first. */
static void test_evaluation_of_other_targets(void **state)
{
    (void)state;
    static unsigned char x[200 * 784];
    static float y[200 * 50];
    write_npy("x.npy", "|u1", "(200, 28, 28, 1)", x, sizeof x);
    for (int i = 0; i < 200 * 50; i++)
        y[i] = (float)(i % 7);
    write_npy("y.npy", "<f4", "(200, 50)", y, sizeof y);
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_data *digits = mixt_data_new(context, "digits:", .samples = 256);
    mixt_data *other =
        mixt_data_new(context, in_folder("npy:%s/x.npy"), .labels = in_folder("%s/y.npy"), .split = "all");
    mixt_trainer *trainer = trainer_of(context, "fp32");
    mixt_evaluation found;
    assert_non_null(other);
    assert_int_equal(mixt_trainer_step(trainer, digits, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(trainer, digits, &found), MIXT_OK);
    assert_int_not_equal(mixt_trainer_evaluate(trainer, other, &found), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(trainer, digits, &found), MIXT_OK);
    mixt_close(context);
}

/** The trainer's threads read ahead: a set that its owner closes stays until they are done. */
static void test_data_closed_before_the_trainer(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_trainer *trainer = trainer_of(context, "fp32");
    for (int i = 0; i < 3; i++) {
        mixt_data *data;
        assert_int_equal(
            mixt_data_open("digits:", &data, .samples = 640, .pad = 4, .flip = true, .seed = 7 + (unsigned)i), MIXT_OK);
        for (int k = 0; k < 4; k++)
            assert_int_equal(mixt_trainer_step(trainer, data, NULL), MIXT_OK);
        mixt_data_close(data);
    }
    mixt_close(context);
}

/** A device that the environment asks for is refused in the environment's name. */
static void test_device_of_the_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("MIXT_DEVICE", "tpu", 1), 0);
    assert_null(mixt_open(.device = "auto"));
    assert_string_equal(mixt_error_text(), "MIXT_DEVICE: device 'tpu': must be auto, cpu, cuda or cuda:N");
    assert_null(mixt_open(.device = "npu"));
    assert_string_equal(mixt_error_text(), "device 'npu': must be auto, cpu, cuda or cuda:N");
    static const char *const numbers[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:100", "cpu:0"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_null(mixt_open(.device = numbers[i]));
        assert_non_null(strstr(mixt_error_text(), "must be auto, cpu, cuda or cuda:N"));
    }
    assert_null(mixt_open(.device = "cuda:63")); // no machine has so many, and most that test have none
    assert_non_null(strstr(mixt_error_text(), "device 'cuda:63': "));
    assert_null(strstr(mixt_error_text(), "must be"));
    assert_int_equal(setenv("MIXT_DEVICE", "cpu", 1), 0); // as all tests here have it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_another_context),
        cmocka_unit_test(test_evaluation_of_other_targets),
        cmocka_unit_test(test_data_closed_before_the_trainer),
        cmocka_unit_test(test_device_of_the_environment),
    };
    return cmocka_run_group_tests_name("contexts", tests, temp_folder_setup, temp_folder_teardown);
}
