/* Data sets of a program's own arrays: samples come back as they were given, parts and statistics are those of a file,
 * trainers and the zoo take them, several threads read them, and what is wrong with an array is said with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { ROWS = 60, WIDTH = 4, CLASSES = 3, T = 8 };

static float inputs[ROWS][WIDTH], values[ROWS];
static int32_t labels[ROWS], tokens[ROWS][T], next[ROWS][T];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % CLASSES;
        values[i] = (float)i * 0.5f;
        for (int k = 0; k < WIDTH; k++)
            inputs[i][k] = (float)((i * 7 + k * 3) % 11) + (labels[i] == k ? 20.0f : 0.0f);
        for (int k = 0; k < T; k++) {
            tokens[i][k] = (i + k) % 13;
            next[i][k] = (i + k + 1) % 13;
        }
    }
    return 0;
}

static mixt_data_arrays classes_of(bool borrow)
{
    return MIXT_OPTIONS(mixt_data_arrays, .samples = ROWS, .input_rank = 1, .input_dims = {WIDTH}, .inputs = inputs,
                        .target = MIXT_TARGET_CLASS, .targets = labels, .borrow = borrow);
}

static mixt_data *open_set(const mixt_data_arrays *arrays, const mixt_data_options *options)
{
    mixt_data *data;
    if (mixt_data_from(arrays, options, &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

static void samples_are_as_given(void **state)
{
    (void)state;
    for (int borrow = 0; borrow < 2; borrow++) {
        mixt_data_arrays a = classes_of(borrow);
        a.class_names = (const char *const[]){"x", "y", "z"};
        a.classes = CLASSES;
        mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE);
        mixt_data *data = open_set(&a, &o);
        const mixt_data_info *info = mixt_data_describe(data);
        float x[ROWS][WIDTH];
        int32_t y[ROWS];
        int64_t valid;
        assert_int_equal(info->samples, ROWS);
        assert_int_equal(info->classes, CLASSES);
        assert_string_equal(info->class_names[2], "z");
        assert_string_equal(info->kind, "arrays");
        assert_string_equal(info->path, "memory");
        assert_int_equal(mixt_data_read(data, 0, ROWS, x, y, &valid), MIXT_OK);
        assert_int_equal(valid, ROWS);
        assert_memory_equal(x, inputs, sizeof x);
        assert_memory_equal(y, labels, sizeof y);
        float kept = inputs[5][1];
        inputs[5][1] = -1; // seen where the array is borrowed only
        assert_int_equal(mixt_data_read(data, 5, 1, x, y, &valid), MIXT_OK);
        assert_true(x[0][1] == (borrow ? -1 : kept));
        inputs[5][1] = kept;
        mixt_data_close(data);
    }
}

static void values_may_be_left_out(void **state)
{
    (void)state;
    mixt_data_arrays a = classes_of(false);
    a.target = MIXT_TARGET_VALUES;
    a.targets = values;
    values[3] = NAN;
    mixt_data *data = open_set(&a, NULL);
    float x[WIDTH], y;
    int64_t valid;
    assert_int_equal(mixt_data_read(data, 3, 1, x, &y, &valid), MIXT_OK);
    assert_true(isnan(y));
    assert_int_equal(mixt_data_describe(data)->target, MIXT_TARGET_VALUES);
    values[3] = 1.5f;
    mixt_data_close(data);
}

/** Parts share the samples out, and normalise by the training part; `like` hands that on to another array. */
static void parts_and_statistics(void **state)
{
    (void)state;
    mixt_data_arrays a = classes_of(true);
    mixt_data_options train = MIXT_OPTIONS(mixt_data_options, .split = "train", .val = 0.25),
                      val = MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.25);
    mixt_data *t = open_set(&a, &train), *v = open_set(&a, &val), *whole = open_set(&a, NULL);
    assert_int_equal(mixt_data_describe(t)->samples, 45);
    assert_int_equal(mixt_data_describe(v)->samples, 15);
    assert_int_equal(mixt_data_describe(whole)->samples, ROWS);
    assert_memory_equal(mixt_data_describe(t)->mean, mixt_data_describe(v)->mean, WIDTH * sizeof(float));
    double mean = 0;
    for (int i = 0; i < ROWS; i++)
        mean += (double)inputs[i][0] / ROWS;
    assert_true(fabs(mixt_data_describe(whole)->mean[0] - mean) < 1e-4);
    a.samples = 7;
    mixt_data_options like = MIXT_OPTIONS(mixt_data_options, .like = t);
    mixt_data *other = open_set(&a, &like);
    assert_memory_equal(mixt_data_describe(other)->std, mixt_data_describe(t)->std, WIDTH * sizeof(float));
    assert_int_equal(mixt_data_describe(other)->classes, CLASSES);
    mixt_data_close(other);
    mixt_data_close(whole);
    mixt_data_close(v);
    mixt_data_close(t);
}

static void trainers_and_the_zoo_take_them(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data_arrays a = classes_of(true);
    mixt_data *data = open_set(&a, NULL);
    mixt_trainer *t = mixt_trainer_new(mixt_zoo_model(context, "mlp", data), .batch = 20, .lr = 0.02f);
    mixt_step step;
    mixt_evaluation e;
    for (int i = 0; i < 60; i++)
        if (mixt_trainer_step(t, data, &step) != MIXT_OK)
            fail_msg("%s", mixt_error(context));
    assert_int_equal(mixt_trainer_evaluate(t, data, &e), MIXT_OK);
    assert_true(e.accuracy > 0.95);
    mixt_data_close(data); // a trainer that reads ahead keeps it
    mixt_close(context);
}

