/* Bad input: each case fails with its status and a text that names what is wrong; nothing may crash on any bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"

#include <sys/stat.h>

#define BYTES(text) (text), sizeof(text) - 1

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"
#define GOOD_IMAGES "\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2abcd"
#define GOOD_LABELS "\0\0\x08\x01\0\0\0\2\0\1"

#define OPTIONS DATA_OPTIONS // of data_files.h

typedef struct file {
    const char *name, *bytes;
    size_t size;
} file;

typedef struct bad_case {
    const char *title;
    file files[2];
    const char *spec; // %s: the folder
    mixt_data_options options;
    mixt_status status;
    const char *says[3];
} bad_case;

#define STRICT(...) OPTIONS(.missing = MIXT_MISSING_ERROR, __VA_ARGS__)
#define TWENTY                                                                                                         \
    "1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n10,1\n11,0\n12,1\n13,0\n14,1\n15,0\n16,1\n17,0\n18,1\n19,0\n20,1\n"

static const bad_case cases[] = {
    {"no such kind", {{0}}, "parquet:%s/x", OPTIONS(), MIXT_ERROR_CONFIG, {"parquet", "idx:"}},
    {"nothing there, kind guessed", {{0}}, "%s/nowhere", OPTIONS(), MIXT_ERROR_FILE, {"nowhere", "no such file"}},
    {"missing csv", {{0}}, "csv:%s/none.csv", OPTIONS(), MIXT_ERROR_FILE, {"none.csv", "No such file"}},
    {"missing text", {{0}}, "text:%s/none.txt", OPTIONS(), MIXT_ERROR_FILE, {"none.txt", "No such file"}},
    {"missing idx folder", {{0}}, "idx:%s/none", OPTIONS(), MIXT_ERROR_FILE, {"none", "no such folder"}},
    {"idx folder without images", {{0}}, "idx:%s", OPTIONS(), MIXT_ERROR_FILE, {"train-images-idx3-ubyte"}},
    {"folder without train.csv", {{0}}, "csv:%s", OPTIONS(), MIXT_ERROR_FILE, {"no training file"}},
    {"folder instead of a file", {{0}}, "csv:%s/folder/", OPTIONS(), MIXT_ERROR_FILE, {"folder"}},
    {"path for digits", {{0}}, "digits:%s", OPTIONS(), MIXT_ERROR_CONFIG, {"no path"}},
    {"empty csv", {{"a.csv", BYTES("")}}, "csv:%s/a.csv", OPTIONS(), MIXT_ERROR_FORMAT, {"a.csv", "empty"}},
    {"only blank lines", {{"a.csv", BYTES("\n \n")}}, "csv:%s/a.csv", OPTIONS(), MIXT_ERROR_FORMAT, {"no line"}},
    {"only a header", {{"a.csv", BYTES("x,y\n")}}, "csv:%s/a.csv", OPTIONS(), MIXT_ERROR_FORMAT, {"header"}},
    {"one column", {{"a.csv", BYTES("1\n2\n")}}, "csv:%s/a.csv", OPTIONS(), MIXT_ERROR_DATA, {"1 column"}},
    {"nan",
     {{"a.csv", BYTES("1,0\nnan,1\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"line 2", "column 1", "'nan'"}},
    {"inf",
     {{"a.csv", BYTES("1,0\n2,inf\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 2", "column 2", "'inf'"}},
    {"too large",
     {{"a.csv", BYTES("1,0\n1e39,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"'1e39' is not finite"}},
    {"too far apart",
     {{"a.csv", BYTES("-3.4e38,0\n3.4e38,1\n3.4e38,0\n3.4e38,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.split = "all"),
     MIXT_ERROR_DATA,
     {"sample 0, element 0", "-3.4e+38 leaves FP32"}},
    {"deviation too small",
     {{IMAGES, BYTES(GOOD_IMAGES)}, {LABELS, BYTES(GOOD_LABELS)}},
     "idx:%s",
     OPTIONS(.mean = 0.5f, .std = 1e-44f, .split = "all"),
     MIXT_ERROR_DATA,
     {"too small to divide by"}},
    {"word",
     {{"a.csv", BYTES(TWENTY "2x,1\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"line 21, column 1: '2x' is not a number"}},
    {"missing value",
     {{"a.csv", BYTES("1,2,0\n1,,1\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"column 2", "missing"}},
    {"missing last",
     {{"a.csv", BYTES("1,2,0\n1,2,\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"column 3", "missing"}},
    {"short row",
     {{"a.csv", BYTES("1,2,0\n\n1,0\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 3", "2 columns", "3"}},
    {"long row",
     {{"a.csv", BYTES("1,0\n1,0,0\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 2", "3 columns"}},
    {"NUL byte", {{"a.csv", BYTES("1,0\n\0,1\n")}}, "csv:%s/a.csv", OPTIONS(), MIXT_ERROR_DATA, {"line 2"}},
    {"hexadecimal",
     {{"a.csv", BYTES(TWENTY "0x10,1\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"line 21, column 1: '0x10' is not a number"}},
    {"first row is not a header",
     {{"a.csv", BYTES("nan,nan,oops\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 1, column 3: 'oops' is not a number"}},
    {"first row with a bad target",
     {{"a.csv", BYTES("1.5,oops\n1,0\n2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 1, column 2: 'oops' is not a number"}},
    {"quote not closed",
     {{"a.csv", BYTES("\n\"x,y,c\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"a.csv: line 2, column 1: \"x has one quote"}},
    {"quote alone",
     {{"a.csv", BYTES("x,y,\"\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 1, column 3: \" has one quote"}},
    {"quote behind a quote",
     {{"a.csv", BYTES("\"x,y\"z,c\n1,0\n2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 1, column 1: \"x has one quote", "around a whole field"}},
    {"number among words",
     {{"a.csv", BYTES("1,cat\n2,dog\n3,4\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 3, column 2: '4' is a number", "before are words"}},
    {"word among numbers",
     {{"a.csv", BYTES("1,0\n2,1\n3,dog\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 3, column 2: 'dog' is not a number"}},
    {"missing class",
     {{"a.csv", BYTES("1,cat\n2,\n3,dog\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"line 2, column 2: '' is missing"}},
    {"word for nothing",
     {{"a.csv", BYTES("x,y,c\n1,2,cat\n\"NA\",2,dog\n")}},
     "csv:%s/a.csv",
     STRICT(),
     MIXT_ERROR_DATA,
     {"line 3, column 1: 'NA' is missing"}},
    {"words to regress on",
     {{"a.csv", BYTES("1,cat\n2,dog\n")}},
     "csv:%s/a.csv",
     OPTIONS(.target = MIXT_TARGET_VALUES),
     MIXT_ERROR_DATA,
     {"line 1, column 2: 'cat' is not a number"}},
    {"class that training has not",
     {{"train.csv", BYTES("1,cat\n2,dog\n")}, {"val.csv", BYTES("1,cat\n2,cow\n")}},
     "csv:%s",
     OPTIONS(.split = "val"),
     MIXT_ERROR_DATA,
     {"val.csv: line 2, column 2: 'cow' is not a class of the training part"}},
    {"header too short",
     {{"a.csv", BYTES("x,c\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"a.csv: line 2: 3 columns, but the header in line 1 has 2"}},
    {"header too long",
     {{"a.csv", BYTES("x,y,c,\n\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"a.csv: line 3: 3 columns, but the header in line 1 has 4"}},
    {"rows stated",
     {{"a.csv", BYTES("3,1,a,b\n1,0\n2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"3 rows", "has 2"}},
    {"class stated",
     {{"a.csv", BYTES("2,1,a,b\n1,0\n2,2\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"line 3", "0 to 1"}},
    {"not a class",
     {{"a.csv", BYTES("1,0\n2,0.5\n")}},
     "csv:%s/a.csv",
     OPTIONS(.target = MIXT_TARGET_CLASS),
     MIXT_ERROR_DATA,
     {"line 2", "0.5", "whole"}},
    {"negative class",
     {{"a.csv", BYTES("1,0\n2,-1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.target = MIXT_TARGET_CLASS),
     MIXT_ERROR_DATA,
     {"line 2", "-1", "out of range"}},
    {"class past the given",
     {{"a.csv", BYTES("1,0\n2,3\n")}},
     "csv:%s/a.csv",
     OPTIONS(.classes = 3),
     MIXT_ERROR_DATA,
     {"line 2", "3", "0 to 2"}},
    {"no such column",
     {{"a.csv", BYTES("x,y\n1,0\n2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.labels = "z"),
     MIXT_ERROR_CONFIG,
     {"'z'", "1 to 2"}},
    {"two columns of that name",
     {{"a.csv", BYTES("x,y,x\n1,2,0\n2,1,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.labels = "x"),
     MIXT_ERROR_CONFIG,
     {"a.csv: line 1: columns 1 and 3 are both called 'x'", "number"}},
    {"column 0",
     {{"a.csv", BYTES("1,0\n2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.labels = "0"),
     MIXT_ERROR_CONFIG,
     {"'0'", "has none"}},
    {"nothing left to train on",
     {{"a.csv", BYTES("1,0\n")}},
     "csv:%s/a.csv",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"samples none is left for training after"}},
    {"shape of other size",
     {{"a.csv", BYTES("1,2,0\n1,2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.shape = "2x2"),
     MIXT_ERROR_SHAPE,
     {"2 elements", "2x2"}},
    {"no shape",
     {{"a.csv", BYTES("1,2,0\n1,2,1\n")}},
     "csv:%s/a.csv",
     OPTIONS(.shape = "2x"),
     MIXT_ERROR_CONFIG,
     {"'2x'"}},
    {"huge shape",
     {{0}},
     "random:",
     OPTIONS(.shape = "4000000000x4000000000x4000000000"),
     MIXT_ERROR_CONFIG,
     {"too many"}},
    {"no such split", {{0}}, "digits:", OPTIONS(.split = "dev"), MIXT_ERROR_CONFIG, {"'dev'", "train, val"}},
    {"share past 1", {{0}}, "digits:", OPTIONS(.val = 1.5), MIXT_ERROR_CONFIG, {"1.5"}},
    {"mean without std", {{0}}, "digits:", OPTIONS(.mean = 0.5f), MIXT_ERROR_CONFIG, {"std"}},
    {"negative limit", {{0}}, "digits:", OPTIONS(.limit = -3), MIXT_ERROR_CONFIG, {"-3"}},
    {"no test part",
     {{"a.txt", BYTES("abcdefghij")}},
     "text:%s/a.txt",
     OPTIONS(.split = "test", .seq = 2),
     MIXT_ERROR_UNSUPPORTED,
     {"no test part"}},
    {"short text",
     {{"a.txt", BYTES("abcdefghij")}},
     "text:%s/a.txt",
     OPTIONS(.split = "all", .seq = 10),
     MIXT_ERROR_DATA,
     {"10 bytes", "seq + 1 = 11"}},
    {"empty text", {{"a.txt", BYTES("")}}, "text:%s/a.txt", OPTIONS(.seq = 1), MIXT_ERROR_FORMAT, {"empty"}},
    {"wrong magic",
     {{IMAGES, BYTES("\x89PNG\r\n")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {IMAGES, "offset 0", "89 50"}},
    {"wrong type", {{IMAGES, BYTES("\0\0\x0a\3")}}, "idx:%s", OPTIONS(), MIXT_ERROR_FORMAT, {"00 00 0a 03"}},
    {"three bytes", {{IMAGES, BYTES("\0\0\x08")}}, "idx:%s", OPTIONS(), MIXT_ERROR_FORMAT, {"3 bytes"}},
    {"too many dimensions",
     {{IMAGES, BYTES("\0\0\x08\x20")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"offset 3", "32"}},
    {"ends in the header",
     {{IMAGES, BYTES("\0\0\x08\3\0\0\0\1\0")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"offset 9", "16"}},
    {"no images",
     {{IMAGES, BYTES("\0\0\x08\3\0\0\0\0\0\0\0\1\0\0\0\1")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"offset 4", "is 0"}},
    {"dims overflow",
     {{IMAGES, BYTES("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"multiply to more"}},
    {"cut off",
     {{IMAGES, BYTES("\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2abc")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"19 bytes", "20", "cut off"}},
    {"too long",
     {{IMAGES, BYTES("\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2abcde")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"21 bytes", "longer"}},
    {"labels as images", {{IMAGES, BYTES(GOOD_LABELS)}}, "idx:%s", OPTIONS(), MIXT_ERROR_FORMAT, {"labels?"}},
    {"no labels", {{IMAGES, BYTES(GOOD_IMAGES)}}, "idx:%s", OPTIONS(), MIXT_ERROR_FILE, {"no file of labels"}},
    {"other number of labels",
     {{IMAGES, BYTES(GOOD_IMAGES)}, {LABELS, BYTES("\0\0\x08\1\0\0\0\3\0\1\2")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"3 labels", "2 images", LABELS}},
    {"images as labels",
     {{IMAGES, BYTES(GOOD_IMAGES)}, {LABELS, BYTES(GOOD_IMAGES)}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {LABELS, "expected 1"}},
    {"label out of range",
     {{IMAGES, BYTES(GOOD_IMAGES)}, {LABELS, BYTES("\0\0\x08\1\0\0\0\2\0\x0b")}},
     "idx:%s",
     OPTIONS(.classes = 10),
     MIXT_ERROR_DATA,
     {LABELS, "label 1", "class 11"}},
    {"negative label",
     {{IMAGES, BYTES(GOOD_IMAGES)}, {LABELS, BYTES("\0\0\x09\1\0\0\0\2\0\xff")}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {LABELS, "class -1"}},
    {"nan image",
     {{IMAGES, BYTES("\0\0\x0d\2\0\0\0\2\0\0\0\1\0\0\0\0\x7f\xc0\0\0")}, {LABELS, BYTES(GOOD_LABELS)}},
     "idx:%s",
     OPTIONS(),
     MIXT_ERROR_DATA,
     {"offset 16", "sample 1", "nan"}},
    {"damaged gzip",
     {{"a.csv.gz", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3garbage!garbage!")}},
     "%s/a.csv.gz",
     OPTIONS(),
     MIXT_ERROR_FORMAT,
     {"a.csv.gz", "gzip"}},
};

static void run_case(const bad_case *c)
{
    temp_folder_empty();
    for (int i = 0; i < 2; i++)
        if (c->files[i].name)
            write_file(c->files[i].name, c->files[i].bytes, c->files[i].size);
    mkdir(in_folder("%s/folder"), 0777);
    mixt_data *data = (mixt_data *)&cases;
    mixt_status status = mixt_data_open_with(in_folder(c->spec), &c->options, &data);
    const char *text = mixt_error_text();
    if (status != c->status || data)
        fail_msg("%s: got %d (%s), expected %d", c->title, status, text, c->status);
    for (int i = 0; i < 3; i++)
        if (c->says[i] && !strstr(text, c->says[i]))
            fail_msg("%s: '%s' does not say '%s'", c->title, text, c->says[i]);
    if (mixt__alloc_bytes() != 0)
        fail_msg("%s: %zu bytes are left", c->title, mixt__alloc_bytes());
}

static void test_each_case(void **state)
{
    (void)state;
    int count = (int)(sizeof cases / sizeof cases[0]);
    for (int i = 0; i < count; i++)
        run_case(&cases[i]);
    print_message("%d bad inputs\n", count);
}

/** A validation part that does not fit the training part, and what the message names. */
static const struct {
    const char *title, *train, *val;
    const char *says[4];
} part_cases[] = {
    {"target renamed",
     "a,b,c\n1,2,0\n3,4,1\n",
     "# exported\nb,a,d\n1,2,0\n",
     {"val.csv: line 2: has no column 'c'", "its target; its columns are b, a, d"}},
    {"column renamed", "a,b,c\n1,2,0\n3,4,1\n", "a;d;c\n1;2;0\n", {"val.csv: line 1: has no column 'b'", "has;"}},
    {"column missing", "a,b,c\n1,2,0\n3,4,1\n", "a,c\n1,0\n", {"val.csv: line 1: has no column 'b'", "are a, c"}},
    {"class that is none",
     "1,2,0\n3,4,1\n5,6,0\n",
     "1,2,1\n1,2,0.5\n",
     {"val.csv: line 2: class 0.5 is not a whole number", "train.csv"}},
    {"another column", "1,2,0\n3,4,1\n", "1,2,3,0\n", {"val.csv: 4 columns, but the training part has 3"}},
};

