/* Moving digits: clips that are functions of their seed, and digits that move the way that their class says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/data.h"
#include "mixt/types.h"

#include "base/status.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>

enum { CLIPS = 300, FRAMES = 16, SIDE = 32, CLIP = FRAMES * SIDE * SIDE };

static void check_ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static mixt_data *open_moving(const char *spec, mixt_data_options options)
{
    mixt_data *data;
    check_ok(mixt_data_open_with(spec, &options, &data));
    return data;
}

static void clips_are_pure(void **state)
{
    (void)state;
    static float one[CLIP], again[CLIP];
    int32_t label, other;
    int64_t valid;
    mixt__threads_set(2);
    mixt_data *all = open_moving("moving:", MIXT_OPTIONS(mixt_data_options, .samples = CLIPS));
    mixt__threads_set(1);
    mixt_data *few = open_moving("moving", MIXT_OPTIONS(mixt_data_options, .limit = 200));
    mixt_data *seed = open_moving("moving:", MIXT_OPTIONS(mixt_data_options, .limit = 200, .seed = 1));
    mixt_data *test = open_moving("moving:", MIXT_OPTIONS(mixt_data_options, .limit = 200, .split = "test"));
    mixt__threads_set(0);
    const mixt_data_info *info = mixt_data_describe(all);
    assert_int_equal(info->input_rank, 4);
    assert_int_equal(info->input_elements, CLIP);
    assert_int_equal(info->classes, 40);
    assert_string_equal(info->class_names[13], "3 right");
    check_ok(mixt_data_read(all, 150, 1, one, &label, &valid));
    check_ok(mixt_data_read(few, 150, 1, again, &other, &valid));
    assert_memory_equal(one, again, sizeof one);
    assert_int_equal(label, other);
    check_ok(mixt_data_read(seed, 150, 1, again, &other, &valid));
    assert_memory_not_equal(one, again, sizeof one);
    check_ok(mixt_data_read(test, 150, 1, again, &other, &valid));
    assert_memory_not_equal(one, again, sizeof one);
    mixt_data_close(all);
    mixt_data_close(few);
    mixt_data_close(seed);
    mixt_data_close(test);
}

/** The middle of what is far brighter than noise can be. */
static void middle_of(const float *frame, double *y, double *x)
{
    double sum = 0;
    *y = *x = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        double weight = (double)frame[i] > 80 ? (double)frame[i] : 0;
        sum += weight;
        *y += weight * (i / SIDE);
        *x += weight * (i % SIDE);
    }
    *y /= sum + 1e-9;
    *x /= sum + 1e-9;
}

static void digits_move_as_their_class_says(void **state)
{
    (void)state;
    float *clips = malloc(CLIPS * CLIP * sizeof *clips);
    int32_t labels[CLIPS];
    int64_t valid;
    int directions[4] = {0}, digits[10] = {0};
    mixt_data *data =
        open_moving("moving:", MIXT_OPTIONS(mixt_data_options, .samples = CLIPS, .normalise = MIXT_NORMALISE_NONE));
    assert_non_null(clips);
    check_ok(mixt_data_read(data, 0, CLIPS, clips, labels, &valid));
    for (int i = 0; i < CLIPS; i++) {
        static const int down[] = {0, 0, -1, 1}, right[] = {-1, 1, 0, 0};
        int direction = labels[i] % 4;
        double y0, x0, y1, x1;
        middle_of(clips + (size_t)i * CLIP, &y0, &x0);
        middle_of(clips + (size_t)i * CLIP + CLIP - SIDE * SIDE, &y1, &x1);
        double along = (y1 - y0) * down[direction] + (x1 - x0) * right[direction];
        double across = fabs(down[direction] ? x1 - x0 : y1 - y0);
        if (!(along > 4 && across < 2))
            fail_msg("clip %d, class %d: moves %.1f along, %.1f across", i, labels[i], along, across);
        directions[direction]++;
        digits[labels[i] / 4]++;
    }
    for (int d = 0; d < 4; d++)
        assert_in_range(directions[d], 45, 110);
    for (int d = 0; d < 10; d++)
        assert_in_range(digits[d], 10, 60);
    free(clips);
    mixt_data_close(data);
}

static void statistics_fit(void **state)
{
    (void)state;
    float *clips = malloc(CLIPS * CLIP * sizeof *clips);
    int32_t labels[CLIPS];
    int64_t valid;
    double sum = 0, squares = 0;
    mixt_data *data = open_moving("moving:", MIXT_OPTIONS(mixt_data_options, .samples = CLIPS));
    assert_non_null(clips);
    check_ok(mixt_data_read(data, 0, CLIPS, clips, labels, &valid));
    for (int64_t i = 0; i < CLIPS * CLIP; i++) {
        sum += (double)clips[i];
        squares += (double)clips[i] * (double)clips[i];
    }
    assert_float_equal(sum / (CLIPS * CLIP), 0, 0.03);
    assert_float_equal(squares / (CLIPS * CLIP), 1, 0.06);
    free(clips);
    mixt_data_close(data);
}

static void sizes_are_chosen_or_refused(void **state)
{
    (void)state;
    mixt_data *data = open_moving("moving:48x64", MIXT_OPTIONS(mixt_data_options, .samples = 4, .frames = 5));
    const int64_t *dims = mixt_data_describe(data)->input_dims;
    assert_true(dims[0] == 5 && dims[1] == 48 && dims[2] == 64 && dims[3] == 1);
    mixt_data_close(data);
    const struct {
        const char *spec;
        mixt_data_options options;
        const char *says;
    } refused[] = {
        {"moving:8x8", MIXT_OPTIONS(mixt_data_options, .samples = 4), "from 16x16 to 4096x4096"},
        {"moving:32", MIXT_OPTIONS(mixt_data_options, .samples = 4), "moving:32: expected the size of a frame"},
        {"moving:", MIXT_OPTIONS(mixt_data_options, .samples = 4, .frames = 1), "1 frames does not move"},
        {"moving:", MIXT_OPTIONS(mixt_data_options, .samples = 4, .frames = -2), "frames -2"},
        {"moving:", MIXT_OPTIONS(mixt_data_options, .samples = 4, .classes = 10), "has 40 classes, not 10"},
        {"moving:", MIXT_OPTIONS(mixt_data_options, .samples = 4, .crop = 16), "'crop' is not for moving"},
        {"digits:", MIXT_OPTIONS(mixt_data_options, .samples = 4, .frames = 8), "'frames' is not for digits"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(mixt_data_open_with(refused[i].spec, &refused[i].options, &data), MIXT_ERROR_CONFIG);
        if (!strstr(mixt_error_text(), refused[i].says))
            fail_msg("'%s' does not say '%s'", mixt_error_text(), refused[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clips_are_pure),
        cmocka_unit_test(digits_move_as_their_class_says),
        cmocka_unit_test(statistics_fit),
        cmocka_unit_test(sizes_are_chosen_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
