/* A policy that changes while a trainer lives, or between a checkpoint and the trainer that goes on from it: what stays
 * to the bit, what the loss scale does, and who decides about scaling and clipping.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api/api.h"
#include "store/checkpoint.h"
#include "train/trainer_inside.h"
#include "api_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

static mixt_policy *parse(const char *yaml)
{
    mixt_policy *policy;
    ok(mixt_policy_parse(yaml, "text", &policy));
    return policy;
}

static fixture start_with(mixt_trainer_options options)
{
    fixture f = start();
    f.trainer = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f.model, &options);
    if (!f.trainer)
        fail_msg("%s", mixt_error_text());
    ok(mixt_trainer_compile(f.trainer, f.data));
    return f;
}

static fixture start_policy(const char *yaml)
{
    mixt_policy *policy = parse(yaml);
    fixture f =
        start_with(MIXT_OPTIONS(mixt_trainer_options, .batch = BATCH, .policy = policy, .lr = 0.01f, .seed = 5));
    mixt_policy_free(policy); // the trainer has its own
    return f;
}

static void change(fixture *f, const char *yaml)
{
    mixt_policy *policy = parse(yaml);
    ok(mixt_trainer_set_policy(f->trainer, policy));
    assert_true(mixt_policy_equal(mixt_trainer_policy(f->trainer), policy));
    mixt_policy_free(policy);
}

static mixt_step step(fixture *f)
{
    mixt_step result;
    ok(mixt_trainer_step(f->trainer, f->data, &result));
    return result;
}

/* ---- everything that training goes on from, as a checkpoint holds it ---- */

static mixt__checkpoint *saved(fixture *f, const char *name)
{
    mixt__checkpoint *checkpoint;
    ok(mixt_trainer_checkpoint(f->trainer, temp_path(name)));
    ok(mixt__checkpoint_open(temp_path(name), &checkpoint));
    return checkpoint;
}

static void expect_same_tensors(const mixt__checkpoint *a, const mixt__checkpoint *b)
{
    assert_int_equal(a->state->count, b->state->count);
    assert_int_equal(a->state->count, 6); // masters and two moments of a weight and a bias
    for (int64_t i = 0; i < a->state->count; i++) {
        const mixt__file_tensor *x = &a->state->tensors[i], *y = mixt__safetensors_find(b->state, x->name);
        assert_non_null(y);
        assert_int_equal(x->bytes, y->bytes);
        assert_memory_equal(x->data, y->data, x->bytes);
    }
}

static void expect_same_counters(const mixt__checkpoint *a, const mixt__checkpoint *b)
{
    static const char *const names[] = {"step", "next_batch", "runs", "batches_per_epoch"};
    const json_t *x = json_object_get(a->scalars, "trainer"), *y = json_object_get(b->scalars, "trainer");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_true(json_equal(json_object_get(x, names[i]), json_object_get(y, names[i])));
    static const char *const fields[] = {"step", "skipped", "lr", "inv_bias1", "inv_sqrt_bias2"};
    x = json_object_get(x, "control");
    y = json_object_get(y, "control");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        assert_true(json_equal(json_object_get(x, fields[i]), json_object_get(y, fields[i])));
}

static void a_change_keeps_state_to_the_bit(void **state)
{
    (void)state;
    static const char *const order[] = {"default: fp16", "default: bf16", "default: fp16",
                                        "default: {forward: bf16, backward: fp32}\nclip: 1", "default: tf32"};
    static float weights[2][PIXELS * CLASSES];
    temp_folder_make();
    fixture f = start_policy("default: fp16");
    for (int i = 0; i < 3; i++)
        step(&f);
    for (size_t i = 1; i < sizeof order / sizeof order[0]; i++) {
        mixt__checkpoint *before = saved(&f, "before");
        ok(mixt_trainer_param_get(f.trainer, 0, weights[0]));
        change(&f, order[i]);
        ok(mixt_trainer_param_get(f.trainer, 0, weights[1]));
        mixt__checkpoint *after = saved(&f, "after");
        assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
        expect_same_tensors(before, after);
        expect_same_counters(before, after);
        mixt__checkpoint_close(before);
        mixt__checkpoint_close(after);
        int64_t done = step(&f).step; // and it goes on
        assert_int_equal(done, 3 + (int64_t)i);
    }
    assert_string_equal(mixt_error(f.context), "");
    mixt_close(f.context);
    temp_folder_remove();
}

