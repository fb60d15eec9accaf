/* Data sets against hand-made files: every kind's samples, parts, order of epochs, and real MNIST where it is there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"
#include "base/threads.h"

#include <sys/wait.h>

static void test_order_is_a_permutation(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 1000, 4096, 4097, 60000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            int64_t n = sizes[s];
            unsigned char *seen = calloc(1, (size_t)n);
            for (int64_t i = 0; i < n; i++) {
                int64_t at = mixt__order_at(mixt__rng_key(seed, 1, 2), n, i);
                assert_in_range(at, 0, n - 1);
                assert_int_equal(seen[at], 0);
                seen[at] = 1;
            }
            free(seen);
        }
    // far beyond memory it still maps into range, both ways round
    int64_t huge = (int64_t)1 << 60;
    assert_true(mixt__order_at(5, huge + 3, huge) < huge + 3);
}

/** Each of the 24 orders of 4 and each place of an element of 10 comes up about equally often. */
static void test_order_is_uniform(void **state)
{
    (void)state;
    int counts[256] = {0}, places[10][10] = {{0}};
    enum { KEYS = 24000 };
    for (uint64_t seed = 0; seed < KEYS; seed++) {
        int code = 0;
        for (int i = 0; i < 4; i++)
            code = code * 4 + (int)mixt__order_at(mixt__rng_key(seed, 7, 0), 4, i);
        counts[code]++;
        for (int i = 0; i < 10; i++)
            places[i][mixt__order_at(mixt__rng_key(seed, 8, 0), 10, i)]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++)
        if (counts[i]) {
            orders++;
            assert_in_range(counts[i], 1000 - 190, 1000 + 190); // six standard deviations
        }
    assert_int_equal(orders, 24);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < 10; j++)
            assert_in_range(places[i][j], 2400 - 280, 2400 + 280);
}

/** 12 samples whose only feature is their own number. */
static mixt_data *open_numbered(uint64_t seed)
{
    write_text("n.csv", "0,0\n1,0\n2,0\n3,0\n4,0\n5,1\n6,1\n7,1\n8,1\n9,1\n10,1\n11,1\n");
    mixt_data *data;
    check_ok(mixt_data_open(in_folder("csv:%s/n.csv"), &data, .split = "all", .seed = seed,
                            .normalise = MIXT_NORMALISE_NONE));
    return data;
}

static void test_batches_cover_each_epoch_once(void **state)
{
    (void)state;
    mixt_data *data = open_numbered(3);
    float input[5];
    int32_t target[5];
    assert_int_equal(mixt_data_batches(data, 5), 2); // the rest of the epoch is dropped
    for (int epoch = 0; epoch < 4; epoch++) {
        int seen[12] = {0};
        for (int b = 0; b < 2; b++) {
            check_ok(mixt_data_batch(data, 5, epoch * 2 + b, input, target));
            for (int k = 0; k < 5; k++) {
                assert_int_equal(seen[(int)input[k]]++, 0);
                assert_int_equal(target[k], input[k] >= 5);
            }
        }
    }
    mixt_data_close(data);
}

static void draw_order(mixt_data *data, int64_t batches, float *order)
{
    int32_t target[4];
    for (int64_t b = 0; b < batches; b++)
        check_ok(mixt_data_batch(data, 4, b, order + 4 * b, target));
}

