/* Letters from outputs of CTC models, against a sum over every path; distances between rows of letters; letters as
 * text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "base/rng.h"
#include "mixt/tasks/transcript.h"

enum { FRAMES_MAX = 6, CLASSES_MAX = 4, PATHS_MAX = 4096 }; // 4 ^ 6

/** Letters as a number that tells them apart: digits of base 5. */
static int64_t number_of(const int32_t *letters, int64_t count)
{
    int64_t number = 0;
    for (int64_t i = 0; i < count; i++)
        number = number * 5 + letters[i];
    return number;
}

/** The letters of a path: repeats and blanks left out. */
static int64_t collapse(int path, int64_t frames, int64_t classes, int32_t *letters)
{
    int64_t count = 0;
    int before = 0;
    for (int64_t t = 0; t < frames; t++, path /= (int)classes) {
        int now = path % (int)classes;
        if (now && now != before)
            letters[count++] = now;
        before = now;
    }
    return count;
}

/** Probabilities of all rows of letters, by their numbers. */
static void sum_paths(const float *outputs, int64_t frames, int64_t classes, double *sums)
{
    int paths = (int)lround(pow((double)classes, (double)frames));
    memset(sums, 0, 5 * 5 * 5 * 5 * 5 * 5 * sizeof *sums);
    for (int path = 0; path < paths; path++) {
        int32_t letters[FRAMES_MAX];
        double likely = 1;
        int rest = path;
        for (int64_t t = 0; t < frames; t++, rest /= (int)classes) {
            double all = 0;
            for (int64_t k = 0; k < classes; k++)
                all += exp((double)outputs[t * classes + k]);
            likely *= exp((double)outputs[t * classes + rest % classes]) / all;
        }
        int64_t count = collapse(path, frames, classes, letters);
        sums[number_of(letters, count)] += likely;
    }
}

/** A beam with room for every row finds the likeliest; a narrow one never claims a row that is not there. */
static void beams_find_the_likeliest(void **state)
{
    (void)state;
    static double sums[5 * 5 * 5 * 5 * 5 * 5];
    mixt__rng rng = mixt__rng_start(7);
    int narrow_missed = 0;
    for (int round = 0; round < 200; round++) {
        int64_t frames = 1 + round % FRAMES_MAX, classes = 2 + round / 7 % (CLASSES_MAX - 1), count;
        float outputs[FRAMES_MAX * CLASSES_MAX];
        int32_t letters[FRAMES_MAX];
        double best = 0;
        for (int64_t i = 0; i < frames * classes; i++)
            outputs[i] = 2 * mixt__rng_normal(&rng);
        sum_paths(outputs, frames, classes, sums);
        for (int64_t i = 0; i < 5 * 5 * 5 * 5 * 5 * 5; i++)
            best = fmax(best, sums[i]);
        assert_int_equal(mixt_transcript_decode(outputs, frames, classes, 1000, letters, &count), MIXT_OK);
        if (fabs(sums[number_of(letters, count)] - best) > 1e-12)
            fail_msg("round %d: a row of likelihood %g, but the best has %g", round, sums[number_of(letters, count)],
                     best);
        for (int64_t beam = 2; beam < 5; beam++) {
            assert_int_equal(mixt_transcript_decode(outputs, frames, classes, beam, letters, &count), MIXT_OK);
            assert_true(sums[number_of(letters, count)] > 0);
            narrow_missed += sums[number_of(letters, count)] < best - 1e-12;
        }
    }
    assert_true(narrow_missed < 60); // of 600: they look at fewer rows, but seldom lose the best
}

/** Frame by frame: the likeliest path, whose letters need not be the likeliest. */
static void frames_say_less_than_beams(void **state)
{
    (void)state;
    const float outputs[] = {logf(0.6f), logf(0.4f), logf(0.6f), logf(0.4f)}; // "" 0.36, "a" 0.64
    const float again[] = {0, 5, 0, 5, 5, 0, 0, 5};                           // a a blank a
    int32_t letters[4];
    int64_t count;
    assert_int_equal(mixt_transcript_decode(outputs, 2, 2, 1, letters, &count), MIXT_OK);
    assert_int_equal(count, 0);
    assert_int_equal(mixt_transcript_decode(outputs, 2, 2, 2, letters, &count), MIXT_OK);
    assert_int_equal(count, 1);
    assert_int_equal(letters[0], 1);
    for (int64_t beam = 1; beam < 4; beam++) {
        assert_int_equal(mixt_transcript_decode(again, 4, 2, beam, letters, &count), MIXT_OK);
        assert_int_equal(count, 2);
    }
}

