/* The zoo as a C user has it: its list, models that fit the data, and what does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

static void test_list(void **state)
{
    (void)state;
    mixt_zoo_info info, found;
    int64_t count = 0, tokens = 0;
    for (; mixt_zoo_at(count, &info); count++) {
        check_ok(mixt_zoo_find(info.name, &found));
        assert_string_equal(found.name, info.name);
        assert_string_equal(found.summary, info.summary);
        assert_true(found.input == info.input && found.bidirectional == info.bidirectional &&
                    found.tokens == info.tokens);
        assert_true(strlen(info.summary) > 10);
        assert_int_equal(info.input == MIXT_ZOO_TOKENS || info.input == MIXT_ZOO_TEXTS, info.tokens > 0);
        tokens += info.tokens > 0;
    }
    assert_true(count >= 8 && tokens >= 4);
    assert_false(mixt_zoo_at(-1, &info));
    assert_false(mixt_zoo_at(count + 5, &info));
    check_ok(mixt_zoo_find("pair", &info));
    assert_int_equal(info.input, MIXT_ZOO_CAPTIONS);
    assert_int_equal(mixt_zoo_find("net.onnx", &info), MIXT_OK);
    assert_int_equal(info.input, MIXT_ZOO_FILE);
    check_ok(mixt_zoo_find("bert_mlm", &info));
    assert_true(info.bidirectional);
    assert_int_equal(mixt_zoo_find("gtp", &info), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "did you mean gpt?"));
}

/** The help of the key `model` names every model, and no other. */
static void test_help_lists_all(void **state)
{
    (void)state;
    const mixt_config_record *key = mixt_config_key(0);
    assert_string_equal(key->name, "model");
    char list[1024], word[64];
    mixt_zoo_info info;
    int64_t count = 0, words = 1;
    snprintf(list, sizeof list, " %s,", strchr(key->help, ':') + 2);
    for (; mixt_zoo_at(count, &info); count++) {
        snprintf(word, sizeof word, " %s,", info.name);
        if (!strstr(list, word))
            fail_msg("mixt help config, key model: %s is missing in: %s", info.name, key->help);
    }
    for (const char *comma = strchr(key->help, ','); comma; comma = strchr(comma + 1, ','))
        words++;
    assert_int_equal(words, count);
}

/** Whether a text has a word; names have letters, digits and _. */
static bool has_word(const char *text, const char *word)
{
    static const char inside[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !strchr(inside, at[-1])) && (!at[length] || !strchr(inside, at[length])))
            return true;
    return false;
}

static bool has_size(const char *model, const char *size)
{
    mixt_zoo_size sizes[MIXT_ZOO_SIZES_MAX];
    for (int i = mixt_zoo_sizes(model, sizes) - 1; i >= 0; i--)
        if (!strcmp(sizes[i].name, size))
            return true;
    return false;
}

/** The help of a key net.… that names a model names all that have this size, and no other. */
static void test_help_of_sizes(void **state)
{
    (void)state;
    const mixt_config_record *key;
    mixt_zoo_info info;
    int64_t named = 0;
    for (int64_t k = 0; (key = mixt_config_key(k)); k++) {
        bool names = false;
        for (int64_t i = 0; !strncmp(key->name, "net.", 4) && mixt_zoo_at(i, &info); i++)
            names |= has_word(key->help, info.name);
        for (int64_t i = 0; names && mixt_zoo_at(i, &info); i++)
            if (has_word(key->help, info.name) != has_size(info.name, key->name + 4))
                fail_msg("mixt help config, %s: %s should %sbe named in: %s", key->name, info.name,
                         has_size(info.name, key->name + 4) ? "" : "not ", key->help);
        named += names;
    }
    assert_true(named >= 10);
}