static void test_order_depends_on_seed_and_epoch_only(void **state)
{
    (void)state;
    float first[36], again[36], other[36], single[4];
    int32_t target[4];
    mixt_data *a = open_numbered(3), *b = open_numbered(3), *c = open_numbered(4);
    draw_order(a, 9, first);
    check_ok(mixt_data_batch(b, 4, 7, single, target)); // out of turn: no state
    draw_order(b, 9, again);
    draw_order(c, 9, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_equal(first + 28, single, sizeof single);
    assert_memory_not_equal(first, other, sizeof first);
    assert_memory_not_equal(first, first + 12, 12 * sizeof(float)); // the next epoch is another order
    mixt_data_close(c);
    check_ok(mixt_data_open(in_folder("csv:%s/n.csv"), &c, .split = "all", .seed = 4, .order_seed = 3,
                            .normalise = MIXT_NORMALISE_NONE));
    draw_order(c, 9, other);
    assert_memory_equal(first, other, sizeof first);
    mixt_data_seek(a, 2);
    check_ok(mixt_data_next(a, 4, single, target));
    assert_memory_equal(first + 8, single, sizeof single);
    check_ok(mixt_data_next(a, 4, single, target));
    assert_memory_equal(first + 12, single, sizeof single);
    mixt_data_close(a);
    mixt_data_close(b);
    mixt_data_close(c);
}

static void test_read_gives_a_partial_last_batch(void **state)
{
    (void)state;
    mixt_data *data = open_numbered(0);
    float input[5];
    int32_t target[5];
    int64_t valid;
    for (int64_t first = 0; first < 12; first += 5) {
        check_ok(mixt_data_read(data, first, 5, input, target, &valid));
        assert_int_equal(valid, first == 10 ? 2 : 5);
        for (int k = 0; k < valid; k++)
            assert_true(input[k] == (float)(first + k));
    }
    assert_int_equal(mixt_data_read(data, 12, 5, input, target, &valid), MIXT_END);
    assert_int_equal(mixt_data_batch(data, 13, 0, input, target), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "13"));
    mixt_data_close(data);
}

/** Two RGB images of 1×2 pixels and their labels. */
static void write_rgb(void)
{
    unsigned char bytes[64];
    const int dims[] = {2, 1, 2, 3}, count[] = {2};
    write_file("train-images-idx4-ubyte", bytes,
               make_idx(bytes, 8, 4, dims, "\x00\x33\xff\xff\x33\x00\x00\x33\xff\xff\x33\x00", 12));
    write_gzip("train-labels-idx1-ubyte.gz", bytes, make_idx(bytes, 8, 1, count, "\x02\x00", 2));
}

static void test_idx_normalises_each_channel(void **state)
{
    (void)state;
    write_rgb();
    mixt_data *data;
    float input[12];
    int32_t target[2];
    int64_t valid;
    check_ok(mixt_data_open(in_folder("idx:%s/train"), &data, .val = -1));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->samples, 2);
    assert_int_equal(info->input_rank, 3);
    assert_int_equal(info->input_dims[1] * 10 + info->input_dims[2], 23);
    assert_int_equal(info->classes, 3);
    assert_int_equal(info->channels, 3);
    check_ok(mixt_data_read(data, 0, 2, input, target, &valid));
    const float expected[] = {-1, 0, 1, 1, 0, -1}; // mean 1/2, deviation 1/2; the second channel is constant
    for (int i = 0; i < 12; i++)
        assert_float_equal(input[i], expected[i % 6], 1e-6);
    assert_int_equal(target[0], 2);
    assert_int_equal(target[1], 0);
    mixt_data_close(data);
    check_ok(mixt_data_open(in_folder("%s"), &data, .val = -1, .mean = 0.5f, .std = 0.25f, .shape = "6"));
    check_ok(mixt_data_read(data, 0, 1, input, target, &valid));
    assert_float_equal(input[0], -2, 1e-6);
    assert_float_equal(input[1], (0.2 - 0.5) / 0.25, 1e-6);
    mixt_data_close(data);
    check_ok(mixt_data_open(in_folder("idx:%s"), &data, .val = -1, .normalise = MIXT_NORMALISE_UNIT));
    check_ok(mixt_data_read(data, 0, 1, input, target, &valid));
    assert_float_equal(input[1], 0.2, 1e-7);
    mixt_data_close(data);
}

