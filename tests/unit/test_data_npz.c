/* NPZ archives as data sets: arrays found by name, parts, stored and deflated members, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

enum { ROOM = 1 << 16, ROWS = 8 };

/** An archive in the making. */
typedef struct archive {
    unsigned char bytes[ROOM], list[4096];
    size_t size, list_size;
    int count;
} archive;

static void put(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        *(*at)++ = (unsigned char)value;
}

static size_t deflated(const void *bytes, size_t size, unsigned char *packed)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)bytes;
    stream.avail_in = (unsigned)size;
    stream.next_out = packed;
    stream.avail_out = ROOM / 2;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return ROOM / 2 - stream.avail_out;
}

/** Adds a member; `claim`: the size that the list states. */
static void add(archive *a, const char *name, const void *bytes, size_t size, bool pack, size_t claim)
{
    static unsigned char packed[ROOM / 2];
    size_t length = size, local = a->size;
    memcpy(packed, bytes, size);
    if (pack)
        length = deflated(bytes, size, packed);
    uint32_t sum = (uint32_t)crc32(crc32(0, NULL, 0), bytes, (unsigned)size);
    unsigned char *at = a->bytes + a->size, *entry = a->list + a->list_size;
    for (int list = 0; list < 2; list++) {
        unsigned char **to = list ? &entry : &at;
        put(to, list ? 0x02014b50 : 0x04034b50, 4);
        put(to, 20, list ? 4 : 2);
        put(to, 0, 2);
        put(to, pack ? 8 : 0, 2);
        put(to, 0, 4);
        put(to, sum, 4);
        put(to, length, 4);
        put(to, claim, 4);
        put(to, strlen(name), 2);
        put(to, 0, list ? 12 : 2);
        if (list)
            put(to, local, 4);
        memcpy(*to, name, strlen(name));
        *to += strlen(name);
    }
    memcpy(at, packed, length);
    a->size = (size_t)(at - a->bytes) + length;
    a->list_size = (size_t)(entry - a->list);
    a->count++;
}

/** Adds an array of version 1.0. */
static void add_array(archive *a, const char *name, const char *descr, const char *shape, const void *elements,
                      size_t size, bool pack)
{
    unsigned char bytes[128 + 4096];
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    int text =
        snprintf((char *)bytes + 10, 117, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    bytes[10 + text] = ' ';
    bytes[127] = '\n';
    memcpy(bytes + 128, elements, size);
    add(a, name, bytes, 128 + size, pack, 128 + size);
}

static void finish(archive *a, const char *name)
{
    unsigned char *at = a->bytes + a->size;
    memcpy(at, a->list, a->list_size);
    at += a->list_size;
    put(&at, 0x06054b50, 4);
    put(&at, 0, 4);
    put(&at, (uint64_t)a->count, 2);
    put(&at, (uint64_t)a->count, 2);
    put(&at, a->list_size, 4);
    put(&at, a->size, 4);
    put(&at, 0, 2);
    a->size = (size_t)(at - a->bytes);
    write_file(name, a->bytes, a->size);
}

static const uint8_t PIXELS[ROWS * 2] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int64_t CLASSES[ROWS] = {0, 1, 2, 0, 1, 2, 0, 1};
static archive a;

static void arrays_are_found_by_name(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"x", "y"}, {"images", "labels"}, {"x_train", "y_train"}, {"data", "target"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char inputs[32], targets[32];
        memset(&a, 0, sizeof a);
        snprintf(inputs, sizeof inputs, "%s.npy", pairs[i][0]);
        snprintf(targets, sizeof targets, "%s.npy", pairs[i][1]);
        add_array(&a, inputs, "|u1", "(8, 2)", PIXELS, sizeof PIXELS, i % 2);
        add_array(&a, targets, "<i8", "(8,)", CLASSES, sizeof CLASSES, i % 2 == 0);
        finish(&a, "set.npz");
        mixt_data *data =
            open_ok("%s/set.npz", MIXT_OPTIONS(mixt_data_options, .split = "all", .normalise = MIXT_NORMALISE_NONE));
        float input[2];
        int32_t target;
        int64_t valid;
        assert_string_equal(mixt_data_describe(data)->kind, "npz");
        assert_int_equal(mixt_data_describe(data)->samples, ROWS);
        assert_int_equal(mixt_data_describe(data)->classes, 3);
        check_ok(mixt_data_read(data, 5, 1, input, &target, &valid));
        assert_true(input[0] == 10 && input[1] == 11 && target == 2);
        mixt_data_close(data);
    }
}

