/* Rows of metrics.jsonl read back: whole ones, one under way, damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <math.h>
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_epochs_from_one),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