static void test_idx_reads_other_types_and_names(void **state)
{
    (void)state;
    unsigned char bytes[64];
    const int dims[] = {2, 2}, count[] = {2};
    write_file("my-images", bytes,
               make_idx(bytes, 0x0D, 2, dims, "\x3f\x80\0\0\xc0\0\0\0\x3f\0\0\0\x40\x40\0\0", 16)); // 1 -2 0.5 3
    write_file("answers", bytes, make_idx(bytes, 0x0C, 1, count, "\0\0\0\x01\0\0\0\x04", 8));
    mixt_data *data;
    float input[4];
    int32_t target[2];
    int64_t valid;
    check_ok(mixt_data_open(in_folder("idx:%s/my-images"), &data, .split = "all", .labels = in_folder("%s/answers"),
                            .normalise = MIXT_NORMALISE_NONE));
    check_ok(mixt_data_read(data, 0, 2, input, target, &valid));
    assert_true(input[0] == 1 && input[1] == -2 && input[2] == 0.5f && input[3] == 3);
    assert_int_equal(target[1], 4);
    mixt_data_close(data);
}

static void check_csv(const char *text, const char *name, int64_t features, mixt_target_kind target, int64_t classes)
{
    write_text(name, text);
    char spec[600];
    snprintf(spec, sizeof spec, "%s/%s", temp_folder, name);
    mixt_data *data;
    float input[8];
    int32_t label[4];
    int64_t valid;
    check_ok(mixt_data_open(spec, &data, .split = "all", .normalise = MIXT_NORMALISE_NONE));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "csv");
    assert_int_equal(info->samples, 2);
    assert_int_equal(info->input_elements, features);
    assert_int_equal(info->target, target);
    assert_int_equal(info->classes, classes);
    check_ok(mixt_data_read(data, 0, 2, input, label, &valid));
    assert_true(input[0] == 1.5f && input[1] == -2 && input[features] == 1e-3f && input[features + 1] == 40);
    if (target == MIXT_TARGET_CLASS) {
        assert_int_equal(label[0], 1);
        assert_int_equal(label[1], 0);
    } else {
        float values[2];
        memcpy(values, label, sizeof values);
        assert_true(values[0] == 1.25f && values[1] == -7);
    }
    mixt_data_close(data);
}

static void test_csv_dialects(void **state)
{
    (void)state;
    const mixt_target_kind class = MIXT_TARGET_CLASS, values = MIXT_TARGET_VALUES;
    check_csv("1.5,-2,1\n0.001,40,0\n", "a.csv", 2, class, 2);
    check_csv("x,y,class\r\n1.5,-2,1\r\n\r\n0.001,40,0", "b.csv", 2, class, 2);
    check_csv("\xEF\xBB\xBF\"x\";\"y\";\"z\"\n1.5;\"-2\";1\n# note\n1e-3;+40;0\n", "c.csv", 2, class, 2);
    check_csv("1.5\t-2\t1.25\n1.0e-3\t4e1\t-7\n", "d.tsv", 2, values, 0);
    check_csv("  1.5   -2 1 \n 0.00100000000000000000 40.000   0\n", "e.csv", 2, class, 2);
    check_csv("2,2,good,bad,ugly\n1.5,-2,1\n.001,40.,0\n", "f.csv", 2, class, 3);
    check_csv("1,2,x,label\n1.5,-2,3,1\n0.001,40,4,0\n", "g.csv", 3, class, 2);
}

