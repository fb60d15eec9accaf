/* Charts: curves, bands, round ticks, and files that come whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 5 };

static const double x[POINTS] = {0, 100, 200, 300, 400};

static char *drawn(const mixt_plot *plot)
{
    size_t bytes;
    const char *path = temp_path("chart.svg");
    if (mixt_plot_write(plot, path, true) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    char *text = (char *)temp_read(path, &bytes);
    assert_non_null(text);
    text[bytes] = 0;
    return text;
}

static int count(const char *text, const char *word)
{
    int found = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        found++;
    return found;
}

/** Ticks of the y axis between two heights of a curve: at least 3, all round. */
static void expect_round_ticks(double from, double to, bool log_y)
{
    double y[POINTS];
    int ticks = 0;
    for (int i = 0; i < POINTS; i++)
        y[i] = from + (to - from) * i / (POINTS - 1);
    const mixt_curve curve = {.name = "a", .x = x, .y = y, .count = POINTS};
    char *text = drawn(&(mixt_plot){.curves = &curve, .curve_count = 1, .log_y = log_y});
    for (char *at = text; (at = strstr(at, "text-anchor=\"end\"")); ticks++) {
        at = strchr(at, '>') + 1;
        double value = strtod(at, NULL);
        char two_digits[32];
        snprintf(two_digits, sizeof two_digits, "%.2g", value);
        if (fabs(strtod(two_digits, NULL) - value) > 1e-12 * fabs(value))
            fail_msg("%g to %g: a tick at %.17g", from, to, value);
    }
    if (ticks < 3 || ticks > 10)
        fail_msg("%g to %g%s: %d ticks", from, to, log_y ? ", logarithmic" : "", ticks);
    free(text);
}

static void test_ticks(void **state)
{
    (void)state;
    expect_round_ticks(0, 1, false);
    expect_round_ticks(-3.3, 4.1, false);
    expect_round_ticks(0.0013, 0.0027, false);
    expect_round_ticks(1.7, 2.4, true);
    expect_round_ticks(2.3, 0.35, true);
    expect_round_ticks(0.0123, 2.3, true);
    expect_round_ticks(1e-5, 3, true);
    expect_round_ticks(1e-30, 1e6, true);
}

/** Equal curves: one is wider than the other, and bands have edges. */
static void test_curves(void **state)
{
    (void)state;
    const double y[POINTS] = {2, 1, 0.5, NAN, 0.25}, low[POINTS] = {1.8, 0.9, 0.4, NAN, 0.2};
    const mixt_curve curves[2] = {{.name = "a&b", .x = x, .y = y, .low = low, .high = y, .count = POINTS},
                                  {.name = "c", .x = x, .y = y, .count = POINTS}};
    char *text = drawn(&(mixt_plot){.title = "<t>", .curves = curves, .curve_count = 2, .log_y = true});
    assert_int_equal(count(text, "<polyline"), 2);
    assert_int_equal(count(text, "<polygon"), 1);
    assert_int_equal(count(text, "nan"), 0);
    assert_non_null(strstr(text, ">a&amp;b</text>"));
    assert_non_null(strstr(text, ">&lt;t>"));
    double first = strtod(strstr(strstr(text, "<polyline"), "stroke-width=\"") + 14, NULL);
    char *second = strstr(strstr(text, "<polyline") + 1, "<polyline");
    assert_true(first > 2 * strtod(strstr(second, "stroke-width=\"") + 14, NULL));
    free(text);
}

static void test_refused(void **state)
{
    (void)state;
    const double y[POINTS] = {1, 2, 3, 4, 5}, below[POINTS] = {0};
    mixt_curve curve = {.name = "a", .x = x, .y = y, .count = POINTS};
    mixt_plot plot = {.curves = &curve, .curve_count = 1};
    temp_folder_empty();
    assert_int_equal(mixt_plot_check(temp_path("new.svg"), false), MIXT_OK);
    assert_int_equal(temp_folder_files(0), 0);
    assert_int_equal(mixt_plot_write(&plot, temp_path("new.svg"), false), MIXT_OK);
    assert_int_equal(mixt_plot_write(&plot, temp_path("new.svg"), false), MIXT_ERROR_FILE);
    assert_int_equal(mixt_plot_check(temp_path("new.svg"), false), MIXT_ERROR_FILE);
    assert_int_equal(mixt_plot_check(temp_path("none/new.svg"), false), MIXT_ERROR_FILE);
    plot.curve_count = MIXT_CURVES_MAX + 1;
    assert_int_equal(mixt_plot_write(&plot, temp_path("b.svg"), false), MIXT_ERROR_ARGUMENT);
    plot = (mixt_plot){.curves = &curve, .curve_count = 1, .log_y = true};
    curve.y = below;
    assert_int_equal(mixt_plot_write(&plot, temp_path("b.svg"), false), MIXT_ERROR_DATA);
    curve.y = NULL;
    assert_int_equal(mixt_plot_write(&plot, temp_path("b.svg"), false), MIXT_ERROR_ARGUMENT);
    assert_int_equal(temp_folder_files(0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
