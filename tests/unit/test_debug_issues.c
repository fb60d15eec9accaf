/* What the debugger says about a step whose numbers are finite and yet wrong: gradients that vanish, explode or are
 * dead, numbers that became 0, errors that jump; and what it advises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8, F = 8, CLASSES = 4, SAMPLES = 16 };

static mixt_value mlp(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc.0", x, .features = F));
    x = mixt_relu(b, mixt_linear(b, "fc.1", x, .features = F));
    return mixt_linear(b, "head", x, .features = CLASSES);
}

/** Takes away what a bias adds: what is left of it is mostly rounding. */
static mixt_value difference(mixt_builder *b, mixt_value x)
{
    x = mixt_linear(b, "fc.0", x, .features = F);
    mixt_scope_push(b, "shifted");
    x = mixt_affine(b, x, 1, -1000);
    mixt_scope_pop(b);
    return mixt_linear(b, "head", x, .features = CLASSES);
}

typedef struct scene {
    float inputs[SAMPLES * F];
    int32_t labels[SAMPLES];
    mixt_data *data;
    mixt_context *context;
    mixt_trainer *trainer;
} scene;

/** The arrays are read where they are. @param factor of the inputs, which reach from -1 to 1 */
static void open_data(scene *s, float factor)
{
    for (int i = 0; i < SAMPLES * F; i++)
        s->inputs[i] = factor * (float)((i * 37 + i / 8 * 11) % 41 - 20) / 20.0f;
    for (int i = 0; i < SAMPLES; i++)
        s->labels[i] = i * 5 % CLASSES;
    mixt_data_arrays arrays =
        MIXT_OPTIONS(mixt_data_arrays, .samples = SAMPLES, .input_rank = 1, .input_dims = {F}, .inputs = s->inputs);
    arrays.target = MIXT_TARGET_CLASS;
    arrays.targets = s->labels;
    arrays.classes = CLASSES;
    arrays.borrow = true;
    const mixt_data_options options =
        MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE, .val = -1, .in_order = true);
    assert_int_equal(mixt_data_from(&arrays, &options, &s->data), MIXT_OK);
}

static void open_scene(scene *s, mixt_model_fn net, const char *precision, const char *scale, float factor)
{
    mixt_step step;
    open_data(s, factor);
    s->context = mixt_open(.device = "cpu", .threads = 1);
    s->trainer = mixt_trainer_new(mixt_model_new(s->context, net, MIXT_LOSS_CROSS_ENTROPY), .precision = precision,
                                  .batch = N, .optimizer = "sgd", .lr = 1e-30f, .settings.loss_scale = scale);
    if (mixt_trainer_step(s->trainer, s->data, &step) != MIXT_OK) // weights are there
        fail_msg("%s", mixt_error_text());
}

static void change(mixt_trainer *t, const char *name, float factor, float plus)
{
    mixt_param_info info;
    float values[256];
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        assert_int_equal(mixt_trainer_param(t, p, &info), MIXT_OK);
        if (strcmp(info.name, name))
            continue;
        assert_int_equal(mixt_trainer_param_get(t, p, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i++)
            values[i] = values[i] * factor + plus;
        assert_int_equal(mixt_trainer_param_set(t, p, values), MIXT_OK);
        return;
    }
    fail_msg("no parameter %s", name);
}

