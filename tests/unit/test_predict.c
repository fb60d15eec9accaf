/* Predictions: the logits from which loss and accuracy of an evaluation can be computed again, in every format. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_explain_the_evaluation),
        cmocka_unit_test(samples_of_another_shape_are_refused),
    };
    return cmocka_run_group_tests_name("predict", tests, NULL, NULL);
}