static void test_parts_must_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof part_cases / sizeof part_cases[0]; i++) {
        mixt_data *train, *val;
        temp_folder_empty();
        write_text("train.csv", part_cases[i].train);
        write_text("val.csv", part_cases[i].val);
        check_ok(mixt_data_open(in_folder("csv:%s"), &train));
        for (int like = 0; like < 2; like++) {
            mixt_data_options options = MIXT_OPTIONS(mixt_data_options, .split = "val", .like = like ? train : NULL);
            mixt_status status = mixt_data_open_with(in_folder("csv:%s"), &options, &val);
            if (status != MIXT_ERROR_DATA)
                fail_msg("%s: %s (%s)", part_cases[i].title, mixt_status_text(status), mixt_error_text());
            for (int k = 0; k < 4; k++)
                if (part_cases[i].says[k] && !strstr(mixt_error_text(), part_cases[i].says[k]))
                    fail_msg("%s: '%s' does not say '%s'", part_cases[i].title, mixt_error_text(),
                             part_cases[i].says[k]);
        }
        mixt_data_close(train);
        assert_int_equal(mixt__alloc_bytes(), 0);
    }
}

static void test_images_of_another_size(void **state)
{
    (void)state;
    temp_folder_empty();
    write_file(IMAGES, BYTES(GOOD_IMAGES));
    write_file(LABELS, BYTES(GOOD_LABELS));
    write_file("t10k-images-idx3-ubyte", BYTES("\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\3abcdef"));
    write_file("t10k-labels-idx1-ubyte", BYTES("\0\0\x08\x01\0\0\0\1\0"));
    mixt_data *train = open_ok("idx:%s", MIXT_OPTIONS(mixt_data_options, .val = -1));
    for (int like = 0; like < 2; like++)
        expect_failure("idx:%s",
                       MIXT_OPTIONS(mixt_data_options, .split = "test", .val = -1, .like = like ? train : NULL),
                       MIXT_ERROR_DATA, "t10k-images-idx3-ubyte: samples of shape [2, 3, 1], but the training part (");
    mixt_data_close(train);
    train = open_ok("idx:%s", MIXT_OPTIONS(mixt_data_options, .val = -1, .crop = 1));
    mixt_data_close(
        open_ok("idx:%s", MIXT_OPTIONS(mixt_data_options, .split = "test", .val = -1, .crop = 1, .like = train)));
    mixt_data_close(train);
}

