/* Cells of a CSV file that have no value: refused, filled in or left out, the same in every part and from facts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"
#include "data/facts.h"

static void check_refused(const char *spec, mixt_missing missing, const char *words)
{
    mixt_data *data;
    assert_int_not_equal(mixt_data_open(spec, &data, .missing = missing), MIXT_OK);
    assert_null(data);
    if (!strstr(mixt_error_text(), words))
        fail_msg("'%s' does not say '%s'", mixt_error_text(), words);
}

/** Checks all inputs of a set of two features. */
static void check_rows(const mixt_data *data, int64_t count, const float (*rows)[2])
{
    float input[64][2];
    int32_t target[64];
    int64_t valid;
    assert_int_equal(mixt_data_describe(data)->samples, count);
    check_ok(mixt_data_read(data, 0, count, input, target, &valid));
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++)
            if (fabsf(input[i][k] - rows[i][k]) > 1e-6f)
                fail_msg("row %d, feature %d: %g, expected %g", (int)i, k, (double)input[i][k], (double)rows[i][k]);
}

#define RAW .split = "all", .normalise = MIXT_NORMALISE_NONE, .val = 0

/** Every word for nothing, in a file whose training part is all of it. */
static void cells_are_filled_or_rows_left_out(void **state)
{
    (void)state;
    const char *spec = in_folder("csv:%s/a.csv");
    mixt_data *data;
    write_text("a.csv", "x,y,class\n1,2,0\n,4,1\n3,NA,0\n5,?,1\nNaN,6,1\n\"\",N/A,0\n");
    check_ok(mixt_data_open(spec, &data, RAW, .missing = MIXT_MISSING_MEAN));
    check_rows(data, 6, (const float[][2]){{1, 2}, {3, 4}, {3, 4}, {5, 4}, {3, 6}, {3, 4}});
    assert_non_null(strstr(mixt_data_describe(data)->warnings, "6 of 12 cells are missing"));
    mixt_data_close(data);
    check_ok(mixt_data_open(spec, &data, RAW, .missing = MIXT_MISSING_ZERO));
    check_rows(data, 6, (const float[][2]){{1, 2}, {0, 4}, {3, 0}, {5, 0}, {0, 6}, {0, 0}});
    mixt_data_close(data);
    check_ok(mixt_data_open(spec, &data, RAW, .missing = MIXT_MISSING_DROP));
    check_rows(data, 1, (const float[][2]){{1, 2}});
    assert_non_null(strstr(mixt_data_describe(data)->warnings,
                           "5 of 6 rows have missing cells and are dropped (data.missing=drop)"));
    mixt_data_close(data);
    check_refused(spec, MIXT_MISSING_ERROR,
                  "line 3, column 1: '' is missing; every field must be a finite number; data.missing");
}

/** What cannot be filled in. */
static void some_are_refused_all_the_same(void **state)
{
    (void)state;
    const char *spec = in_folder("csv:%s/b.csv");
    mixt_data *data;
    write_text("b.csv", "1,NA,0\n2,NA,1\n3,NA,0\n"); // a column without a value is left out
    check_ok(mixt_data_open(spec, &data, RAW));
    assert_int_equal(mixt_data_describe(data)->input_elements, 1);
    assert_non_null(strstr(mixt_data_describe(data)->notes, "left out: column 2 (has no value)"));
    mixt_data_close(data);
    write_text("b.csv", "1,NA,0\nNA,2,1\n3,NA,0\n");
    check_refused(spec, MIXT_MISSING_DROP, "all of its 3 rows lack a cell");
    check_refused("digits:", MIXT_MISSING_ZERO, "'missing' is not for digits");
    check_refused(spec, (mixt_missing)5, "is not an allowed value");
    write_text("b.csv", "1,2,0\n2,3,\n3,inf,0\n4,5,1\n");
    check_refused(spec, MIXT_MISSING_MEAN,
                  "line 2, column 3: '' is missing; every field must be a finite number; data.missing=drop");
    check_refused(spec, MIXT_MISSING_DROP, "line 3, column 2: 'inf' is not finite");
    write_text("b.csv", "x,y,kind\n1,2,NA\n3,4,cat\n,6,dog\n7,8,dog\n"); // the first target decides what targets are
    check_ok(mixt_data_open(spec, &data, RAW, .missing = MIXT_MISSING_DROP));
    check_rows(data, 2, (const float[][2]){{3, 4}, {7, 8}});
    assert_string_equal(mixt_data_describe(data)->class_names[1], "dog");
    mixt_data_close(data);
    write_text("b.csv", "0,1,class\nNA,2,0\n3,4,1\n"); // a header of numbers stays one above a cell that is missing
    check_ok(mixt_data_open(spec, &data, RAW, .missing = MIXT_MISSING_ZERO));
    check_rows(data, 2, (const float[][2]){{0, 2}, {3, 4}});
    mixt_data_close(data);
}

