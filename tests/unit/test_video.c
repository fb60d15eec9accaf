/* Folders of clips: frames spread evenly over a clip's pictures, one window for all of them, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "mixt/predict.h"

#include <sys/stat.h>

enum { SIDE = 8, FRAMES = 3, FRAME = SIDE * SIDE };

static void make_folders(const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(mkdir(temp_path(names[i]), 0700), 0);
}

/** A PGM whose pixels are level + column. */
static void write_ramp(const char *name, int width, int height, int level)
{
    char header[64];
    unsigned char bytes[4096];
    int length = snprintf(header, sizeof header, "P5\n%d %d\n255\n", width, height);
    assert_true((size_t)(length + width * height) <= sizeof bytes);
    memcpy(bytes, header, (size_t)length);
    for (int i = 0; i < width * height; i++)
        bytes[length + i] = (unsigned char)(level + i % width);
    write_file(name, bytes, (size_t)(length + width * height));
}

/** Two classes: run has a clip of five pictures and one of three, walk one of four. Frames of clip c begin at 40 c. */
static void make_set(void)
{
    static const char *const folders[] = {"train",        "train/run", "train/walk", "train/run/a", "train/run/b",
                                          "train/walk/c", "val",       "val/walk",   "val/walk/d"};
    static const struct {
        const char *clip;
        int pictures, level;
    } clips[] = {{"train/run/a", 5, 0}, {"train/run/b", 3, 40}, {"train/walk/c", 4, 80}, {"val/walk/d", 3, 120}};
    char name[64];
    make_folders(folders, sizeof folders / sizeof folders[0]);
    for (size_t c = 0; c < sizeof clips / sizeof clips[0]; c++)
        for (int i = 0; i < clips[c].pictures; i++) {
            snprintf(name, sizeof name, "%s/%03d.pgm", clips[c].clip, i);
            write_ramp(name, SIDE, SIDE, clips[c].level + 5 * i);
        }
    write_text("train/run/a/notes.txt", "not a picture");
    write_text("train/run/readme", "nor a clip");
}

/** Pictures as they are. */
static mixt_data_options as_they_are(void)
{
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options);
    options.crop = options.resize = SIDE;
    options.frames = FRAMES;
    options.normalise = MIXT_NORMALISE_NONE;
    options.in_order = true;
    return options;
}

static void frames_are_spread_over_a_clip(void **state)
{
    (void)state;
    make_set();
    static float input[3 * FRAMES * FRAME];
    static const int32_t labels[3] = {0, 0, 1};
    static const int levels[3][FRAMES] = {{0, 10, 20}, {40, 45, 50}, {80, 85, 95}}; // of 5, 3 and 4 pictures
    int32_t target[3];
    int64_t valid;
    mixt_data *data = open_ok("%s", as_they_are());
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "video");
    assert_int_equal(info->samples, 3);
    assert_string_equal(info->class_names[1], "walk");
    assert_int_equal(info->input_rank, 4);
    assert_true(info->input_dims[0] == FRAMES && info->input_dims[1] == SIDE && info->input_dims[3] == 1);
    check_ok(mixt_data_read(data, 0, 3, input, target, &valid));
    assert_memory_equal(target, labels, sizeof target);
    for (int i = 0; i < 3 * FRAMES * FRAME; i++)
        if (input[i] != (float)(levels[i / FRAME / FRAMES][i / FRAME % FRAMES] + i % SIDE))
            fail_msg("element %d is %g", i, (double)input[i]);
    mixt_data_options part = as_they_are();
    part.split = "val";
    part.like = data;
    mixt_data *val = open_ok("video:%s", part);
    check_ok(mixt_data_read(val, 0, 1, input, target, &valid));
    assert_int_equal(target[0], 1);
    assert_true(input[0] == 120.0f);
    mixt_data_close(val);
    mixt_data_close(data);
}

/** Mirrored or not, cut here or there: all frames of a clip alike. */
static void a_clip_has_one_window(void **state)
{
    (void)state;
    make_set();
    static float input[FRAMES * 16];
    int32_t target;
    int moved = 0;
    mixt_data_options random = as_they_are();
    random.crop = 4;
    random.flip = true;
    mixt_data *data = open_ok("video:%s", random);
    for (int64_t number = 0; number < 12; number++) {
        check_ok(mixt_data_batch(data, 1, number, input, &target));
        for (int i = 0; i < FRAMES * 16; i++)
            assert_true(fabsf(input[i] - input[i / 16 * 16] - input[i % 16] + input[0]) < 1e-3f);
        moved += fabsf(fmodf(input[0], 5) - 2) > 0.1f; // the middle begins with column 2
    }
    assert_true(moved > 0);
    mixt_data_close(data);
}

