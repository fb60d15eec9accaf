/* CIFAR files, crops, flips and resizing against straightforward code, and that what is random depends on nothing but
 * (seed, epoch, sample). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/image/augment.h"
#include "data/data.h"

enum { PIXELS = 3072, RECORD = PIXELS + 1 };

static unsigned char noise(uint64_t a, uint64_t b)
{
    return (unsigned char)mixt__rng_block_at(a, b).word[0];
}

/** `count` records of `labels` bytes and pixels; the label of record i is (first + i) % 10. */
static void write_cifar(const char *name, int first, int count, int labels, size_t cut)
{
    size_t record = (size_t)(labels + PIXELS), size = record * (size_t)count;
    unsigned char *bytes = malloc(size + 1);
    for (int i = 0; i < count; i++) {
        unsigned char *at = bytes + record * (size_t)i;
        at[0] = 7;
        at[labels - 1] = (unsigned char)((first + i) % 10);
        for (int p = 0; p < PIXELS; p++)
            at[labels + p] = noise((uint64_t)(first + i), (uint64_t)p);
    }
    write_file(name, bytes, size - cut);
    free(bytes);
}

/* ---- CIFAR ---- */

static void cifar10_is_read(void **state)
{
    (void)state;
    write_cifar("data_batch_1.bin", 0, 5, 1, 0);
    write_cifar("data_batch_2.bin", 5, 3, 1, 0);
    write_cifar("test_batch.bin", 100, 4, 1, 0);
    write_text("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
    mixt_data *data = open_ok("%s", MIXT_OPTIONS(mixt_data_options, .val = -1, .normalise = MIXT_NORMALISE_NONE));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "cifar");
    assert_int_equal(info->samples, 8);
    assert_int_equal(info->classes, 10);
    assert_int_equal(info->input_dims[0] * 10000 + info->input_dims[1] * 100 + info->input_dims[2], 323203);
    assert_string_equal(info->class_names[9], "truck");
    static float input[8 * PIXELS];
    int32_t target[8];
    int64_t valid;
    assert_int_equal(mixt_data_read(data, 0, 8, input, target, &valid), MIXT_OK);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(target[i], i);
        for (int p = 0; p < 1024; p++)
            for (int c = 0; c < 3; c++)
                assert_true(input[i * PIXELS + 3 * p + c] == (float)noise((uint64_t)i, (uint64_t)(c * 1024 + p)));
    }
    mixt_data_close(data);
    data = open_ok("cifar:%s", MIXT_OPTIONS(mixt_data_options, .split = "test", .val = -1));
    assert_int_equal(mixt_data_describe(data)->samples, 4);
    assert_int_equal(mixt_data_describe(data)->channels, 3);
    mixt_data_close(data);
}

static void cifar100_takes_the_fine_label(void **state)
{
    (void)state;
    write_cifar("train.bin", 3, 6, 2, 0);
    mixt_data *data = open_ok("%s", MIXT_OPTIONS(mixt_data_options, .val = -1));
    assert_int_equal(mixt_data_describe(data)->classes, 100);
    assert_null(mixt_data_describe(data)->class_names);
    static float input[PIXELS];
    int32_t target;
    int64_t valid;
    assert_int_equal(mixt_data_read(data, 2, 1, input, &target, &valid), MIXT_OK);
    assert_int_equal(target, 5);
    mixt_data_close(data);
}

