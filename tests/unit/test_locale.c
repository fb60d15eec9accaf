/* Numbers are read and written alike whatever locale the program is in: here the German one, where 0.5 is 0,5. It is
 * made by localedef in the test's own folder, and the test is skipped where that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "base/globs.h"
#include "draw/canvas.h"
#include "mixt/mixt.h"

#include "config/config.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

static bool german;

static int enter_german(void **state)
{
    char command[700], text[16];
    if (temp_folder_setup(state))
        return -1;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", temp_folder);
    if (system(command) != 0 || setenv("LOCPATH", temp_folder, 1))
        return 0;
    german = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    snprintf(text, sizeof text, "%.1f", 0.5);
    german = german && !strcmp(text, "0,5");
    if (!german)
        print_message("no German locale can be made here (localedef, package locales): skipped\n");
    return 0;
}

/** A file of a run; to be freed. */
static char *text_of(const char *run, const char *file)
{
    char path[64];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", run, file);
    char *text = (char *)temp_read(temp_path(path), &size);
    assert_non_null(text);
    text[size] = 0; // there is room for it
    return text;
}

/** Losses and what else has a point in it: metrics.jsonl without what the clock decides. */
static char *rows_of(const char *run)
{
    char *text = text_of(run, "metrics.jsonl"), *to = text;
    for (char *at = text, *next; *at; at = next) {
        char *stop = strstr(at, "\"samples_s\"");
        next = strchr(at, '\n') + 1;
        assert_true(stop && stop < next);
        memmove(to, at, (size_t)(stop - at));
        to += stop - at;
    }
    *to = 0;
    return text;
}

/** Trains with a policy file, on rows of numbers, stops half way, goes on with another rate, evaluates; returns the
 *  loss. */
static double train_in(const char *locale, const char *name)
{
    char out[400], data[400], policy[400];
    assert_non_null(setlocale(LC_ALL, locale));
    snprintf(out, sizeof out, "out=%s", temp_path(name));
    snprintf(data, sizeof data, "data.path=%s", temp_path("train.csv"));
    snprintf(policy, sizeof policy, "precision=%s", temp_path("policy.yaml"));
    const char *const settings[] = {out, data, policy, NULL}, *const more[] = {"train.steps=12", "train.lr=0.0025",
                                                                               NULL};
    mixt_config *config;
    mixt_run *run;
    mixt_evaluation found;
    check_ok(mixt_config_new(&config));
    check_ok(
        mixt_config_parse(config,
                          "model: mlp\nthreads: 1\nnet: {hidden: [8], dropout: 0.125}\ndata: {kind: csv, "
                          "val_fraction: 0.25}\ntrain: {steps: 6, epochs: 0, batch: 8, lr: 0.0125, schedule: cosine, "
                          "decay_groups: \"fc*=0.25\", checkpoint_every: 3}\n",
                          "tiny"));
    check_ok(mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings), &run));
    mixt_config_free(config);
    check_ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    check_ok(mixt_run_resume(temp_path(name), &run, .settings = more, .allow = "train.lr"));
    check_ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    check_ok(mixt_run_load(temp_path(name), NULL, &run));
    check_ok(mixt_run_evaluate(run, "val", &found));
    mixt_run_close(run);
    return found.loss;
}

static void need_german(void)
{
    if (!german)
        skip();
}

static void configurations(void **state)
{
    (void)state;
    need_german();
    char *text = NULL;
    size_t size = 0;
    mixt_config *config;
    check_ok(mixt_config_new(&config));
    check_ok(mixt_config_set(config, "train.lr=0.125", "here"));
    assert_int_equal(mixt_config_set(config, "train.lr=0,125", "here"), MIXT_ERROR_CONFIG);
    FILE *stream = open_memstream(&text, &size);
    check_ok(mixt__config_print(config, stream, false));
    assert_int_equal(fclose(stream), 0);
    assert_non_null(strstr(text, "lr: 0.125\n"));
    assert_null(strstr(text, "0,"));
    free(text);
    mixt_config_free(config);
}

