/* What a run says of itself before it trains: its summary, the notes that tell it, and warnings, as a program in C
 * hears them; and the same of a data set alone.
 */
#include "../support/temp_folder.h"
#include "mixt/mixt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const tiny = "model: mlp\n"
                                "precision: bf16\n"
                                "threads: 1\n"
                                "net: {hidden: [16]}\n"
                                "data: {kind: digits, limit: 64}\n"
                                "train: {epochs: 1, batch: 32}\n";

typedef struct heard {
    int notes, warnings; // before START
    bool started;
    char last[1024]; // warning
} heard;

static mixt_status listen(void *user, mixt_run *run, const mixt_event *event)
{
    heard *h = user;
    (void)run;
    h->started = h->started || event->kind == MIXT_EVENT_START;
    if (event->kind != MIXT_EVENT_NOTE || h->started)
        return MIXT_OK;
    h->notes += !event->warning;
    h->warnings += event->warning;
    if (event->warning)
        snprintf(h->last, sizeof h->last, "%s", event->text);
    return MIXT_OK;
}

static const char *write_file(const char *name, const char *text)
{
    FILE *file = fopen(temp_path(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return temp_path(name);
}

static mixt_run *open_run(const char *out, heard *h, const char *setting)
{
    char folder[1200];
    mixt_run *run;
    snprintf(folder, sizeof folder, "out=%s", temp_path(out));
    const char *const settings[] = {folder, setting, NULL};
    assert_int_equal(
        mixt_run_open(write_file("tiny.yaml", tiny), &run, .settings = settings, .observer = listen, .user = h),
        MIXT_OK);
    return run;
}

static void test_facts(void **state)
{
    static const char *const words[MIXT_SUMMARY_LINES] = {"data ", "input ", "model ", "formats ", "memory "};
    heard h = {0};
    mixt_summary s;
    (void)state;
    mixt_run *run = open_run("facts", &h, "train.freeze=fc.0");
    assert_int_equal(mixt_run_summary(run, &s), MIXT_OK);
    assert_int_equal(s.train->samples, 64);
    assert_int_equal(s.val->classes, 10);
    assert_int_equal(s.loss, MIXT_LOSS_CROSS_ENTROPY);
    assert_int_equal(s.parameters, 784 * 16 + 16 + 16 * 10 + 10);
    assert_int_equal(s.frozen, 784 * 16 + 16);
    assert_true(s.share[MIXT_DTYPE_BF16] > 0.999 && s.share[MIXT_DTYPE_BF16] < 1.001);
    assert_true(s.loss_scale == 0 && !s.scale_moves);
    assert_string_equal(s.policy, "bf16");
    assert_true(s.memory.total > 0 && s.memory.allocated == 0);
    const mixt_run_memory *m = &s.run_memory;
    assert_int_equal(m->step.host + m->step.device, s.memory.total);
    assert_true(m->validation.host > 0 && m->data.host > 0 && !m->allocated.host);
    assert_true(m->total.host + m->total.device > s.memory.total + m->validation.host + m->data.host);
    for (int i = 0; i < MIXT_SUMMARY_LINES; i++)
        assert_int_equal(strncmp(s.lines[i], words[i], strlen(words[i])), 0);
    assert_int_equal(h.notes, 0); // only training tells them
    assert_int_equal(mixt_run_summary(NULL, &s), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_run_summary(run, NULL), MIXT_ERROR_ARGUMENT);
    mixt_run_close(run);
}

static void test_heard(void **state)
{
    heard calm = {0}, odd = {0};
    (void)state;
    mixt_run *run = open_run("calm", &calm, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(calm.notes, MIXT_SUMMARY_LINES);
    assert_int_equal(calm.warnings, 0);
    mixt_summary loaded;
    assert_int_equal(mixt_run_load(temp_path("calm"), "final", &run), MIXT_OK);
    assert_int_equal(mixt_run_summary(run, &loaded), MIXT_OK); // opens the data that loading left out
    assert_int_equal(loaded.train->samples, 64);
    mixt_run_close(run);
    assert_int_equal(mixt_run_summary(run, &loaded), MIXT_ERROR_STATE);
    run = open_run("odd", &odd, "train.warmup=3");
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(odd.warnings, 1);
    assert_non_null(strstr(odd.last, "train.warmup=3"));
}

static void test_data(void **state)
{
    char text[1024] = "", spec[1200];
    mixt_data *data;
    (void)state;
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%s\n", i, i == 20 ? "-3.5" : i % 2 ? "1" : "0");
    snprintf(spec, sizeof spec, "csv:%s", write_file("odd.csv", text));
    assert_int_equal(mixt_data_open(spec, &data), MIXT_OK);
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->target, MIXT_TARGET_VALUES);
    assert_non_null(strstr(info->warnings, "line 21: target -3.5 is not a class"));
    assert_true(info->target_largest == 3.5);
    assert_true(info->target_square > (15 + 3.5 * 3.5) / 30 - 1e-6 &&
                info->target_square < (15 + 3.5 * 3.5) / 30 + 1e-6);
    mixt_data_close(data);
    assert_int_equal(mixt_data_open(spec, &data, .target = MIXT_TARGET_VALUES), MIXT_OK);
    assert_null(mixt_data_describe(data)->warnings);
    mixt_data_close(data);
    assert_int_equal(mixt_data_open(spec, &data, .target = MIXT_TARGET_CLASS), MIXT_ERROR_DATA);
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 8, .target = MIXT_TARGET_VALUES), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 8, .target = MIXT_TARGET_CLASS), MIXT_OK);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_heard),
        cmocka_unit_test(test_data),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