static void hostile_cifar_is_refused(void **state)
{
    (void)state;
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "data_batch_1.bin");
    expect_failure("cifar:%s/none", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "no such folder");
    for (int labels = 1; labels <= 2; labels++) {
        const char *name = labels == 1 ? "data_batch_1.bin" : "train.bin";
        temp_folder_empty();
        for (size_t cut = 1; cut < (size_t)(2 * (PIXELS + labels)); cut += 701) {
            write_cifar(name, 0, 2, labels, cut);
            if ((2 * (PIXELS + labels) - (int)cut) % (PIXELS + labels))
                expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "cut off in record");
        }
        write_file(name, "", 0);
        expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "empty");
    }
    temp_folder_empty();
    static unsigned char record[3 * RECORD];
    record[RECORD] = 10;
    write_file("data_batch_1.bin", record, sizeof record);
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA, "offset 3073 (record 1): label 10");
    record[RECORD] = 9;
    write_file("data_batch_1.bin", record, sizeof record);
    write_file("data_batch_2.bin", record, sizeof record - 1);
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "data_batch_2.bin: 9218 bytes");
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options, .classes = 5), MIXT_ERROR_CONFIG, "10 classes, not 5");
}

static void incomplete_cifar_is_refused(void **state)
{
    (void)state;
    const char *path = in_folder("%s/data_batch_1.bin");
    write_cifar("data_batch_1.bin", 0, 2, 1, 0);
    write_cifar("data_batch_2.bin", 2, 2, 1, 0);
    write_cifar("data_batch_4.bin", 4, 2, 1, 0);
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "/data_batch_3.bin: is missing");
    assert_int_equal(unlink(path), 0);
    write_cifar("test_batch.bin", 0, 2, 1, 0);
    expect_failure("%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "/data_batch_1.bin: is missing");
    temp_folder_empty();
    write_cifar("data_batch_1.bin", 0, 1, 1, 0);
    assert_int_equal(truncate(path, 10000 * (int64_t)RECORD), 0); // the size of the published files
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "/data_batch_2.bin: is missing");
}

static void means_are_per_channel(void **state)
{
    (void)state;
    write_cifar("data_batch_1.bin", 0, 2, 1, 0);
    mixt_data *data =
        open_ok("cifar:%s", MIXT_OPTIONS(mixt_data_options, .split = "all", .means = "0.5,0.25, 0", .stds = "0.5,1,2"));
    static float input[PIXELS];
    int32_t target;
    int64_t valid;
    assert_int_equal(mixt_data_read(data, 1, 1, input, &target, &valid), MIXT_OK);
    static const double means[] = {0.5, 0.25, 0}, stds[] = {0.5, 1, 2};
    for (int p = 0; p < PIXELS; p++) {
        double exact = (noise(1, (uint64_t)(p % 3 * 1024 + p / 3)) / 255.0 - means[p % 3]) / stds[p % 3];
        assert_true(fabs(input[p] - exact) < 1e-6);
    }
    mixt_data_close(data);
    static const char *const bad[] = {"", "a", "1,2", "1,2,3,4", "1,,2", "nan", "1,2,3,"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options, .means = bad[i], .stds = "1"), MIXT_ERROR_CONFIG,
                       "means");
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options, .means = "1", .stds = "1,0,1"), MIXT_ERROR_CONFIG,
                   "stds");
    expect_failure("cifar:%s", MIXT_OPTIONS(mixt_data_options, .means = "1"), MIXT_ERROR_CONFIG, "go together");
}

/* ---- windows ---- */

/** A pixel of a padded image: mean (0 once normalised) outside. */
static float at_or_mean(const unsigned char *image, int64_t h, int64_t w, int64_t ch, int64_t y, int64_t x, int64_t c,
                        const mixt__normal *n)
{
    if (y < 0 || y >= h || x < 0 || x >= w)
        return 0;
    return (float)image[(y * w + x) * ch + c] * n->scale[c] + n->shift[c];
}

