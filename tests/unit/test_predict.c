/* Predictions: the logits from which loss and accuracy of an evaluation can be computed again, in every format. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "mixt/mixt.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 83, PIXELS = 784, CLASSES = 10 };

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .stride = 2, .pad = 1));
    x = mixt_relu(b, mixt_batch_norm(b, "norm", x));
    x = mixt_dropout(b, mixt_flatten(b, mixt_max_pool(b, x, .size = 2)), 0.3f);
    return mixt_linear(b, "fc", x, .features = CLASSES);
}

/** Mean cross-entropy and accuracy of logits, in FP64. */
static void judge(const float *logits, const int32_t *labels, double *loss, double *accuracy)
{
    *loss = *accuracy = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const float *row = logits + i * CLASSES;
        double sum = 0;
        int best = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += exp((double)row[c]);
            best = row[c] > row[best] ? c : best;
        }
        *loss += (log(sum) - (double)row[labels[i]]) / SAMPLES;
        *accuracy += (double)(best == labels[i]) / SAMPLES;
    }
}

static void predictions_explain_the_evaluation(void **state)
{
    (void)state;
    static float input[SAMPLES * PIXELS], logits[SAMPLES * CLASSES], one[CLASSES];
    int32_t labels[SAMPLES];
    int64_t valid, outputs;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *train = mixt_data_new(context, "digits:", .samples = 256, .seed = 1);
    mixt_data *test = mixt_data_new(context, "digits:", .samples = SAMPLES, .seed = 1, .split = "test");
    mixt_model *model = mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .batch = 32, .lr = 0.01f, .seed = 3);
    assert_non_null(t);
    assert_int_equal(mixt_trainer_outputs(t, &outputs), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "compile"));
    assert_int_equal(mixt_data_read(test, 0, SAMPLES, input, labels, &valid), MIXT_OK);
    assert_int_equal(valid, SAMPLES);
    static const char *const formats[] = {"fp32", "bf16", "fp16", "fp32"};
    for (int f = 0; f < 4; f++) {
        mixt_evaluation found;
        double loss, accuracy;
        assert_int_equal(mixt_trainer_set_precision(t, formats[f]), MIXT_OK);
        for (int i = 0; i < 8; i++)
            assert_int_equal(mixt_trainer_step(t, train, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_evaluate(t, test, &found), MIXT_OK);
        assert_int_equal(mixt_trainer_outputs(t, &outputs), MIXT_OK);
        assert_int_equal(outputs, CLASSES);
        assert_int_equal(mixt_trainer_predict(t, input, SAMPLES, logits), MIXT_OK);
        judge(logits, labels, &loss, &accuracy);
        if (fabs(loss - found.loss) > 1e-5 * (1 + found.loss) || fabs(accuracy - found.accuracy) > 1e-9)
            fail_msg("%s: loss %.9g and accuracy %g, the evaluation says %.9g and %g", formats[f], loss, accuracy,
                     found.loss, found.accuracy);
        // A sample's outputs do not depend on what else is in the batch.
        assert_int_equal(mixt_trainer_predict(t, input + 40 * PIXELS, 1, one), MIXT_OK);
        assert_memory_equal(one, logits + 40 * CLASSES, sizeof one);
    }
    assert_int_equal(mixt_trainer_predict(t, NULL, 0, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, input, -1, logits), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_trainer_predict(t, NULL, 1, logits), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_trainer_predict(NULL, input, 1, logits), MIXT_ERROR_ARGUMENT);
    mixt_close(context);
}

/** Data that the parameters do not fit: the text has both shapes. */
static void samples_of_another_shape_are_refused(void **state)
{
    (void)state;
    mixt_evaluation found;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *train = mixt_data_new(context, "digits:", .samples = 32);
    mixt_data *smaller = mixt_data_new(context, "random:12x12x1", .samples = 8);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY), .batch = 8);
    assert_int_equal(mixt_trainer_step(t, train, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(t, smaller, &found), MIXT_ERROR_STATE);
    assert_non_null(
        strstr(mixt_error_text(), "'fc.weight' (10, 72) in the graph and 'fc.weight' (10, 392) in the model"));
    mixt_close(context);
}

