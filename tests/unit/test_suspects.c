/* Rows of a table that do not look like the others are warned of by their numbers when it is opened: far too large, one
 * label in a row, labels that do not fit. Files as they should be, sorted ones too, are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"

#include "base/rng.h"
#include "mixt/mixt.h"

#include <math.h>

enum { ROWS = 2000, FEATURES = 6, KINDS = 5 };

typedef struct table {
    float x[ROWS][FEATURES];
    int label[ROWS];
} table;

static table t;

static double normal(mixt__rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)mixt__rng_below(rng, 1 << 20) / (1 << 20);
    return sum;
}

/** Clusters that overlap a little, in random order. */
static void fill(uint64_t seed)
{
    mixt__rng rng = mixt__rng_start(seed);
    for (int i = 0; i < ROWS; i++) {
        t.label[i] = (int)mixt__rng_below(&rng, KINDS);
        for (int k = 0; k < FEATURES; k++)
            t.x[i][k] = (float)(normal(&rng) + 2 * sin(t.label[i] * 1.3 + k * 1.7));
    }
}

/** @return the warnings of the set, until the next call */
static const char *warnings(bool no_check)
{
    static char text[8192];
    const char *path = temp_path("table.csv");
    char spec[600];
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "a,b,c,d,e,f,class\n");
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++)
            fprintf(f, "%.9g,", (double)t.x[i][k]);
        fprintf(f, "%d\n", t.label[i]);
    }
    fclose(f);
    mixt_data *data;
    snprintf(spec, sizeof spec, "csv:%s", path);
    if (mixt_data_open(spec, &data, .no_check = no_check) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    const char *said = mixt_data_describe(data)->warnings;
    snprintf(text, sizeof text, "%s", said ? said : "");
    mixt_data_close(data);
    return text;
}

static void expect(const char *words)
{
    const char *said = warnings(false);
    if (!strstr(said, words))
        fail_msg("expected \"%s\", got \"%s\"", words, said);
    assert_string_equal(warnings(true), "");
}

static void test_tables_as_they_should_be(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        fill(seed);
        assert_string_equal(warnings(false), "");
        for (int i = 0; i < ROWS; i++) // values of many sizes, as incomes are
            t.x[i][2] = expf(2 * t.x[i][2]);
        assert_string_equal(warnings(false), "");
    }
}

static int by_label(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void test_sorted_files(void **state)
{
    (void)state;
    fill(7);
    int order[ROWS];
    static table sorted;
    for (int i = 0; i < ROWS; i++)
        order[i] = t.label[i] * ROWS + i;
    qsort(order, ROWS, sizeof *order, by_label);
    for (int i = 0; i < ROWS; i++) {
        memcpy(sorted.x[i], t.x[order[i] % ROWS], sizeof *sorted.x);
        sorted.label[i] = t.label[order[i] % ROWS];
    }
    t = sorted;
    assert_string_equal(warnings(false), "");
    fill(8);
    for (int i = 0; i < ROWS; i++) // half sorted: pairs that come together
        t.label[i] = t.label[i - i % 2];
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < FEATURES; k++)
            t.x[i][k] = (float)(2 * sin(t.label[i] * 1.3 + k * 1.7)) + 0.1f * t.x[i][k];
    assert_string_equal(warnings(false), "");
}

static void test_a_sample_too_large(void **state)
{
    static const float factors[] = {1e6f, 1e30f, -1e8f};
    (void)state;
    for (int i = 0; i < 3; i++) {
        fill(11 + (uint64_t)i);
        for (int k = 0; k < FEATURES; k++)
            t.x[1234][k] = factors[i] * (fabsf(t.x[1234][k]) + 1);
        expect("sample 1234 of the file (from 0) has ");
        assert_null(strchr(warnings(false), '\n')); // told once
    }
    fill(20);
    t.x[17][3] = 4e9f;
    t.x[1999][5] = -3e7f;
    expect("sample 17 of the file (from 0) has 4e+09 in channel 3");
    assert_non_null(strstr(warnings(false), "sample 1999 of the file"));
}

static void test_one_label_in_a_row(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        fill(31 + (uint64_t)i);
        for (int row = 700; row < 828; row++)
            t.label[row] = i;
        t.label[699] = t.label[828] = 4;
        char words[100];
        snprintf(words, sizeof words, "samples 700 to 827 of the file (from 0) are all of class %d", i);
        expect(words);
    }
}

static void test_labels_that_do_not_fit(void **state)
{
    (void)state;
    for (int shift = 1; shift < KINDS; shift++) {
        int begin = 0, end = 0;
        fill(41 + (uint64_t)shift);
        for (int row = 1000; row < 1160; row++)
            t.label[row] = (t.label[row] + shift) % KINDS;
        const char *said = strstr(warnings(false), "the labels of samples ");
        assert_non_null(said);
        assert_int_equal(sscanf(said, "the labels of samples %d to %d", &begin, &end), 2);
        assert_in_range(begin, 990, 1010);
        assert_in_range(end, 1150, 1170);
    }
}

/** What nobody has disturbed. */
static void test_real_files(void **state)
{
    static const char *const sets[] = {"csv:%s/digits/digits.csv.gz", "idx:%s/mnist"};
    const char *base = getenv("MIXT_TEST_DATA");
    (void)state;
    for (int i = 0; i < 2; i++) {
        char spec[600];
        mixt_data *data;
        snprintf(spec, sizeof spec, sets[i], base && *base ? base : "../shared/data");
        if (access(strchr(spec, ':') + 1, R_OK))
            continue;
        if (mixt_data_open(spec, &data) != MIXT_OK)
            fail_msg("%s", mixt_error_text());
        const char *said = mixt_data_describe(data)->warnings;
        assert_string_equal(said ? said : "", "");
        mixt_data_close(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_as_they_should_be), cmocka_unit_test(test_sorted_files),
        cmocka_unit_test(test_a_sample_too_large),       cmocka_unit_test(test_one_label_in_a_row),
        cmocka_unit_test(test_labels_that_do_not_fit),   cmocka_unit_test(test_real_files),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
