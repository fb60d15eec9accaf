/* Casts by hand under a policy: what is read, and what comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

static const float FACTOR = 1.0f / 3;
static mixt_dtype format; // of the cast below

/** One parameter, cast and multiplied, beside one in the policy's format. */
static mixt_value cast_param(mixt_builder *b, mixt_value x)
{
    mixt_value p = mixt_param(b, "p", .normal = 1), low = mixt_mul(b, mixt_affine(b, x, 0, 0), p);
    return mixt_add(b, low, mixt_affine(b, mixt_cast(b, p, format), FACTOR, 0));
}

static float predict(mixt_trainer *t)
{
    float input = 1, output = 0;
    assert_int_equal(mixt_trainer_predict(t, &input, 1, &output), MIXT_OK);
    return output;
}

/** What the cast of the master makes of it. */
static float expected(mixt_trainer *t)
{
    float master, cast, result;
    uint16_t low, scaled;
    assert_int_equal(mixt_trainer_param_get(t, 0, &master), MIXT_OK);
    if (format == MIXT_DTYPE_FP32)
        return master * FACTOR;
    assert_int_equal(mixt_convert(&low, format, &master, MIXT_DTYPE_FP32, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_convert(&cast, MIXT_DTYPE_FP32, &low, format, 1, NULL), MIXT_OK);
    cast *= FACTOR;
    assert_int_equal(mixt_convert(&scaled, format, &cast, MIXT_DTYPE_FP32, 1, NULL), MIXT_OK);
    assert_int_equal(mixt_convert(&result, MIXT_DTYPE_FP32, &scaled, format, 1, NULL), MIXT_OK);
    return result;
}

static void a_cast_reads_the_master(void **state)
{
    (void)state;
    const char *const policies[] = {"fp32", "bf16", "fp16"};
    const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    for (int i = 0; i < 9; i++) {
        format = formats[i % 3];
        mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
        mixt_model *model = mixt_model_new(context, cast_param, MIXT_LOSS_MSE);
        mixt_trainer *t = mixt_trainer_new(model, .batch = 1, .precision = policies[i / 3], .optimizer = "sgd",
                                           .settings.loss_scale = "8", .lr = 0.1f, .seed = 3, .no_fusion = true);
        mixt_sample_shape shape = {MIXT_DTYPE_FP32, 1, {1}, 1};
        assert_int_equal(mixt_trainer_compile_for(t, &shape), MIXT_OK);
        float input = 1, target = 5, before, after;
        before = predict(t);
        assert_true(before == expected(t));
        assert_int_equal(mixt_trainer_step_on(t, &input, &target, NULL), MIXT_OK);
        after = predict(t);
        assert_true(after == expected(t));
        assert_true(after > before); // the gradient came through
        mixt_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cast_reads_the_master)};
    return cmocka_run_group_tests_name("casts", tests, NULL, NULL);
}
