/* A model that is built by calls: the same bits as one of a function, for any batch, in training and outside of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

enum { SIDE = 28, BIG = 100000 };

/** A little of everything: names, options with and without values in them, parts, dropout, running statistics. */
static mixt_value layers(mixt_builder *b, mixt_value x)
{
    mixt_value parts[2];
    x = mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .stride = 2);
    x = mixt_relu(b, mixt_batch_norm(b, "norm", x, .momentum = 0.2f));
    x = mixt_max_pool(b, x, .size = 2);
    x = mixt_flatten(b, x);
    mixt_scope_push(b, "head");
    x = mixt_linear(b, "fc", x, .features = 16);
    mixt_scope_pop(b);
    mixt_split(b, x, 2, parts);
    x = mixt_concat(b, (mixt_value[]){mixt_gelu(b, parts[1]), mixt_affine(b, parts[0], 0.5f, 1)}, 2, 1);
    x = mixt_reshape(b, x, 3, (int64_t[]){-1, 4, 4});
    x = mixt_transpose(b, x, (int[]){0, 2, 1});
    x = mixt_mean(b, mixt_mul(b, x, x), .axes = {-1}, .axis_count = 1);
    x = mixt_dropout(b, x, 0.2f);
    return mixt_linear(b, "out", x, .features = 10);
}

static mixt_model *built(mixt_context *context)
{
    mixt_builder *b;
    mixt_model *model;
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    mixt_value x = mixt_builder_input(b, NULL, MIXT_DTYPE_FP32, 3, (int64_t[]){SIDE, SIDE, 1});
    x = layers(b, x);
    mixt_status status = mixt_builder_finish(b, x, MIXT_LOSS_CROSS_ENTROPY, NULL, &model);
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return model;
}

/** Three updates in BF16, then predictions of 7 samples, another batch. @return numbers in `results` */
static int64_t train(bool by_calls, int64_t batch, float *results)
{
    static float samples[7 * SIDE * SIDE];
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 96);
    mixt_model *model = by_calls ? built(context) : mixt_model_new(context, layers, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "bf16", .batch = batch, .eval_batch = 3, .seed = 5);
    for (int i = 0; i < 3; i++)
        if (mixt_trainer_step(t, data, NULL) != MIXT_OK)
            fail_msg("%s", mixt_error_text());
    int64_t used = 0;
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        mixt_param_info info;
        assert_int_equal(mixt_trainer_param(t, p, &info), MIXT_OK);
        assert_true(used + info.count + 70 < BIG);
        assert_int_equal(mixt_trainer_param_get(t, p, results + used), MIXT_OK);
        used += info.count;
    }
    for (int i = 0; i < 7 * SIDE * SIDE; i++)
        samples[i] = (float)(i % 13) / 13;
    assert_int_equal(mixt_trainer_predict(t, samples, 7, results + used), MIXT_OK);
    mixt_evaluation evaluation;
    assert_int_equal(mixt_trainer_evaluate(t, data, &evaluation), MIXT_OK);
    results[used + 70] = (float)evaluation.loss;
    mixt_close(context);
    return used + 71;
}

static void same_bits_for_any_batch(void **state)
{
    static float expected[BIG], found[BIG];
    (void)state;
    for (int64_t batch = 1; batch <= 17; batch += 8) {
        int64_t count = train(false, batch, expected);
        assert_int_equal(train(true, batch, found), count);
        assert_memory_equal(found, expected, (size_t)count * sizeof *found);
    }
}

/** A loss of its own: what is made from targets is left out where there are none. */
static void own_losses(void **state)
{
    (void)state;
    float inputs[64], values[32], out[2];
    for (int i = 0; i < 64; i++)
        inputs[i] = (float)(i % 7) / 7;
    for (int i = 0; i < 32; i++)
        values[i] = inputs[2 * i] - inputs[2 * i + 1];
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_builder *b;
    mixt_model *model;
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    mixt_value x = mixt_builder_input(b, "input", MIXT_DTYPE_FP32, 1, (int64_t[]){2});
    mixt_value wanted = mixt_builder_target(b, "target", MIXT_DTYPE_FP32, 1, (int64_t[]){1});
    x = mixt_linear(b, "fc", x, .features = 1);
    mixt_loss_add(b, mixt_loss_mse(b, x, wanted), 2);
    assert_int_equal(mixt_builder_finish(b, x, MIXT_LOSS_CUSTOM, NULL, &model), MIXT_OK);
    mixt_data *data;
    mixt_data_arrays arrays = MIXT_OPTIONS(mixt_data_arrays, .samples = 32, .input_rank = 1, .input_dims = {2},
                                           .inputs = inputs, .target = MIXT_TARGET_VALUES, .targets = values);
    assert_int_equal(
        mixt_data_from(&arrays, MIXT_OPTIONS_AT(mixt_data_options, .normalise = MIXT_NORMALISE_NONE), &data), MIXT_OK);
    mixt_trainer *t = mixt_trainer_new(model, .batch = 8, .lr = 0.1f);
    mixt_step step = {0};
    for (int i = 0; i < 300; i++)
        assert_int_equal(mixt_trainer_step(t, data, &step), MIXT_OK);
    assert_true(step.loss < 0.01);
    assert_int_equal(mixt_trainer_predict(t, inputs, 2, out), MIXT_OK); // a graph without a loss
    mixt_close(context);
    mixt_data_close(data);
}

