/* Picture files and folders of them: exact pixels, classes by folder, parts, and hostile files that must be refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"
#include "data/image/picture.h"
#include "data/prefetch.h"

#include <sys/stat.h>
#include <unistd.h>

#ifdef MIXT_HAVE_JPEG
#include <jpeglib.h>
#endif

#define BYTES(text) (text), sizeof(text) - 1

static void make_folder(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", temp_folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void remove_folder(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", temp_folder, name);
    assert_int_equal(rmdir(path), 0);
}

/** A PPM of one colour. */
static void write_colour(const char *name, int width, int height, int r, int g, int b)
{
    char header[64];
    int length = snprintf(header, sizeof header, "P6\n%d %d\n255\n", width, height);
    size_t size = (size_t)length + (size_t)(3 * width * height);
    unsigned char *bytes = malloc(size);
    memcpy(bytes, header, (size_t)length);
    for (int i = 0; i < width * height; i++) {
        bytes[length + 3 * i] = (unsigned char)r;
        bytes[length + 3 * i + 1] = (unsigned char)g;
        bytes[length + 3 * i + 2] = (unsigned char)b;
    }
    write_file(name, bytes, size);
    free(bytes);
}

/* ---- PNM ---- */

static void pnm_is_exact(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        int64_t channels; // asked for
        int height, width, made;
        unsigned char pixels[12];
    } cases[] = {
        {BYTES("P6 2 1 255\nabcdef"), 0, 1, 2, 3, "abcdef"},
        {BYTES("P5\n# a comment 9 9\n3 # another\n2\t255 abcdef"), 0, 2, 3, 1, "abcdef"},
        {BYTES("P5 2 1 15\n\x00\x0f"), 0, 1, 2, 1, {0, 255}},
        {BYTES("P5 3 1 65535\n\x00\x00\xff\xff\x80\x00"), 0, 1, 3, 1, {0, 255, 128}},
        {BYTES("P5 2 1 255\n\x07\x09"), 3, 1, 2, 3, {7, 7, 7, 9, 9, 9}},
        {BYTES("P6 2 1 255\n\xff\xff\xff\xff\x00\x00"), 1, 1, 2, 1, {255, 76}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt__picture p;
        write_file("a.pnm", cases[i].bytes, cases[i].size);
        if (mixt__picture_read(in_folder("%s/a.pnm"), cases[i].channels, &p) != MIXT_OK)
            fail_msg("%d: %s", (int)i, mixt_error_text());
        assert_int_equal(p.height, cases[i].height);
        assert_int_equal(p.width, cases[i].width);
        assert_int_equal(p.channels, cases[i].made);
        assert_memory_equal(p.pixels, cases[i].pixels, (size_t)(p.height * p.width * p.channels));
        mixt__picture_free(&p);
    }
}

static void expect_refused(const void *bytes, size_t size, const char *says)
{
    mixt__picture p;
    write_file("a.ppm", bytes, size);
    mixt_status status = mixt__picture_read(in_folder("%s/a.ppm"), 0, &p);
    if (status != MIXT_ERROR_FORMAT || !strstr(mixt_error_text(), says) || !strstr(mixt_error_text(), "a.ppm"))
        fail_msg("expected '%s', got %s: %s", says, mixt_status_text(status), mixt_error_text());
    assert_null(p.pixels);
}