/** Closes the scene. Its step has an issue of this kind with these words, and the advice has those. */
static void expect(scene *s, mixt_debug_kind kind, const char *words, const char *advice)
{
    mixt_debug *d;
    const mixt_debug_issue *issue;
    bool found = false;
    if (mixt_debug_step(s->trainer, s->data, &d) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    assert_null(mixt_debug_origin_of(d));
    for (int64_t i = 0; (issue = mixt_debug_issue_at(d, i)); i++)
        found = found || (issue->kind == kind && strstr(issue->text, words) && strstr(issue->remedy, advice));
    if (!found)
        fail_msg("no \"%s\" with \"%s\" among %lld issues, the first: %s", words, advice,
                 (long long)mixt_debug_describe(d).issues,
                 mixt_debug_issue_at(d, 0) ? mixt_debug_issue_at(d, 0)->text : "");
    mixt_debug_free(d);
    mixt_close(s->context);
    mixt_data_close(s->data);
}

static void test_vanishing(void **state)
{
    scene *s = *state;
    open_scene(s, mlp, "fp32", NULL, 1);
    change(s->trainer, "fc.1.weight", 1e-9f, 0);
    expect(s, MIXT_DEBUG_GRADIENT, "vanishing: the gradient of fc.0.weight", "residual");
}

static void test_exploding(void **state)
{
    scene *s = *state;
    open_scene(s, mlp, "fp32", NULL, 1e9f);
    change(s->trainer, "fc.0.weight", 1e-9f, 0);
    expect(s, MIXT_DEBUG_GRADIENT, "exploding: the gradient of fc.0.weight", "train.clip");
    open_scene(s, mlp, "fp32", NULL, 1e4f);
    expect(s, MIXT_DEBUG_GRADIENT, "exploding: the gradient norm is", "train.clip");
}

/** Too small a loss scale: gradients become 0 in FP16. A larger one is advised, and the layer is blamed. */
static void test_flushed(void **state)
{
    scene *s = *state;
    open_scene(s, mlp, "fp16", "1e-6", 1);
    mixt_debug *d;
    assert_int_equal(mixt_debug_step_with(s->trainer, s->data, MIXT_OPTIONS_AT(mixt_debug_options, .look = true), &d),
                     MIXT_OK);
    const mixt_debug_layer *worst = mixt_debug_blamed_at(d, 0);
    assert_string_equal(worst->why, "underflow");
    assert_true(worst->blame > 0.1 && worst->backward.flushed > 0.1 && worst->forward.flushed < 0.01);
    mixt_debug_free(d);
    expect(s, MIXT_DEBUG_PRECISION, "became 0 in fp16", "a larger loss scale");
}

/** A number near the end of FP16 is told before it overflows. */
static void test_margin(void **state)
{
    scene *s = *state;
    open_scene(s, mlp, "fp16", NULL, 1);
    change(s->trainer, "fc.0.weight", 80000, 0);
    expect(s, MIXT_DEBUG_PRECISION, "in fp16, which ends at 65504", "precision: bf16");
}

/** What 1000 takes away of a number in BF16 does not come back. */
static void test_jump(void **state)
{
    scene *s = *state;
    open_scene(s, difference, "bf16", NULL, 8);
    change(s->trainer, "fc.0.bias", 0, 1000);
    mixt_debug *d;
    assert_int_equal(mixt_debug_step_with(s->trainer, s->data, MIXT_OPTIONS_AT(mixt_debug_options, .look = true), &d),
                     MIXT_OK);
    const mixt_debug_layer *worst = mixt_debug_blamed_at(d, 0);
    assert_string_equal(worst->name, "shifted");
    assert_true(worst->jumps && worst->forward.inherited < 0.01 && worst->forward.error > 0.25);
    mixt_debug_free(d);
    expect(s, MIXT_DEBUG_PRECISION, "affine of shifted jumps to", "{layer: \"shifted\", precision: fp32}");
}

/** Of an update in several passes the one that fails is named. */
static void test_passes(void **state)
{
    scene *s = *state;
    open_data(s, 1);
    s->inputs[12 * F] = NAN; // after the check of opening, in the second pass
    s->context = mixt_open(.device = "cpu", .threads = 1);
    s->trainer = mixt_trainer_new(mixt_model_new(s->context, mlp, MIXT_LOSS_CROSS_ENTROPY), .precision = "fp16",
                                  .batch = N, .accumulate = 2);
    mixt_debug *d;
    if (mixt_debug_step(s->trainer, s->data, &d) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    const mixt_debug_origin *o = mixt_debug_origin_of(d);
    assert_non_null(o);
    assert_int_equal(o->cause, MIXT_DEBUG_CAUSE_INPUT);
    assert_int_equal(o->pass, 1);
    assert_int_equal(o->sample, 12);
    assert_int_equal(o->place, 4);
    mixt_debug_free(d);
    mixt_close(s->context);
    mixt_data_close(s->data);
}

static int set_up(void **state)
{
    *state = calloc(1, sizeof(scene));
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vanishing), cmocka_unit_test(test_exploding), cmocka_unit_test(test_flushed),
        cmocka_unit_test(test_margin),    cmocka_unit_test(test_jump),      cmocka_unit_test(test_passes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