/** A sample of the data as a picture: the bytes that it was made from. */
static void write_picture(const char *path, const float *sample, const mixt_data_info *info)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "P5 28 28 255\n");
    for (int i = 0; i < PIXELS; i++)
        fputc((int)lrintf((sample[i] * info->std[0] + info->mean[0]) * 255), file);
    assert_int_equal(fclose(file), 0);
}

static void a_picture_has_the_class_of_its_sample(void **state)
{
    (void)state;
    enum { CHECKED = 20 };
    static float input[CHECKED * PIXELS], logits[CHECKED * CLASSES], again[PIXELS], one[CLASSES];
    int32_t labels[CHECKED];
    int64_t valid;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *train = mixt_data_new(context, "digits:", .samples = 256, .seed = 1);
    mixt_data *test = mixt_data_new(context, "digits:", .samples = CHECKED, .split = "test", .like = train);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY), .batch = 32, .lr = 0.01f);
    for (int i = 0; i < 16; i++)
        assert_int_equal(mixt_trainer_step(t, train, NULL), MIXT_OK);
    assert_int_equal(mixt_data_read(test, 0, CHECKED, input, labels, &valid), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, input, CHECKED, logits), MIXT_OK);
    for (int i = 0; i < CHECKED; i++) {
        mixt_inputs *inputs;
        mixt_guess want, found[3];
        write_picture(temp_path("digit.pgm"), input + i * PIXELS, mixt_data_describe(train));
        assert_int_equal(mixt_inputs_open(temp_path("digit.pgm"), train, &inputs), MIXT_OK);
        assert_int_equal(mixt_inputs_count(inputs), 1);
        assert_int_equal(mixt_inputs_read(inputs, 0, 1, again), MIXT_OK);
        assert_int_equal(mixt_inputs_read(inputs, 0, 2, again), MIXT_ERROR_ARGUMENT);
        assert_memory_equal(again, input + i * PIXELS, sizeof again);
        assert_int_equal(mixt_trainer_predict(t, again, 1, one), MIXT_OK);
        assert_int_equal(mixt_classes_rank(logits + i * CLASSES, CLASSES, 1, &want), MIXT_OK);
        assert_int_equal(mixt_classes_rank(one, CLASSES, 3, found), MIXT_OK);
        assert_int_equal(found[0].label, want.label);
        assert_true(found[0].probability == want.probability && found[0].probability >= found[1].probability);
        mixt_inputs_close(inputs);
    }
    mixt_inputs *none;
    assert_int_equal(mixt_inputs_open(temp_path("none.pgm"), train, &none), MIXT_ERROR_FILE);
    assert_null(none);
    mixt_close(context);
}