/** The scale after each change, seen by the next step. */
static void the_loss_scale_stays_where_both_scale(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        double scale;
    } changes[] = {
        {"default: fp16\nrules: [{layer: fc, forward: fp16, backward: fp32}]", 8192}, // as it was
        {"default: {forward: bf16, backward: fp16}", 8192},                           // auto: FP16 is in it
        {"default: bf16\nloss_scale: dynamic", 8192},
        {"default: fp16\nscale_init: 64\nscale_ceiling: 1024", 1024}, // within the limits of now
        {"default: fp16\nloss_scale: 32", 32},                        // a fixed one is what it says
        {"default: fp16", 32},                                        // from a fixed one on
        {"default: bf16", 1},                                         // nothing scales
        {"default: fp16", 65536},                                     // begins
        {"default: fp16\nloss_scale: none", 1},
        {"default: fp16\nscale_init: 256", 256},
    };
    fixture f = start_policy("default: fp16\nscale_init: 8192");
    assert_true(step(&f).scale == 8192);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        change(&f, changes[i].yaml);
        double scale = step(&f).scale;
        if (scale != changes[i].scale)
            fail_msg("%s: scale %g, expected %g", changes[i].yaml, scale, changes[i].scale);
    }
    mixt_close(f.context);
}

/** Clean updates go on counting over a change between two policies that scale. */
static void growth_goes_on_counting(void **state)
{
    (void)state;
    fixture f = start_policy("default: fp16\nscale_init: 4\nscale_interval: 4");
    for (int i = 0; i < 2; i++)
        assert_true(step(&f).scale == 4);
    change(&f, "default: fp16\nscale_init: 4\nscale_interval: 4\nclip: 1");
    for (int i = 0; i < 2; i++)
        assert_true(step(&f).scale == 4);
    assert_true(step(&f).scale == 8);
    mixt_close(f.context);
}

/** fp16 → bf16 → fp16 with no step between ends where it began: further steps have the same bits but for the scale. */
static void there_and_back_is_no_change(void **state)
{
    (void)state;
    double losses[2][4];
    for (int side = 0; side < 2; side++) {
        fixture f = start_policy("default: fp16\nloss_scale: 1024");
        for (int i = 0; i < 4; i++) {
            losses[side][i] = step(&f).loss;
            if (side) {
                ok(mixt_trainer_set_precision(f.trainer, "bf16"));
                change(&f, "default: fp16\nloss_scale: 1024");
            }
        }
        mixt_close(f.context);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

static void a_refused_policy_changes_nothing(void **state)
{
    (void)state;
    fixture f = start_policy("default: fp16\nscale_init: 8192");
    step(&f);
    mixt_policy *nowhere = parse("default: bf16\nrules: [{layer: nowhere, precision: fp32}]");
    mixt_policy *limits = parse("default: fp16\nscale_init: 1e9");
    assert_int_equal(mixt_trainer_set_policy(f.trainer, nowhere), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "matches nothing"));
    assert_int_equal(mixt_trainer_set_policy(f.trainer, limits), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "scale_ceiling"));
    assert_int_equal(mixt_trainer_set_policy(f.trainer, NULL), MIXT_ERROR_ARGUMENT);
    mixt_dtype forward;
    mixt_policy_default(mixt_trainer_policy(f.trainer), &forward, NULL);
    assert_int_equal(forward, MIXT_DTYPE_FP16);
    assert_true(step(&f).scale == 8192);
    mixt_policy_free(nowhere);
    mixt_policy_free(limits);
    mixt_close(f.context);
}