static void crops_and_flips_are_exact(void **state)
{
    (void)state;
    enum { H = 7, W = 9 };
    static const float mean[] = {0.1f, 0.2f, 0.3f, 0.4f}, scale[] = {0.5f, 1, 2, 3}, shift[] = {1, -1, 0.5f, 4};
    mixt__normal n = {mean, scale, shift};
    unsigned char bytes[H * W * 4];
    float floats[H * W * 4], sample[5 * 6 * 4];
    for (int i = 0; i < H * W * 4; i++) {
        bytes[i] = noise(1, (uint64_t)i);
        floats[i] = (float)bytes[i];
    }
    for (int64_t ch = 1; ch <= 4; ch++)
        for (int64_t top = -6; top <= H; top++)
            for (int64_t left = -7; left <= W; left++)
                for (int mirror = 0; mirror < 2; mirror++) {
                    mixt__augment a = {.height = 5, .width = 6};
                    mixt__image image = {bytes, MIXT_DTYPE_UINT8, H, W, ch};
                    mixt__window window = {(double)top, (double)left, 5, 6, mirror};
                    assert_int_equal(mixt__augment_apply(&a, &image, &window, &n, sample), MIXT_OK);
                    for (int64_t y = 0; y < 5; y++)
                        for (int64_t x = 0; x < 6; x++)
                            for (int64_t c = 0; c < ch; c++) {
                                int64_t from = left + (mirror ? 5 - x : x);
                                assert_true(sample[(y * 6 + x) * ch + c] ==
                                            at_or_mean(bytes, H, W, ch, top + y, from, c, &n));
                            }
                    image.pixels = floats;
                    image.dtype = MIXT_DTYPE_FP32;
                    assert_int_equal(mixt__augment_apply(&a, &image, &window, &n, sample), MIXT_OK);
                    if (top >= 0 && top < H && left >= 0 && left < W)
                        assert_true(sample[mirror ? 5 * ch : 0] ==
                                    (floats[(top * W + left) * ch] - mean[0]) * scale[0]);
                }
}

/** The triangle filter in FP64, both dimensions at once. */
static double resized(const unsigned char *image, int64_t h, int64_t w, int64_t ch, const mixt__window *win, int64_t oh,
                      int64_t ow, int64_t y, int64_t x, int64_t c)
{
    double sy = win->height / (double)oh, sx = win->width / (double)ow, ry = fmax(sy, 1), rx = fmax(sx, 1);
    double my = win->top + ((double)y + 0.5) * sy, mx = win->left + ((double)x + 0.5) * sx, sum = 0, weights = 0;
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            double weight = fmax(0, 1 - fabs((double)i + 0.5 - my) / ry) * fmax(0, 1 - fabs((double)j + 0.5 - mx) / rx);
            sum += weight * image[(i * w + j) * ch + c];
            weights += weight;
        }
    return sum / weights;
}

static void resizing_matches_fp64(void **state)
{
    (void)state;
    static const float mean[] = {0, 0, 0}, scale[] = {1, 0.5f, 2}, shift[] = {0, 10, -3};
    mixt__normal n = {mean, scale, shift};
    static unsigned char bytes[40 * 50 * 3];
    static float sample[64 * 64 * 3];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(3, 0, 0));
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = noise(2, i);
    for (int trial = 0; trial < 60; trial++) {
        int64_t h = 1 + (int64_t)mixt__rng_below(&rng, 40), w = 1 + (int64_t)mixt__rng_below(&rng, 50);
        int64_t ch = trial % 3 ? 3 : 1 + trial % 2, oh = 1 + (int64_t)mixt__rng_below(&rng, 30),
                ow = 1 + (int64_t)mixt__rng_below(&rng, 30);
        mixt__window win = {.mirror = trial & 1};
        win.height = (double)h * (0.05 + 0.95 * (double)mixt__rng_uniform(&rng));
        win.width = (double)w * (0.05 + 0.95 * (double)mixt__rng_uniform(&rng));
        win.top = ((double)h - win.height) * (double)mixt__rng_uniform(&rng);
        win.left = ((double)w - win.width) * (double)mixt__rng_uniform(&rng);
        mixt__image image = {bytes, MIXT_DTYPE_UINT8, h, w, ch};
        assert_int_equal(mixt__resample(&image, &win, oh, ow, &n, sample), MIXT_OK);
        for (int64_t y = 0; y < oh; y++)
            for (int64_t x = 0; x < ow; x++)
                for (int64_t c = 0; c < ch; c++) {
                    double exact =
                        resized(bytes, h, w, ch, &win, oh, ow, y, win.mirror ? ow - 1 - x : x, c) * (double)scale[c] +
                        (double)shift[c];
                    // sums of up to 100 products of values below 510: 200 roundings of half a unit
                    if (fabs(sample[(y * ow + x) * ch + c] - exact) > 200 * 0x1p-24 * 510)
                        fail_msg("trial %d, %d x %d to %d x %d at %d, %d: %g, expected %g", trial, (int)h, (int)w,
                                 (int)oh, (int)ow, (int)y, (int)x, (double)sample[(y * ow + x) * ch + c], exact);
                }
    }
}

