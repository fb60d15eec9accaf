/* ZIP as NumPy and others write it: members stored or deflated, found by the list at the end of the file (APPNOTE 6.3).
 *
 * A member's size is believed only as far as its packed bytes could make it: deflate turns one byte into 1032 at most.
 */
#include "data/table/zip.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>
#include <zlib.h>

enum { END = 22, ENTRY = 46, LOCAL = 30, COMMENT_MAX = 65535, MEMBERS_MAX = 4096, DEFLATE_MOST = 1032 };

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

static bool begins(const mixt__zip *zip, int64_t at, int64_t size, const char *mark)
{
    return at >= 0 && at <= (int64_t)zip->map.bytes - size && !memcmp(zip->map.data + at, mark, 4);
}

static mixt_status damaged(const mixt__zip *zip, int64_t offset, const char *what)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %lld: %s: the archive is damaged or cut off", zip->path,
                      (long long)offset, what);
}

/** Offset of the record that ends the archive; -1: there is none. */
static int64_t find_end(const mixt__zip *zip)
{
    int64_t last = (int64_t)zip->map.bytes - END;
    for (int64_t at = last; at >= 0 && at >= last - COMMENT_MAX; at--)
        if (begins(zip, at, END, "PK\5\6"))
            return at;
    return -1;
}

/** Sizes that do not fit 32 bits stand in a field behind the name. */
static void read_long_sizes(const unsigned char *extra, int64_t length, mixt__zip_member *m, int64_t *local)
{
    int64_t *const wide[] = {&m->size, &m->packed, local};
    while (length >= 4) {
        int64_t size = (int64_t)little(extra + 2, 2), at = 4;
        if (size > length - 4)
            return;
        for (int i = 0; little(extra, 2) == 1 && i < 3; i++)
            if (*wide[i] == UINT32_MAX && at + 8 <= size + 4) {
                *wide[i] = (int64_t)(little(extra + at, 8) & INT64_MAX);
                at += 8;
            }
        extra += size + 4;
        length -= size + 4;
    }
}

/** One entry of the list; *at moves behind it. */
static mixt_status read_entry(mixt__zip *zip, int64_t *at, mixt__zip_member *m)
{
    const unsigned char *e = zip->map.data + *at;
    if (!begins(zip, *at, ENTRY, "PK\1\2"))
        return damaged(zip, *at, "no entry of the list");
    int64_t name = (int64_t)little(e + 28, 2), extra = (int64_t)little(e + 30, 2), comment = (int64_t)little(e + 32, 2);
    if (*at + ENTRY + name + extra + comment > (int64_t)zip->map.bytes)
        return damaged(zip, *at, "an entry past the end");
    *m = (mixt__zip_member){.method = (int)little(e + 10, 2), .checksum = (uint32_t)little(e + 16, 4)};
    m->packed = (int64_t)little(e + 20, 4);
    m->size = (int64_t)little(e + 24, 4);
    int64_t local = (int64_t)little(e + 42, 4);
    read_long_sizes(e + ENTRY + name, extra, m, &local);
    if (name < MIXT_ZIP_NAME && !memchr(e + ENTRY, 0, (size_t)name))
        memcpy(m->name, e + ENTRY, (size_t)name);
    if (little(e + 8, 2) & 1)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: '%s' is encrypted", zip->path, m->name);
    if (!begins(zip, local, LOCAL, "PK\3\4"))
        return damaged(zip, *at, "an entry without its member");
    m->offset =
        local + LOCAL + (int64_t)little(zip->map.data + local + 26, 2) + (int64_t)little(zip->map.data + local + 28, 2);
    if (m->packed > (int64_t)zip->map.bytes - m->offset || m->offset > (int64_t)zip->map.bytes)
        return damaged(zip, local, "a member past the end");
    *at += ENTRY + name + extra + comment;
    return MIXT_OK;
}

