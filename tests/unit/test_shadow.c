/* Shadows: another policy from the trainer's weights, with nothing of the trainer changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "api/api.h"
#include "base/rng.h"
#include "ops/attrs.h"
#include "passes/twins.h"
#include "train/checkpoint.h"
#include "train/shadow.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8, FEATURES = 20, CLASSES = 4 };

/** Batch norm has running statistics, dropout random numbers. */
static mixt_value net(mixt_builder *b, mixt_value x) // (N, 20)
{
    x = mixt_relu(b, mixt_linear(b, "first", x, .features = 32));
    x = mixt_dropout(b, mixt_batch_norm(b, "norm", x), 0.1f);
    return mixt_linear(b, "last", x, .features = CLASSES);
}

typedef struct fixture {
    mixt_context *context;
    mixt_trainer *trainer;
    float input[BATCH * FEATURES];
    int32_t target[BATCH];
} fixture;

static void start(fixture *f, const char *precision)
{
    f->context = mixt_open(.device = "cpu", .threads = 2);
    mixt_model *model = mixt_model_new(f->context, net, MIXT_LOSS_CROSS_ENTROPY);
    f->trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision, .seed = 3, .lr = 0.01f);
    mixt_sample_shape shape = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {FEATURES}, .targets = 1};
    assert_int_equal(mixt_trainer_compile_for(f->trainer, &shape), MIXT_OK);
    assert_int_equal(mixt__trainer_allocate(f->trainer->inner), MIXT_OK);
    for (int i = 0; i < BATCH * FEATURES; i++)
        f->input[i] = (float)((i * 37 % 101) - 50) / 25.0f;
    for (int i = 0; i < BATCH; i++)
        f->target[i] = i % CLASSES;
}

static mixt__shadow *shadow_of(const fixture *f, mixt_dtype dtype, bool keep_logits)
{
    mixt__policy policy = mixt__policy_of(dtype);
    mixt__shadow_options options = {.policy = &policy, .keep_logits = keep_logits};
    mixt__shadow *shadow;
    assert_int_equal(mixt__shadow_new(f->trainer->inner, &options, &shadow), MIXT_OK);
    return shadow;
}

static double run(const fixture *f, mixt__shadow *shadow, uint64_t key)
{
    double loss;
    mixt__shadow_batch batch = {.input = f->input, .target = f->target, .key = key, .scale = 1};
    assert_int_equal(mixt__shadow_run(shadow, &batch, &loss), MIXT_OK);
    return loss;
}

/** The shadow of a trainer's own policy makes the trainer's gradients, to the bit. */
static void same_policy_same_bits(void **state)
{
    fixture f;
    static const char *const names[] = {"fp32", "bf16", "fp16"};
    static const mixt_dtype dtypes[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    (void)state;
    for (int i = 0; i < 3; i++) {
        start(&f, names[i]);
        mixt__trainer *t = f.trainer->inner;
        mixt__shadow *shadow = shadow_of(&f, dtypes[i], false);
        uint64_t key = mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)t->runs);
        double loss, own = run(&f, shadow, key);
        assert_int_equal(mixt_trainer_backward(f.trainer, f.input, f.target, 1.0f, &loss), MIXT_OK);
        assert_true(own == loss);
        assert_memory_equal(mixt__params_gradients(shadow->params), mixt__params_gradients(t->params),
                            (size_t)t->params->total * sizeof(float));
        mixt__shadow_free(shadow);
        mixt_close(f.context);
    }
}

/** Training with shadows run in between ends with the same weights as without. */
static void changes_nothing(void **state)
{
    fixture plain, watched;
    (void)state;
    start(&plain, "bf16");
    start(&watched, "bf16");
    mixt__shadow *shadow = shadow_of(&watched, MIXT_DTYPE_FP32, false);
    double first = run(&watched, shadow, 1), later = first;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mixt_trainer_step_on(plain.trainer, plain.input, plain.target, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_step_on(watched.trainer, watched.input, watched.target, NULL), MIXT_OK);
        assert_int_equal(mixt__shadow_refresh(shadow), MIXT_OK);
        later = run(&watched, shadow, 1);
    }
    assert_true(later < first); // it sees the trainer's new weights
    const mixt__params *a = plain.trainer->inner->params, *b = watched.trainer->inner->params;
    assert_memory_equal(mixt__params_weights(a), mixt__params_weights(b), (size_t)a->total * sizeof(float));
    assert_memory_equal(mixt__role_fp32(&a->roles[MIXT_PARAM_MOMENT2]), mixt__role_fp32(&b->roles[MIXT_PARAM_MOMENT2]),
                        (size_t)a->total * sizeof(float));
    mixt__shadow_free(shadow);
    mixt_close(plain.context);
    mixt_close(watched.context);
}

/** Outputs come as FP32 whatever the policy, those of BF16 close to those of FP32 and not equal; a smaller batch too.
 */
