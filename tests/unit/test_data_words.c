/* Tables as people have them: words, dates, gaps, other separators; what their columns become, in every file alike. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"
#include "data/facts.h"
#include "data/table/dates.h"
#include "data/table/schema.h"
#include "mixt/predict.h"

#define RAW .split = "all", .normalise = MIXT_NORMALISE_NONE, .val = 0
#define TWENTY(line) line line line line line line line line line line line line line line line line line line line line

static mixt_data *open_text(const char *text, const mixt_data_options *options)
{
    mixt_data *data;
    write_text("a.csv", text);
    check_ok(mixt_data_open_with(in_folder("csv:%s/a.csv"), options, &data));
    return data;
}

/** Checks the features of a row. */
static void check_row(const mixt_data *data, int64_t row, int64_t count, const double *expected)
{
    float input[256];
    float target[1];
    int64_t valid;
    assert_int_equal(mixt_data_describe(data)->arrays[0].elements, count);
    check_ok(mixt_data_read(data, row, 1, input, target, &valid));
    for (int64_t i = 0; i < count; i++)
        if (fabs((double)input[i] - expected[i]) > 1e-5)
            fail_msg("row %d, feature %d: %g, expected %g", (int)row, (int)i, (double)input[i], expected[i]);
}

static void words_are_one_hot(void **state)
{
    (void)state;
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    mixt_data *data = open_text("\xEF\xBB\xBF"
                                "size\tcolour\tkind\n1\tred\tcat\n2\t\"bl\"\"ue\"\tdog\n3\t?\tcat\n4\tred\tdog\n",
                                &raw);
    check_row(data, 0, 4, (double[]){1, 0, 0, 1}); // "", bl"ue, red
    check_row(data, 1, 4, (double[]){2, 0, 1, 0});
    check_row(data, 2, 4, (double[]){3, 1, 0, 0});
    assert_string_equal(data->schema->column[1].words[1], "bl\"ue");
    assert_non_null(strstr(data->info.notes, "1 column of words (3, one-hot)"));
    mixt_data_close(data);
}