/** Names that say the same, however they are written, and parts without names. */
static void test_parts_that_agree(void **state)
{
    (void)state;
    static const char *const others[] = {"a,b,c\n1,2,0\n", "\"a\"; b ;c\n1;2;0\n", "1,2,0\n"};
    temp_folder_empty();
    write_text("train.csv", "a,b,c\n1,2,0\n3,4,1\n");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        write_text("test.csv", others[i]);
        mixt_data_close(open_ok("csv:%s", MIXT_OPTIONS(mixt_data_options, .split = "test")));
    }
}

/** A few rows of values may look like classes: the training part decides. */
static void test_targets_are_read_as_in_training(void **state)
{
    (void)state;
    temp_folder_empty();
    write_text("train.csv", "1,2.5\n2,-1\n3,0\n4,1\n");
    write_text("test.csv", "1,0\n2,1\n3,1\n");
    mixt_data *train = open_ok("csv:%s", MIXT_OPTIONS(mixt_data_options));
    for (int like = 0; like < 2; like++) {
        mixt_data *test =
            open_ok("csv:%s", MIXT_OPTIONS(mixt_data_options, .split = "test", .like = like ? train : NULL));
        assert_int_equal(mixt_data_describe(test)->target, MIXT_TARGET_VALUES);
        mixt_data_close(test);
    }
    mixt_data_close(train);
}

