/* NumPy files as data sets: each element type, labels and values, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"

#include <math.h>

static void check_open(const char *labels, mixt_data_options options, mixt_data **data)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", temp_folder, labels);
    options.labels = path;
    options.split = "all";
    if (mixt_data_open_with(in_folder("%s/x.npy"), &options, data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static void test_element_types(void **state)
{
    (void)state;
    static const float singles[] = {1, 0, 3, 2};
    static const double doubles[] = {1, 0, 3, 2};
    static const uint16_t halves[] = {0x3c00, 0, 0x4200, 0x4000};
    static const int8_t tiny[] = {1, 0, 3, 2};
    static const int32_t integers[] = {1, 0, 3, 2};
    static const int64_t large[] = {1, 0, 3, 2};
    static const int16_t shorts[] = {1, 0, 3, 2};
    static const uint32_t positive[] = {1, 0, 3, 2};
    const struct {
        const char *descr;
        const void *elements;
        size_t size;
    } types[] = {{"<f4", singles, sizeof singles},  {"<f8", doubles, sizeof doubles},   {"<f2", halves, sizeof halves},
                 {"|i1", tiny, sizeof tiny},        {"<i4", integers, sizeof integers}, {"<i8", large, sizeof large},
                 {"|u1", tiny, sizeof tiny},        {"<i2", shorts, sizeof shorts},     {"<u2", shorts, sizeof shorts},
                 {"<u4", positive, sizeof positive}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        write_npy("x.npy", types[i].descr, "(2, 1, 2)", types[i].elements, types[i].size);
        write_npy("z.npy", types[i].descr, "(2,)", types[i].elements, types[i].size / 2);
        mixt_data *data;
        float input[4];
        int32_t target[2];
        int64_t valid;
        check_open("z.npy", MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE), &data);
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->input_rank, 3); // (1, 2) is an image with one channel
        assert_int_equal(info->input_dims[0] * 100 + info->input_dims[1] * 10 + info->input_dims[2], 121);
        assert_int_equal(info->classes, 2);
        assert_int_equal(mixt_data_read(data, 0, 2, input, target, &valid), MIXT_OK);
        assert_memory_equal(input, singles, sizeof singles);
        assert_int_equal(target[0] * 10 + target[1], 10);
        mixt_data_close(data);
    }
    assert_int_equal(mixt__alloc_bytes(), 0);
}

static void test_values(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, 4}, y[] = {0.5f, 1, -1, 7};
    mixt_data *data;
    float input[4], target[4];
    int64_t valid;
    write_npy("x.npy", "<f4", "(2, 2)", x, sizeof x);
    write_npy("y.npy", "<f4", "(2, 2)", y, sizeof y);
    check_open("y.npy", MIXT_OPTIONS(mixt_data_options), &data);
    assert_int_equal(mixt_data_describe(data)->target, MIXT_TARGET_VALUES);
    assert_int_equal(mixt_data_describe(data)->target_elements, 2);
    assert_int_equal(mixt_data_read(data, 0, 2, input, target, &valid), MIXT_OK);
    assert_memory_equal(target, y, sizeof y);
    assert_float_equal(input[0], -1, 1e-6);
    mixt_data_close(data);
    assert_int_equal(mixt__alloc_bytes(), 0);
}

static void check_bad(mixt_data_options options, mixt_status expected, const char *says, const char *also)
{
    mixt_data *data;
    options.split = "all";
    mixt_status status = mixt_data_open_with(in_folder("npy:%s/x.npy"), &options, &data);
    if (status != expected || !strstr(mixt_error_text(), says) || !strstr(mixt_error_text(), also))
        fail_msg("got %d, '%s'; expected %d, '%s', '%s'", status, mixt_error_text(), expected, says, also);
    assert_null(data);
    assert_int_equal(mixt__alloc_bytes(), 0);
}

static void test_bad_arrays(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, NAN}, labels[] = {0, 1.5f}, minus[] = {0, -1}, good[] = {0, 1};
    static const float two[] = {0, 1, 1, 1};
    char path[600];
    snprintf(path, sizeof path, "%s/y.npy", temp_folder);
    const mixt_data_options y = MIXT_OPTIONS(mixt_data_options, .labels = path);
    mixt_data_options classes = y;
    classes.target = MIXT_TARGET_CLASS;
    write_npy("y.npy", "<f4", "(2,)", good, sizeof good);
    unlink(in_folder("%s/x.npy"));
    check_bad(y, MIXT_ERROR_FILE, "x.npy", "No such file");
    write_text("x.npy", "not numpy at all");
    check_bad(y, MIXT_ERROR_FORMAT, "x.npy", "NUMPY");
    write_npy("x.npy", "<f4", "(2, 2)", x, 12);
    check_bad(y, MIXT_ERROR_FORMAT, "x.npy", "12");
    write_npy("x.npy", "<f4", "(2, 2)", x, sizeof x);
    check_bad(y, MIXT_ERROR_DATA, "offset 140", "sample 1");
    write_npy("x.npy", "<f4", "(3,)", x, 12);
    check_bad(y, MIXT_ERROR_DATA, "[3]", "2 to");
    write_npy("x.npy", "<f4", "(0, 2)", x, 0);
    check_bad(y, MIXT_ERROR_DATA, "[0, 2]", "no elements");
    write_npy("x.npy", "<f4", "(3, 1)", x, 12);
    check_bad(y, MIXT_ERROR_DATA, "2 labels", "3 samples");
    check_bad(MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA, "y.npy: 2 labels", "3 samples"); // found by its name
    write_npy("x.npy", "<f4", "(2, 1)", x, 8);
    check_bad(MIXT_OPTIONS(mixt_data_options, .labels = temp_folder), MIXT_ERROR_DATA, temp_folder,
              "what is there is x.npy [2, 1], y.npy [2]");
    write_npy("y.npy", "<f4", "(2,)", labels, sizeof labels);
    check_bad(classes, MIXT_ERROR_DATA, "label 1", "1.5");
    write_npy("y.npy", "<f4", "(2,)", minus, sizeof minus);
    check_bad(classes, MIXT_ERROR_DATA, "label 1", "-1");
    write_npy("y.npy", "<f4", "(2, 2)", two, sizeof two);
    check_bad(classes, MIXT_ERROR_DATA, "2 numbers", "one class");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_element_types),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_bad_arrays),
    };
    return cmocka_run_group_tests_name("data_npy", tests, temp_folder_setup, temp_folder_teardown);
}