static void hostile_pnm_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } cases[] = {
        {BYTES("hello"), ": offset 0: not an image: expected PPM, PGM (P6, P5)"},
        {BYTES("P"), "not an image"},
        {BYTES("P3 1 1 255\n1 2 3"), "not an image"},
        {BYTES("P6"), "width"},
        {BYTES("P6 0 1 255\n"), "offset 3: width"},
        {BYTES("P6 -1 1 255\n"), "width"},
        {BYTES("P6 1 99999999999999999999 255\n"), "height"},
        {BYTES("P6 65500 65500 255\nabc"), "need 12870750000"},
        {BYTES("P6 1 1 0\nabc"), "largest"},
        {BYTES("P6 1 1 65536\nabc"), "largest"},
        {BYTES("P6 1 1 255"), "expected one blank"},
        {BYTES("P6 1 1 255\nab"), "cut off"},
        {BYTES("P6 1 1 255\nabcd"), "longer than its header says"},
        {BYTES("P5 2 1 9\n\x09\x0a"), "offset 10: value 10"},
        {BYTES("P6 # no end"), "width"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(cases[i].bytes, cases[i].size, cases[i].says);
    static const char good[] = "P6 # c\n 3 2\n 255\nabcdefghijklmnopqr";
    for (size_t size = 1; size < sizeof good - 1; size++)
        expect_refused(good, size, "");
    mixt__picture p;
    write_text("a.ppm", "");
    assert_int_equal(mixt__picture_read(in_folder("%s/a.ppm"), 0, &p), MIXT_ERROR_FORMAT);
    assert_int_equal(mixt__picture_read(in_folder("%s/none.ppm"), 0, &p), MIXT_ERROR_FILE);
    assert_int_equal(mixt__picture_read(temp_folder, 0, &p), MIXT_ERROR_FILE);
}

/** Any byte may change: a picture or a message, never more. */
static void mutate(const char *name, const unsigned char *good, size_t size, int trials)
{
    unsigned char *bytes = malloc(size);
    mixt__rng rng = mixt__rng_start(mixt__rng_key(11, 0, 0));
    char path[600];
    snprintf(path, sizeof path, "%s/%s", temp_folder, name);
    for (int i = 0; i < trials; i++) {
        mixt__picture p;
        memcpy(bytes, good, size);
        for (int k = 0; k < 1 + i % 4; k++)
            bytes[mixt__rng_below(&rng, size)] = (unsigned char)mixt__rng_u32(&rng);
        write_file(name, bytes, size - (i % 3 ? 0 : mixt__rng_below(&rng, size)));
        mixt_status status = mixt__picture_read(path, i % 2 ? 3 : 1, &p);
        assert_true(status == MIXT_OK ? p.pixels != NULL : p.pixels == NULL && *mixt_error_text());
        mixt__picture_free(&p);
    }
    free(bytes);
}

static void damaged_pnm_never_crashes(void **state)
{
    (void)state;
    static const char good[] = "P6 # c\n 3 2\n 255\nabcdefghijklmnopqr";
    mutate("a.ppm", (const unsigned char *)good, sizeof good - 1, 1500);
}

/* ---- how the camera was held ---- */

static void pictures_are_turned(void **state)
{
    // a b c over d e f, in each of EXIF's orientations
    static const char *const turned[] = {"abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead"};
    (void)state;
    for (int o = 1; o <= 8; o++) {
        mixt__picture p = {mixt__alloc_uninit(6), 2, 3, 1};
        memcpy(p.pixels, "abcdef", 6);
        assert_int_equal(mixt__picture_orient(&p, o), MIXT_OK);
        assert_int_equal(p.width, o < 5 ? 3 : 2);
        assert_memory_equal(p.pixels, turned[o - 1], 6);
        mixt__picture_free(&p);
    }
    static const unsigned char cut[] = "Exif\0\0II*\0\xff\xff\xff\xff\x01";
    for (int64_t size = 0; size < (int64_t)sizeof cut; size++)
        assert_int_equal(mixt__exif_orientation(cut, size), 1);
}

/* ---- JPEG ---- */

static void jpeg_is_decoded(void **state)
{
    (void)state;
#ifdef MIXT_HAVE_JPEG
    enum { W = 40, H = 24 };
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *made = NULL, row[W * 3];
    unsigned long size = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &made, &size);
    jpeg.image_width = W;
    jpeg.image_height = H;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < H; y++) {
        JSAMPROW rows[1] = {row};
        for (int x = 0; x < W; x++) {
            row[3 * x] = (unsigned char)(5 * x);
            row[3 * x + 1] = (unsigned char)(9 * y);
            row[3 * x + 2] = 90;
        }
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    mixt__picture p;
    write_file("a.jpg", made, size);
    assert_int_equal(mixt__picture_read(in_folder("%s/a.jpg"), 0, &p), MIXT_OK);
    assert_int_equal(p.width * 100 + p.height * 10 + p.channels, W * 100 + H * 10 + 3);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            assert_true(abs(p.pixels[(y * W + x) * 3] - 5 * x) < 12); // chroma is stored at half the resolution
            assert_true(abs(p.pixels[(y * W + x) * 3 + 1] - 9 * y) < 12);
        }
    mixt__picture_free(&p);
    for (unsigned long cut = 3; cut < size; cut += 17) {
        write_file("a.jpg", made, cut);
        assert_int_equal(mixt__picture_read(in_folder("%s/a.jpg"), 0, &p), MIXT_ERROR_FORMAT);
        assert_non_null(strstr(mixt_error_text(), "JPEG"));
    }
    // "Exif", a list of one entry: orientation 6, in both orders of bytes. It goes behind the start of the image
    static const unsigned char exif[2][36] = {
        "\xff\xe1\0\x22" "Exif\0\0" "MM\0*\0\0\0\x08\0\x01" "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0",
        "\xff\xe1\0\x22" "Exif\0\0" "II*\0\x08\0\0\0\x01\0" "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"};
    unsigned char *turned = malloc(size + sizeof exif[0]);
    for (int order = 0; order < 2; order++) {
        memcpy(turned, made, 2);
        memcpy(turned + 2, exif[order], sizeof exif[0]);
        memcpy(turned + 2 + sizeof exif[0], made + 2, size - 2);
        write_file("a.jpg", turned, size + sizeof exif[0]);
        assert_int_equal(mixt__picture_read(in_folder("%s/a.jpg"), 0, &p), MIXT_OK);
        assert_int_equal(p.width * 100 + p.height, H * 100 + W); // a quarter to the right
        assert_true(abs(p.pixels[0] - 0) < 12 && abs(p.pixels[1] - 9 * (H - 1)) < 12);
        assert_true(abs(p.pixels[3 * (W * H - 1)] - 5 * (W - 1)) < 12 && p.pixels[3 * (W * H - 1) + 1] < 12);
        mixt__picture_free(&p);
    }
    mutate("a.jpg", turned, size + sizeof exif[0], 200);
    free(turned);
    mutate("a.jpg", made, size, 400);
    free(made);
