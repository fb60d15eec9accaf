/* Recordings whose targets are what is said in them: where texts are found, how long samples are, and what is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"
#include "recordings.h"

#include "data/audio/audio.h"
#include "mixt/predict.h"
#include "mixt/tasks/transcript.h"

/** The letters of sample `index` as text. */
static const char *text_of(const mixt_data *data, int64_t index)
{
    static char kept[256];
    char *text;
    const mixt_data_info *info = mixt_data_describe(data);
    float *sample = malloc(mixt_data_input_bytes(data, 1));
    char *target = malloc(mixt_data_target_bytes(data, 1));
    int64_t valid;
    assert_int_equal(mixt_data_read(data, index, 1, sample, target, &valid), MIXT_OK);
    int letters = mixt_data_array_find(info, "target"), lengths = mixt_data_array_find(info, "target.length");
    int32_t length = *(int32_t *)(void *)(target + mixt_data_array_at(data, 1, lengths));
    assert_int_equal(mixt_transcript_text(data, (int32_t *)(void *)target, length, &text), MIXT_OK);
    snprintf(kept, sizeof kept, "%s", text);
    mixt_free(text);
    for (int64_t i = length; i < info->arrays[letters].elements; i++)
        assert_int_equal(((int32_t *)(void *)target)[i], -1);
    free(sample);
    free(target);
    return kept;
}

/** LibriSpeech's folders and one file for all parts: the same texts; samples have room for the longest of any part. */
static void transcripts_are_found(void **state)
{
    (void)state;
    const char *folders[] = {"libri",      "libri/train", "libri/train/19", "libri/train/19/198",
                             "libri/test", "libri/test/7"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        make_folder(folders[i]);
    write_sine("libri/train/19/198/19-198-0000.wav", 8000, 900, 500, 0.1);
    write_sine("libri/train/19/198/19-198-0001.wav", 8000, 1200, 500, 0.1);
    write_sine("libri/test/7/a.wav", 8000, 2000, 900, 0.1);
    write_text("libri/train/19/198/19-198.trans.txt", "19-198-0000 NO \r\n19-198-0001 SO ÉTÉ\n");
    write_text("libri/test/7/transcripts.tsv", "\xef\xbb\xbfpath\tsentence\na.wav\tÉÉÉ SO NO\n");
    for (int round = 0; round < 3; round++) {
        mixt_data_options o =
            MIXT_OPTIONS(mixt_data_options, .val = 0, .labels = round == 2 ? in_folder("%s/all.tsv") : NULL);
        if (round) {
            unlink(temp_path("libri/test/7/transcripts.tsv"));
            unlink(temp_path("libri/train/19/198/19-198.trans.txt"));
            write_text(round == 1 ? "libri/transcripts.tsv" : "all.tsv",
                       "train/19/198/19-198-0001.wav\tSO ÉTÉ\n19-198-0000\tNO\n7\tÉÉÉ SO NO\n");
        }
        mixt_data *train = open_set("audio:%s/libri", o);
        o.like = train;
        o.split = "test";
        mixt_data *test = open_set("audio:%s/libri", o);
        assert_int_equal(mixt_data_describe(train)->target, MIXT_TARGET_TEXT);
        assert_int_equal(mixt_data_describe(train)->samples, 2);
        assert_int_equal(mixt_data_describe(train)->classes, 7); // blank, space, N O S T É
        assert_int_equal(mixt_data_describe(train)->arrays[3].elements, 9);
        assert_int_equal(mixt_data_describe(train)->input_dims[0],
                         76); // 2000 samples and half a second, one frame every 80
        assert_int_equal(mixt_data_describe(test)->input_dims[0], 76);
        assert_string_equal(text_of(train, 0), "NO");
        assert_string_equal(text_of(train, 1), "SO ÉTÉ");
        assert_string_equal(text_of(test, 0), "ÉÉÉ SO NO");
        mixt_data_close(train);
        mixt_data_close(test);
        if (round == 1)
            unlink(temp_path("libri/transcripts.tsv"));
    }
}

/** Names are texts where nothing else says; letters of other parts than the training part's are mistakes. */
static void classes_are_texts(void **state)
{
    (void)state;
    make_folder("spelled");
    make_folder("spelled/train");
    make_folder("spelled/test");
    write_sine("spelled/train/no_1.wav", 8000, 900, 500, 0.1);
    write_sine("spelled/train/so_1.wav", 8000, 900, 900, 0.1);
    write_sine("spelled/test/now_1.wav", 8000, 900, 900, 0.1);
    mixt_data *train =
        open_set("audio:%s/spelled", MIXT_OPTIONS(mixt_data_options, .val = 0, .target = MIXT_TARGET_TEXT));
    mixt_data *test = open_set("audio:%s/spelled", MIXT_OPTIONS(mixt_data_options, .split = "test",
                                                                .target = MIXT_TARGET_TEXT, .like = train));
    assert_string_equal(text_of(train, 1), "so");
    assert_string_equal(text_of(test, 0), "no?");
    assert_null(mixt_data_describe(train)->warnings);
    assert_non_null(strstr(mixt_data_describe(test)->warnings, "1 texts of the test part have letters"));
    mixt_data_close(test);
    write_sine("spelled/test/now_1.wav", 8000, 1000, 900, 0.1);
    expect_no_set("audio:%s/spelled",
                  MIXT_OPTIONS(mixt_data_options, .split = "test", .target = MIXT_TARGET_TEXT, .like = train),
                  "now_1.wav: lasts 0.12 seconds, but samples are 0.11 long");
    mixt_inputs *inputs;
    assert_int_not_equal(mixt_inputs_open(in_folder("%s/spelled/test/now_1.wav"), train, &inputs), MIXT_OK);
    rename(temp_path("spelled/test/now_1.wav"), temp_path("spelled/test/none_1.wav"));
    expect_no_set("audio:%s/spelled",
                  MIXT_OPTIONS(mixt_data_options, .split = "test", .target = MIXT_TARGET_TEXT, .like = train),
                  "none_1.wav: its text has 4 letters, but the longest text of training has 3");
    mixt_data_close(train);
    write_sine("spelled/train/so.wav", 8000, 900, 900, 0.1);
    expect_no_set("audio:%s/spelled", MIXT_OPTIONS(mixt_data_options, .target = MIXT_TARGET_TEXT),
                  "so.wav: has no transcript: expected transcripts.tsv (name, tab, text)");
}

/** A sample has the frames of its recording, cut where it is too long; nothing is behind its end. */
static void samples_are_as_long_as_recordings(void **state)
{
    (void)state;
    enum { FRAMES = 26, MELS = 20, SIZE = FRAMES * MELS + 128 };
    static const int counts[] = {700, 1600, 1999, 2000, 9000}, frames[] = {16, 21, 25, 26, 26};
    static float plain[SIZE], moved[SIZE];
    int32_t label;
    int64_t valid;
    char name[64];
    make_folder("long");
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "long/a%d_1.wav", i);
        write_sine(name, 8000, counts[i], 500, 0.5);
    }
    mixt_data *data = open_set("audio:%s/long", MIXT_OPTIONS(mixt_data_options, .val = 0, .mels = MELS, .seconds = 0.25,
                                                             .shift = 0.02, .in_order = true));
    int longer = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mixt_data_read(data, i, 1, plain, &label, &valid), MIXT_OK);
        assert_int_equal(*beside(data, 1, "input.length", plain), frames[i]);
        const float *mask = (const float *)beside(data, 1, "input.mask", plain);
        for (int t = 0; t < FRAMES; t++)
            assert_true(mask[t] == (t < frames[i] ? 1.0f : 0.0f));
        for (int k = frames[i] * MELS; k < FRAMES * MELS; k++)
            assert_true(plain[k] == 0);
        for (int epoch = 0; epoch < 8; epoch++) { // silence before it, or another part of it
            assert_int_equal(mixt_data_batch(data, 1, 5 * epoch + i, moved, &label), MIXT_OK);
            int32_t length = *beside(data, 1, "input.length", moved);
            assert_true(length >= frames[i] && length <= frames[i] + 2 && length <= FRAMES);
            longer += length > frames[i];
        }
    }
    assert_true(longer > 0);
    mixt_data_close(data);
}

