/* Inputs in the format that the step reads: when they are, and that the weights are those of a cast in the graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api/api.h"
#include "api_fixture.h"

enum { WEIGHTS = CLASSES * PIXELS, STEPS = 5 };

static mixt_dtype by_hand; // what `with_cast` casts to

static mixt_value with_cast(mixt_builder *b, mixt_value x)
{
    mixt_value low = mixt_cast(b, mixt_flatten(b, x), by_hand);
    return mixt_linear(b, "fc", mixt_cast(b, low, MIXT_DTYPE_FP32), .features = CLASSES);
}

static mixt_value with_arithmetic(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_affine(b, mixt_flatten(b, x), 2, 1), .features = CLASSES);
}

static mixt_value two_users(mixt_builder *b, mixt_value x)
{
    mixt_value flat = mixt_flatten(b, x);
    return mixt_add(b, mixt_linear(b, "fc", flat, .features = CLASSES),
                    mixt_linear(b, "other", flat, .features = CLASSES));
}

static fixture start_with(mixt_model_fn fn, const char *precision, int64_t accumulate)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2)};
    f.data = mixt_data_new(f.context, "digits:", .samples = 64);
    f.model = mixt_model_new(f.context, fn, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer =
        mixt_trainer_new(f.model, .batch = BATCH, .precision = precision, .accumulate = accumulate, .lr = 0.01f);
    if (mixt_trainer_compile(f.trainer, f.data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return f;
}

static void expect_fed(mixt_model_fn fn, const char *precision, mixt_dtype dtype)
{
    fixture f = start_with(fn, precision, 1);
    assert_int_equal(mixt__trainer_fed_dtype(f.trainer->inner), dtype);
    assert_int_equal(mixt_trainer_step(f.trainer, f.data, NULL), MIXT_OK);
    mixt_close(f.context);
}

static void users_that_agree_decide(void **state)
{
    (void)state;
    temp_folder_make();
    const char *path = temp_path("policy");
    const char rule[] = "default: bf16\nrules:\n  - {layer: other, precision: fp16}\n";
    assert_true(temp_write(path, rule, sizeof rule - 1));
    expect_fed(net, "fp32", MIXT_DTYPE_FP32);
    expect_fed(net, "tf32", MIXT_DTYPE_FP32);
    expect_fed(net, "bf16", MIXT_DTYPE_BF16);
    expect_fed(net, "fp16", MIXT_DTYPE_FP16);
    expect_fed(two_users, "bf16", MIXT_DTYPE_BF16);
    expect_fed(two_users, path, MIXT_DTYPE_FP32);
    by_hand = MIXT_DTYPE_BF16;
    expect_fed(with_cast, "bf16", MIXT_DTYPE_FP32);
    expect_fed(with_arithmetic, "bf16", MIXT_DTYPE_FP32);
    temp_folder_remove();
}

/** Ways to bring batches to a step. */
typedef enum way { BY_THREADS, FROM_MEMORY, BY_HAND, WAYS } way;

static void take_step(fixture *f, way how, int64_t number, int64_t accumulate)
{
    static float input[2 * BATCH * PIXELS];
    int32_t target[2 * BATCH];
    if (how == BY_THREADS) {
        assert_int_equal(mixt_trainer_step(f->trainer, f->data, NULL), MIXT_OK);
        return;
    }
    for (int64_t i = 0; i < accumulate; i++)
        assert_int_equal(
            mixt_data_batch(f->data, BATCH, number * accumulate + i, input + i * BATCH * PIXELS, target + i * BATCH),
            MIXT_OK);
    if (how == FROM_MEMORY) {
        assert_int_equal(mixt_trainer_step_on(f->trainer, input, target, NULL), MIXT_OK);
        return;
    }
    assert_int_equal(mixt_trainer_backward(f->trainer, input, target, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_apply(f->trainer, 0.01f), MIXT_OK);
}

static void train(mixt_model_fn fn, const char *precision, way how, int64_t accumulate, float *weights)
{
    fixture f = start_with(fn, precision, accumulate);
    for (int64_t i = 0; i < STEPS; i++)
        take_step(&f, how, i, accumulate);
    assert_int_equal(mixt_trainer_param_get(f.trainer, 0, weights), MIXT_OK);
    mixt_close(f.context);
}

static void weights_are_those_of_a_cast(void **state)
{
    (void)state;
    static float expected[WEIGHTS], got[WEIGHTS];
    const char *const names[] = {"bf16", "fp16"};
    for (int i = 0; i < 2; i++)
        for (way how = 0; how < WAYS; how++)
            for (int64_t accumulate = 1; accumulate <= (how == BY_HAND ? 1 : 2); accumulate++) {
                by_hand = i ? MIXT_DTYPE_FP16 : MIXT_DTYPE_BF16;
                train(with_cast, names[i], how, accumulate, expected);
                train(net, names[i], how, accumulate, got);
                assert_memory_equal(got, expected, sizeof got);
            }
}

/** A change of precision while batches of the old format are ready. */
static void batches_follow_the_precision(void **state)
{
    (void)state;
    static float weights[2][WEIGHTS];
    const char *const order[] = {"bf16", "fp32", "fp16", "bf16"};
    for (int side = 0; side < 2; side++) {
        fixture f = start_with(net, "fp32", 1);
        for (int64_t i = 0; i < 12; i++) {
            if (i % 3 == 0)
                assert_int_equal(mixt_trainer_set_precision(f.trainer, order[i / 3]), MIXT_OK);
            take_step(&f, side ? FROM_MEMORY : BY_THREADS, i, 1);
        }
        assert_int_equal(mixt_trainer_param_get(f.trainer, 0, weights[side]), MIXT_OK);
        mixt_close(f.context);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_that_agree_decide),
        cmocka_unit_test(weights_are_those_of_a_cast),
        cmocka_unit_test(batches_follow_the_precision),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