#else
    write_file("a.jpg", "\xff\xd8\xff\xe0", 4);
    mixt__picture p;
    assert_int_equal(mixt__picture_read(in_folder("%s/a.jpg"), 0, &p), MIXT_ERROR_UNSUPPORTED);
    print_message("skipped: mixt was built without libjpeg\n");
#endif
}

/* ---- folders ---- */

static void make_set(void)
{
    make_folder("train");
    make_folder("train/dog");
    make_folder("train/cat");
    make_folder("val");
    make_folder("val/dog");
    write_colour("train/cat/b.ppm", 20, 30, 10, 20, 30);
    write_colour("train/cat/a.ppm", 9, 8, 40, 50, 60);
    write_colour("train/dog/z.ppm", 100, 5, 70, 80, 90);
    write_colour("val/dog/v.ppm", 16, 16, 1, 2, 3);
    write_text("train/cat/notes.txt", "not a picture");
    write_text("train/cat/.hidden.ppm", "not a picture either");
    write_text("train/readme", "nor a class");
}

static void samples_of_a_folder(void **state)
{
    (void)state;
    make_set();
    static float input[3 * 8 * 8 * 3], again[3 * 8 * 8 * 3];
    int32_t target[3];
    int64_t valid;
    mixt_data_options options =
        MIXT_OPTIONS(mixt_data_options, .crop = 8, .normalise = MIXT_NORMALISE_NONE, .in_order = true, .flip = true);
    options.min_area = 0.2f;
    mixt_data *data = open_ok("%s", options);
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "images");
    assert_int_equal(info->samples, 3);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "cat");
    assert_string_equal(info->class_names[1], "dog");
    static const float colours[3] = {40, 10, 70}; // files in the order of their names
    static const int32_t labels[3] = {0, 0, 1};
    for (int training = 0; training < 2; training++) {
        if (training)
            assert_int_equal(mixt_data_batch(data, 3, 0, input, target), MIXT_OK);
        else
            assert_int_equal(mixt_data_read(data, 0, 3, input, target, &valid), MIXT_OK);
        assert_memory_equal(target, labels, sizeof target);
        for (int i = 0; i < 3 * 64 * 3; i++)
            assert_true(fabsf(input[i] - (colours[i / 192] + (float)(i % 3 * 10))) < 1e-4f);
    }
    mixt_data_close(data);
    options.split = "val";
    data = open_ok("images:%s", options);
    assert_int_equal(mixt_data_describe(data)->samples, 1);
    assert_int_equal(mixt_data_read(data, 0, 3, again, target, &valid), MIXT_OK);
    assert_int_equal(target[0], 1); // dog, though val has no cat
    mixt_data_close(data);
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options, .split = "test"), MIXT_ERROR_UNSUPPORTED, "test");
    // Without train, val and test the folder itself holds the classes and is shared out.
    data = open_ok("images:%s/train", MIXT_OPTIONS(mixt_data_options, .crop = 8, .val = 0.34));
    assert_int_equal(mixt_data_describe(data)->samples, 2);
    mixt_data *val = open_ok("images:%s/train",
                             MIXT_OPTIONS(mixt_data_options, .crop = 8, .val = 0.34, .split = "val", .like = data));
    assert_int_equal(mixt_data_describe(val)->samples, 1);
    assert_memory_equal(mixt_data_describe(val)->mean, mixt_data_describe(data)->mean, 3 * sizeof(float));
    mixt_data_close(val);
    mixt_data_close(data);
}

