/* What a model function does with arguments that cannot be meant: the model does not compile, and the text names layer
 * and argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_fixture.h"

#include <math.h>

/* ---- builders ---- */

static mixt_value long_name(mixt_builder *b, mixt_value x)
{
    char name[4000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    return mixt_linear(b, name, mixt_flatten(b, x), .features = 0);
}

/** Compiling the model gives `status`, and the context keeps a text with these words. */
static void expect_model(mixt_model_fn fn, mixt_status status, const char *words)
{
    fixture f = start();
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(f.context, fn, MIXT_LOSS_CROSS_ENTROPY), .batch = BATCH);
    mixt_status got = mixt_trainer_compile(t, f.data);
    if (got != status || !strstr(mixt_error(f.context), words))
        fail_msg("expected %d: \"%s\", got %d: \"%s\"", (int)status, words, (int)got, mixt_error(f.context));
    mixt_close(f.context);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    expect_model(long_name, MIXT_ERROR_ARGUMENT, "aaa': linear needs .features");
}

static mixt_value null_scope(mixt_builder *b, mixt_value x)
{
    mixt_scope_push(b, NULL);
    mixt_scope_pop(b);
    return net(b, x);
}

static mixt_value null_order(mixt_builder *b, mixt_value x)
{
    return mixt_transpose(b, x, NULL);
}

static mixt_value null_dims(mixt_builder *b, mixt_value x)
{
    return mixt_reshape(b, x, 2, NULL);
}

static mixt_value null_parts(mixt_builder *b, mixt_value x)
{
    mixt_split(b, x, 2, NULL);
    return x;
}

static mixt_value null_values(mixt_builder *b, mixt_value x)
{
    (void)x;
    return mixt_concat(b, NULL, 2, 0);
}

static mixt_value null_linear(mixt_builder *b, mixt_value x)
{
    return mixt_linear_with(b, "fc", x, NULL);
}

static mixt_value null_name(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, NULL, mixt_flatten(b, x), .features = CLASSES);
}

static mixt_value null_conv2d(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d_with(b, "conv", x, NULL);
}

static mixt_value null_lstm(mixt_builder *b, mixt_value x)
{
    return mixt_lstm_with(b, "lstm", x, NULL);
}

static mixt_value null_gru(mixt_builder *b, mixt_value x)
{
    return mixt_gru_with(b, "gru", x, NULL);
}

static mixt_value null_rnn(mixt_builder *b, mixt_value x)
{
    return mixt_rnn_with(b, "rnn", x, NULL);
}

static mixt_value null_attention(mixt_builder *b, mixt_value x)
{
    return mixt_attention_with(b, x, x, x, NULL);
}

static mixt_value window_without_causal(mixt_builder *b, mixt_value x)
{
    return mixt_attention(b, x, x, x, .heads = 1, .window = 3);
}

static mixt_value cap_below_zero(mixt_builder *b, mixt_value x)
{
    return mixt_attention(b, x, x, x, .heads = 1, .softcap = -1);
}

static mixt_value null_pool(mixt_builder *b, mixt_value x)
{
    return mixt_avg_pool_with(b, x, NULL);
}

static mixt_value null_message(mixt_builder *b, mixt_value x)
{
    (void)x;
    return mixt_builder_fail(b, NULL);
}

/** Options that have defaults for everything. */
static mixt_value null_options(mixt_builder *b, mixt_value x)
{
    x = mixt_batch_norm_with(b, "bn", x, NULL);
    x = mixt_layer_norm_with(b, "ln", mixt_flatten(b, x), NULL);
    mixt_value weight = mixt_param(b, "w", .rank = 2, .dims = {PIXELS, CLASSES}, .normal = 0.1f);
    x = mixt_matmul_with(b, x, weight, NULL);
    return mixt_add(b, mixt_mul(b, x, mixt_param_with(b, "gain", NULL)),
                    mixt_mean_with(b, mixt_sum_with(b, x, NULL), NULL));
}