static void a_clip_is_predicted_as_it_is_read(void **state)
{
    (void)state;
    make_set();
    static float input[FRAMES * FRAME], sample[FRAMES * FRAME];
    int32_t target;
    int64_t valid;
    mixt_inputs *inputs;
    mixt_data_options standard = as_they_are();
    standard.normalise = MIXT_NORMALISE_STANDARD;
    mixt_data *data = open_ok("video:%s", standard);
    check_ok(mixt_data_read(data, 2, 1, input, &target, &valid));
    check_ok(mixt_inputs_open(temp_path("train/walk/c"), data, &inputs));
    assert_int_equal(mixt_inputs_count(inputs), 1);
    check_ok(mixt_inputs_read(inputs, 0, 1, sample));
    assert_memory_equal(input, sample, sizeof sample);
    mixt_inputs_close(inputs);
    // Of another size: resized and cropped, frame by frame.
    make_folders((const char *const[]){"large"}, 1);
    for (int i = 0; i < FRAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "large/%d.pgm", i);
        write_ramp(name, 2 * SIDE, 2 * SIDE, 40 * i);
    }
    check_ok(mixt_inputs_open(temp_path("large"), data, &inputs));
    check_ok(mixt_inputs_read(inputs, 0, 1, sample));
    for (int i = FRAME; i < FRAMES * FRAME; i++)
        assert_true(sample[i] > sample[i - FRAME]);
    mixt_inputs_close(inputs);
    assert_int_equal(mixt_inputs_open(temp_path("train/run"), data, &inputs), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "train/run: a clip without frames ("));
    mixt_data_close(data);
}

static void refused_set(const char *says, mixt_status wanted)
{
    expect_failure("video:%s", as_they_are(), wanted, says);
}

static void bad_clips_are_named(void **state)
{
    (void)state;
    float input[FRAMES * FRAME];
    int32_t target;
    int64_t valid;
    make_set();
    make_folders((const char *const[]){"train/run/empty"}, 1);
    refused_set("train/run/empty: a clip without frames (", MIXT_ERROR_DATA);
    write_ramp("train/run/empty/0.pgm", SIDE, SIDE, 0);
    write_ramp("train/run/empty/1.pgm", SIDE, SIDE, 0);
    refused_set("train/run/empty: a clip of 2 frames, but a sample has 3: lower data.frames", MIXT_ERROR_DATA);
    write_ramp("train/run/empty/2.pgm", SIDE, SIDE + 1, 0);
    mixt_data_options plain = as_they_are(); // nothing is measured, so that it opens
    mixt_data *data = open_ok("video:%s", plain);
    assert_int_equal(mixt_data_read(data, 2, 1, input, &target, &valid), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "empty/2.pgm: 9 x 8 pixels, but the clip's first frame has 8 x 8"));
    mixt_data_close(data);
    write_text("train/run/empty/2.pgm", "P5 8 8 255\ncut");
    plain.normalise = MIXT_NORMALISE_STANDARD;
    expect_failure("video:%s", plain, MIXT_ERROR_FORMAT, "empty/2.pgm");
    unlink(temp_path("train/run/empty/2.pgm"));
    write_text("train/run/empty/2.webp", "RIFF");
    refused_set("empty/2.webp: not an image that mixt reads", MIXT_ERROR_DATA);
    unlink(temp_path("train/run/empty/2.webp"));
    write_ramp("train/run/loose.pgm", SIDE, SIDE, 0);
    write_ramp("train/run/empty/2.pgm", SIDE, SIDE, 0);
    refused_set("train/run/loose.pgm: an image beside clips: a clip is a folder of images", MIXT_ERROR_DATA);
    unlink(temp_path("train/run/loose.pgm"));
    make_folders((const char *const[]){"train/sit"}, 1);
    refused_set("train/sit: a class without clips", MIXT_ERROR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(frames_are_spread_over_a_clip, no_leak),
        cmocka_unit_test_teardown(a_clip_has_one_window, no_leak),
        cmocka_unit_test_teardown(a_clip_is_predicted_as_it_is_read, no_leak),
        cmocka_unit_test_teardown(bad_clips_are_named, no_leak),
    };
    return cmocka_run_group_tests_name("video", tests, temp_folder_setup, temp_folder_teardown);
}
