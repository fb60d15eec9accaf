/* Recordings for tests: WAV files that a test writes, and sets of them. */
#ifndef MIXT_TESTS_RECORDINGS_H
#define MIXT_TESTS_RECORDINGS_H

#include "data_files.h"

#include "mixt/data.h"

#include <math.h>
#include <sys/stat.h>

static const double PI = 3.14159265358979323846;

static inline size_t put(unsigned char *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
    return (size_t)bytes;
}

/** A header of `tag`; 40 bytes of format when `extensible`. Returns its length. */
static inline size_t wav_header(unsigned char *to, int tag, int channels, int rate, int bits, uint32_t data,
                                bool extensible)
{
    size_t at = 0;
    memcpy(to, "RIFF", 4);
    at = 4 + put(to + 4, 36 + data, 4);
    memcpy(to + at, "WAVEfmt ", 8);
    at += 8;
    at += put(to + at, extensible ? 40 : 16, 4);
    at += put(to + at, extensible ? 0xfffe : (uint32_t)tag, 2);
    at += put(to + at, (uint32_t)channels, 2);
    at += put(to + at, (uint32_t)rate, 4);
    at += put(to + at, (uint32_t)(rate * channels * bits / 8), 4);
    at += put(to + at, (uint32_t)(channels * bits / 8), 2);
    at += put(to + at, (uint32_t)bits, 2);
    if (extensible) {
        at += put(to + at, 22, 2);
        at += put(to + at, (uint32_t)bits, 2);
        at += put(to + at, 0, 4);
        at += put(to + at, (uint32_t)tag, 2);
        memcpy(to + at, "\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
        at += 14;
    }
    memcpy(to + at, "data", 4);
    return at + 4 + put(to + at + 4, data, 4);
}

/** 16-bit mono of a sine. */
static inline void write_sine(const char *name, int rate, int count, double hertz, double loud)
{
    unsigned char *bytes = malloc(64 + 2 * (size_t)count);
    size_t at = wav_header(bytes, 1, 1, rate, 16, (uint32_t)count * 2, false);
    for (int i = 0; i < count; i++)
        at += put(bytes + at, (uint32_t)(int32_t)lrint(32767 * loud * sin(2 * PI * hertz * i / rate)), 2);
    write_file(name, bytes, at);
    free(bytes);
}

static inline void make_folder(const char *name)
{
    assert_true(mkdir(temp_path(name), 0700) == 0);
}

static inline mixt_data *open_set(const char *format, mixt_data_options options)
{
    mixt_data *data;
    if (mixt_data_open_with(in_folder(format), &options, &data) != MIXT_OK)
        fail_msg("%s: %s", in_folder(format), mixt_error_text());
    return data;
}

static inline void expect_no_set(const char *format, mixt_data_options options, const char *words)
{
    mixt_data *data;
    assert_int_not_equal(mixt_data_open_with(in_folder(format), &options, &data), MIXT_OK);
    if (!strstr(mixt_error_text(), words))
        fail_msg("no '%s' in: %s", words, mixt_error_text());
}

/** An array of a batch's inputs. */
static inline const int32_t *beside(const mixt_data *data, int64_t batch, const char *name, const void *input)
{
    int array = mixt_data_array_find(mixt_data_describe(data), name);
    assert_true(array > 0);
    return (const int32_t *)(const void *)((const char *)input + mixt_data_array_at(data, batch, array));
}

#endif
