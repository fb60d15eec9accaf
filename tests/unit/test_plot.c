/* Charts: curves, bands, round ticks, SVG and PNG, and files that come whole or not at all. */
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
#include <zlib.h>

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

static uint32_t big(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/** Reads a PNG of mixt's own kind: one IDAT, no filters. @return its pixels, 3 bytes each, to be freed. */
static unsigned char *pixels_of(const char *path, uint32_t *width, uint32_t *height)
{
    size_t bytes;
    unsigned char *file = temp_read(path, &bytes);
    assert_non_null(file);
    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    *width = big(file + 16);
    *height = big(file + 20);
    size_t at = 8;
    for (; memcmp(file + at + 4, "IDAT", 4) != 0; at += 12 + big(file + at))
        assert_int_equal(big(file + at + 8 + big(file + at)), crc32(0, file + at + 4, big(file + at) + 4));
    uLong size = (uLong)*height * (3ul * *width + 1);
    unsigned char *rows = malloc(size);
    assert_int_equal(uncompress(rows, &size, file + at + 8, big(file + at)), Z_OK);
    assert_int_equal(size, (uLong)*height * (3ul * *width + 1));
    for (uint32_t y = 0; y < *height; y++) {
        assert_int_equal(rows[y * (3ul * *width + 1)], 0);
        memmove(rows + 3ul * y * *width, rows + y * (3ul * *width + 1) + 1, 3ul * *width);
    }
    at += 12 + big(file + at);
    assert_memory_equal(file + at + 4, "IEND", 4);
    assert_int_equal(bytes, at + 12);
    free(file);
    return rows;
}

/** Pixels of (nearly) this colour within a part of the picture. */
static int coloured(const unsigned char *rgb, uint32_t width, uint32_t from_x, uint32_t to_x, uint32_t height, int red,
                    int green, int blue)
{
    int found = 0;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = from_x; x < to_x; x++) {
            const unsigned char *at = rgb + 3ul * (y * width + x);
            found += abs(at[0] - red) < 8 && abs(at[1] - green) < 8 && abs(at[2] - blue) < 8;
        }
    return found;
}

/** A falling line is where it belongs, in its colour, and the name beside it takes ink. */
static void test_png(void **state)
{
    (void)state;
    const double y[POINTS] = {4, 3, 2, 1, 0};
    const mixt_curve curve = {.name = "run \xc3\xa4 7", .x = x, .y = y, .count = POINTS};
    const mixt_plot plot = {.title = "T", .curves = &curve, .curve_count = 1};
    uint32_t width, height;
    assert_int_equal(mixt_plot_write(&plot, temp_path("chart.png"), true), MIXT_OK);
    unsigned char *rgb = pixels_of(temp_path("chart.png"), &width, &height);
    assert_true(width > 1200 && width < 1800 && height == 720);
    assert_true(coloured(rgb, width, 128, 400, height / 2, 0x1f, 0x6f, 0xb2) > 200);
    assert_int_equal(coloured(rgb, width, 128, 400, 80, 0x1f, 0x6f, 0xb2), 0);
    assert_int_equal(coloured(rgb, width, 1000, 1300, height / 2, 0x1f, 0x6f, 0xb2), 0);
    assert_true(coloured(rgb, width, 1364, width, height, 0x22, 0x22, 0x22) > 40);
    assert_int_equal(coloured(rgb, width, width - 8, width, height, 255, 255, 255), 8 * (int)height);
    free(rgb);
}

/** Of a million points the file holds what can be seen: also the one that is far above its neighbours. */
static void test_many_points(void **state)
{
    (void)state;
    enum { MANY = 1000000 };
    double *many = malloc(2 * MANY * sizeof *many);
    for (int i = 0; i < MANY; i++) {
        many[i] = i;
        many[MANY + i] = i == 500000 ? 1000 : i % 7;
    }
    const mixt_curve curve = {.name = "a", .x = many, .y = many + MANY, .count = MANY};
    char *text = drawn(&(mixt_plot){.curves = &curve, .curve_count = 1});
    assert_true(strlen(text) < 60000);
    char *points = strstr(strstr(text, "<polyline"), "points=\"") + 8;
    double highest = INFINITY;
    for (char *at = points; *at != '"' && (at = strchr(at, ',')); at = strchr(at, ' ') + 1)
        highest = fmin(highest, strtod(at + 1, NULL));
    assert_true(highest < 60);
    free(text);
    free(many);
}

static void test_smooth(void **state)
{
    (void)state;
    const double y[6] = {3, 0, 6, NAN, 3, 9}, expected[6] = {1.5, 3, 3, NAN, 6, 6};
    double smooth[6];
    mixt_curve_smooth(y, 6, 3, smooth);
    for (int i = 0; i < 6; i++)
        assert_true(smooth[i] == expected[i] || (isnan(smooth[i]) && isnan(expected[i])));
    mixt_curve_smooth(y, 6, 1, smooth);
    assert_memory_equal(smooth, y, 3 * sizeof *y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks),       cmocka_unit_test(test_curves), cmocka_unit_test(test_png),
        cmocka_unit_test(test_many_points), cmocka_unit_test(test_smooth), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