static void bad_transcripts_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *words;
    } cases[] = {
        {"a.wav\tx\nb.wav y\n", "bad.tsv:2: expected the name of a recording, a tab, and its text"},
        {"\tx\n", "bad.tsv:1: expected the name"},
        {"a.wav\tx\n", "b.wav: has no line in"},
        {"a.wav\tx\nb.wav\ty\n\na.wav\tz\n", "bad.tsv:4: 'a.wav' has another text in line 1"},
        {"a.wav\tx\nb.wav\ty\tz\n", "bad.tsv:2: has more than one tab: expected the name, a tab, and the text"},
        {"a.wav\tx\nb.wav\t\xff\n", "bad.tsv:2: is not UTF-8 text"},
        {"a.wav\t\nb.wav\t  \n", ": its texts are empty"},
        {"", "is empty"},
    };
    make_folder("said");
    write_sine("said/a.wav", 8000, 900, 500, 0.1);
    write_sine("said/b.wav", 8000, 900, 900, 0.1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("bad.tsv", cases[i].lines);
        expect_no_set("audio:%s/said", MIXT_OPTIONS(mixt_data_options, .labels = in_folder("%s/bad.tsv")),
                      cases[i].words);
    }
    write_text("ok.tsv", "a\tyes\nb\tno\n");
    expect_no_set("audio:%s/said", MIXT_OPTIONS(mixt_data_options, .labels = in_folder("%s/ok.tsv"), .classes = 3),
                  ": 'classes' is not for targets that are texts; leave it out");
    expect_no_set("audio:%s/said", MIXT_OPTIONS(mixt_data_options, .labels = in_folder("%s/ok.tsv"), .seconds = 0.05),
                  "a.wav: lasts 0.11 seconds, but samples are 0.05 long");
    expect_no_set("audio:", MIXT_OPTIONS(mixt_data_options, .target = MIXT_TARGET_TEXT, .seconds = 0.3),
                  "lasts 0.66 seconds");
    expect_no_set("audio:%s/said", MIXT_OPTIONS(mixt_data_options, .labels = in_folder("%s/none.tsv")),
                  "none.tsv: No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(transcripts_are_found, no_leak),
        cmocka_unit_test_teardown(classes_are_texts, no_leak),
        cmocka_unit_test_teardown(samples_are_as_long_as_recordings, no_leak),
        cmocka_unit_test_teardown(bad_transcripts_are_named, no_leak),
    };
    return cmocka_run_group_tests_name("audio texts", tests, temp_folder_setup, temp_folder_teardown);
}
