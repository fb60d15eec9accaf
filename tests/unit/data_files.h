/* Small files for tests of file readers, in the test's own folder. */
#ifndef MIXT_TESTS_DATA_FILES_H
#define MIXT_TESTS_DATA_FILES_H

#include "base/alloc.h"
#include "mixt/data.h"
#include "../support/temp_folder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/** A path or spec: "%s" of the format is the folder. Four results stay valid. */
static inline const char *in_folder(const char *format)
{
    static char ring[4][512];
    static int next;
    char *text = ring[next++ % 4];
    snprintf(text, sizeof ring[0], format, temp_folder);
    return text;
}

static inline void write_file(const char *name, const void *bytes, size_t size)
{
    assert_true(temp_write(temp_path(name), bytes, size));
}

static inline void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static inline void write_gzip(const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(temp_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
}

/** Writes an array with a version 1.0 header; `shape` as Python prints it. */
static inline void write_npy(const char *name, const char *descr, const char *shape, const void *elements, size_t size)
{
    char *bytes = malloc(128 + size);
    assert_non_null(bytes);
    int text = snprintf(bytes + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(bytes + 10 + text, ' ', (size_t)(118 - text));
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    bytes[127] = '\n';
    memcpy(bytes + 128, elements, size);
    write_file(name, bytes, 128 + size);
    free(bytes);
}

/** An IDX file in `bytes` (room for 4 + 4 rank + size); returns its length. */
static inline size_t make_idx(unsigned char *bytes, int code, int rank, const int *dims, const void *elements,
                              size_t size)
{
    unsigned char *at = bytes;
    *at++ = 0;
    *at++ = 0;
    *at++ = (unsigned char)code;
    *at++ = (unsigned char)rank;
    for (int i = 0; i < rank; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            *at++ = (unsigned char)(dims[i] >> shift);
    memcpy(at, elements, size);
    return (size_t)(at - bytes) + size;
}

static inline void check_ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s: %s", mixt_status_text(status), mixt_error_text());
}

/** A teardown: the folder emptied, and nothing of the library's memory held. */
static inline int no_leak(void **state)
{
    (void)state;
    temp_folder_empty();
    return mixt__alloc_bytes() == 0 ? 0 : -1;
}

static inline mixt_data *open_ok(const char *spec, mixt_data_options options)
{
    mixt_data *data;
    check_ok(mixt_data_open_with(in_folder(spec), &options, &data));
    return data;
}

static inline void expect_failure(const char *spec, mixt_data_options options, mixt_status wanted, const char *says)
{
    mixt_data *data;
    mixt_status status = mixt_data_open_with(in_folder(spec), &options, &data);
    if (status != wanted || !strstr(mixt_error_text(), says))
        fail_msg("%s: %s: %s, expected %s with '%s'", spec, mixt_status_text(status), mixt_error_text(),
                 mixt_status_text(wanted), says);
    assert_null(data);
}

#pragma GCC diagnostic ignored "-Woverride-init" // what a line names replaces a default
#define DATA_OPTIONS(...)                                                                                              \
    {                                                                                                                  \
        MIXT_DEFAULTS_mixt_data_options, __VA_ARGS__                                                                   \
    }

#endif
