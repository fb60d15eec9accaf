/* What a public function does with arguments that cannot be meant: it fails with a text that names function and
 * argument, its context remembers the first failure, and nothing else changes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 8, PIXELS = 784, CLASSES = 10 };

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = CLASSES);
}

/** A context with data, a model, and a trainer; compiled, but without a step. */
typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_model *model;
    mixt_trainer *trainer;
} fixture;

static fixture start(void)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2)};
    f.data = mixt_data_new(f.context, "digits:", .samples = 64);
    f.model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = mixt_trainer_new(f.model, .batch = BATCH);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    assert_string_equal(mixt_error(f.context), "");
    return f;
}

/* ---- the context's first failure ---- */

/** The call fails with `status`, and the context of `f` says what the thread's error text says. */
static void expect_noted(fixture *f, mixt_status got, mixt_status status)
{
    assert_int_equal(got, status);
    assert_true(*mixt_error(f->context));
    assert_string_equal(mixt_error(f->context), mixt_error_text());
    mixt_close(f->context);
    *f = start();
}

static void failures_are_noted(void **state)
{
    (void)state;
    fixture f = start();
    mixt_param_info info;
    mixt_memory memory;
    static float values[CLASSES * PIXELS];
    expect_noted(&f, mixt_trainer_save(f.trainer, "/tmp/never.safetensors"), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_param(f.trainer, 2, &info), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_param_get(f.trainer, 0, values), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_grad_get(f.trainer, 0, values), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_param_set(f.trainer, -1, values), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_checkpoint(f.trainer, ""), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_restore(f.trainer, NULL), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_compute(f.context, NULL, NULL, 0, NULL), MIXT_ERROR_ARGUMENT);
    mixt_trainer *unstarted = mixt_trainer_new(f.model);
    expect_noted(&f, mixt_trainer_memory(unstarted, &memory), MIXT_ERROR_STATE);
    unstarted = mixt_trainer_new(f.model);
    expect_noted(&f, mixt_trainer_load(unstarted, "/tmp/never.safetensors"), MIXT_ERROR_STATE);
    mixt_close(f.context);
}

/* ---- NULL ---- */

/** The call was refused for its arguments, and the text names them. */
static void expect_refused(mixt_status got, const char *words)
{
    if (got != MIXT_ERROR_ARGUMENT || !strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got %d: \"%s\"", words, (int)got, mixt_error_text());
}

static void no_options_are_defaults(void **state)
{
    (void)state;
    mixt_context *context = mixt_open_with(NULL);
    assert_non_null(context);
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 64);
    mixt_model *model = mixt_model_new_with(context, net, MIXT_LOSS_CROSS_ENTROPY, NULL);
    mixt_trainer *trainer = mixt_trainer_new_with(model, NULL);
    mixt_step step;
    assert_int_equal(mixt_trainer_step(trainer, data, &step), MIXT_OK);
    assert_int_equal(step.samples, 32);
    assert_null(mixt_generator_new_with(model, NULL)); // weights have no default
    assert_non_null(strstr(mixt_error(context), ".weights"));
    mixt_close(context);
}

static void models_are_checked(void **state)
{
    (void)state;
    fixture f = start();
    assert_null(mixt_model_new(NULL, net, MIXT_LOSS_MSE));
    expect_refused(MIXT_ERROR_ARGUMENT, "mixt_model_new: no context");
    assert_null(mixt_model_new(f.context, NULL, MIXT_LOSS_MSE));
    expect_refused(MIXT_ERROR_ARGUMENT, "mixt_model_new: fn must not be NULL");
    assert_string_equal(mixt_error(f.context), mixt_error_text());
    assert_null(mixt_model_new(f.context, net, (mixt_loss)3));
    expect_refused(MIXT_ERROR_ARGUMENT, "loss 3");
    assert_null(mixt_model_new(f.context, net, (mixt_loss)-1));
    const float shares[] = {-3, 1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        assert_null(mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY, .label_smoothing = shares[i]));
        expect_refused(MIXT_ERROR_ARGUMENT, "label_smoothing");
    }
    assert_null(mixt_trainer_new(NULL));
    expect_refused(MIXT_ERROR_ARGUMENT, "no model");
    assert_null(mixt_generator_new(NULL));
    mixt_close(f.context);
}