/** Every drawn window lies where it may, and all that may come up do. */
static void windows_are_in_range(void **state)
{
    (void)state;
    mixt__augment crop = {.height = 32, .width = 32, .pad = 4, .flip = true};
    int seen[9] = {0}, mirrored = 0;
    for (int64_t i = 0; i < 4000; i++) {
        mixt__window w = mixt__augment_window(&crop, 32, 32, 5, i % 7, i);
        assert_true(w.top >= -4 && w.top <= 4 && w.left >= -4 && w.left <= 4 && w.height == 32 && w.width == 32);
        seen[(int)w.top + 4]++;
        mirrored += w.mirror;
    }
    for (int i = 0; i < 9; i++)
        assert_in_range(seen[i], 4000 / 9 - 120, 4000 / 9 + 120); // 6 standard deviations
    assert_in_range(mirrored, 2000 - 190, 2000 + 190);
    mixt__augment zoom = {.height = 24, .width = 24, .min_area = 0.25};
    double smallest = 1;
    for (int64_t i = 0; i < 4000; i++) {
        mixt__window w = mixt__augment_window(&zoom, 60, 80, 5, 0, i);
        double area = w.height * w.width / 4800;
        assert_true(w.top >= 0 && w.left >= 0 && w.top + w.height <= 60 && w.left + w.width <= 80 && !w.mirror);
        assert_true(area > 0.24 && w.width / w.height < 1.4 && w.width / w.height > 0.71);
        smallest = fmin(smallest, area);
    }
    assert_true(smallest < 0.27);
    mixt__augment resize = {.height = 224, .width = 224, .resize = 256};
    mixt__window middle = mixt__augment_window(&resize, 375, 500, 0, -1, 3);
    assert_true(fabs(middle.height - 375 * 0.875) < 1e-9 && fabs(middle.top - 375 * 0.0625) < 1e-9);
    assert_true(fabs(middle.left - (500 - 375 * 0.875) / 2) < 1e-9);
    mixt__augment none = {.height = 32, .width = 32, .pad = 4, .flip = true};
    mixt__window w = mixt__augment_window(&none, 32, 32, 5, -1, 0);
    assert_true(w.top == 0 && w.left == 0 && !w.mirror);
}

