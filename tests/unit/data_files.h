/* A scratch folder for tests of file readers: write small files, get their paths, remove all of it at the end. */
#ifndef MIXT_TESTS_DATA_FILES_H
#define MIXT_TESTS_DATA_FILES_H

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char scratch[256];

static int scratch_setup(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/mixt-data-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline void scratch_empty(void)
{
    DIR *folder = opendir(scratch);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", scratch, entry->d_name);
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlink(path) != 0)
            rmdir(path);
    }
    if (folder)
        closedir(folder);
}

static int scratch_teardown(void **state)
{
    (void)state;
    scratch_empty();
    return rmdir(scratch);
}

/** A path or spec: "%s" of the format is the scratch folder. Four results stay valid. */
static inline const char *in_scratch(const char *format)
{
    static char ring[4][512];
    static int next;
    char *text = ring[next++ % 4];
    snprintf(text, sizeof ring[0], format, scratch);
    return text;
}

static inline void write_file(const char *name, const void *bytes, size_t size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static inline void write_gzip(const char *name, const void *bytes, size_t size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(file), Z_OK);
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

#endif