/* ---- who decides ---- */

static void expect_settings(mixt_trainer_options options, float clip, float value, bool scales, float scale)
{
    fixture f = start_with(options);
    const mixt__trainer_settings *s = &f.trainer->inner->settings;
    assert_true(s->decided.clip == clip && s->decided.clip_value == value);
    assert_int_equal(s->scaling.enabled, scales);
    if (scales)
        assert_true(s->scaling.initial == scale);
    mixt_close(f.context);
}

static void options_win_over_the_policy(void **state)
{
    (void)state;
    mixt_policy *policy = parse("default: bf16\nloss_scale: 128\nclip: 0.5\nclip_value: 0.25\nscale_growth: 4");
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy), 0.5f, 0.25f, true, 128);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .settings.clip = 2), 2, 0.25f, true, 128);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .settings.clip = INFINITY,
                                 .settings.clip_value = INFINITY),
                    0, 0, true, 128);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .settings.loss_scale = "none"), 0.5f, 0.25f,
                    false, 1);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .settings.loss_scale = "auto"), 0.5f, 0.25f,
                    false, 1);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .settings.loss_scale = "dynamic"), 0.5f, 0.25f,
                    true, 65536);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16"), 0, 0, true, 65536);
    expect_settings(MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16"), 0, 0, false, 1);
    mixt_policy_free(policy);
}

/** What the options do not say follows each policy that is set later; what they say stays. */
static void a_later_policy_brings_its_own(void **state)
{
    (void)state;
    mixt_policy *first = parse("default: bf16\nclip: 0.5");
    fixture f =
        start_with(MIXT_OPTIONS(mixt_trainer_options, .policy = first, .settings.clip_value = 3, .batch = BATCH));
    const mixt__trainer_settings *s = &f.trainer->inner->settings;
    assert_true(s->decided.clip == 0.5f && s->decided.clip_value == 3);
    change(&f, "default: bf16\nclip: 2\nclip_value: 1");
    assert_true(s->decided.clip == 2 && s->decided.clip_value == 3);
    change(&f, "default: bf16");
    assert_true(s->decided.clip == 0 && s->decided.clip_value == 3);
    mixt_policy_free(first);
    mixt_close(f.context);
}

/** Clipping by the policy changes the update, as clipping by the options does. */
static void clipping_takes_effect(void **state)
{
    (void)state;
    static float weights[3][PIXELS * CLASSES];
    for (int way = 0; way < 3; way++) {
        mixt_policy *policy = parse(way == 1 ? "default: fp32\nclip: 1e-3" : "default: fp32");
        mixt_trainer_options o =
            MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .optimizer = "sgd", .lr = 1, .batch = BATCH);
        if (way == 2)
            o.settings.clip = 1e-3f;
        fixture f = start_with(o);
        step(&f);
        ok(mixt_trainer_param_get(f.trainer, 0, weights[way]));
        mixt_policy_free(policy);
        mixt_close(f.context);
    }
    assert_memory_not_equal(weights[0], weights[1], sizeof weights[0]);
    assert_memory_equal(weights[1], weights[2], sizeof weights[0]);
}

static void precision_or_policy(void **state)
{
    (void)state;
    fixture f = start();
    mixt_policy *policy = parse("default: bf16");
    assert_null(mixt_trainer_new(f.model, .precision = "bf16", .policy = policy));
    assert_non_null(strstr(mixt_error_text(), "both precision ('bf16') and policy are set: give one of them"));
    assert_null(mixt_generator_new(f.model, .weights = "none", .precision = "fp16", .policy = policy));
    assert_non_null(strstr(mixt_error_text(), "both precision ('fp16') and policy are set: give one of them"));
    mixt_trainer *t = mixt_trainer_new(f.model, .policy = policy);
    assert_true(mixt_policy_equal(mixt_trainer_policy(t), policy));
    assert_null(mixt_trainer_policy(NULL));
    mixt_policy_free(policy);
    mixt_close(f.context);
}

