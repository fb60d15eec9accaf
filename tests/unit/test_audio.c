/* WAV files, log-mel features, changes of rate, and sets of recordings: exact numbers, definitions, and what is
 * refused. */
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

#include <sys/stat.h>

/* ---- files ---- */

static void every_coding_is_exact(void **state)
{
    (void)state;
    static const struct {
        int tag, channels, bits;
        const char *data;
        uint32_t size;
        int count;
        float samples[2];
    } cases[] = {
        {1, 1, 8, "\x00\xc0", 2, 2, {-1, 0.5f}},
        {1, 1, 16, "\x00\x80\x00\x40", 4, 2, {-1, 0.5f}},
        {1, 1, 24, "\x00\x00\x80\x00\x00\x40", 6, 2, {-1, 0.5f}},
        {1, 1, 32, "\x00\x00\x00\x80\x00\x00\x00\x40", 8, 2, {-1, 0.5f}},
        {3, 1, 32, "\x00\x00\x80\xbf\x00\x00\x00\x3f", 8, 2, {-1, 0.5f}},
        {3, 1, 64, "\0\0\0\0\0\0\xf0\xbf\0\0\0\0\0\0\xe0\x3f", 16, 2, {-1, 0.5f}},
        {1, 2, 16, "\x00\x80\x00\x40\x00\x40\x00\x40", 8, 2, {-0.25f, 0.5f}}, // the mean of both channels
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[128];
        mixt__wav wav, head;
        size_t c = i / 2;
        size_t at = wav_header(bytes, cases[c].tag, cases[c].channels, 8000, cases[c].bits, cases[c].size, i % 2);
        memcpy(bytes + at, cases[c].data, cases[c].size);
        write_file("a.wav", bytes, at + cases[c].size);
        if (mixt__wav_read(in_folder("%s/a.wav"), &wav) != MIXT_OK)
            fail_msg("%d: %s", (int)i, mixt_error_text());
        assert_int_equal(mixt__wav_probe(in_folder("%s/a.wav"), &head), MIXT_OK);
        assert_int_equal(wav.count, cases[c].count);
        assert_int_equal(head.count, cases[c].count);
        assert_int_equal(wav.rate, 8000);
        assert_memory_equal(wav.samples, cases[c].samples, sizeof cases[c].samples);
        mixt__wav_free(&wav);
    }
}

/** A good file of 4 samples with `bytes` written at `offset`, cut to `size` bytes. */
static void expect_refused(size_t offset, const char *bytes, size_t length, size_t size, const char *words)
{
    unsigned char file[128] = {0};
    mixt__wav wav;
    wav_header(file, 1, 1, 8000, 16, 8, false);
    memcpy(file + offset, bytes, length);
    write_file("bad.wav", file, size);
    assert_int_not_equal(mixt__wav_read(in_folder("%s/bad.wav"), &wav), MIXT_OK);
    assert_null(wav.samples);
    if (!strstr(mixt_error_text(), words))
        fail_msg("no '%s' in: %s", words, mixt_error_text());
    assert_int_not_equal(mixt__wav_probe(in_folder("%s/bad.wav"), &wav), MIXT_OK);
}

static void bad_files_are_named(void **state)
{
    (void)state;
    expect_refused(0, "XIFF", 4, 52, ": is not a WAV file: it does not begin with RIFF and WAVE");
    expect_refused(0, "RIFX", 4, 52, "of the kind RIFX");
    expect_refused(20, "\x07", 1, 52, "mu-law of 16 bits");
    expect_refused(20, "\x55", 1, 52, "MP3");
    expect_refused(34, "\x0c", 1, 52, "PCM of 12 bits");
    expect_refused(22, "\0\0", 2, 52, "0 channels");
    expect_refused(24, "\x01\0\0\0", 4, 52, "1 samples per second");
    expect_refused(32, "\x03", 1, 52, "3 bytes are one sample");
    expect_refused(40, "\0\0\0\0", 4, 52, "has no samples");
    expect_refused(40, "\x07", 1, 52, "end in the middle of one");
    expect_refused(40, "\xff\xff", 2, 52, "is cut off: its header says 65535 bytes");
    expect_refused(0, "RIFF", 4, 50, "is cut off: its header says 8 bytes of samples, but it has 6");
    expect_refused(0, "RIFF", 4, 40, "holds no samples");
    expect_refused(16, "\x08", 1, 52, "its format has 8 bytes");
    expect_refused(12, "tmp ", 4, 52, ": its samples come before its format");
    unsigned char file[64];
    mixt__wav wav;
    size_t at = wav_header(file, 3, 1, 8000, 32, 8, false);
    memcpy(file + at, "\0\0\0\0\0\0\xc0\x7f", 8);
    write_file("nan.wav", file, at + 8);
    assert_int_equal(mixt__wav_read(in_folder("%s/nan.wav"), &wav), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "nan.wav: sample 1 is"));
}