/** Classes are the sorted words, the same in every part; quotes may hold separators, line ends and quotes. */
static void test_csv_words(void **state)
{
    (void)state;
    static const char *const names[] = {"a \"fat\" cat", "cow, brown", "dog\nold"};
    static const int32_t wanted[] = {2, 0, 1, 2};
    write_text("train.csv", "\"width, cm\",\"the \"\"kind\"\"\",y\n1.5,\"dog\nold\",\"1\"\n2,\"a \"\"fat\"\" cat\",2\n"
                            "3, \"cow, brown\" ,3\n4,\"dog\nold\",4\n");
    write_text("val.csv", "5,\"cow, brown\",6\n");
    mixt_data *data;
    float input[8];
    int32_t target[4];
    int64_t valid;
    check_ok(mixt_data_open(in_folder("csv:%s"), &data, .labels = "2", .normalise = MIXT_NORMALISE_NONE));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->classes, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(info->class_names[i], names[i]);
    check_ok(mixt_data_read(data, 0, 4, input, target, &valid));
    assert_memory_equal(target, wanted, sizeof wanted);
    assert_true(input[0] == 1.5f && input[1] == 1 && input[6] == 4 && input[7] == 4);
    mixt_data *val;
    check_ok(mixt_data_open(in_folder("csv:%s"), &val, .labels = "2", .split = "val", .like = data));
    mixt_data_close(data);
    assert_string_equal(mixt_data_describe(val)->class_names[2], names[2]);
    check_ok(mixt_data_read(val, 0, 1, input, target, &valid));
    assert_int_equal(target[0], 1);
    mixt_data_close(val);
}

