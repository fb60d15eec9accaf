/* Tables of runs whose figures are known: pairing, means and intervals, notes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/** A run directory as training leaves it, with one row; `memory` of it is 100 bytes of weights and the rest of
 *  activations. */
static const char *make_run(const char *name, const char *precision, int seed, double loss, double samples_s,
                            int memory)
{
    char path[1200];
    const char *folder = temp_path(name);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "model: mlp\nprecision: %s\nseed: %d\ndata: {kind: digits}\n", precision, seed);
    fclose(f);
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"step\":1,\"loss\":9,\"samples_s\":%g,\"memory\":%d,\"val_loss\":%g,\"val_accuracy\":0.5", samples_s,
            memory, loss);
    fprintf(f,
            ",\"memory_by_role\":{\"masters\":60,\"copies\":40,\"gradients\":0,\"moments\":0,\"state\":0,"
            "\"activations\":%d,\"workspace\":0,\"batches\":0,\"control\":0}}\n",
            memory - 100);
    fclose(f);
    return folder;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g, not %.12g", value, wanted);
}

static mixt_table *read_table(const char *const *paths, int64_t count)
{
    mixt_table *t;
    if (mixt_table_read(paths, count, &t) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return t;
}

static void test_pairs(void **state)
{
    (void)state;
    char names[4][300];
    const char *paths[4];
    static const double losses[4] = {2, 4, 3, 5};
    for (int i = 0; i < 4; i++) {
        char name[20];
        snprintf(name, sizeof name, "pairs-%d", i);
        snprintf(names[i], sizeof names[i], "%s",
                 make_run(name, i < 2 ? "fp32" : "bf16", i % 2, losses[i], i < 2 ? 100 : 250, i < 2 ? 1000 : 600));
        paths[i] = names[i];
    }
    mixt_table *t = read_table(paths, 4);
    const mixt_table_row *row = mixt_table_row_at(t, 0);
    assert_non_null(row);
    assert_null(mixt_table_row_at(t, 1));
    assert_null(mixt_table_note(t, 0));
    const mixt_table_cell *fp32 = &row->sides[MIXT_TABLE_FP32], *mixed = &row->sides[MIXT_TABLE_MIXED];
    assert_string_equal(row->model, "mlp");
    assert_string_equal(mixed->precision, "bf16");
    assert_int_equal(fp32->runs, 2);
    near(row->speedup, 2.5);
    near(row->saved, 0.4);
    near(fp32->loss.mean, 3);
    near(fp32->loss.interval.high, 3 + mixt_stats_t_quantile(0.975, 1)); // deviation sqrt 2 of two: an error of 1
    near(mixed->loss.mean, 4);
    near(mixed->memory.weights, 100);
    near(mixed->memory.activations, 500);
    near(fp32->memory.total, 1000);
    mixt_table_free(t);
}

/** A loss that is not finite counts for nothing but itself. */
static void test_diverged(void **state)
{
    (void)state;
    char a[300], b[300];
    snprintf(a, sizeof a, "%s", make_run("div-a", "fp32", 1, 2, 100, 1000));
    snprintf(b, sizeof b, "%s", make_run("div-b", "fp16", 1, 2, 100, 1000));
    char path[1200];
    snprintf(path, sizeof path, "%s/metrics.jsonl", b);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"step\":1,\"loss\":null,\"samples_s\":50,\"memory\":10}\n", f);
    fclose(f);
    const char *const paths[] = {a, b};
    mixt_table *t = read_table(paths, 2);
    const mixt_table_row *row = mixt_table_row_at(t, 0);
    const mixt_table_cell *mixed = &row->sides[MIXT_TABLE_MIXED];
    const char *text;
    assert_int_equal(mixed->diverged, 1);
    assert_true(isnan(mixed->loss.mean) && isnan(mixed->memory.weights));
    near(mixed->memory.total, 10);
    assert_int_equal(mixt_table_print(t, MIXT_TABLE_MARKDOWN, &text), MIXT_OK);
    assert_non_null(strstr(text, "50.00 → – (1 diverged)"));
    assert_non_null(strstr(text, "0.10 → – |")); // roles of one side alone
    mixt_table_free(t);
}

static void test_refused(void **state)
{
    (void)state;
    mixt_table *t = (mixt_table *)1;
    const char *const none[] = {"/nowhere/at/all"};
    const char *text;
    assert_int_equal(mixt_table_read(none, 1, &t), MIXT_ERROR_FILE);
    assert_null(t);
    assert_int_equal(mixt_table_read(none, 0, &t), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_table_read(NULL, 1, &t), MIXT_ERROR_ARGUMENT);
    assert_null(mixt_table_row_at(NULL, 0));
    assert_null(mixt_table_note(NULL, 0));
    assert_int_equal(mixt_table_print(NULL, MIXT_TABLE_CSV, &text), MIXT_ERROR_ARGUMENT);
    const char *run = make_run("refused", "fp32", 1, 2, 100, 1000);
    t = read_table(&run, 1);
    assert_int_equal(mixt_table_print(t, (mixt_table_format)9, &text), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_table_note(t, 0), "no mixed run"));
    mixt_table_free(t);
    mixt_table_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