/** A writer to a pipe leaves 2^32 - 1; parts of odd length have one byte more; others are passed over. */
static void odd_files_are_read(void **state)
{
    (void)state;
    unsigned char file[128];
    mixt__wav wav;
    size_t at = wav_header(file, 1, 1, 8000, 16, UINT32_MAX, false) - 8;
    memcpy(file + at, "LIST\3\0\0\0abc\0data\xff\xff\xff\xff\0\x40", 22);
    write_file("odd.wav", file, at + 22);
    assert_int_equal(mixt__wav_read(in_folder("%s/odd.wav"), &wav), MIXT_OK);
    assert_int_equal(wav.count, 1);
    assert_true(wav.samples[0] == 0.5f);
    mixt__wav_free(&wav);
}

/* ---- features ---- */

/** Frame t by the definition, without any transform: the sum over samples of x w e^(-i…), for each line. */
static void plain_frame(const mixt__mel *mel, const float *x, int64_t count, int64_t t, double *bands)
{
    double top = 2595 * log10(1 + (double)mel->rate / 2 / 700);
    for (int64_t m = 0; m < mel->mels; m++)
        bands[m] = 0;
    for (int64_t k = 0; k <= mel->size / 2; k++) {
        double re = 0, im = 0, hertz = (double)k * (double)mel->rate / (double)mel->size;
        for (int64_t n = 0; n < mel->window; n++) {
            int64_t at = t * mel->hop - mel->size / 2 + (mel->size - mel->window) / 2 + n;
            double w = 0.5 - 0.5 * cos(2 * PI * (double)n / (double)mel->window);
            double v = at >= 0 && at < count ? (double)x[at] * w : 0;
            re += v * cos(2 * PI * (double)k * (double)n / (double)mel->size);
            im -= v * sin(2 * PI * (double)k * (double)n / (double)mel->size);
        }
        for (int64_t m = 0; m < mel->mels; m++) {
            double points[3];
            for (int p = 0; p < 3; p++)
                points[p] = 700 * (pow(10, top * (double)(m + p) / (double)(mel->mels + 1) / 2595) - 1);
            double up = (hertz - points[0]) / (points[1] - points[0]);
            double down = (points[2] - hertz) / (points[2] - points[1]);
            bands[m] += fmax(0, fmin(up, down)) * (re * re + im * im);
        }
    }
}

static void features_are_as_defined(void **state)
{
    (void)state;
    static const struct {
        int64_t rate, mels, count;
        double window, hop;
    } cases[] = {{8000, 40, 700, 25, 10}, {16000, 20, 1000, 32, 7}, {8000, 5, 1, 10, 10}, {11025, 13, 999, 23.5, 11}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        mixt__mel mel;
        float x[1000], features[40 * 32];
        double work[2048], bands[40];
        assert_int_equal(mixt__mel_make("x", cases[c].rate, cases[c].mels, cases[c].window, cases[c].hop, &mel),
                         MIXT_OK);
        assert_true(mixt__mel_workspace(&mel) <= sizeof work);
        mixt__rng rng = mixt__rng_start(7);
        for (int64_t i = 0; i < cases[c].count; i++)
            x[i] = mixt__rng_normal(&rng) * 0.1f;
        mixt__mel_apply(&mel, x, cases[c].count, work, features);
        for (int64_t t = 0; t < mixt__mel_frames(&mel, cases[c].count); t++) {
            plain_frame(&mel, x, cases[c].count, t, bands);
            for (int64_t m = 0; m < mel.mels; m++) {
                double wanted = log(fmax(bands[m], 1e-6));
                assert_true(fabs((double)features[t * mel.mels + m] - wanted) < 1e-6 * (1 + fabs(wanted)));
            }
        }
        mixt__mel_free(&mel);
    }
    mixt__mel mel;
    assert_int_equal(mixt__mel_make("x", 8000, 400, 25, 10, &mel), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "covers no line of the spectrum, which has"));
    assert_int_equal(mixt__mel_make("x", 100, 4, 10, 10, &mel), MIXT_ERROR_CONFIG);
}