static void builders_refuse_null(void **state)
{
    (void)state;
    const struct {
        mixt_model_fn fn;
        const char *words;
    } cases[] = {
        {null_scope, "mixt_scope_push: name"},
        {null_order, "mixt_transpose: order"},
        {null_dims, "mixt_reshape: dims"},
        {null_parts, "mixt_split: result"},
        {null_values, "mixt_concat: parts"},
        {null_linear, "layer 'fc': linear needs .features"},
        {null_name, "parameter 'weight' has no name"},
        {null_conv2d, "layer 'conv': conv2d needs .channels"},
        {null_lstm, "layer 'lstm': lstm needs .features"},
        {null_gru, "layer 'gru': gru needs .features"},
        {null_rnn, "layer 'rnn': rnn needs .features"},
        {null_attention, "attention needs .heads"},
        {window_without_causal, "a window of 3 needs to be positive, and causal attention"},
        {cap_below_zero, "the soft cap of scores must be a number above 0"},
        {null_pool, "pooling window 0"},
        {null_message, "the model function failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_model(cases[i].fn, MIXT_ERROR_ARGUMENT, cases[i].words);
    expect_model(null_options, MIXT_OK, "");
}

/* ---- numbers that make every result wrong ---- */

static struct {
    float eps, momentum, init, normal, uniform;
} wrong; // in the models below

static mixt_value wrong_layer_norm(mixt_builder *b, mixt_value x)
{
    return net(b, mixt_layer_norm(b, "ln", mixt_flatten(b, x), .eps = wrong.eps));
}

static mixt_value wrong_batch_norm(mixt_builder *b, mixt_value x)
{
    return net(b, mixt_batch_norm(b, "bn", x, .eps = wrong.eps, .momentum = wrong.momentum));
}

static mixt_value wrong_linear(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "out", mixt_flatten(b, x), .features = CLASSES, .init = wrong.init);
}

static mixt_value wrong_conv2d(mixt_builder *b, mixt_value x)
{
    return net(b, mixt_conv2d(b, "conv", x, .channels = 1, .kernel = 1, .init = wrong.init));
}

static mixt_value wrong_embedding(mixt_builder *b, mixt_value x)
{
    mixt_embedding(b, "e", x, .count = 4, .features = 4, .init = wrong.init);
    return x;
}

static mixt_value wrong_param(mixt_builder *b, mixt_value x)
{
    mixt_value p = mixt_param(b, "p", .rank = 1, .dims = {CLASSES}, .normal = wrong.normal, .uniform = wrong.uniform);
    return mixt_add(b, net(b, x), p);
}

static void expect_number(mixt_model_fn fn, float *number, const char *words)
{
    const float values[] = {-1, -1e-9f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        *number = values[i];
        expect_model(fn, MIXT_ERROR_ARGUMENT, words);
    }
    *number = 0;
    expect_model(fn, fn == wrong_embedding ? MIXT_ERROR_SHAPE : MIXT_OK, ""); // this one has no tokens to take
}

static void numbers_of_layers_are_checked(void **state)
{
    (void)state;
    expect_number(wrong_layer_norm, &wrong.eps, "layer 'ln': .eps ");
    expect_number(wrong_batch_norm, &wrong.eps, "layer 'bn': .eps ");
    expect_number(wrong_batch_norm, &wrong.momentum, "layer 'bn': .momentum ");
    expect_number(wrong_linear, &wrong.init, "layer 'out': .init ");
    expect_number(wrong_conv2d, &wrong.init, "layer 'conv': .init ");
    expect_number(wrong_embedding, &wrong.init, "layer 'e': .init ");
    expect_number(wrong_param, &wrong.normal, "layer 'p': .normal ");
    expect_number(wrong_param, &wrong.uniform, "layer 'p': .uniform ");
    wrong.momentum = 1.5f;
    expect_model(wrong_batch_norm, MIXT_ERROR_ARGUMENT, ".momentum 1.5: must be from 0 to 1");
    wrong.momentum = 1;
    expect_model(wrong_batch_norm, MIXT_OK, "");
}

/* ---- shapes that no memory holds ---- */

static const int64_t MANY = (int64_t)1 << 60, LARGE = (int64_t)1 << 40;

static mixt_value huge_linear(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = MANY);
}

