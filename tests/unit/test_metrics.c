/* Rows of metrics.jsonl read back: whole ones, one under way, damaged ones. Rows of a run that goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include "run/report/metrics.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *put(const char *text)
{
    const char *path = temp_path("metrics.jsonl");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static mixt_metrics *read_back(const char *path)
{
    mixt_metrics *m;
    if (mixt_metrics_read(path, &m) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return m;
}

static void test_rows(void **state)
{
    (void)state;
    mixt_metrics *m = read_back(put("{\"step\":1,\"loss\":2.5,\"overflow_layer\":\"fc\"}\n"
                                    "{\"step\":2,\"loss\":null,\"val_loss\":1}\n"
                                    "{\"step\":4,\"loss\":1.5}\n"));
    assert_int_equal(mixt_metrics_describe(m).rows, 3);
    assert_int_equal(mixt_metrics_describe(m).left_out, 0);
    assert_string_equal(mixt_metrics_describe(m).problem, "");
    const double *loss = mixt_metrics_column(m, "loss"), *val = mixt_metrics_column(m, "val_loss");
    assert_true(mixt_metrics_column(m, "step")[2] == 4);
    assert_true(loss[0] == 2.5 && isnan(loss[1]) && loss[2] == 1.5);
    assert_true(isnan(val[0]) && val[1] == 1 && isnan(val[2]));
    assert_null(mixt_metrics_column(m, "overflow_layer"));
    assert_string_equal(mixt_metrics_name(m, 1), "loss");
    assert_null(mixt_metrics_name(m, 3));
    mixt_metrics_free(m);
}

/** A file of an earlier version counts epochs from 0. */
static void test_epochs_from_one(void **state)
{
    (void)state;
    static const char *const files[] = {
        "{\"step\":1,\"epoch\":1,\"loss\":2}\n{\"step\":2,\"epoch\":1,\"loss\":1}\n{\"step\":3,\"epoch\":2}\n",
        "{\"step\":1,\"epoch\":0,\"loss\":2}\n{\"step\":2,\"epoch\":0,\"loss\":1}\n{\"step\":3,\"epoch\":1}\n",
    };
    for (int i = 0; i < 2; i++) {
        mixt_metrics *m = read_back(put(files[i]));
        const double *epoch = mixt_metrics_column(m, "epoch");
        assert_true(epoch[0] == 1 && epoch[1] == 1 && epoch[2] == 2);
        mixt_metrics_free(m);
    }
}

/** What a run that still writes, or a disk that lost a block, leaves. */
static void test_damaged(void **state)
{
    (void)state;
    mixt_metrics *m = read_back(put("{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo\n[1]\n{\"loss\":7}\n{\"step\":3,"
                                    "\"loss\":1}\n{\"step\":4,\"loss\":0.5"));
    assert_int_equal(mixt_metrics_describe(m).rows, 2);
    assert_int_equal(mixt_metrics_describe(m).left_out, 3);
    assert_non_null(strstr(mixt_metrics_describe(m).problem, "line 2"));
    assert_true(mixt_metrics_column(m, "loss")[1] == 1);
    mixt_metrics_free(m);
}

static void test_refused(void **state)
{
    (void)state;
    mixt_metrics *m = (mixt_metrics *)1;
    assert_int_equal(mixt_metrics_read(put(""), &m), MIXT_ERROR_DATA);
    assert_null(m);
    assert_int_equal(mixt_metrics_read(put("{\"step\":1"), &m), MIXT_ERROR_DATA);
    assert_int_equal(mixt_metrics_read(temp_path("none"), &m), MIXT_ERROR_FILE);
    assert_int_equal(mixt_metrics_read(NULL, &m), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_metrics_read("x", NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_metrics_describe(NULL).rows, 0);
    assert_null(mixt_metrics_column(NULL, "loss"));
    mixt_metrics_free(NULL);
}

/** Writes a row. @return whether it says what memory is for */
static bool add_row(mixt_run *run, mixt__rows *rows, int64_t step, int64_t memory)
{
    char text[2048] = "";
    mixt_run_row row = {.step = step, .memory = memory, .energy = NAN, .val_loss = NAN, .val_accuracy = NAN};
    int64_t before = mixt__rows_length(rows);
    assert_int_equal(mixt__metrics_observe(rows, run, &(mixt_event){.kind = MIXT_EVENT_ROW, .row = &row}), MIXT_OK);
    FILE *f = fopen(rows->path, "r");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)before, SEEK_SET), 0);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    return strstr(text, "\"memory_by_role\"");
}