/** A tone far below both limits stays the tone that it was; one above the new limit goes. */
static void rates_change_what_they_should(void **state)
{
    (void)state;
    static const int pairs[][2] = {{8000, 16000}, {16000, 8000}, {44100, 16000}, {8000, 11025}};
    static float from[44100], made[44100];
    for (int p = 0; p < 4; p++) {
        int rate = pairs[p][0], to = pairs[p][1];
        int64_t length = mixt__resampled(rate / 2, rate, to);
        for (int pass = 0; pass < 2; pass++) {
            double hertz = pass ? (to < rate ? to * 0.8 : rate * 0.1) : 440, worst = 0;
            for (int i = 0; i < rate / 2; i++)
                from[i] = (float)sin(2 * PI * hertz * i / rate);
            mixt__rate_change(from, rate / 2, rate, to, made);
            for (int64_t i = length / 4; i < 3 * length / 4; i++) {
                double wanted = pass && to < rate ? 0 : sin(2 * PI * hertz * (double)i / to);
                worst = fmax(worst, fabs((double)made[i] - wanted));
            }
            if (worst > 0.01)
                fail_msg("%d to %d, %g Hz: off by %g", rate, to, hertz, worst);
        }
    }
    assert_int_equal(mixt__resampled(441, 44100, 16000), 160);
    assert_int_equal(mixt__resampled(1, 8000, 16000), 2);
}

/* ---- sets ---- */

