/* Reports: figures counted by hand, large offsets, and what is no report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <stdlib.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void test_classes(void **state)
{
    (void)state;
    mixt_report *report;
    const float outputs[5][3] = {{2, 1, 0}, {0, 3, 1}, {0, 1, 1}, {5, 1, 5}, {0, 1, 0}};
    const int32_t labels[5] = {0, 0, 1, 0, 1}; // guesses 0 1 1 0 1: of equal ones the lower
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 3, &report), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs[0], labels, 2), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs[2], labels + 2, 3), MIXT_OK);
    const mixt_report_info *r = mixt_report_describe(report);
    const int64_t confusion[9] = {2, 1, 0, 0, 2, 0, 0, 0, 0};
    assert_int_equal(r->samples, 5);
    assert_int_equal(r->classes, 3);
    assert_memory_equal(r->confusion, confusion, sizeof confusion);
    assert_true(near(r->accuracy, 0.8) && isnan(r->mae) && isnan(r->r2));
    assert_true(near(r->figures[0].precision, 1) && near(r->figures[0].recall, 2. / 3) && near(r->figures[0].f1, 0.8));
    assert_true(near(r->figures[1].precision, 2. / 3) && near(r->figures[1].recall, 1) && near(r->figures[1].f1, 0.8));
    assert_true(isnan(r->figures[2].precision) && isnan(r->figures[2].recall) && isnan(r->figures[2].f1));
    assert_true(near(r->precision, 5. / 6) && near(r->recall, 5. / 6) && near(r->f1, 0.8));
    mixt_report_free(report);
}

/** A class that is guessed but never comes up lowers precision alone. */
static void test_guessed_only(void **state)
{
    (void)state;
    mixt_report *report;
    const float outputs[2][2] = {{1, 0}, {0, 1}};
    const int32_t labels[2] = {0, 0};
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 2, &report), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs[0], labels, 2), MIXT_OK);
    const mixt_report_info *r = mixt_report_describe(report);
    assert_true(near(r->precision, 0.5) && near(r->recall, 0.5) && near(r->f1, 2. / 3));
    mixt_report_free(report);
}

static void test_values(void **state)
{
    (void)state;
    mixt_report *report;
    const float outputs[4][2] = {{1, 7}, {2, 7}, {3, 7}, {6, 7}}, targets[4][2] = {{1, 7}, {2, 7}, {3, 7}, {4, 7}};
    assert_int_equal(mixt_report_new(MIXT_TARGET_VALUES, 2, &report), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs[0], targets, 4), MIXT_OK);
    const mixt_report_info *r = mixt_report_describe(report);
    assert_int_equal(r->classes, 0);
    assert_null(r->figures);
    assert_true(near(r->mae, 2. / 8) && near(r->rmse, sqrt(4. / 8)) && isnan(r->accuracy));
    assert_true(near(r->r2, 1 - 4. / 5)); // the second target never varies: only the first counts
    mixt_report_free(report);
}

/** The variance of a million numbers around ten million: sums of squares would have lost it. */
static void test_offset(void **state)
{
    (void)state;
    mixt_report *report;
    assert_int_equal(mixt_report_new(MIXT_TARGET_VALUES, 1, &report), MIXT_OK);
    for (int i = 0; i < 1000000; i++) {
        float target = 1e7f + (float)(i % 2), output = 1e7f;
        assert_int_equal(mixt_report_add(report, &output, &target, 1), MIXT_OK);
    }
    const mixt_report_info *r = mixt_report_describe(report);
    assert_true(fabs(r->r2 - (1 - 500000. / 250000)) < 1e-6);
    assert_true(near(r->mae, 0.5));
    mixt_report_free(report);
}

static void test_many_classes(void **state)
{
    (void)state;
    mixt_report *report;
    float *outputs = calloc(MIXT_CONFUSION_MAX + 1, sizeof *outputs);
    int32_t label = MIXT_CONFUSION_MAX;
    outputs[label] = 1;
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, MIXT_CONFUSION_MAX + 1, &report), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs, &label, 1), MIXT_OK);
    assert_null(mixt_report_describe(report)->confusion);
    assert_int_equal(mixt_report_describe(report)->figures[label].right, 1);
    mixt_report_free(report);
    free(outputs);
}

static void test_refused(void **state)
{
    (void)state;
    mixt_report *report = (mixt_report *)1;
    const float outputs[2] = {1, NAN};
    const int32_t label = 2;
    assert_int_equal(mixt_report_new(MIXT_TARGET_TOKENS, 2, &report), MIXT_ERROR_UNSUPPORTED);
    assert_null(report);
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 0, &report), MIXT_ERROR_UNSUPPORTED);
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 2, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 1, &report), MIXT_OK);
    assert_int_equal(mixt_report_add(report, outputs, &label, 1), MIXT_ERROR_DATA);
    assert_int_equal(mixt_report_add(report, outputs + 1, &label, 1), MIXT_ERROR_DATA);
    assert_int_equal(mixt_report_add(NULL, outputs, &label, 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_report_add(report, NULL, &label, 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_report_describe(report)->samples, 0);
    assert_int_equal(mixt_report_describe(NULL)->samples, 0);
    mixt_report_free(report);
    mixt_report_free(NULL);
    assert_int_equal(mixt_report_of(NULL, NULL, &report), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_guessed_only), cmocka_unit_test(test_values),
        cmocka_unit_test(test_offset),  cmocka_unit_test(test_many_classes), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
