/* Several contexts, sets and lifetimes at once: what one does must not reach into another's memory. */
#include "mixt/mixt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

static void write_npy(const char *path, const char *format, const char *shape, const void *data, size_t bytes)
{
    char header[119];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", format, shape);
    fprintf(file, "%s%c%c%c%c%-117s\n", "\x93NUMPY", 1, 0, 118, 0, header);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/** Evaluation on a set with the same inputs but other targets must not use the buffers of the first. */
static void test_evaluation_of_other_targets(void **state)
{
    (void)state;
    char folder[] = "/tmp/mixt-contexts-XXXXXX", images[64], targets[64], spec[80];
    static unsigned char x[200 * 784];
    static float y[200 * 50];
    assert_non_null(mkdtemp(folder));
    snprintf(images, sizeof images, "%s/x.npy", folder);
    snprintf(targets, sizeof targets, "%s/y.npy", folder);
    snprintf(spec, sizeof spec, "npy:%s", images);
    write_npy(images, "|u1", "(200, 28, 28, 1)", x, sizeof x);
    for (int i = 0; i < 200 * 50; i++)
        y[i] = (float)(i % 7);
    write_npy(targets, "<f4", "(200, 50)", y, sizeof y);
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_data *digits = mixt_data_new(context, "digits:", .samples = 256);
    mixt_data *other = mixt_data_new(context, spec, .labels = targets, .split = "all");
    mixt_trainer *trainer = trainer_of(context, "fp32");
    mixt_evaluation found;
    assert_non_null(other);
    assert_int_equal(mixt_trainer_step(trainer, digits, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(trainer, digits, &found), MIXT_OK);
    assert_int_not_equal(mixt_trainer_evaluate(trainer, other, &found), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(trainer, digits, &found), MIXT_OK);
    mixt_close(context);
    unlink(images);
    unlink(targets);
    rmdir(folder);
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

static mixt_value nameless(mixt_builder *b, mixt_value x)
{
    static char name[4000];
    memset(name, 'n', sizeof name - 1);
    return mixt_linear(b, name, x, .features = 0);
}

static void test_long_name(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 64);
    mixt_trainer *trainer = mixt_trainer_new(mixt_model_new(context, nameless, MIXT_LOSS_CROSS_ENTROPY), .batch = 8);
    assert_int_not_equal(mixt_trainer_compile(trainer, data), MIXT_OK);
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_another_context),
        cmocka_unit_test(test_evaluation_of_other_targets),
        cmocka_unit_test(test_data_closed_before_the_trainer),
        cmocka_unit_test(test_long_name),
    };
    return cmocka_run_group_tests_name("contexts", tests, NULL, NULL);
}
