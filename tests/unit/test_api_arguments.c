/* What a public function does with arguments that cannot be meant: it fails with a text that names function and
 * argument, its context remembers the first failure, and nothing else changes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api_fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- the context's first failure ---- */

static void failures_are_noted(void **state)
{
    (void)state;
    fixture f = start();
    mixt_param_info info;
    mixt_memory memory;
    static float values[CLASSES * PIXELS];
    expect_noted(&f, mixt_trainer_save(mixt_trainer_new(f.model), "/tmp/never.safetensors"), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_checkpoint(mixt_trainer_new(f.model), "/tmp/never"), MIXT_ERROR_STATE);
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

static void no_options_are_defaults(void **state)
{
    (void)state;
    mixt_context *context = MIXT_MADE(mixt_context, mixt_open_with, NULL);
    assert_non_null(context);
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 64);
    mixt_model *model = MIXT_MADE(mixt_model, mixt_model_new_with, context, net, MIXT_LOSS_CROSS_ENTROPY, NULL);
    mixt_trainer *trainer = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, model, NULL);
    mixt_step step;
    assert_int_equal(mixt_trainer_step(trainer, data, &step), MIXT_OK);
    assert_int_equal(step.samples, 32);
    assert_null(MIXT_MADE(mixt_generator, mixt_generator_new_with, model, NULL)); // weights have no default
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
    assert_null(mixt_model_new(f.context, net, (mixt_loss)4));
    expect_refused(MIXT_ERROR_ARGUMENT, "loss 4");
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
    mixt_data *data = (mixt_data *)&target;
    expect_refused(mixt_data_open_with(NULL, NULL, &data), "mixt_data_open: spec");
    assert_null(data); // whatever it was before
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
    temp_folder_make();
    const char *path = temp_path("words");
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = mixt_data_new(context, "random:tokens", .seq = 8, .classes = 16, .samples = 64);
    mixt_model *model = mixt_model_new(context, words, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *trainer = mixt_trainer_new(model, .batch = BATCH);
    assert_int_equal(mixt_trainer_step(trainer, data, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_save(trainer, path), MIXT_OK);
    mixt_generator *g = mixt_generator_new(model, .weights = path);
    assert_non_null(g);
    assert_null(mixt_generator_new(model, .weights = path, .context = (int64_t)1 << 40));
    expect_refused(MIXT_ERROR_ARGUMENT, "a context of 1099511627776 tokens: expected 1 to 2147483647");
    mixt_close(context);
    context = mixt_open(.device = "cpu", .threads = 2);
    model = mixt_model_new(context, words, MIXT_LOSS_CROSS_ENTROPY);
    g = mixt_generator_new(model, .weights = path);
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
    assert_string_equal(mixt_generator_warning(NULL), "");
    assert_string_equal(mixt_generator_warning(g), "");
    expect_refused(mixt_generator_next(NULL, &sampling, &token), "mixt_generator_next: no generator");
    assert_int_equal(mixt_generator_next(g, &sampling, &token), MIXT_OK);
    mixt_close(context);
    temp_folder_remove();
}

/* ---- counts of a trainer ---- */

typedef struct refusal {
    mixt_trainer_options options;
    const char *words;
} refusal;

static void expect_options_refused(const fixture *f, const refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &cases[i].options));
        expect_refused(MIXT_ERROR_ARGUMENT, cases[i].words);
    }
}

static void counts_of_a_trainer_are_checked(void **state)
{
    (void)state;
    fixture f = start();
    const refusal cases[] = {
        {MIXT_OPTIONS(mixt_trainer_options, .batch = (int64_t)1 << 52),
         "batch 4503599627370496: must be from 1 to 2147483647"},
        {MIXT_OPTIONS(mixt_trainer_options, .batch = -1), "batch -1"},
        {MIXT_OPTIONS(mixt_trainer_options, .accumulate = INT64_MAX),
         "accumulate 9223372036854775807: must be from 1 to 1048576"},
        {MIXT_OPTIONS(mixt_trainer_options, .accumulate = -1), "accumulate -1"},
        {MIXT_OPTIONS(mixt_trainer_options, .warmup = INT64_MIN, .schedule = "cosine", .total_steps = INT64_MAX),
         "warmup -9223372036854775808"},
        {MIXT_OPTIONS(mixt_trainer_options, .decay_steps = -2), "decay_steps -2"},
        {MIXT_OPTIONS(mixt_trainer_options, .total_steps = -3), "total_steps -3"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_interval = -1),
         "scale_interval: '-1' must be a whole number, from 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_hysteresis = -4), "scale_hysteresis: '-4'"},
        {MIXT_OPTIONS(mixt_trainer_options, .inject_overflow = -1), "inject_overflow -1"},
    };
    expect_options_refused(&f, cases, sizeof cases / sizeof cases[0]);
    mixt_trainer *t = mixt_trainer_new(f.model, .batch = BATCH, .warmup = INT64_MAX, .schedule = "cosine",
                                       .total_steps = INT64_MAX, .decay_steps = INT64_MAX);
    assert_int_equal(mixt_trainer_step(t, f.data, NULL), MIXT_OK);
    mixt_close(f.context);
}

