/* Whole files into memory, plain or gzip, and the question which file holds which part.
 *
 * Readers parse a block of known size, so that "truncated" is a comparison and never a read past the end. A file is
 * read no further than its header promises, and one byte more, by which a longer one is known.
 */
#include "data/data.h"

#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { READ_STEP = 1 << 20, BOMB_SIZE = 16 << 20, BOMB_RATIO = 200 };

bool mixt__path_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool mixt__path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

const char *mixt__path_find(mixt_data *data, const char *directory, const char *name)
{
    static const char *const endings[] = {"", ".gz"};
    for (int i = 0; i < 2; i++) {
        const char *path = mixt__arena_printf(&data->arena, "%s/%s%s", directory, name, endings[i]);
        if (path && mixt__path_is_file(path))
            return path;
    }
    return NULL;
}

const char *mixt__path_of_part(mixt_data *data, mixt__part part, const char *suffix)
{
    if (!mixt__path_is_directory(data->path))
        return part == MIXT_PART_TRAIN ? data->path : NULL;
    char name[64];
    snprintf(name, sizeof name, "%s%s", mixt__part_names[part], suffix);
    return mixt__path_find(data, data->path, name);
}

const char *mixt__path_of_folder(mixt_data *data, mixt__part part)
{
    const char *path = mixt__arena_printf(&data->arena, "%s/%s", data->path, mixt__part_names[part]);
    return path && mixt__path_is_directory(path) ? path : NULL;
}

static mixt_status check_regular(const char *path, int64_t *size)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s; check the path of the data set", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return mixt__fail(MIXT_ERROR_FILE, "%s: is a directory, expected a file", path);
    if (!S_ISREG(info.st_mode))
        return mixt__fail(MIXT_ERROR_FILE, "%s: is not a regular file", path);
    if (info.st_size == 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: the file is empty", path);
    *size = info.st_size;
    return MIXT_OK;
}

static mixt_status out_of_memory(const char *path, int64_t size)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its contents (%.1f MiB so far)", path,
                      (double)size / 1048576.0);
}

/** A file while it is read. */
typedef struct reading {
    const char *path;
    gzFile file;
    int64_t packed; // bytes of the file itself
    int64_t room;   // bytes of memory that are free
    int64_t capacity;
} reading;

/** A file may unpack to anything, and its header may ask for that: refused are sizes that memory does not hold, and
 *  those that no text and no numbers come to. What the file has been read of, not all of it, is compared: a bomb is
 * known at its start. */
static mixt_status check_unpacked(const reading *r, int64_t size)
{
    if (size > r->room)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: needs more than the %.1f MiB of free memory; use a part of it",
                          r->path, (double)r->room / 1048576.0);
    if (size >= BOMB_SIZE && !gzdirect(r->file) && size / BOMB_RATIO > gzoffset(r->file))
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: unpacks to more than %d times its size (%lld bytes of it to %lld), which no real data "
                          "set does; if it is right, unpack it by hand",
                          r->path, BOMB_RATIO, (long long)gzoffset(r->file), (long long)size);
    return MIXT_OK;
}

static mixt_status grow(reading *r, int64_t most, mixt__bytes *result)
{
    int64_t capacity = r->capacity ? r->capacity * 2 + READ_STEP : r->packed + 1;
    capacity = capacity < most ? capacity : most;
    unsigned char *bigger = mixt__realloc(result->bytes, (size_t)capacity + 1);
    if (!bigger)
        return out_of_memory(r->path, capacity);
    result->bytes = bigger;
    r->capacity = capacity;
    return MIXT_OK;
}

static mixt_status check_error(const reading *r, int64_t size)
{
    int error = Z_OK;
    const char *text = gzerror(r->file, &error);
    if (error == Z_ERRNO)
        return mixt__fail(MIXT_ERROR_FILE, "%s: reading failed after %lld bytes: %s", r->path, (long long)size,
                          strerror(errno));
    if (error != Z_OK && error != Z_STREAM_END)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: gzip data damaged or cut off after %lld unpacked bytes (%s); download the file again",
                          r->path, (long long)size, text && *text ? text : "unexpected end");
    return MIXT_OK;
}

/** Reads until there are `most` bytes, or to the end of the file. */
static mixt_status read_up_to(reading *r, int64_t most, mixt__bytes *result)
{
    while (result->size < most) {
        if (result->size == r->capacity)
            MIXT_TRY(grow(r, most, result));
        int64_t room = r->capacity - result->size;
        int got = gzread(r->file, result->bytes + result->size, (unsigned)(room < READ_STEP ? room : READ_STEP));
        if (got <= 0)
            break;
        result->size += got;
        MIXT_TRY(check_unpacked(r, result->size));
    }
    return check_error(r, result->size);
}

static mixt_status read_file(reading *r, int64_t head, mixt__promise *promise, int64_t most, mixt__bytes *result)
{
    if (promise) {
        MIXT_TRY(read_up_to(r, head, result));
        int64_t promised = promise(result->bytes, result->size);
        most = promised < 0 ? most : promised + 1;
    }
    MIXT_TRY(read_up_to(r, most, result));
    if (result->size == 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: the file is empty once unpacked", r->path);
    result->bytes[result->size] = 0;
    return MIXT_OK;
}

static mixt_status read_path(const char *path, int64_t head, mixt__promise *promise, int64_t most, mixt__bytes *result)
{
    *result = (mixt__bytes){0};
    reading r = {.path = path};
    MIXT_TRY(check_regular(path, &r.packed));
    size_t available = mixt__memory_available();
    r.room = available ? (int64_t)available : INT64_MAX / 4;
    int descriptor = mixt__file_open_read(path);
    if (descriptor < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, mixt__file_problem(errno));
    r.file = gzdopen(descriptor, "rb");
    if (!r.file) {
        close(descriptor);
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to unpack it", path);
    }
    gzbuffer(r.file, 256 * 1024);
    mixt_status status = read_file(&r, head, promise, most, result);
    gzclose_r(r.file);
    if (status != MIXT_OK)
        mixt__bytes_free(result);
    return status;
}

mixt_status mixt__bytes_read(const char *path, mixt__bytes *result)
{
    return read_path(path, 0, NULL, INT64_MAX / 4, result);
}

mixt_status mixt__bytes_read_most(const char *path, int64_t most, mixt__bytes *result)
{
    return read_path(path, 0, NULL, most + 1, result);
}

mixt_status mixt__bytes_read_promised(const char *path, int64_t head, mixt__promise *promise, mixt__bytes *result)
{
    return read_path(path, head, promise, INT64_MAX / 4, result);
}

void mixt__bytes_free(mixt__bytes *bytes)
{
    mixt__free(bytes->bytes);
    *bytes = (mixt__bytes){0};
}

int64_t mixt__bytes_mark(const mixt__bytes *bytes)
{
    return bytes->size >= 3 && !memcmp(bytes->bytes, "\xef\xbb\xbf", 3) ? 3 : 0;
}