/** A file of words without a header: no line is lost. */
static void headers_are_known_by_what_is_below(void **state)
{
    (void)state;
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    static const struct {
        const char *text;
        int64_t samples;
    } cases[] = {
        {"39,State-gov,Bachelors,Male,<=50K\n50,Private,Masters,Male,>50K\n38,Private,HS,Female,<=50K\n", 3},
        {"age,class,school,sex,income\n39,State-gov,BA,Male,<=50K\n50,Private,MA,Male,>50K\n", 2},
        {"who,kind\nann,cat\nbob,dog\nann,cat\n", 3},
        {"ann,cat\nbob,dog\nann,cat\nbob,dog\n", 4},
        {"day,x,class\n2020-01-01,1,0\n2020-01-02,2,1\n", 2},
        {"2020-01-01,1,0\n2020-01-02,2,1\n", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_data *data = open_text(cases[i].text, &raw);
        if (data->info.samples != cases[i].samples)
            fail_msg("case %zu: %lld samples", i, (long long)data->info.samples);
        mixt_data_close(data);
    }
}

static void dates_become_numbers(void **state)
{
    (void)state;
    int32_t minutes;
    assert_true(mixt__date_read("1970-01-02", 10, MIXT_DATE_YMD, &minutes) && minutes == 1440);
    assert_true(mixt__date_read("29.2.2024 14:30", 15, MIXT_DATE_DMY, &minutes) && minutes == 28486950);
    assert_true(mixt__date_read("1969-12-31T23:59:30.5Z", 22, MIXT_DATE_YMD, &minutes) && minutes == -1);
    assert_false(mixt__date_read("29.2.2023", 9, MIXT_DATE_DMY, &minutes));
    assert_false(mixt__date_read("2/29/2024", 9, MIXT_DATE_DMY, &minutes));
    assert_true(mixt__date_read("2/29/2024", 9, MIXT_DATE_MDY, &minutes));
    assert_false(mixt__date_read("2024-1/2", 8, MIXT_DATE_YMD, &minutes));
    assert_false(mixt__date_read("1.2.24", 6, MIXT_DATE_DMY, &minutes));
    assert_false(mixt__date_read("2024-01-01x", 11, MIXT_DATE_YMD, &minutes));
    float numbers[MIXT_DATE_NUMBERS];
    mixt__date_write(28486950 - 1440, 28486080 - 1440, MIXT_DATE_WEEK | MIXT_DATE_CLOCK, numbers); // a Wednesday
    assert_int_equal(mixt__date_numbers(MIXT_DATE_WEEK | MIXT_DATE_CLOCK), 10);
    assert_true(fabsf(numbers[0] - 870 / 1440.0f) < 1e-6f && numbers[3] == 1 && numbers[4] == 0);
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    mixt_data *data = open_text("day,y\n01/02/2020,0.5\n03/02/2020,1.5\nNA,2.5\n07/02/2020,0.25\n", &raw);
    assert_non_null(strstr(data->info.warnings, "its dates may be day first or month first: month first is assumed;"));
    check_row(data, 1, 9, (double[]){60, 1, 0, 0, 0, 0, 0, 0, 0}); // months of 2020: days, the week, a gap
    mixt_data_close(data);
}

static void numbers_have_several_forms(void **state)
{
    (void)state;
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    mixt_data *data = open_text("a;b;c\n1,5;1.234,5;0\n2;7,25;1\n", &raw);
    check_row(data, 0, 2, (double[]){1.5, 1234.5});
    mixt_data_close(data);
    data = open_text("a,b\n\"1,234,567\",0\n\"2,000\",1\n", &raw);
    check_row(data, 0, 1, (double[]){1234567});
    mixt_data_close(data);
    data = open_text("a,b\n\"1,234\",0\n\"2,000\",1\n", &raw); // where commas separate cells they are no points
    check_row(data, 0, 1, (double[]){1234});
    mixt_data_close(data);
    data = open_text("a;b;c;d\n1,5;1.250;1.000.500;0\n2,5;2.000;3;1\n", &raw); // nor are points beside 1,5
    check_row(data, 0, 3, (double[]){1.5, 1250, 1000500});
    mixt_data_close(data);
    data = open_text("a,b,c,d,e\n$5.50,15%,\"\xe2\x82\xac 1,200.00\",3 \xc2\xa3,0\n$6,5 %,2,4,1\n", &raw);
    check_row(data, 0, 4, (double[]){5.5, 15, 1200, 3});
    mixt_data_close(data);
    write_text("a.csv", "a;b\n1,234;0\n2,000;1\n");
    assert_int_equal(mixt_data_open_with(in_folder("csv:%s/a.csv"), &raw, &data), MIXT_ERROR_DATA);
    assert_non_null(
        strstr(mixt_error_text(), "column 1 (a): its commas may be decimal or thousands separators: write numbers"));
}

static void targets_of_a_few_rows_are_values(void **state)
{
    (void)state;
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    mixt_data *data = open_text("a,y\n1,3\n2,5\n4,9\n5,6\n7,8\n", &raw);
    assert_int_equal(mixt_data_describe(data)->target, MIXT_TARGET_VALUES);
    mixt_data_close(data);
    data = open_text("a,y\n1,0\n2,1\n4,2\n", &raw);
    assert_int_equal(mixt_data_describe(data)->target, MIXT_TARGET_CLASS);
    mixt_data_close(data);
}

static void columns_are_chosen(void **state)
{
    (void)state;
    const char *text = "id,name,x,y,z\n1,ann,5,0.5,7\n2,bob,6,1.5,8\n3,cid,7,0.25,9\n";
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, RAW, .drop = "name, z", .labels = "y");
    mixt_data *data = open_text(text, &o);
    check_row(data, 1, 1, (double[]){6});
    assert_non_null(strstr(data->info.notes, "left out: id (counts the rows); left out: name; left out: z; target: y"));
    mixt_data_close(data);
    o = MIXT_OPTIONS(mixt_data_options, RAW, .columns = "5,id", .labels = "y");
    data = open_text(text, &o);
    check_row(data, 1, 2, (double[]){2, 8});
    mixt_data_close(data);
    o.columns = "id,nmae";
    assert_int_equal(mixt_data_open_with(in_folder("csv:%s/a.csv"), &o, &data), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "no column 'nmae' for data.columns; expected a name of the header line "
                                              "(id, name, x, y, z)"));
    o = MIXT_OPTIONS(mixt_data_options, RAW, .drop = "z");
    assert_int_equal(mixt_data_open_with(in_folder("csv:%s/a.csv"), &o, &data), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "drops 'z', the target"));
}

