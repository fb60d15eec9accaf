/* Policies by layer: the layers that a low format does not make faster, or that cannot bear it, stay in FP32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "choose/assumed.h"
#include "choose/by_layer.h"
#include "run/run.h"

#include <string.h>

/** A GPU whose BF16 units are twice as fast as FP32, and no faster where a dimension is odd. */
static const char gpu[] = "version: 1\nname: mine\ntitle: My GPU\nkind: gpu\ncapability: 8.0\ncores: 4\nmemory: 8e9\n"
                          "reserved: 0\nbandwidth: 1e15\nflops: {fp32: 1e13, bf16: 2e13}\nlaunch: 0\n"
                          "reach: {fp32: 0.5, bf16: 0.5}\nreach_bytes: 1\nsources: {capability: a, cores: b, "
                          "memory: c, reserved: d, bandwidth: e, flops: f, launch: g, reach: h, reach_bytes: i}\n";

typedef struct fixture {
    mixt_advice advice;
    mixt__contender fp32, bf16;
    mixt_run *run;
} fixture;

static void open_fixture(fixture *f, const char *hidden, bool assumed)
{
    mixt_config *config;
    const char *const settings[] = {"model=mlp",       "data.kind=random", "data.path=784", "threads=1",
                                    "data.classes=16", "train.batch=64",   hidden,          "data.samples=256"};
    *f = (fixture){.fp32 = {.format = MIXT_DTYPE_FP32, .split = 1}, .bf16 = {.format = MIXT_DTYPE_BF16, .split = 1}};
    assert_int_equal(mixt__machine_parse(gpu, strlen(gpu), "p", &f->advice.machine), MIXT_OK);
    assert_int_equal(mixt_policy_named("fp32", &f->fp32.policy), MIXT_OK);
    assert_int_equal(mixt_policy_named("bf16", &f->bf16.policy), MIXT_OK);
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_int_equal(mixt_config_set(config, settings[i], "test"), MIXT_OK);
    if (assumed)
        mixt__assume_begin(f->advice.machine);
    assert_int_equal(mixt_run_open_config(config, NULL, &f->run), MIXT_OK);
    mixt_config_free(config);
}

static void close_fixture(fixture *f)
{
    mixt_run_close(f->run);
    mixt__assume_end();
    mixt_policy_free(f->fp32.policy);
    mixt_policy_free(f->bf16.policy);
    mixt_machine_free(f->advice.machine);
}

static bool has_rule(const mixt_policy *policy, const char *layer)
{
    mixt_policy_rule rule;
    for (int64_t i = 0; i < mixt_policy_count(policy); i++)
        if (mixt_policy_get(policy, i, &rule) == MIXT_OK && !strcmp(rule.layer, layer))
            return rule.forward == MIXT_DTYPE_FP32;
    return false;
}

static void test_faster(void **state)
{
    (void)state;
    fixture f;
    mixt_policy *policy;
    int64_t layers;
    open_fixture(&f, "net.hidden=[1024,1024,1023]", true);
    assert_int_equal(mixt__by_layer_faster(&f.advice, f.run, &f.fp32, &f.bf16, &policy, &layers), MIXT_OK);
    assert_int_equal(layers, 2); // into and out of 1023
    assert_true(has_rule(policy, "fc.2") && has_rule(policy, "fc.3"));
    assert_false(has_rule(policy, "fc.0") || has_rule(policy, "fc.1"));
    mixt_policy_free(policy);
    close_fixture(&f);
    open_fixture(&f, "net.hidden=[1024,1024]", true);
    assert_int_equal(mixt__by_layer_faster(&f.advice, f.run, &f.fp32, &f.bf16, &policy, &layers), MIXT_OK);
    assert_null(policy); // all of them win
    close_fixture(&f);
}

/** At weights as they are drawn every layer of a perceptron bears BF16: there is nothing to keep. */
static void test_bearable(void **state)
{
    (void)state;
    fixture f;
    mixt_policy *policy;
    int64_t layers;
    open_fixture(&f, "net.hidden=[32]", false);
    assert_int_equal(mixt__by_layer_bearable(f.run, &f.fp32, &f.bf16, &policy, &layers), MIXT_OK);
    assert_true(!policy == !layers);
    assert_true(!policy || mixt_policy_count(policy) == layers);
    mixt_policy_free(policy);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faster), cmocka_unit_test(test_bearable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