static void data_sets(void **state)
{
    (void)state;
    need_german();
    float input[2];
    int32_t target;
    int64_t valid;
    write_text("rows.csv", "1.5,2.2500000000000000000,0\n2.5,1e-1,1\n1.25,4,1\n");
    mixt_data *data =
        open_ok("csv:%s/rows.csv", MIXT_OPTIONS(mixt_data_options, .split = "all", .means = "0.5,0.25", .stds = "0.5"));
    check_ok(mixt_data_read(data, 0, 1, input, &target, &valid));
    assert_true(input[0] == 2 && input[1] == 4);
    mixt_data_close(data);
}

static void globs_and_policies(void **state)
{
    (void)state;
    need_german();
    char *text = NULL;
    mixt_policy *policy;
    mixt__globs globs;
    check_ok(mixt__globs_parse(&globs, "h.*=0.5,fc=1e-1", true, "groups"));
    assert_true(globs.items[0].value == 0.5 && globs.items[1].value == 0.1);
    mixt__globs_free(&globs);
    check_ok(mixt_policy_parse("default: fp16\nloss_scale: 0.75\nscale_growth: 1.5\n", "here", &policy));
    check_ok(mixt_policy_print(policy, &text));
    assert_non_null(strstr(text, "0.75"));
    assert_non_null(strstr(text, "1.5"));
    free(text);
    mixt_policy_free(policy);
}

static void charts(void **state)
{
    (void)state;
    need_german();
    const double x[] = {1.5, 2.5}, y[] = {3.5, 4.5};
    void *file = NULL;
    size_t bytes = 0;
    mixt__canvas *canvas = mixt__canvas_svg(10, 10);
    assert_non_null(canvas);
    canvas->line(canvas, x, y, 2, (mixt__stroke){"#ff0000", 1.5, 1});
    check_ok(canvas->finish(canvas, &file, &bytes));
    char *text = file;
    text[bytes - 1] = 0;
    assert_non_null(strstr(text, "x1=\"1.5\" x2=\"2.5\" y1=\"3.5\""));
    free(file);
}

/** A run in the German locale has the bits, and writes the files, of one in C's. */
static void runs(void **state)
{
    (void)state;
    need_german();
    FILE *rows = fopen(temp_path("train.csv"), "w");
    assert_non_null(rows);
    for (int i = 0; i < 64; i++)
        fprintf(rows, "%d.%d,-0.%d,%d.5\n", i, i % 10, i, i % 3);
    fclose(rows);
    write_text("policy.yaml", "default: bf16\nclip: 0.75\nrules: [{layer: \"fc.1\", forward: fp32, backward: fp32}]\n");
    double plain = train_in("C", "run-c"), here = train_in("de_DE.UTF-8", "run-d");
    assert_true(plain == here && isfinite(here));
    char *expected = rows_of("run-c"), *found = rows_of("run-d");
    assert_string_equal(expected, found);
    free(expected);
    free(found);
    size_t sizes[2];
    void *weights[] = {temp_read(temp_path("run-c/model.safetensors"), &sizes[0]),
                       temp_read(temp_path("run-d/model.safetensors"), &sizes[1])};
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(weights[0], weights[1], sizes[0]);
    free(weights[0]);
    free(weights[1]);
    static const char *const files[] = {"config.yaml", "inputs.json", "policy.yaml"};
    for (int i = 0; i < 3; i++) {
        expected = text_of("run-c", files[i]);
        found = text_of("run-d", files[i]);
        for (char *at = found; (at = strstr(at, "run-d"));)
            at[4] = 'c';
        assert_string_equal(expected, found);
        free(expected);
        free(found);
    }
}

/** The host's own locale is as it was. */
static void the_program_keeps_its_locale(void **state)
{
    (void)state;
    need_german();
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations), cmocka_unit_test(data_sets), cmocka_unit_test(globs_and_policies),
        cmocka_unit_test(charts),         cmocka_unit_test(runs),      cmocka_unit_test(the_program_keeps_its_locale),
    };
    return cmocka_run_group_tests_name("locale", tests, enter_german, temp_folder_teardown);
}