static mixt_value huge_param(mixt_builder *b, mixt_value x)
{
    mixt_param(b, "p", .rank = 2, .dims = {LARGE, LARGE});
    return net(b, x);
}

static mixt_value empty_param(mixt_builder *b, mixt_value x)
{
    mixt_param(b, "p", .rank = 1, .dims = {0});
    return net(b, x);
}

static mixt_value huge_embedding(mixt_builder *b, mixt_value x)
{
    mixt_embedding(b, "e", x, .count = MANY, .features = 16);
    return net(b, x);
}

static mixt_value huge_kernel(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 4, .kernel = LARGE, .pad = LARGE);
}

static mixt_value huge_image(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .pad = LARGE);
}

static mixt_value huge_pad(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .pad = INT64_MAX / 2 + 1);
}

static mixt_value huge_window(mixt_builder *b, mixt_value x)
{
    return mixt_max_pool(b, x, .size = INT64_MAX, .pad = INT64_MAX - 1);
}

static mixt_value huge_lstm(mixt_builder *b, mixt_value x)
{
    return mixt_lstm(b, "lstm", x, .features = INT64_MAX / 2);
}

static mixt_value huge_reshape(mixt_builder *b, mixt_value x)
{
    return mixt_reshape(b, x, 3, (int64_t[]){LARGE, LARGE, -1});
}

static mixt_value empty_reshape(mixt_builder *b, mixt_value x)
{
    return mixt_reshape(b, x, 2, (int64_t[]){-1, 0});
}

static mixt_value open_reshape(mixt_builder *b, mixt_value x)
{
    return mixt_reshape(b, x, 3, (int64_t[]){BATCH, -1, -1});
}

static mixt_value huge_product(mixt_builder *b, mixt_value x) // each operand is possible, the result is not
{
    mixt_value tall = mixt_param(b, "tall", .rank = 2, .dims = {LARGE, 1});
    (void)x;
    return mixt_matmul(b, tall, tall, .trans_b = true);
}

