/* Recomputation changes memory and time, never a bit: every model of the zoo with and without a budget, down to the
 * smallest that is possible; the plan is what is allocated; what cannot be says how much would do. On the device that
 * MIXT_TEST_DEVICE names when this is compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/sanitized.h"

#include <mixt/mixt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MIXT_TEST_DEVICE
#define MIXT_TEST_DEVICE "cpu"
#endif

enum { STEPS = 2, BATCH = 4, ACCUMULATE = 2, FORMATS = 2 };

typedef struct subject {
    const char *model, *data;
    mixt_zoo_options sizes;
} subject;

static const int64_t hidden[] = {48, 32}, channels[] = {8, 12};

static const subject zoo[] = {
    {"mlp", "digits:", {.hidden = hidden, .hidden_count = 2, .dropout = 0.2f, .norm = "layer"}},
    {"convnet", "digits:", {.channels = channels, .channel_count = 2, .dropout = 0.2f, .norm = "batch"}},
    {"resnet", "random:16x16x3", {.depth = 20, .width = 8}},
    {"vgg", "random:32x32x3", {.depth = 11, .hidden = hidden, .hidden_count = 2, .dropout = 0.1f, .norm = "batch"}},
    {"gpt", "random:tokens", {.layers = 3, .width = 16, .heads = 2, .dropout = 0.1f}},
    {"bert", "random:tokens", {.layers = 2, .width = 16, .heads = 2, .dropout = 0.1f}},
    {"bert_mlm", "random:tokens", {.layers = 2, .width = 16, .heads = 2, .dropout = 0.1f}},
    {"lstm", "random:tokens", {.layers = 2, .width = 16, .dropout = 0.1f}},
};

/** What a few steps leave behind: losses and all parameters and statistics. */
typedef struct outcome {
    double loss[STEPS];
    float *values;
    int64_t count;
    size_t activations;
    mixt_plan_info info;
} outcome;

static void check(mixt_status status, const char *what)
{
    if (status != MIXT_OK)
        fail_msg("%s: %s", what, mixt_error_text());
}

static mixt_trainer *make(mixt_context *context, const subject *s, const char *precision, size_t budget,
                          mixt_data **data)
{
    *data = mixt_data_new(context, s->data, .samples = 64, .seq = 12, .classes = strstr(s->data, "tokens") ? 50 : 10);
    mixt_zoo_options sizes = s->sizes;
    sizes.struct_size = sizeof sizes;
    sizes.eps = sizes.rope_theta = MIXT_AUTO; // as the macro has them
    mixt_model *model = MIXT_MADE(mixt_model, mixt_zoo_model_with, context, s->model, *data, &sizes);
    return mixt_trainer_new(model, .batch = BATCH, .accumulate = ACCUMULATE, .precision = precision, .seed = 5,
                            .recompute_budget = budget);
}

static void read_values(const mixt_trainer *t, outcome *o)
{
    int64_t params = mixt_trainer_param_count(t);
    mixt_param_info info;
    for (int64_t i = 0; i < params; i++) {
        check(mixt_trainer_param(t, i, &info), "param");
        o->count += info.count;
    }
    o->values = malloc((size_t)o->count * sizeof *o->values);
    float *to = o->values;
    for (int64_t i = 0; i < params; i++, to += info.count) {
        check(mixt_trainer_param(t, i, &info), "param");
        check(mixt_trainer_param_get(t, i, to), "param_get");
    }
}

static outcome train(const subject *s, const char *precision, size_t budget)
{
    outcome o = {0};
    mixt_data *data;
    mixt_memory memory;
    mixt_step step;
    mixt_context *context = mixt_open(.device = MIXT_TEST_DEVICE, .threads = 2);
    mixt_trainer *t = make(context, s, precision, budget, &data);
    for (int i = 0; i < STEPS; i++) {
        check(mixt_trainer_step(t, data, &step), s->model);
        o.loss[i] = step.loss;
    }
    check(mixt_trainer_memory(t, &memory), "memory");
    assert_int_equal(memory.allocated, memory.total);
    o.activations = memory.activations;
    check(mixt_plan_describe(t, &o.info), "describe");
    read_values(t, &o);
    mixt_close(context);
    return o;
}