/** As Keras publishes MNIST: x_test and y_test are a part of their own. */
static void parts_have_their_names(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    add_array(&a, "x_test.npy", "|u1", "(4, 2)", PIXELS, 8, true);
    add_array(&a, "x_train.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, true);
    add_array(&a, "y_train.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    add_array(&a, "y_test.npy", "<i8", "(4,)", CLASSES, 32, true);
    finish(&a, "set.npz");
    mixt_data *data = open_ok("npz:%s/set.npz", MIXT_OPTIONS(mixt_data_options, .split = "test"));
    assert_int_equal(mixt_data_describe(data)->samples, 4);
    assert_int_equal(mixt_data_describe(data)->classes, 3);
    mixt_data_close(data);
    data = open_ok("npz:%s/set.npz", MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.25));
    assert_int_equal(mixt_data_describe(data)->samples, 2);
    mixt_data_close(data);
}

static void labels_may_be_named(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    add_array(&a, "x.npy", "|b1", "(8, 2)", "\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1", 16, false);
    add_array(&a, "sort.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, false);
    finish(&a, "set.npz");
    mixt_data *data = open_ok("npz:%s/set.npz", MIXT_OPTIONS(mixt_data_options, .labels = "sort", .split = "all"));
    assert_int_equal(mixt_data_describe(data)->classes, 3);
    mixt_data_close(data);
    expect_failure("npz:%s/set.npz", MIXT_OPTIONS(mixt_data_options, .labels = "kind"), MIXT_ERROR_DATA,
                   "data.labels is 'kind', but what is there is x [8, 2], sort [8]");
}

/** An array of 8 rows as a file by itself. */
static void write_array(const char *name, const char *descr, const char *shape, const void *elements, size_t size)
{
    memset(&a, 0, sizeof a);
    add_array(&a, "arr_0.npy", descr, shape, elements, size, true);
    finish(&a, name);
}

/** Opens a set and looks at its sixth sample, of class 2. */
static void expect_set(const char *spec, mixt_data_options options, int64_t samples)
{
    mixt_data *data;
    float input[2];
    int32_t target;
    int64_t valid;
    options.normalise = MIXT_NORMALISE_NONE;
    data = open_ok(spec, options);
    assert_int_equal(mixt_data_describe(data)->samples, samples);
    assert_int_equal(mixt_data_describe(data)->classes, 3);
    if (samples == ROWS) {
        check_ok(mixt_data_read(data, 5, 1, input, &target, &valid));
        assert_true(input[0] == 10 && input[1] == 11 && target == 2);
    }
    mixt_data_close(data);
}

/** Where names say nothing, the array of one number a row holds the labels; among several, options choose. */
static void arrays_are_found_by_shape(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    add_array(&a, "kind.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    add_array(&a, "pics.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, true);
    finish(&a, "set.npz");
    expect_set("%s/set.npz", MIXT_OPTIONS(mixt_data_options, .split = "all"), ROWS);
    memset(&a, 0, sizeof a);
    add_array(&a, "p.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, true);
    add_array(&a, "q.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, true);
    add_array(&a, "r.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    finish(&a, "set.npz");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA,
                   "holds p [8, 2], q [8, 2], r [8]: which of them");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA,
                   "choose with data.inputs=ARRAY data.labels=ARRAY");
    expect_set("%s/set.npz", MIXT_OPTIONS(mixt_data_options, .split = "all", .inputs = "q", .labels = "r"), ROWS);
}

/** As KMNIST is published: a file each for images and labels of training and test, their arrays called arr_0. */
static void files_that_belong_together_are_found(void **state)
{
    (void)state;
    static const double ONE_HOT[ROWS * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0};
    write_array("k-train-imgs.npz", "|u1", "(8, 2)", PIXELS, sizeof PIXELS);
    write_array("k-train-labels.npz", "<i8", "(8,)", CLASSES, sizeof CLASSES);
    write_array("k-test-imgs.npz", "|u1", "(4, 2)", PIXELS, 8);
    write_array("k-test-labels.npz", "<i8", "(4, 1)", CLASSES, 32);
    write_array("other-train-labels.npz", "<i8", "(8,)", CLASSES, sizeof CLASSES);
    expect_set("%s/k-train-imgs.npz", MIXT_OPTIONS(mixt_data_options), ROWS * 9 / 10);
    expect_set("%s/k-train-imgs.npz", MIXT_OPTIONS(mixt_data_options, .split = "all"), ROWS);
    expect_set("%s/k-train-imgs.npz", MIXT_OPTIONS(mixt_data_options, .split = "test"), 4);
    write_array("alone.npz", "|u1", "(8, 2)", PIXELS, sizeof PIXELS);
    write_array("of-alone.npz", "<f8", "(8, 3)", ONE_HOT, sizeof ONE_HOT);
    expect_failure("%s/alone.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA,
                   "name their file with data.labels=FILE");
    char labels[512];
    snprintf(labels, sizeof labels, "%s/of-alone.npz", temp_folder);
    expect_set("%s/alone.npz", MIXT_OPTIONS(mixt_data_options, .split = "all", .labels = labels), ROWS);
}

static void bad_archives_are_refused(void **state)
{
    (void)state;
    write_text("set.npz", "PK\3\4 and nothing");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "no list of members");
    memset(&a, 0, sizeof a);
    add_array(&a, "x.npy", "|u1", "(800, 2)", PIXELS, sizeof PIXELS, true);
    add_array(&a, "y.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    finish(&a, "set.npz");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "shape [800, 2] needs 1728 bytes");
    memset(&a, 0, sizeof a);
    add(&a, "x.npy", "\x93NUMPY", 6, true, 2000000000); // 2 GB claimed by some bytes
    add_array(&a, "y.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    finish(&a, "set.npz");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "cannot come from");
    memset(&a, 0, sizeof a);
    add_array(&a, "x.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, false);
    add_array(&a, "y.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, false);
    a.bytes[30 + 5 + 128] ^= 1;
    finish(&a, "set.npz");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "checksum");
    memset(&a, 0, sizeof a);
    add_array(&a, "x.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, false);
    add_array(&a, "y.npy", "<i8", "(7,)", CLASSES, 56, false);
    finish(&a, "set.npz");
    expect_failure("%s/set.npz", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA, "7 labels, but");
}

/** Cut anywhere, or with a byte changed: an error or a set, never a crash. */
static void damaged_archives_never_crash(void **state)
{
    (void)state;
    memset(&a, 0, sizeof a);
    add_array(&a, "x.npy", "|u1", "(8, 2)", PIXELS, sizeof PIXELS, true);
    add_array(&a, "y.npy", "<i8", "(8,)", CLASSES, sizeof CLASSES, true);
    finish(&a, "set.npz");
    for (size_t i = 0; i < a.size; i++)
        for (int change = 0; change < 2; change++) {
            mixt_data *data = NULL;
            mixt_data_options options = MIXT_OPTIONS(mixt_data_options);
            a.bytes[i] ^= 0xff;
            write_file("bad.npz", a.bytes, change ? a.size : i + 1);
            a.bytes[i] ^= 0xff;
            if (mixt_data_open_with(in_folder("npz:%s/bad.npz"), &options, &data) != MIXT_OK)
                assert_true(strlen(mixt_error_text()) > 0);
            mixt_data_close(data);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(arrays_are_found_by_name, no_leak),
        cmocka_unit_test_teardown(parts_have_their_names, no_leak),
        cmocka_unit_test_teardown(labels_may_be_named, no_leak),
        cmocka_unit_test_teardown(arrays_are_found_by_shape, no_leak),
        cmocka_unit_test_teardown(files_that_belong_together_are_found, no_leak),
        cmocka_unit_test_teardown(bad_archives_are_refused, no_leak),
        cmocka_unit_test_teardown(damaged_archives_never_crash, no_leak),
    };
    return cmocka_run_group_tests_name("data_npz", tests, temp_folder_setup, temp_folder_teardown);
}