/** Opens what may be broken: it must open and give samples, or fail with a text and leave nothing behind. */
static void try_open(const char *spec)
{
    mixt_data *data;
    mixt_status status = mixt_data_open(spec, &data, .split = "all", .seq = 3);
    if (status == MIXT_OK) {
        const mixt_data_info *info = mixt_data_describe(data);
        void *input = malloc((size_t)info->input_elements * 4), *target = malloc((size_t)info->target_elements * 4);
        for (int64_t i = 0; i < info->samples && i < 50; i++) {
            int64_t valid;
            assert_int_equal(mixt_data_read(data, i, 1, input, target, &valid), MIXT_OK);
            assert_int_equal(mixt_data_batch(data, 1, i, input, target), MIXT_OK);
        }
        free(input);
        free(target);
    } else {
        assert_true(mixt_error_text()[0]);
        assert_null(data);
    }
    mixt_data_close(data);
    assert_int_equal(mixt__alloc_bytes(), 0);
}

/** Every byte changed in three ways, and every length cut short. */
static void spoil(const char *name, const unsigned char *bytes, size_t size, const char *spec)
{
    unsigned char copy[512];
    static const unsigned char flips[] = {0x01, 0x80, 0xff};
    assert_true(size <= sizeof copy);
    for (size_t i = 0; i < size; i++)
        for (int f = 0; f < 3; f++) {
            memcpy(copy, bytes, size);
            copy[i] ^= flips[f];
            write_file(name, copy, size);
            try_open(spec);
        }
    for (size_t length = 0; length < size; length++) {
        write_file(name, bytes, length);
        try_open(spec);
    }
}

