/* Policies as values: rules, copies, comparison; what is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "mixt/config.h"
#include "policy_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- values ---- */

static void rules_by_hand(void **unused)
{
    (void)unused;
    mixt_policy *policy;
    mixt_policy_rule rule;
    mixt_dtype forward, backward;
    ok(mixt_policy_new(MIXT_DTYPE_BF16, MIXT_DTYPE_NONE, &policy));
    ok(mixt_policy_add(policy, &(mixt_policy_rule){.layer = "head", .forward = MIXT_DTYPE_FP32}));
    ok(mixt_policy_insert(
        policy, 0, &(mixt_policy_rule){.op = "matmul", .forward = MIXT_DTYPE_FP16, .backward = MIXT_DTYPE_BF16}));
    assert_int_equal(mixt_policy_count(policy), 2);
    ok(mixt_policy_get(policy, 0, &rule));
    assert_null(rule.layer);
    assert_string_equal(rule.op, "matmul");
    assert_int_equal(rule.forward, MIXT_DTYPE_FP16);
    assert_int_equal(rule.backward, MIXT_DTYPE_BF16);
    assert_string_equal(rule.origin, "rule 1 of the policy");
    ok(mixt_policy_get(policy, 1, &rule));
    assert_string_equal(rule.layer, "head");
    assert_int_equal(rule.backward, MIXT_DTYPE_FP32);
    assert_string_equal(rule.origin, "rule 2 of the policy");
    ok(mixt_policy_remove(policy, 0));
    ok(mixt_policy_get(policy, 0, &rule));
    assert_string_equal(rule.layer, "head");
    assert_string_equal(rule.origin, "rule 1 of the policy");
    mixt_policy_default(policy, &forward, &backward);
    assert_true(forward == MIXT_DTYPE_BF16 && backward == MIXT_DTYPE_BF16);
    ok(mixt_policy_set_default(policy, MIXT_DTYPE_FP16, MIXT_DTYPE_FP32));
    mixt_policy_default(policy, &forward, &backward);
    assert_true(forward == MIXT_DTYPE_FP16 && backward == MIXT_DTYPE_FP32);
    mixt_policy_free(policy);
}

static void keep_is_part_of_a_policy(void **unused)
{
    (void)unused;
    static const char text[] = "version: 1\ndefault: bf16\nkeep: fp8_e4m3\nrules:\n"
                               "  - layer: a\n    precision: fp32\n"
                               "  - layer: b\n    forward: bf16\n    backward: fp32\n    keep: bf16\n";
    mixt_policy *policy = parse(text), *copy, *plain = parse("default: bf16");
    mixt_policy_rule rule;
    char *yaml;
    assert_int_equal(mixt_policy_keep(policy), MIXT_DTYPE_FP8_E4M3);
    ok(mixt_policy_get(policy, 0, &rule));
    assert_int_equal(rule.keep, MIXT_DTYPE_NONE);
    ok(mixt_policy_get(policy, 1, &rule));
    assert_int_equal(rule.keep, MIXT_DTYPE_BF16);
    assert_string_equal(rule.origin, "text:7");
    ok(mixt_policy_print(policy, &yaml));
    assert_string_equal(yaml, text);
    free(yaml);
    ok(mixt_policy_copy(policy, &copy));
    assert_true(mixt_policy_equal(policy, copy));
    char *line = mixt__policy_line(&copy->formats);
    assert_string_equal(line, "bf16 (keep fp8_e4m3); layer a, op *: fp32 (keep fp8_e4m3); "
                              "layer b, op *: bf16 (backward fp32) (keep bf16)");
    free(line);
    ok(mixt_policy_set_keep(copy, MIXT_DTYPE_FP16)); // the rule without one follows
    assert_false(mixt_policy_equal(policy, copy));
    assert_int_equal(mixt_policy_keep(plain), MIXT_DTYPE_NONE);
    mixt_policy_free(copy);
    ok(mixt_policy_copy(plain, &copy));
    ok(mixt_policy_set_keep(copy, MIXT_DTYPE_FP32)); // as it is, in words
    assert_true(mixt_policy_equal(plain, copy));
    assert_false(mixt__policy_needs_scaling(&policy->formats)); // loss scaling is not about what is kept
    mixt_policy_free(copy);
    mixt_policy_free(plain);
    mixt_policy_free(policy);
}