/** Names say class and part; parts do not overlap; samples have the shape that the options ask for. */
static void names_say_class_and_part(void **state)
{
    (void)state;
    char name[64];
    make_folder("digits");
    for (int word = 0; word < 2; word++)
        for (int take = 0; take < 10; take++) {
            snprintf(name, sizeof name, "digits/%s_me_%d.wav", word ? "one" : "two", take);
            write_sine(name, 8000, 2000 + 100 * take, word ? 300 : 2000, 0.5);
        }
    write_text("digits/README", "not a recording");
    mixt_data *train =
        open_set("%s/digits", MIXT_OPTIONS(mixt_data_options, .test_files = "*_[0-4].wav", .val = 0.2, .mels = 20));
    mixt_data *val = open_set("audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .test_files = "*_[0-4].wav",
                                                              .val = 0.2, .mels = 20, .split = "val", .like = train));
    mixt_data *test = open_set(
        "audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .test_files = "*_[0-4].wav", .split = "test", .mels = 20));
    const mixt_data_info *info = mixt_data_describe(train);
    assert_string_equal(info->kind, "audio");
    assert_int_equal(info->samples, 8);
    assert_int_equal(mixt_data_describe(val)->samples, 2);
    assert_int_equal(mixt_data_describe(test)->samples, 10);
    assert_int_equal(info->input_rank, 2);
    assert_int_equal(info->input_dims[0], 101);
    assert_int_equal(info->input_dims[1], 20);
    assert_int_equal(info->classes, 2);
    assert_string_equal(info->class_names[0], "one");
    static float samples[10 * 101 * 22], again[10 * 101 * 22];
    assert_true(mixt_data_input_bytes(test, 10) <= sizeof samples);
    int32_t labels[10];
    int64_t valid;
    assert_int_equal(mixt_data_read(test, 0, 10, samples, labels, &valid), MIXT_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(labels[i], i / 5); // one_…, then two_…
    mixt_inputs *inputs;
    assert_int_equal(mixt_inputs_open(in_folder("%s/digits/two_me_0.wav"), test, &inputs), MIXT_OK);
    assert_int_equal(mixt_inputs_count(inputs), 1);
    assert_int_equal(mixt_inputs_read(inputs, 0, 1, again), MIXT_OK);
    for (int i = 0; i < 101 * 20; i++)
        assert_true(fabsf(again[i] - samples[5 * 101 * 20 + i]) < 1e-5f * (1 + fabsf(again[i])));
    assert_int_equal(beside(test, 1, "input.length", again)[0], 26); // 2000 samples, one frame every 80
    assert_int_equal(beside(test, 10, "input.length", samples)[5], 26);
    assert_int_equal(beside(test, 10, "input.length", samples)[6], 27);
    assert_memory_equal(beside(test, 1, "input.mask", again), beside(test, 10, "input.mask", samples) + 5 * 101,
                        101 * sizeof *again);
    mixt_inputs_close(inputs);
    mixt_data_close(train);
    mixt_data_close(val);
    mixt_data_close(test);
    expect_no_set("audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .val_files = "three*"),
                  ": no recording matches val_files=");
    expect_no_set("audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .mels = 20, .mel_mask = 20), "hides all");
    expect_no_set("audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .hop = -1), "hop -1");
    expect_no_set("audio:%s/digits", MIXT_OPTIONS(mixt_data_options, .crop = 3), "'crop' is not for audio");
    expect_no_set("csv:%s/digits", MIXT_OPTIONS(mixt_data_options, .rate = 8000), "'rate' is not for csv");
}

static void folders_are_classes(void **state)
{
    (void)state;
    make_folder("words");
    make_folder("words/train");
    make_folder("words/train/no");
    make_folder("words/train/yes");
    make_folder("words/test");
    make_folder("words/test/yes");
    write_sine("words/train/no/a.wav", 8000, 900, 500, 0.1);
    write_sine("words/train/no/b.wav", 8000, 90000, 500, 0.1);
    write_sine("words/train/yes/a.wav", 8000, 900, 900, 0.1);
    write_sine("words/train/yes/b.wav", 8000, 900, 900, 0.1);
    write_sine("words/test/yes/a.wav", 16000, 1800, 900, 0.1);
    mixt_data *test = open_set("%s/words", MIXT_OPTIONS(mixt_data_options, .split = "test", .seconds = 0.2));
    int64_t frames = mixt_data_describe(test)->input_dims[0]; // at the training part's rate, which is the lowest
    mixt_data_close(test);
    test = open_set("%s/words", MIXT_OPTIONS(mixt_data_options, .split = "test", .rate = 8000, .seconds = 0.2));
    assert_int_equal(frames, mixt_data_describe(test)->input_dims[0]);
    float sample[21 * 40 + 64];
    int32_t label = -1;
    int64_t valid;
    assert_int_equal(mixt_data_read(test, 0, 1, sample, &label, &valid), MIXT_OK);
    assert_int_equal(label, 1);
    mixt_data_close(test);
    mixt_data *val = open_set("audio:%s/words", MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.25));
    assert_int_equal(mixt_data_describe(val)->samples, 1);
    mixt_data_close(val);
    make_folder("words/train/maybe");
    expect_no_set("audio:%s/words", MIXT_OPTIONS(mixt_data_options, .rate = 8000), "maybe: a class without WAV files");
    write_text("words/train/maybe/a.mp3", "x");
    expect_no_set("audio:%s/words", MIXT_OPTIONS(mixt_data_options, .rate = 8000), "maybe/a.mp3: cannot be read");
    make_folder("none");
    expect_no_set("audio:%s/none", MIXT_OPTIONS(mixt_data_options, .rate = 8000), "holds no WAV files");
    write_sine("none/word.wav", 8000, 900, 900, 0.1);
    expect_no_set("audio:%s/none", MIXT_OPTIONS(mixt_data_options, .rate = 8000),
                  "word.wav: unknown class: expected CLASS_….wav, or one folder for each");
}

/** What is random is a function of seed, epoch and sample, changes training only, and hides what it says. */
static void training_samples_are_changed(void **state)
{
    (void)state;
    enum { FRAMES = 101, MELS = 40, SIZE = FRAMES * MELS + 128 };
    static float plain[SIZE], first[SIZE], second[SIZE], again[SIZE];
    int32_t label;
    int64_t valid;
    static const mixt_data_options changes[] = {
        {MIXT_DEFAULTS_mixt_data_options, .samples = 1, .shift = 0.2},
        {MIXT_DEFAULTS_mixt_data_options, .samples = 1, .noise = 0.5},
        {MIXT_DEFAULTS_mixt_data_options, .samples = 1, .time_mask = 50, .mel_mask = 20},
    };
    for (int c = 0; c < 3; c++) {
        mixt_data *data = open_set("audio:", changes[c]);
        assert_int_equal(mixt_data_read(data, 0, 1, plain, &label, &valid), MIXT_OK);
        assert_int_equal(mixt_data_batch(data, 1, 3, first, &label), MIXT_OK);
        assert_int_equal(mixt_data_batch(data, 1, 4, second, &label), MIXT_OK);
        assert_int_equal(mixt_data_batch(data, 1, 3, again, &label), MIXT_OK);
        assert_memory_equal(first, again, sizeof first);
        assert_memory_not_equal(first, second, sizeof first);
        assert_memory_not_equal(first, plain, sizeof first);
        for (int i = 0; i < FRAMES * MELS && c == 2; i++)
            assert_true(first[i] == 0 || first[i] == plain[i]);
        int32_t frames = *beside(data, 1, "input.length", plain);
        assert_true(c == 0 || *beside(data, 1, "input.length", first) == frames);
        for (int i = 0; i < frames * MELS && c == 1; i++) // noise is all over it, and not behind it
            assert_true(first[i] != plain[i]);
        for (int i = frames * MELS; i < FRAMES * MELS && c; i++)
            assert_true(first[i] == 0 && plain[i] == 0);
        mixt_data_close(data);
    }
}

static void mixt_speaks_by_itself(void **state)
{
    (void)state;
    mixt_data *train = open_set("audio:", MIXT_OPTIONS(mixt_data_options, .samples = 64));
    mixt_data *val = open_set("audio:", MIXT_OPTIONS(mixt_data_options, .split = "val", .like = train));
    assert_int_equal(mixt_data_describe(train)->classes, 10);
    assert_int_equal(mixt_data_describe(val)->samples, 400);
    float *a = malloc(mixt_data_input_bytes(train, 1));
    int32_t labels[2];
    int64_t valid;
    bool seen[10] = {0};
    for (int i = 0; i < 64; i++) {
        assert_int_equal(mixt_data_read(train, i, 1, a, labels, &valid), MIXT_OK);
        for (int k = 0; k < 101 * 40; k++)
            assert_true(fabsf(a[k]) < 20);
        seen[labels[0]] = true;
    }
    for (int k = 0; k < 10; k++)
        assert_true(seen[k]);
    free(a);
    mixt_data_close(train);
    mixt_data_close(val);
    expect_no_set("audio:", MIXT_OPTIONS(mixt_data_options, .test_files = "*"), "need recordings");
    expect_no_set("audio:", MIXT_OPTIONS(mixt_data_options, .rate = 16000), "words have 8000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_coding_is_exact, no_leak),
        cmocka_unit_test_teardown(bad_files_are_named, no_leak),
        cmocka_unit_test_teardown(odd_files_are_read, no_leak),
        cmocka_unit_test_teardown(features_are_as_defined, no_leak),
        cmocka_unit_test_teardown(rates_change_what_they_should, no_leak),
        cmocka_unit_test_teardown(names_say_class_and_part, no_leak),
        cmocka_unit_test_teardown(folders_are_classes, no_leak),
        cmocka_unit_test_teardown(training_samples_are_changed, no_leak),
        cmocka_unit_test_teardown(mixt_speaks_by_itself, no_leak),
    };
    return cmocka_run_group_tests_name("audio", tests, temp_folder_setup, temp_folder_teardown);
}