static size_t read_back(const char *path, unsigned char *bytes, size_t room)
{
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t size = fread(bytes, 1, room, stream);
    fclose(stream);
    return size;
}

static void test_no_byte_can_crash_it(void **state)
{
    (void)state;
    static const char csv[] = "3,2,a,b\n1.5,-2,1\n\"0.1\";4e1,0\n7,8,1\r\n";
    unsigned char packed[512];
    char spec[600];
    snprintf(spec, sizeof spec, "%s", in_folder("csv:%s/a.csv"));
    temp_folder_empty();
    spoil("a.csv", (const unsigned char *)csv, sizeof csv - 1, spec);
    write_gzip("b.csv.gz", csv, sizeof csv - 1);
    size_t size = read_back(in_folder("%s/b.csv.gz"), packed, sizeof packed);
    snprintf(spec, sizeof spec, "%s", in_folder("csv:%s/b.csv.gz"));
    spoil("b.csv.gz", packed, size, spec);
    snprintf(spec, sizeof spec, "%s", in_folder("idx:%s"));
    write_file(LABELS, BYTES(GOOD_LABELS));
    spoil(IMAGES, (const unsigned char *)GOOD_IMAGES, sizeof GOOD_IMAGES - 1, spec);
    write_file(IMAGES, BYTES(GOOD_IMAGES));
    spoil(LABELS, (const unsigned char *)GOOD_LABELS, sizeof GOOD_LABELS - 1, spec);
    snprintf(spec, sizeof spec, "%s", in_folder("text:%s/t.txt"));
    spoil("t.txt", (const unsigned char *)"some text", 9, spec);
}

static void test_null_arguments(void **state)
{
    (void)state;
    mixt_data *data;
    float buffer[784];
    int32_t target;
    int64_t valid;
    assert_int_equal(mixt_data_open_with(NULL, NULL, &data), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_open_with("digits:", NULL, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_open_with("", NULL, &data), MIXT_ERROR_FILE);
    mixt_data_close(NULL);
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 3), MIXT_OK);
    assert_int_equal(mixt_data_batch(data, 0, 0, buffer, &target), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_batch(data, 1, -1, buffer, &target), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_batch(data, 1, 0, NULL, &target), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_read(data, -1, 1, buffer, &target, &valid), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_data_batch(data, 1, INT64_MAX, buffer, &target), MIXT_OK); // any number is a batch
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_case),
        cmocka_unit_test(test_parts_must_agree),
        cmocka_unit_test(test_images_of_another_size),
        cmocka_unit_test(test_parts_that_agree),
        cmocka_unit_test(test_targets_are_read_as_in_training),
        cmocka_unit_test(test_no_byte_can_crash_it),
        cmocka_unit_test(test_null_arguments),
    };
    return cmocka_run_group_tests_name("data_bad", tests, temp_folder_setup, temp_folder_teardown);
}