static void rules_of_files_say_where_they_stand(void **unused)
{
    (void)unused;
    mixt_policy *policy = parse("default: bf16\nrules:\n  - {op: matmul, precision: fp32}\n\n  - layer: a\n"
                                "    precision: fp16\n");
    mixt_policy *copy;
    mixt_policy_rule rule;
    ok(mixt_policy_insert(policy, 0, &(mixt_policy_rule){.forward = MIXT_DTYPE_FP32}));
    ok(mixt_policy_copy(policy, &copy));
    mixt_policy_free(policy);
    static const char *const origins[] = {"rule 1 of the policy", "text:3", "text:5"};
    for (int i = 0; i < 3; i++) {
        ok(mixt_policy_get(copy, i, &rule));
        assert_string_equal(rule.origin, origins[i]);
    }
    mixt_policy_free(copy);
}

static void equal_is_what_gives_the_same_bits(void **unused)
{
    (void)unused;
    static const struct {
        const char *a, *b;
        bool equal;
    } pairs[] = {
        {"default: bf16", "default: bf16\nversion: 1\nmade_by: me\nevidence: {a: 1}", true},
        {"default: bf16", "default: {forward: bf16, backward: bf16}", true},
        {"default: bf16", "default: {forward: bf16, backward: fp32}", false},
        {"default: bf16", "default: fp16", false},
        {"default: bf16", "default: bf16\nrules: []", true},
        {"default: bf16\nrules: [{layer: a, precision: fp32}]", "default: bf16", false},
        {"default: bf16\nrules: [{layer: a, precision: fp32}]",
         "default: bf16\nrules: [{layer: a, op: '*', "
         "forward: fp32, backward: fp32}]",
         true},
        {"default: bf16\nrules: [{layer: a, precision: fp32}]", "default: bf16\nrules: [{op: a, precision: fp32}]",
         false},
        {"default: bf16\nrules: [{op: a, precision: fp32}, {op: b, precision: fp16}]",
         "default: bf16\nrules: [{op: b, precision: fp16}, {op: a, precision: fp32}]", false},
        {"default: fp16\nloss_scale: 1024", "default: fp16\nloss_scale: 1.024e3", true},
        {"default: fp16\nloss_scale: auto", "default: fp16", true},
        {"default: fp16\nloss_scale: none", "default: fp16", false},
        {"default: fp16\nclip: 1", "default: fp16\nclip: 2", false},
        {"default: fp16\nscale_interval: 10", "default: fp16", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        mixt_policy *a = parse(pairs[i].a), *b = parse(pairs[i].b);
        if (mixt_policy_equal(a, b) != pairs[i].equal || mixt_policy_equal(b, a) != pairs[i].equal)
            fail_msg("%s\nand\n%s\nshould%s be equal", pairs[i].a, pairs[i].b, pairs[i].equal ? "" : " not");
        mixt_policy_free(a);
        mixt_policy_free(b);
    }
}

static void texts_that_go_with_it(void **unused)
{
    (void)unused;
    mixt_policy *policy;
    char *yaml;
    mixt_policy_settings settings;
    ok(mixt_policy_named("fp16", &policy));
    assert_string_equal(mixt_policy_made_by(policy), "");
    ok(mixt_policy_evidence(policy, &yaml));
    assert_string_equal(yaml, "");
    free(yaml);
    ok(mixt_policy_set_made_by(policy, "a search"));
    ok(mixt_policy_set_evidence(policy, "loss: {fp32: 0.5, this: 0.5}"));
    ok(mixt_policy_set_settings(policy, &(mixt_policy_settings){.loss_scale = "2048.0", .clip = 0.5f}));
    assert_string_equal(mixt_policy_made_by(policy), "a search");
    ok(mixt_policy_evidence(policy, &yaml));
    assert_string_equal(yaml, "loss:\n  fp32: 0.5\n  this: 0.5\n");
    free(yaml);
    mixt_policy_get_settings(policy, &settings);
    assert_string_equal(settings.loss_scale, "2048");
    assert_true(settings.clip == 0.5f && settings.scale_init == 0);
    ok(mixt_policy_set_evidence(policy, NULL));
    ok(mixt_policy_set_made_by(policy, NULL));
    yaml = print(policy);
    assert_string_equal(yaml, "version: 1\ndefault: fp16\nloss_scale: 2048\nclip: 0.5\n");
    free(yaml);
    mixt_policy_free(policy);
}

static void written_whole_or_not_at_all(void **unused)
{
    (void)unused;
    temp_folder_make();
    const char *path = temp_path("policy.yaml");
    mixt_policy *policy = parse("default: bf16\nrules: [{layer: \"a*\", precision: fp32}]"), *read;
    ok(mixt_policy_write(policy, path));
    ok(mixt_policy_write(policy, path)); // replaces
    ok(mixt_policy_open(path, &read));
    assert_true(mixt_policy_equal(policy, read));
    mixt_policy_free(read);
    assert_int_equal(mixt_policy_write(policy, temp_path("nowhere/policy.yaml")), MIXT_ERROR_FILE);
    mixt_policy_free(policy);
    temp_folder_remove();
}

/* ---- errors ---- */

static void errors_name_line_and_column(void **unused)
{
    (void)unused;
    static const struct {
        const char *yaml, *message;
    } wrong[] = {
        {"", "bad.yaml: empty: a policy needs 'default: bf16'"},
        {"[a, b]", "bad.yaml:1:1: a policy must be a map"},
        {"default: bf16\nrules:\n  - layer: \"fc.0\n", "bad.yaml:4:1: not YAML: "},
        {"default: bf16\n---\ndefault: fp32\n", "bad.yaml:3:1: a second document begins here"},
        {"default: fp4\n", "bad.yaml:1:10: a precision must be fp8, fp32, tf32, fp16, bf16, fp8_e4m3 or fp8_e5m2"},
        {"default: [bf16]\n", "bad.yaml:1:10: a precision must be"},
        {"default: {forward: bf16}\n", "bad.yaml:1:10: the default has forward but no backward: give both"},
        {"default: {}\n", "bad.yaml:1:10: the default has no precision"},
        {"default: {precision: bf16}\n",
         "bad.yaml:1:11: unknown key of the default: expected one of forward, backward"},
        {"default: {forward: bf16, forward: fp32}\n", "bad.yaml:1:26: this key is given twice"},
        {"default: bf16\ndefault: fp16\n", "bad.yaml:2:1: this key is given twice"},
        {"default: bf16\nrulez: []\n",
         "bad.yaml:2:1: unknown key of a policy (did you mean rules?): expected one of version, made_by"},
        {"default: bf16\n? [a]\n: b\n", "bad.yaml:2:3: unknown key of a policy"},
        {"rules: []\n", "bad.yaml:1:1: the policy has no default"},
        {"default: bf16\nversion: 2\n", "bad.yaml:2:10: version must be 1"},
        {"default: bf16\nmade_by: [me]\n", "bad.yaml:2:10: made_by must be a text"},
        {"default: bf16\nrules: all\n", "bad.yaml:2:8: rules must be a list"},
        {"default: bf16\nrules:\n  - all\n", "bad.yaml:3:5: a rule must be a map with layer, op, precision"},
        {"default: bf16\nrules:\n  - layer: a\n", "bad.yaml:3:5: the rule has no precision"},
        {"default: bf16\nrules:\n  - layer: a\n    layer: b\n", "bad.yaml:4:5: this key is given twice"},
        {"default: bf16\nrules:\n  - layr: a\n", "bad.yaml:3:5: unknown key of a rule (did you mean layer?)"},
        {"default: bf16\nrules:\n  - layer: \"\"\n", "bad.yaml:3:12: a pattern must be a word"},
        {"default: bf16\nrules:\n  - op: [a]\n", "bad.yaml:3:9: a pattern must be a word"},
        {"default: bf16\nrules:\n  - op: \"a\\0b\"\n", "bad.yaml:3:9: the text has the control character U+0000"},
        {"default: bf16\nrules:\n  - {op: a, precision: int8}\n", "bad.yaml:3:24: a precision must be"},
        {"default: bf16\nkeep: int8\n", "bad.yaml:2:7: keep must be fp32, fp16, bf16 or fp8_e4m3"},
        {"default: bf16\nkeep: [bf16]\n", "bad.yaml:2:7: keep must be"},
        {"default: bf16\nrules:\n  - {op: a, precision: bf16, keep: tf32}\n", "bad.yaml:3:36: keep must be fp32, fp16"},
        {"default: bf16\nrules:\n  - {op: a, keep: bf16}\n", "bad.yaml:3:5: the rule has no precision"},
        {"default: bf16\nrules:\n  - {op: a, backward: fp32}\n", "bad.yaml:3:5: the rule has backward but no forward"},
        {"default: bf16\nrules:\n  - {precision: bf16, forward: fp32}\n",
         "bad.yaml:3:17: the rule has precision, which is for both, and forward"},
        {"default: fp16\nloss_scale: sometimes\n", "bad.yaml:2:13: loss_scale: 'sometimes' is not auto, dynamic, none"},
        {"default: fp16\nloss_scale: 1e-9\n", "bad.yaml:2:13: loss_scale: '1e-9' is not"},
        {"default: fp16\nloss_scale: 0x10\n", "bad.yaml:2:13: loss_scale: '0x10' is not"},
        {"default: fp16\nscale_init: 0\n", "bad.yaml:2:13: scale_init: '0' must be a number, greater than 0"},
        {"default: fp16\nscale_growth: 0.5\n", "bad.yaml:2:15: scale_growth: '0.5' must be a number, at least 1"},
        {"default: fp16\nscale_backoff: 1\n",
         "bad.yaml:2:16: scale_backoff: '1' must be a number, from 0 (not included) to 1"},
        {"default: fp16\nscale_interval: 1.5\n", "bad.yaml:2:17: scale_interval: '1.5' must be a whole number"},
        {"default: fp16\nscale_hysteresis: 4294967296\n", "bad.yaml:2:19: scale_hysteresis: '4294967296' must be"},
        {"default: fp16\nclip: -1\n", "bad.yaml:2:7: clip: '-1' must be a number, at least 0"},
        {"default: fp16\nclip: .inf\n", "bad.yaml:2:7: clip: '.inf' must be a number"},
        {"default: fp16\nclip:\n", "bad.yaml:2:6: clip: '' must be a number"},
        {"default: bf16\nevidence: because\n", "bad.yaml:2:11: evidence must be a map"},
        {"default: bf16\nevidence: {a: {b: 1, b: 2}}\n", "bad.yaml:2:22: this key is given twice"},
        {"default: bf16\nevidence: {[a]: 1}\n", "bad.yaml:2:12: a key of the evidence must be a text"},
        {"default: bf16\nevidence: {a: !!int 1}\n", "bad.yaml:2:15: tags (tag:yaml.org,2002:int) are not supported"},
        {"default: bf16\nevidence: &e {a: *e}\n", "bad.yaml:2:11: the evidence is too large"},
        {"default: bf16\n\xff\n", "bad.yaml:2:1: not YAML: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mixt_policy *policy = (mixt_policy *)&policy;
        mixt_status status = mixt_policy_parse(wrong[i].yaml, "bad.yaml", &policy);
        if (status != MIXT_ERROR_CONFIG || strncmp(mixt_error_text(), wrong[i].message, strlen(wrong[i].message)))
            fail_msg("%s\nexpected \"%s\", got %d: \"%s\"", wrong[i].yaml, wrong[i].message, (int)status,
                     mixt_error_text());
        assert_null(policy);
    }
}

static void expect(mixt_status got, mixt_status status, const char *words)
{
    if (got != status || !strstr(mixt_error_text(), words))
        fail_msg("expected %d \"%s\", got %d: \"%s\"", (int)status, words, (int)got, mixt_error_text());
}

/** Lists in lists are refused as soon as they are too deep: libyaml's time grows with the square of the depth. */
static void too_deep_is_refused_at_once(void **unused)
{
    (void)unused;
    enum { DEEP = 200000 };
    static char text[DEEP + 20] = "evidence: ";
    mixt_policy *policy;
    memset(text + strlen(text), '[', DEEP);
    clock_t start = clock();
    expect(mixt_policy_parse(text, "deep.yaml", &policy), MIXT_ERROR_CONFIG,
           "deep.yaml:1:74: lists and maps are nested deeper than 64");
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

static void arguments_are_checked(void **unused)
{
    (void)unused;
    const mixt_status argument = MIXT_ERROR_ARGUMENT;
    mixt_policy *policy;
    mixt_policy_rule rule = {.forward = MIXT_DTYPE_FP32};
    expect(mixt_policy_new(MIXT_DTYPE_INT8, MIXT_DTYPE_NONE, &policy), argument, "not int8");
    assert_null(policy);
    expect(mixt_policy_new(MIXT_DTYPE_FP32, MIXT_DTYPE_FP64, &policy), argument, "not fp64");
    expect(mixt_policy_named("fp4", &policy), argument, "unknown policy 'fp4'");
    expect(mixt_policy_named(NULL, &policy), argument, "name");
    expect(mixt_policy_load("/nowhere/p.yaml", &policy), MIXT_ERROR_FILE, "policy file '/nowhere/p.yaml'");
    expect(mixt_policy_open("/nowhere/p.yaml", &policy), MIXT_ERROR_FILE, "neither fp32, tf32, fp16, bf16, fp8, auto nor");
    expect(mixt_policy_open("/", &policy), MIXT_ERROR_FILE, "precision '/' is not a policy file that can be read");
    ok(mixt_policy_named("bf16", &policy));
    expect(mixt_policy_add(policy, NULL), argument, "rule");
    expect(mixt_policy_add(NULL, &rule), argument, "policy");
    expect(mixt_policy_add(policy, &(mixt_policy_rule){.layer = "a"}), argument, "not none");
    expect(mixt_policy_set_keep(policy, MIXT_DTYPE_FP8_E5M2), argument,
           "kept in fp32, fp16, bf16 or fp8_e4m3, not fp8");
    expect(mixt_policy_add(policy, &(mixt_policy_rule){.forward = MIXT_DTYPE_FP32, .keep = MIXT_DTYPE_TF32}), argument,
           "not tf32");
    expect(mixt_policy_add(policy, &(mixt_policy_rule){.layer = "", .forward = MIXT_DTYPE_FP32}), argument, "empty");
    expect(mixt_policy_add(policy, &(mixt_policy_rule){.op = "\xff", .forward = MIXT_DTYPE_FP32}), argument, "UTF-8");
    expect(mixt_policy_insert(policy, 1, &rule), argument, "no place 1 among 0 rules");
    expect(mixt_policy_remove(policy, 0), argument, "no rule 0 among 0");
    expect(mixt_policy_get(policy, -1, &rule), argument, "no rule -1 among 0");
    for (int i = 0; i < 4096; i++)
        ok(mixt_policy_add(policy, &rule));
    expect(mixt_policy_add(policy, &rule), argument, "more than 4096 rules");
    expect(mixt_policy_set_settings(policy, &(mixt_policy_settings){.clip = -1}), argument, "clip");
    expect(mixt_policy_set_settings(policy, &(mixt_policy_settings){.loss_scale = "?"}), argument, "loss_scale");
    expect(mixt_policy_set_made_by(policy, "\xc3"), argument, "UTF-8");
    expect(mixt_policy_set_evidence(policy, "a\nb"), MIXT_ERROR_CONFIG, "evidence:1:1: evidence must be a map");
    mixt_policy_free(policy);
    mixt_policy_free(NULL);
}

/** 0 in a text is no clipping, whatever stands before it; in C that is no limit, since 0 does not say anything. */
static void no_clipping_can_be_said(void **state)
{
    (void)state;
    mixt_policy *policy, *again, *of_phase;
    mixt_policy_settings settings;
    char *text;
    ok(mixt_policy_parse("default: bf16\nclip: 1\nclip_value: 2\nphases:\n- {name: a, until: 5, clip: 0}\n- name: b\n",
                         "phases", &policy));
    ok(mixt_policy_of_phase(policy, 0, &of_phase));
    mixt_policy_get_settings(of_phase, &settings);
    assert_true(isinf(settings.clip) && settings.clip_value == 2);
    ok(mixt_policy_print(policy, &text));
    assert_non_null(strstr(text, "clip: 0\n"));
    ok(mixt_policy_parse(text, "again", &again));
    assert_true(mixt_policy_equal(policy, again));
    mixt_free(text);
    mixt_policy_free(again);
    mixt_policy_free(of_phase);
    ok(mixt_policy_set_settings(policy, &(mixt_policy_settings){.clip = INFINITY}));
    expect(mixt_policy_set_settings(policy, &(mixt_policy_settings){.scale_init = INFINITY}), MIXT_ERROR_ARGUMENT,
           "scale_init");
    mixt_policy_free(policy);
}

/** Every setting that is listed is a key of policy files and of configurations, and has one default. */
static void settings_are_keys(void **state)
{
    (void)state;
    mixt_config *config;
    const char *name;
    int64_t count = 0;
    ok(mixt_config_new(&config));
    for (; (name = mixt_policy_setting(count)); count++) {
        char text[100], key[60];
        mixt_policy *policy;
        snprintf(text, sizeof text, "default: bf16\n%s: 1\n", name);
        if (!strcmp(name, "scale_backoff"))
            snprintf(text, sizeof text, "default: bf16\n%s: 0.5\n", name);
        ok(mixt_policy_parse(text, name, &policy));
        mixt_policy_free(policy);
        snprintf(key, sizeof key, "train.%s=%s", name, strcmp(name, "scale_backoff") ? "1" : "0.5");
        ok(mixt_config_set(config, key, "test"));
    }
    assert_int_equal(count, 10);
    assert_null(mixt_policy_setting(-1));
    mixt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_clipping_can_be_said),
        cmocka_unit_test(settings_are_keys),
        cmocka_unit_test(rules_by_hand),
        cmocka_unit_test(keep_is_part_of_a_policy),
        cmocka_unit_test(rules_of_files_say_where_they_stand),
        cmocka_unit_test(equal_is_what_gives_the_same_bits),
        cmocka_unit_test(texts_that_go_with_it),
        cmocka_unit_test(written_whole_or_not_at_all),
        cmocka_unit_test(errors_name_line_and_column),
        cmocka_unit_test(too_deep_is_refused_at_once),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