/** Bytes of a picture, and the same as FP32, are what its file is; shapes and numbers that are none are refused. */
static void arrays_in_memory_are_samples(void **state)
{
    (void)state;
    static uint8_t bytes[2 * PIXELS];
    static float floats[2 * PIXELS], a[2 * PIXELS], b[2 * PIXELS];
    const int64_t dims[] = {2, 28, 28, 1}, rows[] = {2, 3}, many[] = {INT64_MAX / 2, 28, 28, 1},
                  none[] = {0, 28, 28, 1};
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *like = mixt_data_new(context, "digits:", .samples = 64);
    mixt_inputs *inputs;
    for (int i = 0; i < 2 * PIXELS; i++) {
        bytes[i] = (uint8_t)(i * 31 % 256);
        floats[i] = (float)bytes[i] / 255.0f;
    }
    const mixt_data_info *info = mixt_data_describe(like);
    assert_int_equal(mixt_inputs_from(bytes, MIXT_DTYPE_UINT8, 4, dims, like, &inputs), MIXT_OK);
    assert_int_equal(mixt_inputs_count(inputs), 2);
    assert_int_equal(mixt_inputs_read(inputs, 0, 2, a), MIXT_OK);
    mixt_inputs_close(inputs);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 3, dims, like, &inputs), MIXT_OK); // without channels
    assert_int_equal(mixt_inputs_read(inputs, 0, 2, b), MIXT_OK);
    assert_int_equal(mixt_inputs_read(inputs, 1, 2, b), MIXT_ERROR_ARGUMENT);
    mixt_inputs_close(inputs);
    for (int i = 0; i < 2 * PIXELS; i++) {
        assert_float_equal(a[i], (floats[i] - info->mean[0]) / info->std[0], 1e-5);
        assert_float_equal(a[i], b[i], 1e-5);
    }
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 3, dims + 1, like, &inputs), MIXT_OK); // one alone
    assert_int_equal(mixt_inputs_count(inputs), 1);
    mixt_inputs_close(inputs);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 2, rows, like, &inputs), MIXT_ERROR_SHAPE);
    assert_null(inputs);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 1, rows, like, &inputs), MIXT_ERROR_SHAPE);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 4, many, like, &inputs), MIXT_ERROR_SHAPE);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 4, none, like, &inputs), MIXT_ERROR_SHAPE);
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_INT32, 4, dims, like, &inputs), MIXT_ERROR_DTYPE);
    assert_int_equal(mixt_inputs_from(NULL, MIXT_DTYPE_FP32, 4, dims, like, &inputs), MIXT_ERROR_ARGUMENT);
    floats[PIXELS] = NAN;
    assert_int_equal(mixt_inputs_from(floats, MIXT_DTYPE_FP32, 4, dims, like, &inputs), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "784"));
    mixt_close(context);
}

static void classes_are_ranked_as_defined(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static float logits[COUNT];
    static mixt_guess all[COUNT], few[7];
    for (int i = 0; i < COUNT; i++)
        logits[i] = (float)((i * 7919) % 101) * 0.25f - 600; // every value about ten times
    assert_int_equal(mixt_classes_rank(logits, COUNT, COUNT, all), MIXT_OK);
    assert_int_equal(mixt_classes_rank(logits, COUNT, 7, few), MIXT_OK);
    assert_memory_equal(few, all, sizeof few);
    double sum = 0, total = 0;
    bool seen[COUNT] = {false};
    for (int i = 0; i < COUNT; i++)
        total += exp((double)logits[i] + 600);
    for (int i = 0; i < COUNT; i++) {
        assert_false(seen[all[i].label]);
        seen[all[i].label] = true;
        sum += all[i].probability;
        assert_true(fabs(all[i].probability - exp((double)logits[all[i].label] + 600) / total) < 1e-12);
        assert_true(!i || all[i - 1].probability > all[i].probability ||
                    (all[i - 1].probability == all[i].probability && all[i - 1].label < all[i].label));
    }
    assert_true(fabs(sum - 1) < 1e-12);
    assert_int_equal(mixt_classes_rank(logits, 5, 6, few), MIXT_ERROR_ARGUMENT);
    logits[3] = NAN;
    assert_int_equal(mixt_classes_rank(logits, COUNT, 7, few), MIXT_ERROR_DATA);
    assert_int_equal(mixt_outputs_check(logits, 3), MIXT_OK);
    assert_int_equal(mixt_outputs_check(logits, 4), MIXT_ERROR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_explain_the_evaluation),    cmocka_unit_test(samples_of_another_shape_are_refused),
        cmocka_unit_test(a_picture_has_the_class_of_its_sample), cmocka_unit_test(arrays_in_memory_are_samples),
        cmocka_unit_test(classes_are_ranked_as_defined),
    };
    return cmocka_run_group_tests_name("predict", tests, temp_folder_setup, temp_folder_teardown);
}