static void what_cannot_be_decoded_is_said(void **state)
{
    (void)state;
    const float good[] = {0, 1}, bad[] = {0, NAN};
    int32_t letters[2];
    int64_t count = 5;
    assert_int_equal(mixt_transcript_decode(bad, 1, 2, 1, letters, &count), MIXT_ERROR_DATA);
    assert_int_equal(count, 0);
    assert_int_equal(mixt_transcript_decode(bad, 1, 2, 4, letters, &count), MIXT_ERROR_DATA);
    assert_int_equal(mixt_transcript_decode(good, 1, 2, 0, letters, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(good, 1, 2, 1001, letters, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(good, 0, 2, 1, letters, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(good, 1, 1, 1, letters, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(NULL, 1, 2, 1, letters, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(good, 1, 2, 1, NULL, &count), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_decode(good, 1, 2, 1, letters, NULL), MIXT_ERROR_ARGUMENT);
    mixt_transcript_rates rates;
    assert_int_equal(mixt_transcript_measure(NULL, NULL, 1, &rates), MIXT_ERROR_ARGUMENT);
    assert_true(rates.samples == 0 && isnan(rates.character_error));
    assert_int_equal(mixt_transcript_measure(NULL, NULL, 1, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_transcript_text(NULL, letters, 1, NULL), MIXT_ERROR_ARGUMENT);
}

static int64_t distance_of(const char *a, const char *b)
{
    int32_t rows[2][32];
    int64_t distance = -1;
    for (size_t i = 0; i <= strlen(a); i++)
        rows[0][i] = a[i];
    for (size_t i = 0; i <= strlen(b); i++)
        rows[1][i] = b[i];
    assert_int_equal(mixt_edit_distance(rows[0], (int64_t)strlen(a), rows[1], (int64_t)strlen(b), &distance), MIXT_OK);
    return distance;
}

static void distances_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int64_t distance;
    } cases[] = {
        {"kitten", "sitting", 3},
        {"sunday", "saturday", 3},
        {"intention", "execution", 5},
        {"flaw", "lawn", 2},
        {"", "abc", 3},
        {"", "", 0},
        {"same", "same", 0},
        {"ab", "ba", 2},
        {"abcdef", "azced", 3},
        {"a", "b", 1},
        {"gumbo", "gambol", 2},
        {"book", "back", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(distance_of(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(distance_of(cases[i].b, cases[i].a), cases[i].distance);
    }
    int64_t distance;
    assert_int_equal(mixt_edit_distance(NULL, 1, NULL, 0, &distance), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_edit_distance(NULL, 0, NULL, -1, &distance), MIXT_ERROR_ARGUMENT);
}

static void letters_are_text(void **state)
{
    (void)state;
    mixt_data *words, *classes;
    const int32_t letters[] = {1, 5, 2, 99};
    char *text;
    assert_int_equal(mixt_data_open("audio:", &words, .samples = 4, .target = MIXT_TARGET_TEXT), MIXT_OK);
    assert_int_equal(mixt_data_open("audio:", &classes, .samples = 4), MIXT_OK);
    assert_int_equal(mixt_transcript_text(words, letters, 4, &text), MIXT_OK);
    assert_string_equal(text, "aue?");
    mixt_free(text);
    assert_int_equal(mixt_transcript_text(words, NULL, 0, &text), MIXT_OK);
    assert_string_equal(text, "");
    mixt_free(text);
    assert_int_equal(mixt_transcript_text(classes, letters, 4, &text), MIXT_ERROR_UNSUPPORTED);
    assert_null(text);
    assert_int_equal(mixt_transcript_text(words, letters, -1, &text), MIXT_ERROR_ARGUMENT);
    mixt_data_close(words);
    mixt_data_close(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(beams_find_the_likeliest, no_leak),
        cmocka_unit_test_teardown(frames_say_less_than_beams, no_leak),
        cmocka_unit_test_teardown(what_cannot_be_decoded_is_said, no_leak),
        cmocka_unit_test_teardown(distances_are_known, no_leak),
        cmocka_unit_test_teardown(letters_are_text, no_leak),
    };
    return cmocka_run_group_tests_name("transcripts", tests, temp_folder_setup, temp_folder_teardown);
}