static void test_csv_target_column(void **state)
{
    (void)state;
    write_text("l.csv", "label,x,2\n1,10,20\n0,30,40\n");
    static const struct {
        const char *labels;
        int target;
        float first, second;
    } cases[] = {{"label", 1, 10, 20}, {"1", 1, 10, 20}, {"x", 10, 1, 20}, {"2", 20, 1, 10}, {NULL, 20, 1, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_data *data;
        float input[2];
        int32_t target;
        int64_t valid;
        check_ok(mixt_data_open(in_folder("csv:%s/l.csv"), &data, .split = "all", .labels = cases[i].labels,
                                .target = MIXT_TARGET_CLASS, .normalise = MIXT_NORMALISE_NONE));
        check_ok(mixt_data_read(data, 0, 1, input, &target, &valid));
        assert_int_equal(target, cases[i].target); // "2" is a name here before it is a number
        assert_true(input[0] == cases[i].first && input[1] == cases[i].second);
        mixt_data_close(data);
    }
}

static void test_csv_parts_and_statistics(void **state)
{
    (void)state;
    char text[4000] = "";
    for (int i = 0; i < 100; i++) // sorted by class, one constant column, one with a large mean
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,5,%d,%d\n", i, 10000000 + i, i / 50);
    write_text("sorted.csv", text);
    static const char *const parts[] = {"train", "val", "test"};
    static const int64_t sizes[] = {75, 15, 10};
    int seen[100] = {0};
    double sum = 0, square = 0;
    float mean = 0, std = 0;
    for (int p = 0; p < 3; p++) {
        mixt_data *data;
        float input[300];
        int32_t target[100];
        int64_t valid;
        check_ok(mixt_data_open(in_folder("csv:%s/sorted.csv"), &data, .split = parts[p], .val = 0.15, .test = 0.1,
                                .seed = (uint64_t)p));
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->samples, sizes[p]);
        check_ok(mixt_data_read(data, 0, 100, input, target, &valid));
        int ones = 0;
        for (int i = 0; i < valid; i++) {
            int row = (int)lrintf(input[3 * i] * info->std[0] + info->mean[0]);
            seen[row]++;
            ones += target[i];
            assert_true(input[3 * i + 1] == 0);
            assert_float_equal(input[3 * i + 2], input[3 * i], 0.02); // FP32 has whole numbers only at 1e7: 0.5 / 28
            sum += p ? 0 : row;
            square += p ? 0 : row * row;
        }
        assert_true(ones > 0 && ones < valid); // both classes in every part
        if (p == 0) {
            mean = (float)(sum / 75);
            std = (float)sqrt(square / 75 - sum / 75 * sum / 75);
        }
        assert_float_equal(info->mean[0], mean, 1e-4); // of the training rows, in every part
        assert_float_equal(info->std[0], std, 1e-4);
        mixt_data_close(data);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

static void test_own_files_and_like(void **state)
{
    (void)state;
    write_text("train.csv", "0,0\n2,1\n0,2\n2,0\n");
    write_text("test.csv", "3,1\n");
    mixt_data *train, *test, *like;
    float input[4];
    int32_t target[4];
    int64_t valid;
    check_ok(mixt_data_open(in_folder("csv:%s"), &train, .val = -1));
    assert_int_equal(mixt_data_describe(train)->samples, 4);
    check_ok(mixt_data_open(in_folder("csv:%s"), &test, .val = -1, .split = "test"));
    check_ok(mixt_data_open(in_folder("csv:%s/test.csv"), &like, .split = "all", .like = train));
    mixt_data *both[] = {test, like};
    for (int i = 0; i < 2; i++) {
        check_ok(mixt_data_read(both[i], 0, 4, input, target, &valid));
        assert_int_equal(valid, 1);
        assert_float_equal(input[0], 2, 1e-6); // (3 - 1) / 1: the training file's statistics
        assert_int_equal(mixt_data_describe(both[i])->classes, 3);
        mixt_data_close(both[i]);
    }
    mixt_data_close(train);
    assert_int_equal(mixt_data_open(in_folder("csv:%s"), &train, .val = -1, .split = "val"), MIXT_ERROR_UNSUPPORTED);
}

static void test_text_windows(void **state)
{
    (void)state;
    write_text("t.txt", "abcdefghijklmnopqrstuvwxyz");
    mixt_data *data;
    int32_t input[16], target[16];
    int64_t valid;
    check_ok(mixt_data_open(in_folder("%s/t.txt"), &data, .seq = 4, .split = "all", .seed = 2));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "text");
    assert_int_equal(info->samples, 6);
    assert_int_equal(info->classes, 256);
    assert_int_equal(info->input_dtype, MIXT_DTYPE_INT32);
    assert_int_equal(info->target_elements, 4);
    check_ok(mixt_data_read(data, 5, 1, input, target, &valid));
    assert_int_equal(input[0], 'u');
    assert_int_equal(target[3], 'y');
    int starts[26] = {0};
    for (int epoch = 0; epoch < 40; epoch++)
        for (int b = 0; b < 6; b++) {
            check_ok(mixt_data_batch(data, 1, epoch * 6 + b, input, target));
            for (int i = 0; i < 4; i++)
                assert_int_equal(target[i], input[0] + i + 1);
            starts[input[0] - 'a']++;
        }
    for (int i = 0; i < 22; i++)
        assert_true(starts[i] > 0); // every alignment turns up over the epochs
    mixt_data_close(data);
    check_ok(mixt_data_open(in_folder("text:%s/t.txt"), &data, .seq = 4, .split = "val", .val = 0.25));
    check_ok(mixt_data_read(data, 0, 1, input, target, &valid));
    assert_int_equal(input[0], 't'); // the last 7 of 26 bytes
    mixt_data_close(data);
}

static void test_random_shapes(void **state)
{
    (void)state;
    mixt_data *data;
    check_ok(mixt_data_open("random:8x6x3", &data, .classes = 7, .samples = 50));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->input_elements, 144);
    static float input[50 * 144], again[50 * 144];
    int32_t target[50];
    int64_t valid;
    check_ok(mixt_data_read(data, 0, 50, input, target, &valid));
    double sum = 0, square = 0;
    for (int i = 0; i < 50 * 144; i++) {
        sum += input[i];
        square += input[i] * input[i];
    }
    assert_float_equal(sum / 7200, 0, 0.06);
    assert_float_equal(square / 7200, 1, 0.1);
    for (int i = 0; i < 50; i++)
        assert_in_range(target[i], 0, 6);
    check_ok(mixt_data_read(data, 0, 50, again, target, &valid));
    assert_memory_equal(input, again, sizeof input);
    mixt_data_close(data);
    int32_t tokens[16], next[16];
    check_ok(mixt_data_open("random:tokens", &data, .seq = 16, .classes = 50));
    assert_int_equal(mixt_data_describe(data)->target, MIXT_TARGET_TOKENS);
    check_ok(mixt_data_read(data, 3, 1, tokens, next, &valid));
    for (int i = 0; i < 15; i++)
        assert_int_equal(tokens[i + 1], next[i]);
    mixt_data_close(data);
}