static void trainers_refuse_null(void **state)
{
    (void)state;
    fixture f = start();
    mixt_trainer *t = f.trainer;
    static float input[BATCH * PIXELS], values[CLASSES * PIXELS];
    int32_t target[BATCH] = {0};
    assert_int_equal(mixt_trainer_step(t, f.data, NULL), MIXT_OK); // a loader's batch waits for whoever asks
    expect_refused(mixt_trainer_step(t, NULL, NULL), "mixt_trainer_step: no data");
    assert_string_equal(mixt_error(f.context), mixt_error_text());
    expect_refused(mixt_trainer_step_on(t, NULL, NULL, NULL), "mixt_trainer_step_on: input");
    expect_refused(mixt_trainer_step_on(t, input, NULL, NULL), "mixt_trainer_step_on: target");
    expect_refused(mixt_trainer_backward(t, NULL, target, 1, NULL), "mixt_trainer_backward: input");
    expect_refused(mixt_trainer_backward(t, input, NULL, 1, NULL), "mixt_trainer_backward: target");
    expect_refused(mixt_trainer_evaluate(t, f.data, NULL), "mixt_trainer_evaluate: result");
    expect_refused(mixt_trainer_outputs(t, NULL), "mixt_trainer_outputs: outputs");
    expect_refused(mixt_trainer_memory(t, NULL), "mixt_trainer_memory: memory");
    expect_refused(mixt_trainer_param(t, 0, NULL), "mixt_trainer_param: info");
    expect_refused(mixt_trainer_param_get(t, 0, NULL), "mixt_trainer_param_get: values");
    expect_refused(mixt_trainer_param_set(t, 0, NULL), "mixt_trainer_param_set: values");
    expect_refused(mixt_trainer_grad_get(t, 0, NULL), "mixt_trainer_grad_get: values");
    expect_refused(mixt_trainer_compile_for(t, NULL), "mixt_trainer_compile_for: shape");
    expect_refused(mixt_trainer_set_precision(t, NULL), "mixt_trainer_set_precision: precision");
    expect_refused(mixt_trainer_save(t, NULL), "mixt_trainer_save: path");
    expect_refused(mixt_trainer_load(t, NULL), "mixt_trainer_load: path");
    expect_refused(mixt_trainer_checkpoint(t, NULL), "mixt_trainer_checkpoint: folder");
    expect_refused(mixt_trainer_restore(t, NULL), "mixt_trainer_restore: folder");
    expect_refused(mixt_trainer_param_get(NULL, 0, values), "mixt_trainer_param_get: no trainer");
    expect_refused(mixt_trainer_save(NULL, "x"), "mixt_trainer_save: no trainer");
    assert_int_equal(mixt_trainer_backward(t, input, target, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_unscale(t, 1, NULL), MIXT_OK); // not wanted
    assert_int_equal(mixt_trainer_clip(t, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
    mixt_step step; // the second step that was run: what was refused left the first one's state
    assert_int_equal(mixt_trainer_step_on(t, input, target, &step), MIXT_OK);
    assert_int_equal(step.step, 2);
    mixt_close(f.context);
}

static mixt_value cast_net(mixt_builder *b, mixt_value x) // whatever the format of x, no layer objects to it
{
    return net(b, mixt_cast(b, x, MIXT_DTYPE_FP32));
}

static void samples_are_fp32_or_int32(void **state)
{
    (void)state;
    fixture f = start();
    mixt_model *model = mixt_model_new(f.context, cast_net, MIXT_LOSS_CROSS_ENTROPY);
    const mixt_dtype formats[] = {MIXT_DTYPE_NONE, MIXT_DTYPE_INT8, MIXT_DTYPE_FP64, (mixt_dtype)55, (mixt_dtype)-1};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        mixt_sample_shape shape = {formats[i], 1, {PIXELS}, 1};
        assert_int_equal(mixt_trainer_compile_for(mixt_trainer_new(model), &shape), MIXT_ERROR_DTYPE);
    }
    mixt_close(f.context);
}

static void data_refuses_null(void **state)
{
    (void)state;
    float input[PIXELS];
    int32_t target;
    int64_t valid;
    mixt_data *data;
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 64), MIXT_OK);
    expect_refused(mixt_data_batch(NULL, 1, 0, input, &target), "mixt_data_batch: data");
    expect_refused(mixt_data_next(NULL, 1, input, &target), "mixt_data_next: data");
    expect_refused(mixt_data_read(NULL, 0, 1, input, &target, &valid), "mixt_data_read: data");
    expect_refused(mixt_data_read(data, 0, 1, input, &target, NULL), "mixt_data_read: valid");
    assert_int_equal(mixt_data_batches(NULL, 1), 0);
    expect_refused(MIXT_ERROR_ARGUMENT, "mixt_data_batches: data");
    mixt_data_seek(NULL, 3);
    expect_refused(MIXT_ERROR_ARGUMENT, "mixt_data_seek: data");
    assert_int_equal(mixt_data_describe(NULL)->samples, 0);
    expect_refused(MIXT_ERROR_ARGUMENT, "mixt_data_describe: data");
    assert_string_equal(mixt_data_describe(NULL)->kind, "");
    mixt_data_close(data);
}