/** The smallest budget, from the message that one byte gets. */
static size_t smallest(const subject *s, const char *precision)
{
    mixt_data *data;
    mixt_context *context = mixt_open(.device = MIXT_TEST_DEVICE, .threads = 2);
    mixt_trainer *t = make(context, s, precision, 1, &data);
    assert_int_equal(mixt_trainer_compile(t, data), MIXT_ERROR_MEMORY);
    const char *words = strstr(mixt_error_text(), "even with full recomputation: the smallest possible budget is ");
    size_t bytes = 0;
    if (!words || sscanf(words, "even with full recomputation: the smallest possible budget is %zu bytes", &bytes) != 1)
        fail_msg("%s", mixt_error_text());
    mixt_close(context);
    return bytes;
}

static void expect_same(const subject *s, const outcome *a, const outcome *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < STEPS; i++)
        if (a->loss[i] != b->loss[i])
            fail_msg("%s: loss %d is %.17g, with a budget %.17g", s->model, i, a->loss[i], b->loss[i]);
    if (memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values))
        fail_msg("%s: other weights with a budget", s->model);
}

static void expect_budget(const subject *s, const char *precision, const outcome *plain, size_t budget)
{
    outcome o = train(s, precision, budget);
    expect_same(s, plain, &o);
    assert_true(o.activations <= budget);
    assert_int_equal(o.info.recompute_budget, budget);
    assert_int_equal(o.info.activations_kept_all, plain->activations);
    assert_true(o.info.recomputed > 0 && o.info.recompute_flops > 0 && o.info.recompute_seconds > 0);
    assert_true(o.info.recompute_bound <= o.info.recompute_seconds);
    free(o.values);
}

static void test_bits(void **state)
{
    static const char *const formats[FORMATS] = {"fp32", "bf16"};
    (void)state;
    for (size_t i = 0; i < sizeof zoo / sizeof zoo[0]; i++)
        for (int f = !strcmp(zoo[i].model, "vgg"); f < FORMATS;
             f += CASE_STRIDE) { // which has millions of weights at any size
            const subject *s = &zoo[i];
            outcome plain = train(s, formats[f], 0);
            assert_int_equal(plain.info.recomputed, 0);
            size_t least = smallest(s, formats[f]), most = plain.activations;
            print_message("%-8s %s: activations %zu, smallest %zu\n", s->model, formats[f], most, least);
            assert_true(least < most);
            expect_budget(s, formats[f], &plain, least);
            expect_budget(s, formats[f], &plain, f ? most - 1 : least + (most - least) / 2);
            free(plain.values);
        }
}

/** Copies are shown as what they are, next to the nodes that they repeat. */
static void test_shown(void **state)
{
    (void)state;
    const subject *s = &zoo[4];
    mixt_data *data;
    mixt_context *context = mixt_open(.device = MIXT_TEST_DEVICE, .threads = 1);
    mixt_trainer *t = make(context, s, "bf16", smallest(s, "bf16"), &data);
    check(mixt_trainer_compile(t, data), "compile");
    mixt_plan_info info;
    check(mixt_plan_describe(t, &info), "describe");
    int64_t copies = 0;
    double flops = 0;
    for (int64_t i = 0; i < info.nodes; i++) {
        mixt_plan_node n, first;
        check(mixt_plan_node_at(t, i, &n), "node");
        if (!n.recomputed || n.view)
            continue;
        copies++;
        flops += n.flops;
        assert_true(n.backward);
        int64_t same = 0;
        for (int64_t k = 0; k < i; k++) {
            check(mixt_plan_node_at(t, k, &first), "node");
            same += !first.recomputed && !first.backward && !strcmp(first.layer, n.layer) && !strcmp(first.op, n.op) &&
                    !strcmp(first.kernel, n.kernel) && first.flops == n.flops;
        }
        assert_true(same > 0);
    }
    assert_int_equal(copies, info.recomputed);
    assert_true(flops == info.recompute_flops);
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