/** A run that goes on, and then goes back to before the row with roles, says them again; else it does not. */
static void test_roles_after_resume(void **state)
{
    (void)state;
    const char *path = temp_path("roles.jsonl");
    mixt__rows rows;
    mixt_run *run = calloc(1, sizeof *run), *resumed = calloc(1, sizeof *resumed);
    assert_true(run && resumed);
    assert_int_equal(mixt__rows_open(&rows, path, -1), MIXT_OK);
    assert_true(add_row(run, &rows, 10, 50));
    int64_t first = mixt__rows_length(&rows);
    assert_true(add_row(run, &rows, 20, 100));
    int64_t second = mixt__rows_length(&rows);
    assert_false(add_row(run, &rows, 30, 100));
    int64_t all = mixt__rows_length(&rows);
    mixt__rows_close(&rows);

    assert_int_equal(mixt__rows_open(&rows, path, all), MIXT_OK);
    assert_int_equal(mixt__metrics_observe(&rows, resumed, &(mixt_event){.kind = MIXT_EVENT_START}), MIXT_OK);
    assert_false(add_row(resumed, &rows, 40, 100));
    assert_int_equal(mixt__rows_cut(&rows, second), MIXT_OK);
    assert_false(add_row(resumed, &rows, 30, 100));
    assert_int_equal(mixt__rows_cut(&rows, first), MIXT_OK);
    assert_true(add_row(resumed, &rows, 20, 100));
    mixt__rows_close(&rows);
    free(run);
    free(resumed);
}

typedef double curve(int row);

static double falls(int row)
{
    return 2 / (1 + row / 20.0) + 0.1 * (row % 7);
}
static double rises(int row)
{
    return 1 + row / 50.0 + 0.1 * (row % 5);
}
static double scatters(int row)
{
    return 1 + 0.3 * (row * 7919 % 11);
}
static double ends_badly(int row)
{
    return row < 180 ? falls(row) : NAN;
}
static double turns(int row)
{
    return 1 + fabs(row - 80.0) / 100.0;
}
static double wavers(int row)
{
    return falls(row) + (row % 40 ? 0.01 : 0);
}

/** Rows with a training loss, and a validation every 20. */
static mixt_metrics *run_of(curve *loss, curve *held, int rows)
{
    char *text = calloc(1, (size_t)rows * 96 + 1), *at = text;
    for (int i = 1; i <= rows; i++) {
        double l = loss(i);
        at +=
            isfinite(l) ? sprintf(at, "{\"step\":%d,\"loss\":%g", i, l) : sprintf(at, "{\"step\":%d,\"loss\":null", i);
        at +=
            held && i % 20 == 0 ? sprintf(at, ",\"val_loss\":%g,\"val_accuracy\":0.5}\n", held(i)) : sprintf(at, "}\n");
    }
    mixt_metrics *m = read_back(put(text));
    free(text);
    return m;
}

static void test_outcomes(void **state)
{
    (void)state;
    const struct {
        curve *loss, *held;
        int rows;
        mixt_outcome outcome;
        const char *says;
    } cases[] = {
        {falls, NULL, 200, MIXT_OUTCOME_LEARNED, "the training loss fell from"},
        {falls, wavers, 200, MIXT_OUTCOME_LEARNED, "; validation loss 0."},
        {falls, wavers, 200, MIXT_OUTCOME_LEARNED, ", accuracy 50%"},
        {rises, NULL, 200, MIXT_OUTCOME_DIVERGED, "diverged: the training loss rose from"},
        {ends_badly, NULL, 200, MIXT_OUTCOME_DIVERGED, "not finite"},
        {scatters, NULL, 200, MIXT_OUTCOME_UNDECIDED, "undecided"},
        {falls, NULL, 19, MIXT_OUTCOME_UNDECIDED, "too few rows"},
        {falls, turns, 200, MIXT_OUTCOME_OVERFITTING,
         "overfitting since step 80: the validation loss rose from 1 to 2.2"},
        {rises, turns, 200, MIXT_OUTCOME_DIVERGED, "diverged"},
        {falls, turns, 110, MIXT_OUTCOME_LEARNED, "fell"}, // one validation above the best is none
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_metrics *m = run_of(cases[i].loss, cases[i].held, cases[i].rows);
        mixt_metrics_outcome o = mixt_metrics_judge(m);
        if (o.outcome != cases[i].outcome || !strstr(o.text, cases[i].says))
            fail_msg("case %zu: %d, '%s'", i, (int)o.outcome, o.text);
        mixt_metrics_free(m);
    }
    assert_int_equal(mixt_metrics_judge(NULL).outcome, MIXT_OUTCOME_UNDECIDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_epochs_from_one),    cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_roles_after_resume), cmocka_unit_test(test_outcomes),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
