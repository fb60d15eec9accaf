/* A step that is planned anew between two updates, with less memory: what it holds is what is planned, to the byte, and
 * training goes on from the very bits. Computing activations again changes none of them; passing a batch in parts and
 * back again neither, as long as no update is made in parts; updates made in parts are those of the whole batch but for
 * the order of sums. On the device that MIXT_TEST_DEVICE names when this is compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "mixt/mixt.h"
#include "train/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef MIXT_TEST_DEVICE
#define MIXT_TEST_DEVICE "cpu"
#endif

enum { STEPS = 9, BATCH = 8, SAMPLES = 40 }; // an epoch ends in between

static mixt_context *context;

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

/** How an update is made: parts of a batch, and the share of all activations' bytes that may be kept; 0: as it is. */
typedef struct plan {
    int64_t split;
    double kept;
} plan;

typedef struct outcome {
    double losses[STEPS];
    int64_t epochs[STEPS];
    float *weights;
    int64_t count;
} outcome;

static void read_weights(mixt_trainer *t, outcome *o)
{
    mixt_param_info info;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        ok(mixt_trainer_param(t, i, &info));
        o->weights = realloc(o->weights, (size_t)(o->count + info.count) * sizeof *o->weights);
        ok(mixt_trainer_param_get(t, i, o->weights + o->count));
        o->count += info.count;
    }
}

static void refit(mixt_trainer *t, const plan *p, size_t all)
{
    mixt_memory m;
    ok(mixt__trainer_refit(t->inner, p->split, 0, MIXT_DTYPE_NONE));
    if (p->kept > 0) {
        ok(mixt_trainer_memory(t, &m));
        ok(mixt__trainer_refit(t->inner, p->split, (size_t)((double)m.activations * p->kept), MIXT_DTYPE_NONE));
    }
    ok(mixt_trainer_memory(t, &m));
    assert_int_equal(m.allocated, m.total);
    if (p->split > 1 || p->kept > 0)
        assert_true(m.total < all);
    else
        assert_int_equal(m.total, all);
}

/** A plan for each update, from the second on made anew where it changes. */
static outcome train(const char *precision, int64_t accumulate, const plan plans[STEPS])
{
    outcome o = {0};
    mixt_memory m;
    mixt_data *data = mixt_data_new(context, "random:tokens", .samples = SAMPLES, .seq = 12, .classes = 50);
    mixt_model *model = mixt_zoo_model(context, "gpt", data, .layers = 2, .width = 16, .heads = 2);
    mixt_trainer *t = mixt_trainer_new(model, .precision = precision, .batch = BATCH, .accumulate = accumulate,
                                       .seed = 3, .settings.clip = 1, .optimizer = "adamw");
    if (!t)
        fail_msg("%s", mixt_error_text());
    for (int i = 0; i < STEPS; i++) {
        mixt_step step;
        if (i == 1)
            ok(mixt_trainer_memory(t, &m));
        if (i && memcmp(&plans[i], &plans[i - 1], sizeof plans[i])) {
            refit(t, &plans[i == 4 ? 7 : i], m.total); // once more in between: nothing must hang on one change
            refit(t, &plans[i], m.total);
        }
        ok(mixt_trainer_step(t, data, &step));
        o.losses[i] = step.loss;
        o.epochs[i] = step.epoch;
        assert_int_equal(step.step, i + 1);
        assert_int_equal(step.samples, BATCH * accumulate);
    }
    read_weights(t, &o);
    return o;
}

static const plan whole[STEPS] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}};

static void computing_again_changes_no_bit(void **unused)
{
    (void)unused;
    static const plan less[STEPS] = {{1, 0},   {1, 0},   {1, 0.7}, {1, 0.7}, {1, 0.8},
                                     {1, 0.6}, {1, 0.6}, {1, 0},   {1, 0.7}};
    for (int i = 0; i < 3; i++) {
        static const char *const formats[] = {"fp32", "bf16", "fp16"};
        outcome a = train(formats[i], i + 1, whole), b = train(formats[i], i + 1, less);
        assert_memory_equal(a.losses, b.losses, sizeof a.losses);
        assert_memory_equal(a.epochs, b.epochs, sizeof a.epochs);
        assert_int_equal(a.count, b.count);
        assert_memory_equal(a.weights, b.weights, (size_t)a.count * sizeof(float));
        free(a.weights);
        free(b.weights);
    }
}