static void failures_are_told_at_the_end(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_builder *b, *left;
    mixt_model *model;
    assert_int_equal(mixt_builder_new(context, &left), MIXT_OK); // freed with the context
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    mixt_value x = mixt_builder_input(b, NULL, MIXT_DTYPE_FP32, 1, (int64_t[]){4});
    x = mixt_relu(b, mixt_linear(b, "fc", x, .features = -1));
    assert_int_equal(mixt_builder_finish(b, x, MIXT_LOSS_MSE, NULL, &model), MIXT_ERROR_ARGUMENT);
    assert_null(model);
    assert_non_null(strstr(mixt_error(context), "linear needs .features of at least 1"));
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    x = mixt_builder_input(b, NULL, MIXT_DTYPE_INT8, 1, (int64_t[]){4});
    assert_int_equal(mixt_builder_finish(b, x, MIXT_LOSS_MSE, NULL, &model), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    mixt_builder_free(b);
    mixt_builder_free(NULL);
    mixt_close(context);
}

/* ---- tensors ---- */

static void refused_tensors(void **state)
{
    (void)state;
    float numbers[6] = {0};
    int64_t dims[2] = {2, 3};
    mixt_tensor *t;
    mixt_dlpack *managed;
    assert_int_equal(mixt_tensor_over(numbers, MIXT_DTYPE_FP32, MIXT_MAX_RANK + 1, dims, &t), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_tensor_over(NULL, MIXT_DTYPE_FP32, 2, dims, &t), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_tensor_over(numbers, MIXT_DTYPE_FP8_E4M3, 2, dims, &t), MIXT_OK);
    assert_int_equal(mixt_tensor_to_dlpack(t, &managed), MIXT_ERROR_DTYPE);
    mixt_tensor_free(t);
    assert_int_equal(mixt_tensor_over(numbers, MIXT_DTYPE_FP32, 2, dims, &t), MIXT_OK);
    assert_true(mixt_tensor_stride(t, 0) == 3 && mixt_tensor_stride(t, 1) == 1 && mixt_tensor_dim(t, 2) == 0);
    assert_int_equal(mixt_tensor_to_dlpack(t, &managed), MIXT_OK);
    mixt_tensor_free(t); // what was handed out stays
    managed->version_major = 2;
    assert_int_equal(mixt_tensor_from_dlpack(managed, &t), MIXT_ERROR_UNSUPPORTED);
    managed->version_major = 1;
    managed->dl_tensor.dtype.lanes = 4;
    assert_int_equal(mixt_tensor_from_dlpack(managed, &t), MIXT_ERROR_UNSUPPORTED);
    managed->dl_tensor.dtype.lanes = 1;
    managed->dl_tensor.device.device_type = 10; // ROCm
    assert_int_equal(mixt_tensor_from_dlpack(managed, &t), MIXT_ERROR_UNSUPPORTED);
    managed->dl_tensor.device.device_type = MIXT_DLPACK_CPU;
    managed->dl_tensor.strides[0] = 1;
    managed->dl_tensor.strides[1] = 2;
    assert_int_equal(mixt_tensor_from_dlpack(managed, &t), MIXT_OK);
    mixt_data *data;
    assert_int_equal(mixt_data_from_tensors(t, t, NULL, &data), MIXT_ERROR_ARGUMENT); // columns first
    mixt_tensor_free(t);
}

static void batches_as_tensors(void **state)
{
    (void)state;
    mixt_data *data;
    mixt_tensor *input, *target;
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 32), MIXT_OK);
    assert_int_equal(mixt_data_batch_tensors(data, 4, 1, &input, &target), MIXT_OK);
    assert_true(mixt_tensor_rank(input) == 4 && mixt_tensor_elements(input) == 4 * SIDE * SIDE);
    assert_true(mixt_tensor_rank(target) == 1 && mixt_tensor_dtype(target) == MIXT_DTYPE_INT32);
    static float expected[4 * SIDE * SIDE];
    int32_t labels[4];
    assert_int_equal(mixt_data_batch(data, 4, 1, expected, labels), MIXT_OK);
    assert_memory_equal(mixt_tensor_data(input), expected, sizeof expected);
    assert_memory_equal(mixt_tensor_data(target), labels, sizeof labels);
    mixt_tensor_free(input);
    mixt_tensor_free(target);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_batch),      cmocka_unit_test(own_losses),
        cmocka_unit_test(failures_are_told_at_the_end), cmocka_unit_test(refused_tensors),
        cmocka_unit_test(batches_as_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