static void test_digits_are_pure_and_balanced(void **state)
{
    (void)state;
    mixt_data *all, *few, *other, *test;
    static float a[300 * 784], b[784];
    int32_t labels[300], label;
    int64_t valid;
    mixt__threads_set(2);
    check_ok(mixt_data_open("digits:", &all, .samples = 300));
    mixt__threads_set(1);
    check_ok(mixt_data_open("digits", &few, .limit = 200));
    check_ok(mixt_data_open("digits:", &other, .limit = 200, .seed = 1));
    check_ok(mixt_data_open("digits:", &test, .limit = 200, .split = "test"));
    mixt__threads_set(0);
    check_ok(mixt_data_read(all, 0, 300, a, labels, &valid));
    check_ok(mixt_data_read(few, 150, 1, b, &label, &valid));
    assert_memory_equal(a + 150 * 784, b, sizeof b);
    assert_int_equal(labels[150], label);
    check_ok(mixt_data_read(other, 150, 1, b, &label, &valid));
    assert_memory_not_equal(a + 150 * 784, b, sizeof b);
    check_ok(mixt_data_read(test, 150, 1, b, &label, &valid));
    assert_memory_not_equal(a + 150 * 784, b, sizeof b);
    int counts[10] = {0};
    double sum = 0, square = 0;
    for (int i = 0; i < 300; i++)
        counts[labels[i]]++;
    for (int i = 0; i < 300 * 784; i++) {
        sum += a[i];
        square += a[i] * a[i];
    }
    for (int d = 0; d < 10; d++)
        assert_in_range(counts[d], 10, 60);
    assert_float_equal(sum / (300 * 784), 0, 0.05); // the fixed statistics fit
    assert_float_equal(square / (300 * 784), 1, 0.1);
    mixt_data_close(all);
    mixt_data_close(few);
    mixt_data_close(other);
    mixt_data_close(test);
}

static void test_mnist(void **state)
{
    (void)state;
    const char *base = getenv("MIXT_TEST_DATA");
    char spec[600];
    snprintf(spec, sizeof spec, "%s/mnist", base && *base ? base : "../shared/data");
    if (access(spec, R_OK) != 0) {
        print_message("skipped: no %s\n", spec);
        skip();
    }
    mixt_data *train, *test;
    float input[3 * 784];
    int32_t target[3];
    int64_t valid;
    check_ok(mixt_data_open(spec, &train, .val = -1));
    check_ok(mixt_data_open(spec, &test, .split = "test", .like = train));
    const mixt_data_info *info = mixt_data_describe(train);
    assert_int_equal(info->samples, 60000);
    assert_int_equal(mixt_data_describe(test)->samples, 10000);
    assert_int_equal(info->classes, 10);
    assert_int_equal(info->input_dims[0] * 10000 + info->input_dims[1] * 100 + info->input_dims[2], 282801);
    assert_float_equal(info->mean[0], 0.1307, 5e-5);
    assert_float_equal(info->std[0], 0.3081, 5e-5);
    check_ok(mixt_data_read(train, 0, 3, input, target, &valid));
    assert_int_equal(target[0] * 100 + target[1] * 10 + target[2], 504);
    assert_float_equal(input[0], -0.4242f, 1e-3);
    mixt_data_close(train);
    mixt_data_close(test);
    check_ok(mixt_data_open(spec, &train));
    assert_int_equal(mixt_data_describe(train)->samples, 54000);
    mixt_data_close(train);
}