static void statistics_of_a_folder(void **state)
{
    (void)state;
    make_set();
    mixt_data *data = open_ok("images:%s", MIXT_OPTIONS(mixt_data_options, .crop = 8));
    const mixt_data_info *info = mixt_data_describe(data);
    double mean = (40 + 10 + 70) / 3.0, variance = (40 * 40 + 10 * 10 + 70 * 70) / 3.0 - mean * mean;
    assert_true(fabs(info->mean[0] - mean / 255) < 1e-5 && fabs(info->std[0] - sqrt(variance) / 255) < 1e-5);
    mixt_data_close(data);
    data = open_ok("images:%s",
                   MIXT_OPTIONS(mixt_data_options, .means = "0.5", .stds = "0.25,0.5,1", .crop = 8, .split = "val"));
    assert_true(mixt_data_describe(data)->std[1] == 0.5f);
    mixt_data_close(data);
}

static void threads_decode_the_same(void **state)
{
    (void)state;
    make_folder("a");
    make_folder("b");
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c/%d.ppm", 'a' + i % 2, i);
        write_colour(name, 10 + i, 20 - i, 20 * i, 3 * i, i);
    }
    static float input[4 * 6 * 6 * 3];
    int32_t target[4];
    for (int threads = 1; threads <= 4; threads++) {
        mixt_data_options options =
            MIXT_OPTIONS(mixt_data_options, .crop = 6, .min_area = 0.1f, .flip = true, .seed = 3, .split = "all");
        options.threads = threads;
        mixt_data *data = open_ok("images:%s", options);
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        assert_int_equal(mixt__prefetch_start(data, 4, 2, 2, NULL, &prefetch), MIXT_OK);
        for (int64_t number = 2; number < 12; number++) {
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
            assert_int_equal(mixt_data_batch(data, 4, number, input, target), MIXT_OK);
            assert_memory_equal(batch->input, input, sizeof input);
            mixt__prefetch_release(prefetch);
        }
        mixt__prefetch_stop(prefetch);
        mixt_data_close(data);
    }
}