static mixt_status read_list(mixt__zip *zip)
{
    int64_t end = find_end(zip);
    if (end < 0 || !begins(zip, 0, 4, "PK\3\4"))
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: has no list of members at its end: it is not a ZIP archive, or it is cut off",
                          zip->path);
    int64_t count = (int64_t)little(zip->map.data + end + 10, 2), at = (int64_t)little(zip->map.data + end + 16, 4);
    if (count > MEMBERS_MAX || at == UINT32_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: %s; save its arrays as .npy files", zip->path,
                          count > MEMBERS_MAX ? "too many members for a data set" : "an archive above 4 GiB");
    for (int64_t i = 0; i < count; i++) {
        if (!mixt__grow((void **)&zip->members, &zip->capacity, zip->count, sizeof *zip->members))
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its list of members", zip->path);
        MIXT_TRY(read_entry(zip, &at, &zip->members[zip->count]));
        zip->count += zip->members[zip->count].name[0] != 0;
    }
    return MIXT_OK;
}

mixt_status mixt__zip_open(const char *path, mixt__zip *zip)
{
    *zip = (mixt__zip){.path = path};
    MIXT_TRY(mixt__file_map_open(path, &zip->map));
    mixt_status status = read_list(zip);
    if (status != MIXT_OK)
        mixt__zip_close(zip);
    return status;
}

void mixt__zip_close(mixt__zip *zip)
{
    mixt__file_map_close(&zip->map);
    mixt__free(zip->members);
    zip->members = NULL;
    zip->count = zip->capacity = 0;
}

const mixt__zip_member *mixt__zip_find(const mixt__zip *zip, const char *name)
{
    for (int64_t i = 0; i < zip->count; i++)
        if (!strcmp(zip->members[i].name, name))
            return &zip->members[i];
    return NULL;
}

/** Unpacks `size` bytes; zlib counts in 32 bits, so in pieces. False: the packed bytes are wrong, or end before. */
static bool unpack(const unsigned char *packed, int64_t packed_size, unsigned char *bytes, int64_t size)
{
    enum { PIECE = 1 << 30 };
    z_stream stream = {0};
    int64_t taken = 0, made = 0;
    if (inflateInit2(&stream, -15) != Z_OK)
        return false;
    int result = Z_OK;
    while (made < size && result == Z_OK) {
        int64_t in = packed_size - taken < PIECE ? packed_size - taken : PIECE;
        int64_t out = size - made < PIECE ? size - made : PIECE;
        stream.next_in = (unsigned char *)(uintptr_t)(packed + taken);
        stream.avail_in = (unsigned)in;
        stream.next_out = bytes + made;
        stream.avail_out = (unsigned)out;
        result = inflate(&stream, Z_NO_FLUSH);
        taken += in - stream.avail_in;
        made += out - stream.avail_out;
    }
    inflateEnd(&stream);
    return made == size;
}

mixt_status mixt__zip_read(const mixt__zip *zip, const mixt__zip_member *m, unsigned char *bytes, int64_t size)
{
    const unsigned char *packed = zip->map.data + m->offset;
    if (m->method != 0 && m->method != 8)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: '%s' is compressed by method %d; mixt reads stored and deflated members", zip->path,
                          m->name, m->method);
    if (size > m->size || (m->method == 0 && m->size != m->packed) || m->size / DEFLATE_MOST > m->packed)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: '%s': %lld bytes cannot come from %lld packed ones", zip->path,
                          m->name, (long long)m->size, (long long)m->packed);
    if (m->method == 0)
        memcpy(bytes, packed, (size_t)size);
    else if (!unpack(packed, m->packed, bytes, size))
        return damaged(zip, m->offset, "a member that does not unpack");
    if (size == m->size && crc32_z(crc32_z(0, NULL, 0), bytes, (size_t)size) != m->checksum)
        return damaged(zip, m->offset, "a member whose checksum is another");
    return MIXT_OK;
}
