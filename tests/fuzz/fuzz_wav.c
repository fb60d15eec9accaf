/* WAV: one recording, read whole and by its header, brought to another rate and made into features; a set of them. */
#include "fuzz.h"

#include "data/audio/audio.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MELS = 8 };

static void make_features(const mixt__wav *wav)
{
    mixt_data_options options =
        MIXT_OPTIONS(mixt_data_options, .rate = wav->rate, .mels = MELS, .seconds = 0.2, .shift = 0.1);
    mixt__audio audio;
    uint64_t key = 5;
    int64_t frames;
    if (wav->rate < 2000) // fewer lines of the spectrum than bands
        return;
    fuzz_require(mixt__audio_make("x", &options, &audio) == MIXT_OK);
    float *features = malloc((size_t)(audio.frames * MELS) * sizeof *features);
    fuzz_require(features && mixt__audio_features(&audio, wav, &key, features, &frames) == MIXT_OK);
    fuzz_require(frames > 0 && frames <= mixt__audio_frames(&audio, wav->count, true) && frames <= audio.frames);
    for (int64_t i = 0; i < frames * MELS; i++)
        fuzz_require(isfinite(features[i]) && features[i] > -14);
    free(features);
    mixt__audio_free(&audio);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    mixt__wav wav, head;
    mkdir(fuzz_path("set"), 0700);
    const char *path = fuzz_file("set/a_1.wav", data, size);
    bool known = fuzz_taken(mixt__wav_probe(path, &head));
    fuzz_require(!head.samples);
    if (fuzz_taken(mixt__wav_read(path, &wav))) {
        fuzz_require(known && wav.count == head.count && wav.rate == head.rate && wav.count > 0);
        for (int64_t i = 0; i < wav.count; i++)
            fuzz_require(isfinite(wav.samples[i]));
        make_features(&wav);
    } else {
        fuzz_require(!wav.samples);
    }
    mixt__wav_free(&wav);
    fuzz_file("set/b_1.wav", data, size);
    snprintf(spec, sizeof spec, "audio:%s", fuzz_path("set"));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all", .rate = 8000, .mels = MELS, .seconds = 0.2));
}
