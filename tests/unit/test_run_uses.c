/* What a trained run is good for, from C: text from its language model, weights for other programs and back,
 * predictions on its data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

static const char *const gpt = "model: gpt\n"
                               "precision: fp32\n"
                               "threads: 1\n"
                               "net: {layers: 1, width: 16, heads: 2}\n"
                               "data: {kind: text, seq: 16}\n"
                               "train: {steps: 3, batch: 4, lr: 0.01}\n";

static const char *const mlp = "model: mlp\n"
                               "precision: fp32\n"
                               "threads: 1\n"
                               "net: {hidden: [16]}\n"
                               "data: {kind: digits, limit: 256}\n"
                               "train: {steps: 4, batch: 32, lr: 0.01}\n";

/** A run of a configuration and one more setting. */
static mixt_run *open_run(const char *yaml, const char *out, const char *setting)
{
    mixt_config *config;
    mixt_run *run;
    char out_setting[600], path_setting[600];
    const char *settings[] = {out_setting, setting ? setting : "seed=1", yaml == gpt ? path_setting : NULL, NULL};
    snprintf(out_setting, sizeof out_setting, "out=%s", temp_path(out));
    snprintf(path_setting, sizeof path_setting, "data.path=%s", temp_path("text.txt"));
    check_ok(mixt_config_new(&config));
    check_ok(mixt_config_parse(config, yaml, "test"));
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings);
    check_ok(mixt_run_open_config(config, &options, &run));
    mixt_config_free(config);
    return run;
}

static void train(const char *yaml, const char *out)
{
    mixt_run *run = open_run(yaml, out, NULL);
    check_ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
}

static int setup(void **state)
{
    temp_folder_setup(state);
    setenv("MIXT_CACHE", temp_path("cache"), 1);
    FILE *text = fopen(temp_path("text.txt"), "w");
    for (int i = 0; i < 200; i++)
        fprintf(text, "The mill %d stood where two rivers met.\n", i);
    fclose(text);
    train(gpt, "gpt");
    train(mlp, "mlp");
    return 0;
}

/** A text of 20 tokens after a prompt, into `text`. */
static void write_text(mixt_context *context, const char *run, char *text, size_t size)
{
    mixt_generator *generator;
    mixt_tokenizer *tokenizer;
    mixt_decoder *decoder;
    int32_t *prompt;
    int64_t count, length;
    const char *piece;
    const mixt_sampling sampling = {.temperature = 0.8, .seed = 3};
    check_ok(mixt_generator_load(context, run, NULL, &generator, &tokenizer));
    assert_string_equal(mixt_tokenizer_describe(tokenizer).kind, "bytes");
    check_ok(mixt_tokenizer_encode(tokenizer, "The mill", 8, &prompt, &count));
    check_ok(mixt_generator_start(generator, prompt, count));
    check_ok(mixt_decoder_new(tokenizer, true, &decoder));
    text[0] = 0;
    for (int i = 0; i < 20; i++) {
        int32_t token;
        check_ok(mixt_generator_next(generator, &sampling, &token));
        check_ok(mixt_decoder_put(decoder, &token, 1, &piece, &length));
        strncat(text, piece, size - strlen(text) - 1);
    }
    mixt_decoder_free(decoder);
    mixt_tokens_free(prompt);
    mixt_tokenizer_close(tokenizer);
}

static void test_generate(void **state)
{
    (void)state;
    char first[256], second[256];
    mixt_generator *generator;
    mixt_tokenizer *tokenizer;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    write_text(context, temp_path("gpt"), first, sizeof first);
    write_text(context, temp_path("gpt"), second, sizeof second);
    assert_true(strlen(first) > 0);
    assert_string_equal(first, second);
    assert_int_equal(mixt_generator_load(context, temp_path("mlp"), NULL, &generator, &tokenizer),
                     MIXT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(mixt_error_text(), "only language models"));
    assert_true(!generator && !tokenizer);
    assert_int_equal(mixt_generator_load(context, temp_path("none"), NULL, &generator, &tokenizer), MIXT_ERROR_FILE);
    assert_int_equal(mixt_generator_load(context, temp_path("gpt"), "7777", &generator, &tokenizer), MIXT_ERROR_FILE);
    assert_true(!generator && !tokenizer);
    mixt_close(context);
}

static double loss_of(mixt_run *run)
{
    mixt_evaluation found;
    check_ok(mixt_run_evaluate(run, "val", &found));
    mixt_run_close(run);
    return found.loss;
}

/** Out under other names, and in again as the beginning of another run: the same weights. */
static void test_export(void **state)
{
    (void)state;
    const char *const yamls[] = {gpt, mlp}, *const names[] = {"gpt", "mlp"};
    for (int i = 0; i < 2; i++) {
        char run_folder[512], init[4200];
        mixt_run *run;
        mixt_export_report made;
        snprintf(run_folder, sizeof run_folder, "%s", temp_path(names[i]));
        check_ok(mixt_run_export(run_folder, NULL, &made));
        assert_string_equal(made.model, names[i]);
        assert_int_equal(made.renamed, i == 0);
        assert_true(made.tensors > 0);
        char *weights;
        check_ok(mixt_run_folder_weights(run_folder, "final", &weights)); // what was exported
        assert_true(!strncmp(weights, run_folder, strlen(run_folder)) && strstr(weights, "/model.safetensors"));
        mixt_free(weights);
        assert_int_equal(mixt_run_folder_weights(run_folder, "7777", &weights), MIXT_ERROR_FILE);
        assert_null(weights);
        snprintf(init, sizeof init, "%s/config.json", made.folder);
        assert_int_equal(access(init, F_OK) == 0, i == 0);
        assert_int_equal(mixt_run_export(run_folder, NULL, NULL), MIXT_ERROR_FILE);
        assert_non_null(strstr(mixt_error_text(), "exists already"));
        const mixt_export_options again = MIXT_OPTIONS(mixt_export_options, .overwrite = true);
        check_ok(mixt_run_export(run_folder, &again, NULL));
        check_ok(mixt_run_load(run_folder, "final", &run));
        double want = loss_of(run);
        snprintf(init, sizeof init, i ? "init=%s/model.safetensors" : "init=%s", made.folder);
        mixt_free(made.folder);
        mixt_free(made.differs);
        double found = loss_of(open_run(yamls[i], "again", init));
        if (want != found)
            fail_msg("%s: loss %.17g, out and in again %.17g", names[i], want, found);
    }
}