/** Class folders are known for what they are; IDX files beside folders of pictures stay IDX. */
static void kind_is_guessed(void **state)
{
    (void)state;
    make_folder("cat");
    make_folder("dog");
    write_colour("cat/a.ppm", 4, 4, 1, 1, 1);
    write_colour("dog/a.ppm", 4, 4, 2, 2, 2);
    mixt_data *data = open_ok("%s", MIXT_OPTIONS(mixt_data_options, .crop = 4, .split = "all"));
    assert_string_equal(mixt_data_describe(data)->kind, "images");
    assert_int_equal(mixt_data_describe(data)->samples, 2);
    mixt_data_close(data);
    write_text("t10k-images-idx3-ubyte", "?");
    expect_failure("%s", MIXT_OPTIONS(mixt_data_options, .split = "test"), MIXT_ERROR_FORMAT,
                   "too short for an IDX header");
}

static void bad_folders_are_refused(void **state)
{
    (void)state;
    expect_failure("images:%s/none", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FILE, "no such folder");
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA, "holds no folders");
    make_folder("cat");
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA, "cat: a class without images");
    make_folder("train");
    make_folder("train/cat");
    make_folder("val");
    make_folder("val/bird");
    write_colour("train/cat/a.ppm", 4, 4, 1, 1, 1);
    write_colour("val/bird/a.ppm", 4, 4, 1, 1, 1);
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options, .split = "val"), MIXT_ERROR_DATA, "val/bird: a class");
    make_folder("train/bird");
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options, .split = "val"), MIXT_ERROR_DATA,
                   "train/bird: a class without");
    write_text("train/bird/notes.txt", "no picture, and none meant");
    write_text("train/bird/b.GIF", "\x89PNG");
    write_colour("train/bird/a.ppm", 4, 4, 1, 1, 1);
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_DATA,
                   "train/bird/b.GIF: not an image that mixt reads: convert it (PPM, PGM");
    static const char *const files[] = {"%s/train/bird/notes.txt", "%s/train/bird/b.GIF", "%s/train/bird/a.ppm"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(in_folder(files[i])), 0);
    remove_folder("train/bird");
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options, .pad = 2), MIXT_ERROR_CONFIG, "'pad' must be 0");
    write_text("train/cat/b.ppm", "P6 4 4 255\nshort");
    expect_failure("images:%s", MIXT_OPTIONS(mixt_data_options), MIXT_ERROR_FORMAT, "train/cat/b.ppm");
    mixt_data *data =
        open_ok("images:%s", MIXT_OPTIONS(mixt_data_options, .crop = 4, .means = "0", .stds = "1", .in_order = true));
    float input[2 * 4 * 4 * 3];
    int32_t target[2];
    assert_int_equal(mixt_data_batch(data, 2, 0, input, target), MIXT_ERROR_FORMAT);
    assert_non_null(strstr(mixt_error_text(), "train/cat/b.ppm"));
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pnm_is_exact, no_leak),
        cmocka_unit_test_teardown(hostile_pnm_is_refused, no_leak),
        cmocka_unit_test_teardown(damaged_pnm_never_crashes, no_leak),
        cmocka_unit_test_teardown(pictures_are_turned, no_leak),
        cmocka_unit_test_teardown(jpeg_is_decoded, no_leak),
        cmocka_unit_test_teardown(samples_of_a_folder, no_leak),
        cmocka_unit_test_teardown(statistics_of_a_folder, no_leak),
        cmocka_unit_test_teardown(threads_decode_the_same, no_leak),
        cmocka_unit_test_teardown(kind_is_guessed, no_leak),
        cmocka_unit_test_teardown(bad_folders_are_refused, no_leak),
    };
    return cmocka_run_group_tests_name("pictures", tests, temp_folder_setup, temp_folder_teardown);
}