/** Run in a child with MIXT_FAIL_ALLOC=n: 0 when nothing failed, 10 when a failure was reported and left no memory. */
static int open_everything(const char *folder)
{
    static const char *const specs[] = {"idx:%s", "csv:%s/n.csv", "text:%s/n.csv", "digits:", "random:4"};
    for (int i = 0; i < 5; i++) {
        char spec[600];
        mixt_data *data;
        snprintf(spec, sizeof spec, i < 3 ? specs[i] : "%.0s%s", folder, specs[i]);
        mixt_status status = mixt_data_open(spec, &data, .limit = 4, .seq = 2, .split = i < 3 ? "all" : "train",
                                            .shape = i == 4 ? "4" : NULL);
        if (status != MIXT_OK)
            return status == MIXT_ERROR_MEMORY && *mixt_error_text() && !data && !mixt__alloc_bytes() ? 10 : 1;
        mixt_data_close(data);
    }
    return mixt__alloc_bytes() ? 1 : 0;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    write_rgb();
    write_text("n.csv", "1,0\n2,1\n3,1\n");
    int code = -1, n;
    for (n = 1; n < 200 && code != 0; n++) {
        pid_t child = fork();
        if (child == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", n);
            setenv("MIXT_FAIL_ALLOC", number, 1);
            execl("/proc/self/exe", "test_data", "--open", temp_folder, (char *)NULL);
            _exit(127);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
        if (code != 0 && code != 10)
            fail_msg("allocation %d: the child ended with %d", n, code);
    }
    assert_int_equal(code, 0);
    assert_true(n > 15);
}

static void test_numbers_end(void **state)
{
    (void)state;
    float input[2 * 784];
    int32_t target[2];
    mixt_data *data;
    assert_int_equal(mixt_data_open("digits:", &data, .samples = 64), MIXT_OK);
    mixt_data_seek(data, INT64_MAX - 1);
    assert_int_equal(mixt_data_next(data, 2, input, target), MIXT_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mixt_data_next(data, 2, input, target), MIXT_END);
    mixt_data_seek(data, 0);
    assert_int_equal(mixt_data_next(data, 2, input, target), MIXT_OK);
    mixt_data_close(data);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--open"))
        return open_everything(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_a_permutation),
        cmocka_unit_test(test_order_is_uniform),
        cmocka_unit_test_teardown(test_batches_cover_each_epoch_once, no_leak),
        cmocka_unit_test_teardown(test_order_depends_on_seed_and_epoch_only, no_leak),
        cmocka_unit_test_teardown(test_read_gives_a_partial_last_batch, no_leak),
        cmocka_unit_test_teardown(test_idx_normalises_each_channel, no_leak),
        cmocka_unit_test_teardown(test_idx_reads_other_types_and_names, no_leak),
        cmocka_unit_test_teardown(test_csv_dialects, no_leak),
        cmocka_unit_test_teardown(test_csv_words, no_leak),
        cmocka_unit_test_teardown(test_csv_target_column, no_leak),
        cmocka_unit_test_teardown(test_csv_parts_and_statistics, no_leak),
        cmocka_unit_test_teardown(test_own_files_and_like, no_leak),
        cmocka_unit_test_teardown(test_text_windows, no_leak),
        cmocka_unit_test_teardown(test_random_shapes, no_leak),
        cmocka_unit_test_teardown(test_numbers_end, no_leak),
        cmocka_unit_test_teardown(test_digits_are_pure_and_balanced, no_leak),
        cmocka_unit_test_teardown(test_mnist, no_leak),
        cmocka_unit_test_teardown(test_every_allocation_may_fail, no_leak),
    };
    return cmocka_run_group_tests_name("data", tests, temp_folder_setup, temp_folder_teardown);
}
