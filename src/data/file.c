/* Whole files into memory, plain or gzip, and the question which file holds which part.
 *
 * Readers parse a block of known size, so that "truncated" is a comparison and never a read past the end.
 */
#include "data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { READ_STEP = 1 << 20 };

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

/** Bytes beyond which reading stops: a gzip file of a few megabytes can unpack to more memory than there is. */
static int64_t size_limit(void)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? pages / 4 * 3 * page : INT64_MAX / 2;
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

/** Reads to the end; the first guess of the size is exact for a plain file. */
static mixt_status read_all(gzFile file, const char *path, int64_t guess, mixt__bytes *result)
{
    int64_t capacity = guess + 1, limit = size_limit();
    result->bytes = mixt__alloc_uninit((size_t)capacity + 1);
    if (!result->bytes)
        return out_of_memory(path, capacity);
    for (;;) {
        if (result->size == capacity) {
            if (capacity > limit)
                return mixt__fail(MIXT_ERROR_MEMORY, "%s: holds more than this machine's memory", path);
            capacity = capacity * 2 + READ_STEP;
            unsigned char *bigger = mixt__realloc(result->bytes, (size_t)capacity + 1);
            if (!bigger)
                return out_of_memory(path, capacity);
            result->bytes = bigger;
        }
        int64_t room = capacity - result->size;
        int got = gzread(file, result->bytes + result->size, (unsigned)(room < READ_STEP ? room : READ_STEP));
        if (got < 0)
            break;
        result->size += got;
        if (got == 0)
            break;
    }
    int error = Z_OK;
    const char *text = gzerror(file, &error);
    if (error == Z_ERRNO)
        return mixt__fail(MIXT_ERROR_FILE, "%s: reading failed after %lld bytes: %s", path, (long long)result->size,
                          strerror(errno));
    if (error != Z_OK && error != Z_STREAM_END)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: gzip data damaged or cut off after %lld unpacked bytes (%s); fetch the file again", path,
                          (long long)result->size, text && *text ? text : "unexpected end");
    result->bytes[result->size] = 0;
    return MIXT_OK;
}

mixt_status mixt__bytes_read(const char *path, mixt__bytes *result)
{
    *result = (mixt__bytes){0};
    int64_t size = 0;
    MIXT_TRY(check_regular(path, &size));
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    gzFile file = gzdopen(descriptor, "rb");
    if (!file) {
        close(descriptor);
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to unpack it", path);
    }
    gzbuffer(file, 256 * 1024);
    mixt_status status = read_all(file, path, size, result);
    gzclose_r(file);
    if (status == MIXT_OK && result->size == 0)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: the file is empty once unpacked", path);
    if (status != MIXT_OK)
        mixt__bytes_free(result);
    return status;
}

void mixt__bytes_free(mixt__bytes *bytes)
{
    mixt__free(bytes->bytes);
    *bytes = (mixt__bytes){0};
}