static void shapes_are_counted_with_care(void **state)
{
    (void)state;
    const struct {
        mixt_model_fn fn;
        mixt_status status;
        const char *words;
    } cases[] = {
        {huge_linear, MIXT_ERROR_SHAPE, "layer 'fc': parameter 'fc.weight': shape (1152921504606846976, 784)"},
        {huge_param, MIXT_ERROR_SHAPE, "parameter 'p': shape (1099511627776, 1099511627776)"},
        {empty_param, MIXT_ERROR_SHAPE, "parameter 'p' would have shape (0): every size must be at least 1"},
        {huge_embedding, MIXT_ERROR_SHAPE, "parameter 'e.weight': shape (1152921504606846976, 16)"},
        {huge_kernel, MIXT_ERROR_SHAPE, "parameter 'conv.weight': shape (4, 1099511627776, 1099511627776, 1)"},
        {huge_image, MIXT_ERROR_SHAPE, "layer 'conv': conv2d: shape (8, 2199023255578, 2199023255578, 4)"},
        {huge_pad, MIXT_ERROR_ARGUMENT, "layer 'conv': conv2d with a pad of 4611686018427387904"},
        {huge_window, MIXT_ERROR_ARGUMENT, "pooling window 9223372036854775807"},
        {huge_lstm, MIXT_ERROR_ARGUMENT, "layer 'lstm': lstm needs .features from 1 to 2^44, got 4611686018427387903"},
        {huge_reshape, MIXT_ERROR_SHAPE, "reshape: shape (1099511627776, 1099511627776, 0)"},
        {empty_reshape, MIXT_ERROR_SHAPE, "cannot reshape (8, 28, 28, 1) to (6272, 0)"},
        {open_reshape, MIXT_ERROR_SHAPE, "reshape: shape (8, -1, 784)"},
        {huge_product, MIXT_ERROR_SHAPE, "matmul: shape (1099511627776, 1099511627776)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_model(cases[i].fn, cases[i].status, cases[i].words);
}

static void samples_are_counted_with_care(void **state)
{
    (void)state;
    fixture f = start();
    const mixt_sample_shape shapes[] = {
        {MIXT_DTYPE_FP32, 2, {LARGE, LARGE}, 1},
        {MIXT_DTYPE_FP32, 3, {28, -28, 1}, 1},
        {MIXT_DTYPE_FP32, 1, {0}, 1},
        {MIXT_DTYPE_FP32, 1, {PIXELS}, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        assert_int_equal(mixt_trainer_compile_for(mixt_trainer_new(f.model), &shapes[i]), MIXT_ERROR_SHAPE);
    mixt_close(f.context);
}

static mixt_value first_input(mixt_builder *b, const mixt_value *inputs)
{
    (void)b;
    return inputs[0];
}

static void arrays_are_counted_with_care(void **state)
{
    (void)state;
    float number = 0;
    fixture f = start();
    mixt_array array = {&number, MIXT_DTYPE_FP32, 2, {LARGE, LARGE}};
    expect_noted(&f, mixt_compute(f.context, first_input, &array, 1, &array), MIXT_ERROR_SHAPE);
    mixt_close(f.context);
}

/* ---- reductions ---- */

static mixt_reduce_options reduction; // of the model below

static mixt_value reduced(mixt_builder *b, mixt_value x)
{
    mixt_value y = mixt_mean_with(b, mixt_flatten(b, x), &reduction);
    return mixt_add(b, net(b, x), mixt_sum_with(b, y, NULL));
}

static void dimensions_are_reduced_once(void **state)
{
    (void)state;
    const struct {
        mixt_reduce_options options;
        mixt_status status;
        const char *words;
    } cases[] = {
        {{.axis_count = -1}, MIXT_ERROR_ARGUMENT, "cannot reduce -1 dimensions of a value with 2"},
        {{.axis_count = 3}, MIXT_ERROR_ARGUMENT, "cannot reduce 3 dimensions of a value with 2"},
        {{.axis_count = 99}, MIXT_ERROR_ARGUMENT, "cannot reduce 99 dimensions of a value with 2"},
        {{.axes = {1, -1}, .axis_count = 2}, MIXT_ERROR_ARGUMENT, "cannot reduce dimension 1 twice"},
        {{.axes = {2}, .axis_count = 1}, MIXT_ERROR_SHAPE, "cannot reduce dimension 2 of a value with 2 dimensions"},
        {{.axes = {-3}, .axis_count = 1}, MIXT_ERROR_SHAPE, "cannot reduce dimension -3"},
        {{.axes = {0}}, MIXT_OK, ""},             // none counts: none
        {{.axis_count = MIXT_AUTO}, MIXT_OK, ""}, // all
        {{.axes = {-1, 0}, .axis_count = 2}, MIXT_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reduction = cases[i].options;
        reduction.struct_size = sizeof reduction;
        expect_model(reduced, cases[i].status, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(builders_refuse_null),
        cmocka_unit_test(shapes_are_counted_with_care),
        cmocka_unit_test(samples_are_counted_with_care),
        cmocka_unit_test(arrays_are_counted_with_care),
        cmocka_unit_test(dimensions_are_reduced_once),
        cmocka_unit_test(numbers_of_layers_are_checked),
    };
    return cmocka_run_group_tests_name("model arguments", tests, NULL, NULL);
}