static void batches_are_a_function_of_their_number(void **state)
{
    (void)state;
    enum { BATCH = 4, N = BATCH * 24 * 24 * 3 };
    write_cifar("data_batch_1.bin", 0, 10, 1, 0);
    static float first[6][N], again[N];
    int32_t target[BATCH];
    const mixt_data_options kinds[] = {
        MIXT_OPTIONS(mixt_data_options, .crop = 24, .flip = true, .seed = 4),
        MIXT_OPTIONS(mixt_data_options, .crop = 24, .min_area = 0.3f, .flip = true, .seed = 4)};
    for (int k = 0; k < 2; k++) {
        mixt_data_options options = kinds[k];
        options.split = "all";
        mixt_data *data = open_ok("cifar:%s", options);
        assert_int_equal(mixt_data_describe(data)->input_elements, 24 * 24 * 3);
        for (int64_t i = 0; i < 6; i++)
            assert_int_equal(mixt_data_batch(data, BATCH, i, first[i], target), MIXT_OK);
        mixt_data_close(data);
        data = open_ok("cifar:%s", options); // as a resumed run would: later batches only, in any order
        for (int64_t i = 5; i >= 3; i--) {
            assert_int_equal(mixt_data_batch(data, BATCH, i, again, target), MIXT_OK);
            assert_memory_equal(again, first[i], sizeof again);
        }
        int64_t valid;
        assert_int_equal(mixt_data_read(data, 0, BATCH, first[0], target, &valid), MIXT_OK);
        assert_int_equal(mixt_data_read(data, 0, BATCH, again, target, &valid), MIXT_OK);
        assert_memory_equal(again, first[0], sizeof again);
        mixt_data_close(data);
        options.seed = 5;
        options.in_order = true;
        data = open_ok("cifar:%s", options);
        for (int64_t i = 0; i < 4; i += 2) // the same samples in two epochs look different
            assert_int_equal(mixt_data_batch(data, BATCH, i, first[i], target), MIXT_OK);
        assert_memory_not_equal(first[0], first[2], sizeof again);
        mixt_data_close(data);
    }
}

static void impossible_crops_are_refused(void **state)
{
    (void)state;
    write_cifar("data_batch_1.bin", 0, 4, 1, 0);
    const struct {
        mixt_data_options options;
        const char *says;
    } cases[] = {
        {MIXT_OPTIONS(mixt_data_options, .crop = 33), "does not fit"},
        {MIXT_OPTIONS(mixt_data_options, .crop = 41, .pad = 4), "does not fit"},
        {MIXT_OPTIONS(mixt_data_options, .crop = -1), "crop -1"},
        {MIXT_OPTIONS(mixt_data_options, .crop = 32, .resize = 31), "smaller than crop"},
        {MIXT_OPTIONS(mixt_data_options, .resize = 31), "are smaller than a sample; set data.crop to 31 or less"},
        {MIXT_OPTIONS(mixt_data_options, .pad = 1, .min_area = 0.5f), "scale"},
        {MIXT_OPTIONS(mixt_data_options, .min_area = 1.5f), "min_area"},
        {MIXT_OPTIONS(mixt_data_options, .min_area = NAN), "min_area"},
        {MIXT_OPTIONS(mixt_data_options, .threads = -1), "threads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_failure("cifar:%s", cases[i].options, MIXT_ERROR_CONFIG, cases[i].says);
    write_text("a.csv", "1,2,0\n3,4,1\n5,6,0\n7,8,1\n");
    expect_failure("csv:%s/a.csv", MIXT_OPTIONS(mixt_data_options, .flip = true), MIXT_ERROR_CONFIG, "for images");
    mixt_data *data = open_ok("cifar:%s", MIXT_OPTIONS(mixt_data_options, .resize = 32));
    mixt_data_close(data);
    data = open_ok("cifar:%s", MIXT_OPTIONS(mixt_data_options, .crop = 40, .pad = 4));
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(cifar10_is_read, no_leak),
        cmocka_unit_test_teardown(cifar100_takes_the_fine_label, no_leak),
        cmocka_unit_test_teardown(hostile_cifar_is_refused, no_leak),
        cmocka_unit_test_teardown(incomplete_cifar_is_refused, no_leak),
        cmocka_unit_test_teardown(means_are_per_channel, no_leak),
        cmocka_unit_test_teardown(crops_and_flips_are_exact, no_leak),
        cmocka_unit_test_teardown(resizing_matches_fp64, no_leak),
        cmocka_unit_test_teardown(windows_are_in_range, no_leak),
        cmocka_unit_test_teardown(batches_are_a_function_of_their_number, no_leak),
        cmocka_unit_test_teardown(impossible_crops_are_refused, no_leak),
    };
    return cmocka_run_group_tests_name("images", tests, temp_folder_setup, temp_folder_teardown);
}