/** Forty towns: 36 of them twice and more. */
static void write_towns(const char *name)
{
    char text[16384], *at = text + sprintf(text, "town,x,price\n");
    for (int i = 0; i < 400; i++)
        at += sprintf(at, "town%d,%d,%g\n", i < 360 ? i % 36 : 36 + i % 4, i % 50, 100000.0 + 1000 * (i % 36));
    sprintf(at, "once,1,100000\n");
    write_text(name, text);
}

/** Inputs and the target are normalised apart; other files and other parts follow the set that they are read like. */
static void a_target_is_learned_as_asked(void **state)
{
    (void)state;
    static const struct {
        mixt_normalise inputs;
        mixt_normalise_target target;
        bool normalised, learned;
        const char *note;
    } cases[] = {
        {MIXT_NORMALISE_STANDARD, MIXT_NORMALISE_TARGET_AUTO, true, true, "the loss is of (target - mean) / std"},
        {MIXT_NORMALISE_STANDARD, MIXT_NORMALISE_TARGET_NONE, true, false, "mean 40, std 19.95, learned as stored"},
        {MIXT_NORMALISE_NONE, MIXT_NORMALISE_TARGET_AUTO, false, false, NULL},
        {MIXT_NORMALISE_NONE, MIXT_NORMALISE_TARGET_STANDARD, false, true, "the loss is of (target - mean) / std"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .normalise = cases[i].inputs, .val = 0,
                                           .normalise_target = cases[i].target);
        mixt_data *data = open_text("x,y\n1,10\n2,70\n3,50\n6,30.5\n2,39.5\n", &o), *facts, *other;
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->std[0] != 1, cases[i].normalised);
        assert_int_equal(info->target_scale > 0, cases[i].learned);
        assert_true(!cases[i].learned || fabs(info->target_mean - 40) < 1e-6);
        assert_true(cases[i].note ? strstr(info->notes, cases[i].note) != NULL
                                  : !info->notes || !strstr(info->notes, "mean 40"));
        json_t *packed = mixt__data_facts_pack(data);
        check_ok(mixt__data_facts_unpack(packed, &facts));
        write_text("b.csv", "x,y\n1,10000.5\n2,20000\n");
        o.like = facts;
        check_ok(mixt_data_open_with(in_folder("csv:%s/b.csv"), &o, &other));
        assert_true(mixt_data_describe(other)->target_scale == info->target_scale);
        assert_true(mixt_data_describe(other)->target_mean == info->target_mean);
        json_decref(packed);
        mixt_data_close(other);
        mixt_data_close(facts);
        mixt_data_close(data);
    }
    mixt_data *data;
    write_text("a.csv", "x,y\n1,0\n2,1\n3,1\n4,0\n");
    assert_int_equal(
        mixt_data_open(in_folder("csv:%s/a.csv"), &data, .normalise_target = MIXT_NORMALISE_TARGET_STANDARD),
        MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "targets are classes"));
    const float inputs[] = {1, 2, 3, 4}, targets[] = {100, 300, 200, 400};
    const mixt_data_arrays arrays = MIXT_OPTIONS(mixt_data_arrays, .samples = 4, .input_rank = 1, .input_dims = {1},
                                                 .inputs = inputs, .target = MIXT_TARGET_VALUES, .targets = targets);
    for (int asked = 0; asked < 2; asked++) { // a program's own are as they are, unless it asks
        mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .val = 0);
        o.normalise_target = asked ? MIXT_NORMALISE_TARGET_STANDARD : MIXT_NORMALISE_TARGET_AUTO;
        check_ok(mixt_data_from(&arrays, &o, &data));
        assert_true(mixt_data_describe(data)->target_mean == (asked ? 250 : 0));
        mixt_data_close(data);
    }
}