static void parts_make_the_same_update(void **unused)
{
    (void)unused;
    static const plan parts[STEPS] = {{1, 0}, {1, 0}, {2, 0}, {2, 0}, {8, 0}, {4, 0.8}, {4, 0}, {1, 0}, {2, 0}};
    for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
        outcome a = train("fp32", accumulate, whole), b = train("fp32", accumulate, parts);
        assert_memory_equal(a.losses, b.losses, 2 * sizeof a.losses[0]);
        assert_memory_equal(a.epochs, b.epochs, sizeof a.epochs);
        for (int i = 0; i < STEPS; i++) // other samples would be off by far more: losses begin at log(50)
            assert_true(fabs(a.losses[i] - b.losses[i]) < 1e-3);
        free(a.weights);
        free(b.weights);
    }
}

/** Activations that wait in another format: the forward pass does not change, and evaluation, which keeps its memory,
 *  reads the weights as they are. */
static void kept_activations_round_gradients_alone(void **unused)
{
    (void)unused;
    mixt_data *data = mixt_data_new(context, "random:tokens", .samples = SAMPLES, .seq = 64, .classes = 50);
    mixt_model *model = mixt_zoo_model(context, "gpt", data, .layers = 2, .width = 64, .heads = 2);
    for (int i = 0; i < 2; i++) {
        mixt_memory before, after;
        mixt_evaluation found[2];
        mixt_step steps[2][2];
        mixt_trainer *t[2];
        for (int k = 0; k < 2; k++) { // the second one stays as it is
            t[k] = mixt_trainer_new(model, .precision = i ? "bf16" : "fp32", .batch = BATCH, .seed = 3);
            ok(mixt_trainer_step(t[k], data, &steps[k][0]));
            ok(mixt_trainer_evaluate(t[k], data, &found[k]));
            ok(mixt_trainer_memory(t[k], &before));
            if (!k)
                ok(mixt__trainer_refit(t[k]->inner, 2, 0, i ? MIXT_DTYPE_FP8_E4M3 : MIXT_DTYPE_BF16));
            if (!k)
                ok(mixt__trainer_refit(t[k]->inner, 1, 0, i ? MIXT_DTYPE_FP8_E4M3 : MIXT_DTYPE_BF16));
            ok(mixt_trainer_memory(t[k], &after));
            assert_int_equal(after.allocated, after.total);
            assert_true(k ? after.total == before.total : after.total < before.total);
            ok(mixt_trainer_evaluate(t[k], data, &found[k]));
            ok(mixt_trainer_step(t[k], data, &steps[k][1]));
        }
        assert_true(found[0].loss == found[1].loss);
        assert_true(steps[0][1].loss == steps[1][1].loss);
        assert_true(steps[0][1].grad_norm != steps[1][1].grad_norm);
    }
}

/** What cannot be done leaves the trainer as it was. */
static void failures_change_nothing(void **unused)
{
    (void)unused;
    mixt_memory before, after;
    mixt_step step;
    mixt_data *data = mixt_data_new(context, "random:tokens", .samples = SAMPLES, .seq = 12, .classes = 50);
    mixt_model *model = mixt_zoo_model(context, "gpt", data, .layers = 2, .width = 16, .heads = 2);
    mixt_trainer *t = mixt_trainer_new(model, .batch = BATCH, .seed = 3);
    ok(mixt_trainer_step(t, data, &step));
    ok(mixt_trainer_memory(t, &before));
    assert_int_equal(mixt__trainer_refit(t->inner, 2, 1, MIXT_DTYPE_NONE), MIXT_ERROR_MEMORY); // a byte for activations
    ok(mixt_trainer_memory(t, &after));
    assert_memory_equal(&before, &after, sizeof before);
    ok(mixt_trainer_step(t, data, &step));
    assert_int_equal(step.samples, BATCH);
}

static int open_context(void **unused)
{
    (void)unused;
    context = mixt_open(.device = MIXT_TEST_DEVICE, .threads = 1);
    return !context;
}

static int close_context(void **unused)
{
    (void)unused;
    mixt_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_again_changes_no_bit),
        cmocka_unit_test(parts_make_the_same_update),
        cmocka_unit_test(kept_activations_round_gradients_alone),
        cmocka_unit_test(failures_change_nothing),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