static void test_export_refused(void **state)
{
    (void)state;
    char run[512];
    snprintf(run, sizeof run, "%s", temp_path("gpt"));
    const struct {
        mixt_export_options options;
        mixt_status status;
        const char *text;
    } cases[] = {
        {{.folder = run, .overwrite = true}, MIXT_ERROR_FILE, "is the run itself"},
        {{.folder = temp_path("more"), .vocab = 1000}, MIXT_ERROR_ARGUMENT, "1000 of them cannot be real"},
        {{.folder = temp_path("more"), .dtype = MIXT_DTYPE_INT8}, MIXT_ERROR_DTYPE, "fp32, fp16 or bf16, not int8"},
        {{.folder = temp_path("more"), .weights = "7777"}, MIXT_ERROR_FILE, "there is that of step 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_export_options options = cases[i].options;
        options.struct_size = sizeof options;
        assert_int_equal(mixt_run_export(run, &options, NULL), cases[i].status);
        if (!strstr(mixt_error_text(), cases[i].text))
            fail_msg("expected '%s', found '%s'", cases[i].text, mixt_error_text());
        assert_int_not_equal(access(temp_path("more"), F_OK), 0);
    }
}

/** A sample of the run's data has the class that a file of its numbers gets. */
static void test_predict(void **state)
{
    (void)state;
    static float sample[784], logits[10];
    int32_t label;
    int64_t valid, outputs;
    mixt_run *run;
    mixt_data *val, *again;
    mixt_guess guess;
    check_ok(mixt_run_load(temp_path("mlp"), "final", &run));
    check_ok(mixt_run_data(run, "val", &val));
    check_ok(mixt_run_data(run, "val", &again));
    assert_ptr_equal(val, again); // read once
    check_ok(mixt_trainer_outputs(mixt_run_trainer(run), &outputs));
    assert_int_equal(outputs, 10);
    int right = 0, count = 0;
    mixt_evaluation found;
    for (; mixt_data_read(val, count, 1, sample, &label, &valid) == MIXT_OK; count++) {
        check_ok(mixt_trainer_predict(mixt_run_trainer(run), sample, 1, logits));
        check_ok(mixt_classes_rank(logits, outputs, 1, &guess));
        right += guess.label == label;
    }
    check_ok(mixt_run_evaluate(run, "val", &found));
    assert_true(count > 0 && found.count == count);
    assert_true(found.accuracy * count > right - 0.5 && found.accuracy * count < right + 0.5);
    mixt_run_close(run);
}

/** A loaded run knows what its samples are like without them, and finds them when they are asked for. */
static void test_facts(void **state)
{
    (void)state;
    static float sample[784];
    static int32_t tokens[16], targets[16];
    int32_t label;
    int64_t valid;
    mixt_run *run;
    mixt_data *train, *none;
    char away[600];
    check_ok(mixt_run_load(temp_path("mlp"), "final", &run));
    const mixt_data *facts = mixt_run_facts(run);
    const mixt_data_info *known = mixt_data_describe(facts);
    assert_int_equal(mixt_data_read(facts, 0, 1, sample, &label, &valid), MIXT_ERROR_STATE);
    check_ok(mixt_run_data(run, "train", &train));
    const mixt_data_info *there = mixt_data_describe(train);
    assert_ptr_not_equal(known, there);
    assert_true(known->samples == there->samples && known->classes == there->classes);
    assert_true(known->mean[0] == there->mean[0] && known->std[0] == there->std[0]);
    assert_string_equal(known->kind, there->kind);
    mixt_run_close(run);
    assert_null(mixt_run_facts(NULL));

    snprintf(away, sizeof away, "%s", temp_path("away.txt"));
    assert_int_equal(rename(temp_path("text.txt"), away), 0);
    check_ok(mixt_run_load(temp_path("gpt"), "final", &run));
    assert_int_equal(mixt_data_describe(mixt_run_facts(run))->input_dims[0], 16);
    assert_int_equal(mixt_data_read(mixt_run_facts(run), 0, 1, tokens, targets, &valid), MIXT_ERROR_STATE);
    assert_int_equal(mixt_run_data(run, "val", &none), MIXT_ERROR_FILE);
    assert_null(none);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_ERROR_FILE); // it needs them
    assert_int_equal(rename(away, temp_path("text.txt")), 0);
    check_ok(mixt_run_data(run, "val", &none)); // back again
    mixt_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generate), cmocka_unit_test(test_export), cmocka_unit_test(test_export_refused),
        cmocka_unit_test(test_predict),  cmocka_unit_test(test_facts),
    };
    return cmocka_run_group_tests(tests, setup, temp_folder_teardown);
}