/* ---- from a checkpoint ---- */

static void the_same_policy_has_the_same_bits(void **state)
{
    (void)state;
    static const char policy[] = "default: fp16\nscale_init: 64\nscale_interval: 2\nclip: 1\n"
                                 "rules: [{op: matmul, forward: fp16, backward: fp16}]";
    const mixt_restore_options allow = MIXT_OPTIONS(mixt_restore_options, .allow_policy = true);
    temp_folder_make();
    fixture f = start_policy(policy);
    for (int i = 0; i < 3; i++)
        step(&f);
    ok(mixt_trainer_checkpoint(f.trainer, temp_path("saved")));
    mixt_step went[3];
    for (int i = 0; i < 3; i++)
        went[i] = step(&f);
    for (int way = 0; way < 2; way++) {
        fixture g = start_policy(policy);
        ok(mixt_trainer_restore_with(g.trainer, temp_path("saved"), way ? &allow : NULL));
        for (int i = 0; i < 3; i++) {
            mixt_step now = step(&g);
            assert_true(now.loss == went[i].loss && now.scale == went[i].scale && now.step == went[i].step);
        }
        mixt_close(g.context);
    }
    mixt_close(f.context);
    temp_folder_remove();
}

static void another_policy_only_when_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        double scale;
    } others[] = {
        {"default: bf16", 1},
        {"default: fp16\nscale_init: 64\nclip: 1", 8192},
        {"default: fp16\nloss_scale: 32", 32},
        {"default: fp16\nscale_init: 8192\nkeep: fp8_e4m3", 8192},
    };
    const mixt_restore_options allow = MIXT_OPTIONS(mixt_restore_options, .allow_policy = true);
    temp_folder_make();
    fixture f = start_policy("default: fp16\nscale_init: 8192");
    for (int i = 0; i < 3; i++)
        step(&f);
    mixt__checkpoint *before = saved(&f, "before");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        fixture g = start_policy(others[i].yaml);
        assert_int_equal(mixt_trainer_restore(g.trainer, temp_path("before")), MIXT_ERROR_CONFIG);
        assert_non_null(strstr(mixt_error_text(), "made with other settings"));
        ok(mixt_trainer_restore_with(g.trainer, temp_path("before"), &allow));
        mixt__checkpoint *after = saved(&g, "after");
        expect_same_tensors(before, after);
        expect_same_counters(before, after);
        mixt__checkpoint_close(after);
        mixt_step now = step(&g);
        assert_true(now.scale == others[i].scale);
        assert_int_equal(now.step, 4);
        mixt_close(g.context);
    }
    mixt__checkpoint_close(before);
    // What is no part of a policy is not allowed with it.
    fixture g =
        start_with(MIXT_OPTIONS(mixt_trainer_options, .batch = BATCH, .precision = "bf16", .lr = 0.02f, .seed = 5));
    assert_int_equal(mixt_trainer_restore_with(g.trainer, temp_path("before"), &allow), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "lr: 0.0099"));
    assert_null(strstr(mixt_error_text(), "precision"));
    mixt_close(g.context);
    mixt_close(f.context);
    temp_folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_keeps_state_to_the_bit),
        cmocka_unit_test(the_loss_scale_stays_where_both_scale),
        cmocka_unit_test(growth_goes_on_counting),
        cmocka_unit_test(there_and_back_is_no_change),
        cmocka_unit_test(a_refused_policy_changes_nothing),
        cmocka_unit_test(options_win_over_the_policy),
        cmocka_unit_test(a_later_policy_brings_its_own),
        cmocka_unit_test(clipping_takes_effect),
        cmocka_unit_test(precision_or_policy),
        cmocka_unit_test(the_same_policy_has_the_same_bits),
        cmocka_unit_test(another_policy_only_when_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