static void reads_outputs(void **state)
{
    fixture f;
    float fp32[BATCH * CLASSES], bf16[BATCH * CLASSES];
    double worst = 0;
    (void)state;
    start(&f, "fp32");
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options half = {.policy = &policy, .keep_logits = true, .batch = BATCH / 2};
    mixt__shadow *a = shadow_of(&f, MIXT_DTYPE_FP32, true), *b = shadow_of(&f, MIXT_DTYPE_BF16, true), *c;
    assert_int_equal(mixt__shadow_new(f.trainer->inner, &half, &c), MIXT_OK);
    assert_true(isfinite(run(&f, a, 1)) && isfinite(run(&f, b, 1)) && isfinite(run(&f, c, 1)));
    assert_int_equal(mixt__shadow_logit_count(a), BATCH * CLASSES);
    assert_int_equal(mixt__shadow_logit_count(c), BATCH / 2 * CLASSES);
    assert_int_equal(mixt__shadow_logits(a, fp32), MIXT_OK);
    assert_int_equal(mixt__shadow_logits(b, bf16), MIXT_OK);
    for (int i = 0; i < BATCH * CLASSES; i++)
        worst = fmax(worst, fabs((double)fp32[i] - (double)bf16[i]));
    assert_true(worst > 0 && worst < 0.1);
    mixt__shadow_free(a);
    mixt__shadow_free(b);
    mixt__shadow_free(c);
    mixt__shadow *blind = shadow_of(&f, MIXT_DTYPE_FP32, false);
    assert_int_equal(mixt__shadow_logits(blind, fp32), MIXT_ERROR_STATE);
    mixt__shadow_free(blind);
    mixt_close(f.context);
}

/** Twins look and change nothing: loss and gradients have the bits that they have without. */
static void twins_change_nothing(void **state)
{
    fixture f;
    double losses[2];
    mixt__twins twins = {.formats = {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, MIXT_DTYPE_TF32}, .format_count = 3};
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow *shadows[2];
    (void)state;
    start(&f, "fp32");
    for (int i = 0; i < 2; i++) {
        mixt__shadow_options options = {.policy = &policy, .no_fusion = true, .twins = i ? &twins : NULL};
        assert_int_equal(mixt__shadow_new(f.trainer->inner, &options, &shadows[i]), MIXT_OK);
        losses[i] = run(&f, shadows[i], 7);
    }
    assert_true(losses[0] == losses[1]);
    const mixt__params *a = shadows[0]->params, *b = shadows[1]->params;
    assert_memory_equal(mixt__params_gradients(a), mixt__params_gradients(b), (size_t)a->total * sizeof(float));
    assert_memory_equal(mixt__params_state(a), mixt__params_state(b), (size_t)a->state_total * sizeof(float));
    bool kinds[MIXT_TWIN_SLOPE + 1] = {0};
    for (int64_t i = 0; i < twins.count; i++) {
        double n[MIXT_DIFF_NUMBERS];
        const mixt__twin *t = &twins.twins[i];
        memcpy(n, mixt__executable_address(shadows[1]->executable, t->numbers), sizeof n);
        kinds[t->kind] = true;
        if (t->kind == MIXT_TWIN_FORWARD && t->format < 2) // FP16 and BF16 differ from FP32, and not by much
            assert_true(n[MIXT_DIFF_SQUARES] > 0 && n[MIXT_DIFF_SQUARES] < 1e-3 * n[MIXT_DIFF_REFERENCE]);
    }
    for (int k = 0; k <= MIXT_TWIN_SLOPE; k++)
        assert_true(kinds[k]);
    mixt__shadow_free(shadows[0]);
    mixt__shadow_free(shadows[1]);
    mixt__twins_free(&twins);
    mixt_close(f.context);
}

/** A snapshot brings back weights, moments and counters: what follows has the same bits. */
static void snapshot_goes_back(void **state)
{
    fixture f;
    mixt__snapshot snapshot = {0};
    float bits[3][FEATURES * 32];
    (void)state;
    start(&f, "fp16");
    mixt__trainer *t = f.trainer->inner;
    assert_int_equal(mixt_trainer_step_on(f.trainer, f.input, f.target, NULL), MIXT_OK);
    assert_int_equal(mixt__snapshot_open(&snapshot, t, MIXT_SNAPSHOT_WHOLE, false), MIXT_OK);
    assert_int_equal(mixt__snapshot_take(&snapshot, t), MIXT_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(mixt_trainer_step_on(f.trainer, f.input, f.target, NULL), MIXT_OK);
        memcpy(bits[pass], mixt__params_weights(t->params), sizeof bits[pass]);
        assert_int_equal(t->attempts, 4);
        assert_int_equal(mixt__snapshot_restore(&snapshot, t), MIXT_OK);
        assert_int_equal(t->attempts, 1);
    }
    memcpy(bits[2], mixt__params_weights(t->params), sizeof bits[2]);
    assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
    assert_true(memcmp(bits[0], bits[2], sizeof bits[0]) != 0);
    mixt__snapshot_close(&snapshot);
    mixt_close(f.context);
}

static void needs_a_trainer_with_memory(void **state)
{
    (void)state;
    mixt__trainer empty = {0};
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options options = {.policy = &policy};
    mixt__shadow *shadow;
    empty.device = &mixt__device_cpu;
    assert_int_equal(mixt__shadow_new(&empty, &options, &shadow), MIXT_ERROR_STATE);
    assert_null(shadow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_policy_same_bits), cmocka_unit_test(changes_nothing),
        cmocka_unit_test(reads_outputs),         cmocka_unit_test(snapshot_goes_back),
        cmocka_unit_test(twins_change_nothing),  cmocka_unit_test(needs_a_trainer_with_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