static void tokens_are_a_text(void **state)
{
    (void)state;
    mixt_data_arrays a = MIXT_OPTIONS(mixt_data_arrays, .name = "steps", .samples = ROWS,
                                      .input_dtype = MIXT_DTYPE_INT32, .input_rank = 1, .input_dims = {T},
                                      .inputs = tokens, .target = MIXT_TARGET_TOKENS, .targets = next);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = open_set(&a, NULL);
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->classes, 13);
    assert_true(info->next_tokens);
    mixt_trainer *t = mixt_trainer_new(mixt_zoo_model(context, "gpt", data, .layers = 1, .width = 16, .heads = 2),
                                       .batch = 20, .lr = 0.01f);
    mixt_step first, last;
    assert_int_equal(mixt_trainer_step(t, data, &first), MIXT_OK);
    for (int i = 0; i < 40; i++)
        assert_int_equal(mixt_trainer_step(t, data, &last), MIXT_OK);
    assert_true(last.loss < 0.7 * first.loss);
    next[2][0] = -1; // left out: no longer simply the next token
    mixt_data *masked = open_set(&a, NULL);
    assert_false(mixt_data_describe(masked)->next_tokens);
    next[2][0] = 3;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.1);
    mixt_data *val = open_set(&a, &o);
    int32_t x[T], y[T];
    int64_t valid;
    assert_int_equal(mixt_data_describe(val)->samples, 6);
    assert_int_equal(mixt_data_read(val, 0, 1, x, y, &valid), MIXT_OK);
    assert_memory_equal(x, tokens[54], sizeof x);
    mixt_data_close(val);
    mixt_data_close(masked);
    mixt_close(context);
    mixt_data_close(data);
}

static void *read_all(void *argument)
{
    const mixt_data *data = argument;
    for (int round = 0; round < 200; round++)
        for (int b = 0; b < 3; b++) {
            float x[20][WIDTH];
            int32_t y[20];
            if (mixt_data_batch(data, 20, b, x, y) != MIXT_OK)
                return argument;
            for (int i = 0; i < 20; i++) // the class is the column that stands out
                for (int k = 0; k < CLASSES; k++)
                    if ((x[i][k] >= 20) != (k == y[i]))
                        return argument;
        }
    return NULL;
}

static void threads_read_together(void **state)
{
    (void)state;
    mixt_data_arrays a = classes_of(true);
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE);
    mixt_data *data = open_set(&a, &o);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, data), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    mixt_data_close(data);
}

static void refused(const mixt_data_arrays *a, const mixt_data_options *o, mixt_status status, const char *words)
{
    mixt_data *data = (mixt_data *)inputs; // set to NULL also on failure
    mixt_status got = mixt_data_from(a, o, &data);
    assert_null(data);
    if (got != status || !strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got %d: \"%s\"", words, (int)got, mixt_error_text());
}

static void wrong_arrays_are_named(void **state)
{
    (void)state;
    const mixt_data_arrays good = classes_of(false);
    mixt_data_arrays a;
#define REFUSED(status, words, ...)                                                                                    \
    a = good;                                                                                                          \
    __VA_ARGS__;                                                                                                       \
    refused(&a, NULL, MIXT_ERROR_##status, words)
    REFUSED(ARGUMENT, "-1 samples", a.samples = -1);
    REFUSED(ARGUMENT, ".inputs and .targets", a.inputs = NULL);
    REFUSED(ARGUMENT, ".inputs and .targets", a.targets = NULL);
    REFUSED(SHAPE, "0 dimensions", a.input_rank = 0);
    REFUSED(SHAPE, "dimension 0", a.input_dims[0] = -4);
    REFUSED(SHAPE, "too large", a.samples = INT64_MAX / 2);
    REFUSED(DTYPE, "fp64", a.input_dtype = MIXT_DTYPE_FP64);
    REFUSED(ARGUMENT, ".target must be", a.target = MIXT_TARGET_AUTO);
    REFUSED(DTYPE, "expected int32", a.target = MIXT_TARGET_TOKENS);
    REFUSED(SHAPE, "is for values", a.target_elements = 2);
    REFUSED(DATA, "sample 2: class 2 is out of range, expected 0 to 1", a.classes = 2);
    REFUSED(ARGUMENT, "-1 classes", a.classes = -1);
    REFUSED(ARGUMENT, "need .classes", a.class_names = (const char *const[]){"x", "y", "z"});
    REFUSED(ARGUMENT, "class 1 has no name", a.classes = 3; a.class_names = (const char *const[]){"x", NULL, "z"});
    inputs[7][2] = INFINITY;
    REFUSED(DATA, "sample 7: element 2 is inf", (void)0);
    inputs[7][2] = 1;
    labels[9] = -1;
    REFUSED(DATA, "sample 9: class -1", (void)0);
    labels[9] = 0;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .tokenizer = "gpt2");
    refused(&good, &o, MIXT_ERROR_CONFIG, "'tokenizer' is not for arrays");
    refused(NULL, NULL, MIXT_ERROR_ARGUMENT, "arrays must not be NULL");
    assert_int_equal(mixt_data_from(&good, NULL, NULL), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_as_given),   cmocka_unit_test(values_may_be_left_out),
        cmocka_unit_test(parts_and_statistics),   cmocka_unit_test(trainers_and_the_zoo_take_them),
        cmocka_unit_test(tokens_are_a_text),      cmocka_unit_test(threads_read_together),
        cmocka_unit_test(wrong_arrays_are_named),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