/** The mean is that of the training part: of a share of the file, of the file beside, of facts. */
static void the_mean_is_the_training_parts(void **state)
{
    (void)state;
    char text[4096], *at = text;
    for (int i = 0; i < 40; i++)
        at += i % 4 ? sprintf(at, "%d,%d,%d\n", i, i * i, i % 2) : sprintf(at, "NA,%d,%d\n", i * i, i % 2);
    write_text("c.csv", text);
    mixt_data *train, *val;
    const mixt_data_options common =
        MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE, .val = 0.25, .missing = MIXT_MISSING_MEAN);
    mixt_data_options options = common;
    check_ok(mixt_data_open_with(in_folder("csv:%s/c.csv"), &options, &train));
    double sum = 0;
    int known = 0;
    for (int64_t i = 0; i < train->info.samples; i++) {
        float input[2];
        int32_t target;
        int64_t valid;
        check_ok(mixt_data_read(train, i, 1, input, &target, &valid));
        int row = (int)(sqrtf(input[1]) + 0.5f);
        sum += row % 4 ? row : 0;
        known += row % 4 != 0;
    }
    assert_int_equal(train->info.samples, 30);
    assert_true(fabs((double)train->fill[0] - sum / known) < 1e-5);
    options.split = "val";
    check_ok(mixt_data_open_with(in_folder("csv:%s/c.csv"), &options, &val));
    assert_true(val->fill[0] == train->fill[0] && val->info.samples == 10);
    mixt_data_close(val);

    mkdir(temp_path("parts"), 0700);
    write_file("parts/train.csv", text, strlen(text));
    write_text("parts/test.csv", "NA,1,0\n1000,2,1\n3,4,0\n");
    options.split = "test";
    check_ok(mixt_data_open_with(in_folder("csv:%s/parts"), &options, &val));
    check_rows(val, 3, (const float[][2]){{train->fill[0], 1}, {1000, 2}, {3, 4}});
    mixt_data_close(val);

    json_t *packed = mixt__data_facts_pack(train);
    mixt_data *facts;
    check_ok(mixt__data_facts_unpack(packed, &facts));
    options = common;
    options.split = "all";
    options.like = facts;
    check_ok(mixt_data_open_with(in_folder("csv:%s/parts/test.csv"), &options, &val));
    check_rows(val, 3, (const float[][2]){{train->fill[0], 1}, {1000, 2}, {3, 4}});
    mixt_data_close(val);
    mixt_data_close(facts);
    json_object_set_new(packed, "fill", json_pack("[s]", "five"));
    assert_int_equal(mixt__data_facts_unpack(packed, &facts), MIXT_ERROR_FORMAT);
    json_object_del(packed, "fill");
    assert_int_equal(mixt__data_facts_unpack(packed, &facts), MIXT_ERROR_FORMAT);
    json_object_del(packed, "missing"); // as an earlier version wrote them
    check_ok(mixt__data_facts_unpack(packed, &facts));
    mixt_data_close(facts);
    json_decref(packed);
    mixt_data_close(train);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(cells_are_filled_or_rows_left_out, no_leak),
        cmocka_unit_test_teardown(some_are_refused_all_the_same, no_leak),
        cmocka_unit_test_teardown(the_mean_is_the_training_parts, no_leak),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