/* ---- zeros ---- */

static void zeros_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    fixture f = start();
    const refusal cases[] = {
        {{0}, "its struct_size is 0: initialise it with MIXT_OPTIONS or"}, // a struct of zeros is no struct of defaults
        {MIXT_OPTIONS(mixt_trainer_options, .batch = 0), "batch 0: must be from 1 to 2147483647"},
        {MIXT_OPTIONS(mixt_trainer_options, .accumulate = 0), "accumulate 0: must be from 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .decay_steps = 0), "decay_steps 0: must be from 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .eps = 0), "eps 0: must be above 0"},
        {MIXT_OPTIONS(mixt_trainer_options, .lr = -1), "lr -1: must be from 0"},
        {MIXT_OPTIONS(mixt_trainer_options, .beta1 = 1), "beta1 1: must be from 0 to below 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .momentum = 1), "momentum 1: must be from 0 to below 1"},
    };
    expect_options_refused(&f, cases, sizeof cases / sizeof cases[0]);
    mixt_data *data;
    assert_int_equal(mixt_data_open("random:tokens", &data, .seq = 0), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "seq 0: a sample needs at least 1 token"));
    mixt_close(f.context);
}

/** The weights after three steps. */
static void train_three(const fixture *f, mixt_trainer_options options, float weights[CLASSES * PIXELS])
{
    options.batch = BATCH;
    mixt_trainer *t = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &options);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mixt_trainer_step(t, f->data, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_param_get(t, 0, weights), MIXT_OK);
}

static void zeros_are_zeros(void **state)
{
    (void)state;
    static float a[CLASSES * PIXELS], b[CLASSES * PIXELS];
    fixture f = start();
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .lr = 0), a);
    assert_int_equal(mixt_trainer_load(f.trainer, "/nowhere"), MIXT_ERROR_FILE); // takes memory, draws the weights
    assert_int_equal(mixt_trainer_param_get(f.trainer, 0, b), MIXT_OK);
    assert_memory_equal(a, b, sizeof a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .optimizer = "sgd"), a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .optimizer = "momentum", .momentum = 0), b);
    assert_memory_equal(a, b, sizeof a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .optimizer = "momentum"), b);
    assert_memory_not_equal(a, b, sizeof a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options), a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .beta1 = 0.9f, .beta2 = 0.999f), b);
    assert_memory_equal(a, b, sizeof a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .beta1 = 0), b);
    assert_memory_not_equal(a, b, sizeof a);
    train_three(&f, MIXT_OPTIONS(mixt_trainer_options, .beta2 = 0), b);
    assert_memory_not_equal(a, b, sizeof a);
    mixt_close(f.context);
}

static void scales_of_a_trainer_are_checked(void **state)
{
    (void)state;
    fixture f = start();
    const refusal cases[] = {
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_growth = 0.5f),
         "scale_growth: '0.5' must be a number, at least 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_backoff = 1), "scale_backoff: '1' must be a number"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_backoff = -0.5f), "scale_backoff: '-0.5'"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_floor = 8, .settings.scale_ceiling = 4),
         "scale_floor 8: must not be greater than scale_ceiling, 4"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_init = 0.5f),
         "scale_init 0.5: must be from scale_floor, 1"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_init = 0x1p25f), "to scale_ceiling, 1.67772e+07"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.scale_floor = 131072),
         "scale_init 65536: must be from scale_floor, 131072"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.loss_scale = "1e-30"),
         "loss_scale '1e-30': must be auto, dynamic, none or a number from 2^-24"},
        {MIXT_OPTIONS(mixt_trainer_options, .settings.loss_scale = "1e38"), "loss_scale '1e38'"},
    };
    expect_options_refused(&f, cases, sizeof cases / sizeof cases[0]);
    assert_non_null(
        mixt_trainer_new(f.model, .settings.scale_growth = 1, .settings.scale_floor = 4, .settings.scale_init = 4));
    assert_non_null(mixt_trainer_new(f.model, .settings.loss_scale = "0x1p-24"));
    assert_non_null(mixt_trainer_new(f.model, .settings.loss_scale = "0x1p126"));
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
        assert_non_null(strstr(mixt_error_text(), "no gradients are pending: call mixt_trainer_backward first"));
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
        cmocka_unit_test(counts_of_a_trainer_are_checked),
        cmocka_unit_test(gradients_wait_or_are_gone),
        cmocka_unit_test(scales_and_limits_are_positive),
        cmocka_unit_test(scales_of_a_trainer_are_checked),
        cmocka_unit_test(zeros_that_mean_nothing_are_refused),
        cmocka_unit_test(zeros_are_zeros),
    };
    return cmocka_run_group_tests_name("api arguments", tests, NULL, NULL);
}
