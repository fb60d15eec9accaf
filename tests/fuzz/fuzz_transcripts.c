/* Transcripts: lines of names and texts, with a tab and as LibriSpeech has them, beside two recordings. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/** A recording of 80 samples of silence. */
static const uint8_t silence[124] = "RIFF\x74\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x8\0data\x50";

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options, .split = "all", .mels = 4, .target = MIXT_TARGET_TEXT);
    mkdir(fuzz_path("set"), 0700);
    mkdir(fuzz_path("set/in"), 0700);
    fuzz_file("set/a_1.wav", silence, sizeof silence);
    fuzz_file("set/in/b.wav", silence, sizeof silence);
    snprintf(spec, sizeof spec, "audio:%s", fuzz_path("set"));
    const char *beside = fuzz_file("set/transcripts.tsv", data, size);
    fuzz_data_set(spec, options);
    unlink(beside);
    options.labels = fuzz_file("x.trans.txt", data, size);
    fuzz_data_set(spec, options);
}