static mixt_value words(mixt_builder *b, mixt_value x) // tokens (N, T)
{
    x = mixt_lstm(b, "lstm", mixt_embedding(b, "in", x, .count = 16, .features = 8), .features = 8);
    return mixt_linear(b, "out", x, .features = 16);
}

static void generators_refuse_null(void **state)
{
    (void)state;
    char path[] = "/tmp/mixt-words-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = mixt_data_new(context, "random:tokens", .seq = 8, .classes = 16, .samples = 64);
    mixt_model *model = mixt_model_new(context, words, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *trainer = mixt_trainer_new(model, .batch = BATCH);
    assert_int_equal(mixt_trainer_step(trainer, data, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_save(trainer, path), MIXT_OK);
    mixt_generator *g = mixt_generator_new(model, .weights = path);
    assert_non_null(g);
    int32_t token = 1;
    const float *logits;
    int64_t vocab;
    mixt_sampling sampling = {0};
    expect_refused(mixt_generator_start(g, NULL, 1), "mixt_generator_start: tokens");
    assert_string_equal(mixt_error(context), mixt_error_text());
    assert_int_equal(mixt_generator_start(g, &token, 1), MIXT_OK);
    expect_refused(mixt_generator_next(g, NULL, &token), "mixt_generator_next: sampling");
    expect_refused(mixt_generator_next(g, &sampling, NULL), "mixt_generator_next: token");
    expect_refused(mixt_generator_logits(g, NULL, &vocab), "mixt_generator_logits: logits");
    expect_refused(mixt_generator_logits(g, &logits, NULL), "mixt_generator_logits: vocab");
    expect_refused(mixt_generator_next(NULL, &sampling, &token), "mixt_generator_next: no generator");
    assert_int_equal(mixt_generator_next(g, &sampling, &token), MIXT_OK);
    mixt_close(context);
    unlink(path);
}

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

static mixt_value null_conv2d(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d_with(b, "conv", x, NULL);
}

static mixt_value null_lstm(mixt_builder *b, mixt_value x)
{
    return mixt_lstm_with(b, "lstm", x, NULL);
}

static mixt_value null_attention(mixt_builder *b, mixt_value x)
{
    return mixt_attention_with(b, x, x, x, NULL);
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
        {null_conv2d, "layer 'conv': conv2d needs .channels"},
        {null_lstm, "layer 'lstm': lstm needs .features"},
        {null_attention, "attention needs .heads"},
        {null_pool, "pooling window 0"},
        {null_message, "the model function failed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_model(cases[i].fn, MIXT_ERROR_ARGUMENT, cases[i].words);
    expect_model(null_options, MIXT_OK, "");
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

/* ---- counts of a trainer ---- */

static void counts_of_a_trainer_are_checked(void **state)
{
    (void)state;
    fixture f = start();
    const struct {
        mixt_trainer_options options;
        const char *words;
    } cases[] = {
        {{.batch = (int64_t)1 << 52}, "batch 4503599627370496: must be from 0 to 2147483647"},
        {{.batch = -1}, "batch -1"},
        {{.accumulate = INT64_MAX}, "accumulate 9223372036854775807: must be from 0 to 1048576"},
        {{.accumulate = -1}, "accumulate -1"},
        {{.warmup = INT64_MIN, .schedule = "cosine", .total_steps = INT64_MAX}, "warmup -9223372036854775808"},
        {{.decay_steps = -2}, "decay_steps -2"},
        {{.total_steps = -3}, "total_steps -3"},
        {{.scale_interval = -1}, "scale_interval -1"},
        {{.scale_hysteresis = -4}, "scale_hysteresis -4"},
        {{.inject_overflow = -1}, "inject_overflow -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(mixt_trainer_new_with(f.model, &cases[i].options));
        expect_refused(MIXT_ERROR_ARGUMENT, cases[i].words);
    }
    mixt_trainer *t = mixt_trainer_new(f.model, .batch = BATCH, .warmup = INT64_MAX, .schedule = "cosine",
                                       .total_steps = INT64_MAX, .decay_steps = INT64_MAX);
    assert_int_equal(mixt_trainer_step(t, f.data, NULL), MIXT_OK);
    mixt_close(f.context);
}

/* ---- by hand ---- */

static void gradients_wait_or_are_gone(void **state)
{
    (void)state;
    fixture f = start();
    mixt_trainer *t = f.trainer;
    static float input[BATCH * PIXELS], gradient[CLASSES * PIXELS], again[CLASSES * PIXELS];
    int32_t target[BATCH];
    assert_int_equal(mixt_data_batch(f.data, BATCH, 0, input, target), MIXT_OK);
    for (int round = 0; round < 3; round++) { // ended by discard, by apply, by a whole step
        assert_int_equal(mixt_trainer_unscale(t, 1, NULL), MIXT_ERROR_STATE);
        assert_int_equal(mixt_trainer_clip(t, 1, NULL), MIXT_ERROR_STATE);
        assert_int_equal(mixt_trainer_apply(t, 0.1f), MIXT_ERROR_STATE);
        assert_non_null(strstr(mixt_error_text(), "no gradients are waiting: call mixt_trainer_backward first"));
        assert_int_equal(mixt_trainer_grad_get(t, 0, gradient), MIXT_ERROR_STATE);
        assert_int_equal(mixt_trainer_backward(t, input, target, 1, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_grad_get(t, 0, gradient), MIXT_OK);
        assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
        assert_int_equal(mixt_trainer_grad_get(t, 0, again), MIXT_ERROR_STATE);
        assert_int_equal(mixt_trainer_backward(t, input, target, 1, NULL), MIXT_OK); // begins anew, adds to nothing
        assert_int_equal(mixt_trainer_grad_get(t, 0, again), MIXT_OK);
        assert_memory_equal(gradient, again, sizeof gradient);
        assert_int_equal(round ? mixt_trainer_apply(t, 0.1f) : mixt_trainer_discard(t), MIXT_OK);
        if (round == 2)
            assert_int_equal(mixt_trainer_step(t, f.data, NULL), MIXT_OK);
    }
    assert_int_equal(mixt_trainer_grad_get(t, 0, gradient), MIXT_ERROR_STATE);
    mixt_close(f.context);
}

static void scales_and_limits_are_positive(void **state)
{
    (void)state;
    fixture f = start();
    mixt_trainer *t = f.trainer;
    static float input[BATCH * PIXELS], before[CLASSES * PIXELS], after[CLASSES * PIXELS];
    int32_t target[BATCH];
    assert_int_equal(mixt_data_batch(f.data, BATCH, 0, input, target), MIXT_OK);
    assert_int_equal(mixt_trainer_backward(t, input, target, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_grad_get(t, 0, before), MIXT_OK);
    const float wrong[] = {-1, 0, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        expect_refused(mixt_trainer_backward(t, input, target, wrong[i], NULL), "mixt_trainer_backward: scale");
        expect_refused(mixt_trainer_unscale(t, wrong[i], NULL), "mixt_trainer_unscale: scale");
        expect_refused(mixt_trainer_clip(t, wrong[i], NULL), "mixt_trainer_clip: limit");
        if (wrong[i] != 0)
            expect_refused(mixt_trainer_apply(t, wrong[i]), "mixt_trainer_apply: lr");
    }
    assert_int_equal(mixt_trainer_grad_get(t, 0, after), MIXT_OK);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(mixt_trainer_apply(t, 0), MIXT_OK); // where a schedule ends
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
        {{.axes = {0}}, MIXT_OK, ""}, // none counts: all
        {{.axes = {-1, 0}, .axis_count = 2}, MIXT_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reduction = cases[i].options;
        expect_model(reduced, cases[i].status, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_noted),
        cmocka_unit_test(no_options_are_defaults),
        cmocka_unit_test(models_are_checked),
        cmocka_unit_test(trainers_refuse_null),
        cmocka_unit_test(samples_are_fp32_or_int32),
        cmocka_unit_test(data_refuses_null),
        cmocka_unit_test(generators_refuse_null),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(builders_refuse_null),
        cmocka_unit_test(shapes_are_counted_with_care),
        cmocka_unit_test(samples_are_counted_with_care),
        cmocka_unit_test(arrays_are_counted_with_care),
        cmocka_unit_test(counts_of_a_trainer_are_checked),
        cmocka_unit_test(gradients_wait_or_are_gone),
        cmocka_unit_test(scales_and_limits_are_positive),
        cmocka_unit_test(dimensions_are_reduced_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