/** The same columns of another file: in another order, without a target, with words that training did not know. */
static void many_words_are_numbered_alike(void **state)
{
    (void)state;
    mixt_data *train, *facts;
    write_towns("a.csv");
    check_ok(mixt_data_open(in_folder("csv:%s/a.csv"), &train, .val = 0));
    const mixt_data_info *info = mixt_data_describe(train);
    assert_int_equal(info->array_count, 3);
    assert_string_equal(info->arrays[1].name, "words");
    assert_int_equal(info->arrays[1].ids, 41); // once: unknown
    assert_true(info->target_scale > 9000 && info->target_mean > 100000);
    json_t *packed = mixt__data_facts_pack(train);
    check_ok(mixt__data_facts_unpack(packed, &facts));
    write_text("new.csv", "x,more,town\n7,oh,town3\n8,oh,nowhere\n9,oh,\n");
    mixt_inputs *inputs;
    check_ok(mixt_inputs_open(in_folder("%s/new.csv"), facts, &inputs));
    assert_int_equal(mixt_inputs_count(inputs), 3);
    assert_int_equal(mixt_inputs_line(inputs, 2), 4);
    assert_non_null(strstr(mixt_inputs_warnings(inputs), "1 cell has a word that the training part does not have; the "
                                                         "first is 'nowhere' in line 3, column 3"));
    float *samples = calloc(1, mixt_data_input_bytes(facts, 3));
    check_ok(mixt_inputs_read(inputs, 0, 3, samples));
    const int32_t *ids = (const int32_t *)(const void *)((char *)samples + mixt_data_array_at(facts, 3, 1));
    assert_true(fabsf(samples[0] * info->std[0] + info->mean[0] - 7) < 1e-4f);
    assert_true(fabsf(samples[2] * info->std[0] + info->mean[0] - 9) < 1e-4f);
    assert_string_equal(train->schema->column[0].words[ids[0] - 1], "town3");
    assert_true(ids[1] == 0 && ids[2] == 0);
    free(samples);
    mixt_inputs_close(inputs);
    write_text("new.csv", "x,city\n7,town3\n");
    assert_int_equal(mixt_inputs_open(in_folder("%s/new.csv"), facts, &inputs), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "line 1: has no column 'town'"));
    mixt_data_close(facts);
    json_t *columns = json_object_get(json_object_get(packed, "table"), "columns");
    json_array_append_new(json_object_get(json_array_get(columns, 0), "words"), json_string("a"));
    assert_int_equal(mixt__data_facts_unpack(packed, &facts), MIXT_ERROR_FORMAT); // not by the alphabet
    json_decref(packed);
    mixt_data_close(train);
}

/** Where a file is wrong is said. */
static void places_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"x,y\n1,0\n2,1,5\n", "line 3: 3 columns, expected 2"},
        {"x,w,y\n1,a,0\n2,b\xff,1\n", "line 3, column 2: byte 2 of the field is not UTF-8: save the file as UTF-8"},
        {"x,y\n", "only a header line"},
        {"x,y\n1,NA\n2,\n", "all of its 2 rows lack its target"},
        {"w,y\n?,0\nNA,1\n", "no column is left to predict from"},
    };
    mixt_data *data;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("a.csv", cases[i].text);
        assert_int_not_equal(mixt_data_open(in_folder("csv:%s/a.csv"), &data, RAW), MIXT_OK);
        if (!strstr(mixt_error_text(), cases[i].says))
            fail_msg("'%s' does not say '%s'", mixt_error_text(), cases[i].says);
    }
    const mixt_data_options raw = MIXT_OPTIONS(mixt_data_options, RAW);
    data = open_text("x,y\n" TWENTY("1,0\n") "oops,1\n", &raw);
    assert_non_null(strstr(data->info.warnings,
                           "column 1 (x): 1 cell is not a number and taken as missing; the first is "
                           "'oops' in line 22"));
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(words_are_one_hot, no_leak),
        cmocka_unit_test_teardown(headers_are_known_by_what_is_below, no_leak),
        cmocka_unit_test_teardown(dates_become_numbers, no_leak),
        cmocka_unit_test_teardown(numbers_have_several_forms, no_leak),
        cmocka_unit_test_teardown(a_target_is_learned_as_asked, no_leak),
        cmocka_unit_test_teardown(targets_of_a_few_rows_are_values, no_leak),
        cmocka_unit_test_teardown(columns_are_chosen, no_leak),
        cmocka_unit_test_teardown(many_words_are_numbered_alike, no_leak),
        cmocka_unit_test_teardown(places_are_named, no_leak),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
