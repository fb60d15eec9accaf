/* Parts of a search: which layers are decided together, the levels of a model, and what screening sets aside. */
#include "search_fixture.h"

/* ---- groups ---- */

static void find_groups(const char *yaml, mixt__search_groups *groups)
{
    mixt__experiment e = {0};
    mixt_config *config = config_of(yaml);
    must(mixt__experiment_open(&e, config));
    must(mixt__search_groups_find(e.trainer->inner->train->graph, groups));
    mixt__experiment_close(&e);
    mixt_config_free(config);
}

/** Whether some group is just these layers, in this order. */
static bool has_group(const mixt__search_groups *groups, const char *layers)
{
    for (int64_t g = 0; g < groups->count; g++) {
        char names[600] = "";
        for (int64_t i = 0; i < groups->items[g].count; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " " : "",
                     groups->items[g].layers[i]);
        if (!strcmp(names, layers))
            return true;
    }
    return false;
}

/** Attention reads its product through views; a block's first convolution and its shortcut read one value. */
static void test_groups(void **state)
{
    (void)state;
    mixt__search_groups groups;
    static char text[2001];
    memset(text, 'a', 2000);
    assert_true(temp_write(temp_path("text.txt"), text, 2000));
    char yaml[700];
    snprintf(yaml, sizeof yaml,
             "model: gpt\nthreads: 1\ndevice: cpu\nnet: {layers: 2, width: 16, heads: 2}\n"
             "data: {kind: text, path: %s, seq: 8}\ntrain: {batch: 4, epochs: 1}\n",
             temp_path("text.txt"));
    find_groups(yaml, &groups);
    assert_true(has_group(&groups, "wte") && has_group(&groups, "h.1.attn.qkv h.1.attn"));
    assert_true(has_group(&groups, "h.1.attn.proj") && has_group(&groups, "h.0.mlp.fc") && has_group(&groups, "head"));
    assert_int_equal(groups.count, 2 + 2 * 4);
    assert_true(groups.items[1].flops > 0 && groups.flops > groups.items[1].flops);
    mixt__search_groups_free(&groups);
    find_groups("model: resnet\nthreads: 1\ndevice: cpu\nnet: {depth: 20}\n"
                "data: {kind: digits, limit: 64}\ntrain: {batch: 4, epochs: 1}\n",
                &groups);
    assert_true(has_group(&groups, "layer2.0.conv1 layer2.0.downsample.conv"));
    assert_true(has_group(&groups, "layer2.0.conv2") && has_group(&groups, "fc"));
    mixt__search_groups_free(&groups);
}

/** The format that most groups have is the default, the others have rules; a rule undoes what the default keeps. */
static void test_levels(void **state)
{
    (void)state;
    mixt__search_groups groups;
    mixt_policy *policy;
    mixt_policy_rule rule;
    mixt_dtype forward;
    find_groups(small_yaml, &groups);
    assert_int_equal(groups.count, 3);
    must(mixt__search_policy(&groups, "bEb", &policy));
    mixt_policy_default(policy, &forward, NULL);
    assert_true(forward == MIXT_DTYPE_BF16 && !mixt_policy_keep(policy) && mixt_policy_count(policy) == 1);
    must(mixt_policy_get(policy, 0, &rule));
    assert_true(rule.forward == MIXT_DTYPE_FP32 && rule.keep == MIXT_DTYPE_FP8_E4M3);
    mixt_policy_free(policy);
    must(mixt__search_policy(&groups, "efe", &policy));
    assert_int_equal(mixt_policy_keep(policy), MIXT_DTYPE_FP8_E4M3);
    must(mixt_policy_get(policy, 0, &rule));
    assert_string_equal(rule.layer, "fc.1");
    assert_true(rule.forward == MIXT_DTYPE_FP32 && rule.keep == MIXT_DTYPE_FP32);
    assert_int_equal(mixt_policy_count(policy), 1);
    mixt_policy_free(policy);
    char *line = mixt__search_line(&groups, "efe");
    assert_string_equal(line, "bf16/fp8_e4m3; fc.1: fp32");
    mixt__free(line);
    line = mixt__search_line(&groups, "fff");
    assert_string_equal(line, "fp32");
    mixt__free(line);
    mixt__search_groups_free(&groups);
}

/* ---- figures ---- */

/** A search of that tolerance with FP32's losses 1, for screening. */
static void screening(mixt__search *s, mixt__search_try *fp32)
{
    *s = (mixt__search){.trials = 3, .fp32 = fp32};
    s->options = MIXT_OPTIONS(mixt_search_options);
    *fp32 = (mixt__search_try){.memory = 0};
    for (int i = 0; i < 12; i++)
        fp32->losses[MIXT_SEARCH_SEEN].at[fp32->losses[MIXT_SEARCH_SEEN].count++] = 1;
}

static mixt_verdict screen(const mixt__search *s, int count, const double *losses)
{
    mixt__search_try tried = {.memory = 0};
    tried.losses[MIXT_SEARCH_SEEN].count = count;
    memcpy(tried.losses[MIXT_SEARCH_SEEN].at, losses, (size_t)count * sizeof *losses);
    return mixt__search_screen(s, &tried);
}

/** Only what is shown to lose is set aside: scatter never does, and one that diverged always. */
static void test_screen(void **state)
{
    (void)state;
    mixt__search s;
    mixt__search_try fp32;
    screening(&s, &fp32);
    const double calm[] = {1.0001, 0.9999, 1.0002}, lost[] = {1.3, 1.31, 1.29}, gone[] = {1, INFINITY};
    const double wild[] = {1.3, 0.8, 1.2, 0.7, 1.3, 0.9, 1.2, 0.9, 1.2, 0.8, 1.1, 0.9};
    const double slow[] = {1.03, 1.00, 1.04, 1.02, 1.00, 1.03, 1.01, 1.02, 1.04, 1.00, 1.02, 1.03};
    assert_int_equal(screen(&s, 3, calm), MIXT_VERDICT_YES);
    assert_int_equal(screen(&s, 3, lost), MIXT_VERDICT_NO);
    assert_int_equal(screen(&s, 2, gone), MIXT_VERDICT_NO);
    assert_int_equal(screen(&s, 1, gone), MIXT_VERDICT_UNDECIDED);
    for (int i = 0; i < 12; i++)
        assert_int_equal(screen(&s, i, wild), MIXT_VERDICT_UNDECIDED);
    assert_int_equal(screen(&s, 12, wild), MIXT_VERDICT_YES);
    assert_int_equal(screen(&s, 3, slow), MIXT_VERDICT_UNDECIDED);
    assert_int_equal(screen(&s, 12, slow), MIXT_VERDICT_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_screen)};
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