/** Which sizes a model has, with its own values. */
static void test_sizes(void **state)
{
    static const struct {
        const char *model, *size, *fallback;
    } expected[] = {
        {"mlp", "hidden", "512, 512"},    {"mlp", "classes", ""},
        {"gpt", "layers", "6"},           {"gpt", "heads", "6"},
        {"gpt", "dropout", "0"},          {"resnet", "depth", "18"},
        {"resnet", "zero_init", "false"}, {"vgg", "norm", "none"},
    };
    (void)state;
    mixt_zoo_size sizes[MIXT_ZOO_SIZES_MAX];
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        int count = mixt_zoo_sizes(expected[i].model, sizes), at = 0;
        while (at < count && strcmp(sizes[at].name, expected[i].size))
            at++;
        if (at == count)
            fail_msg("%s has no %s", expected[i].model, expected[i].size);
        assert_string_equal(sizes[at].fallback, expected[i].fallback);
    }
    assert_int_equal(mixt_zoo_sizes("lstm", sizes), 4);
    assert_int_equal(mixt_zoo_sizes("none", sizes), 0);
    assert_int_equal(mixt_zoo_sizes(NULL, sizes), 0);
}

/** The zoo's perceptron by hand. */
static mixt_value perceptron(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc.0", mixt_flatten(b, x), .features = 16));
    return mixt_linear(b, "fc.1", x, .features = 10);
}

static void test_same_as_by_hand(void **state)
{
    const int64_t hidden[] = {16};
    mixt_step step[2];
    (void)state;
    for (int zoo = 0; zoo < 2; zoo++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
        mixt_data *data = mixt_data_new(context, "digits:", .samples = 64, .seed = 3);
        mixt_model *model = zoo ? mixt_zoo_model(context, "mlp", data, .hidden = hidden, .hidden_count = 1)
                                : mixt_model_new(context, perceptron, MIXT_LOSS_CROSS_ENTROPY);
        mixt_trainer *t = mixt_trainer_new(model, .batch = 16, .seed = 7);
        for (int i = 0; i < 4; i++)
            check_ok(mixt_trainer_step(t, data, &step[zoo]));
        mixt_close(context);
    }
    assert_true(step[0].loss == step[1].loss);
}

static void test_trains_and_writes(void **state)
{
    (void)state;
    const char *weights = temp_path("gpt.safetensors");
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = mixt_data_new(context, "random:tokens", .samples = 64, .seq = 8, .classes = 50);
    mixt_model *model = mixt_zoo_model(context, "gpt", data, .layers = 1, .width = 16, .heads = 2, .dropout = 0.1f);
    mixt_trainer *t = mixt_trainer_new(model, .batch = 4);
    check_ok(mixt_trainer_step(t, data, NULL));
    check_ok(mixt_trainer_save(t, weights));
    mixt_generator *g = mixt_generator_new(model, .weights = weights, .context = 8);
    assert_non_null(g);
    const int32_t prompt[] = {1, 2, 3};
    const mixt_sampling best = {0};
    check_ok(mixt_generator_start(g, prompt, 3));
    for (int i = 0; i < 10; i++) {
        int32_t token;
        check_ok(mixt_generator_next(g, &best, &token));
        assert_true(token >= 0 && token < 50);
    }
    mixt_close(context);
}

static void test_refusals(void **state)
{
    (void)state;
    const int64_t hidden[17] = {1};
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 64);
    const struct {
        const char *model;
        mixt_zoo_options options;
        const char *text;
    } cases[] = {
        {"mpl", MIXT_OPTIONS(mixt_zoo_options), "did you mean mlp?"},
        {"gpt", MIXT_OPTIONS(mixt_zoo_options), "needs tokens, the data has"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .layers = 3), "model mlp has no layers"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .norm = "bach"),
         "norm 'bach': expected one of auto, none, batch, layer (did you mean batch?)"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .hidden = hidden, .hidden_count = 17), "hidden: 17 numbers; at most 16"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .hidden_count = 2), "hidden: 2 numbers at NULL"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .classes = 4), "classes 4, but the data has 10"},
        {"mlp", MIXT_OPTIONS(mixt_zoo_options, .label_smoothing = 1), "label_smoothing 1: must be from 0 to below 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(MIXT_MADE(mixt_model, mixt_zoo_model_with, context, cases[i].model, data, &cases[i].options));
        if (!strstr(mixt_error_text(), cases[i].text))
            fail_msg("expected '%s', found '%s'", cases[i].text, mixt_error_text());
    }
    assert_null(mixt_zoo_model(context, "mlp", NULL));
    assert_null(mixt_zoo_model(NULL, "mlp", data));
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_help_lists_all),
        cmocka_unit_test(test_help_of_sizes),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_same_as_by_hand),
        cmocka_unit_test(test_trains_and_writes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
