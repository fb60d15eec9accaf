/* What a file is by its bytes: the kinds that begin with a mark, and whether the rest may be taken for text.
 *
 * Any bytes could be trained on as text, so a file of another kind would be, and nobody would be told: what holds a
 * NUL, as almost all binary files do, is refused.
 */
#include "data/data.h"

#include "base/files.h"
#include "base/unicode.h"

#include <stdio.h>
#include <string.h>

enum { HEAD = 8, LOOKED_AT = 1 << 20 };

/** Files that have a mark and are not text: what they are, and what to do. */
static const struct {
    const char *begin;
    size_t length;
    const char *what;
} marks[] = {
    {"\x93NUMPY", 6, "a NumPy array; use data.kind=npy"},
    {"PK\3\4", 4, "a ZIP or NPZ archive; NumPy's is read by data.kind=npz"},
    {"\x1f\x8b", 2, "gzip inside gzip; unpack it once"},
    {"\x89PNG", 4, "a PNG image; use data.kind=images with a folder of them"},
    {"\xff\xd8\xff", 3, "a JPEG image; use data.kind=images with a folder of them"},
    {"mixttok", 7, "a file of tokens; use data.kind=tokens"},
    {"\xff\xfe", 2, "UTF-16; save it as UTF-8"},
    {"\xfe\xff", 2, "UTF-16; save it as UTF-8"},
    {"%PDF", 4, "a PDF document; save its text as UTF-8"},
};

const mixt__data_kind *mixt__sniff_kind(const char *path)
{
    unsigned char head[HEAD] = {0};
    FILE *file = mixt__file_open_stream(path);
    size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    if (got >= 6 && !memcmp(head, "\x93NUMPY", 6))
        return &mixt__data_npy;
    if (got >= 4 && !memcmp(head, "PK\3\4", 4))
        return &mixt__data_npz; // which says what it expected, should it be another archive
    if (got >= 7 && !memcmp(head, "mixttok", 7))
        return &mixt__data_tokens;
    if (got >= 4 && !head[0] && !head[1] && head[2] >= 0x08 && head[2] <= 0x0e && head[3] >= 1 && head[3] <= 8)
        return &mixt__data_idx;
    return NULL;
}

/** Bytes among the first ones that are of no UTF-8 character. */
static int64_t count_wrong(const unsigned char *bytes, int64_t size)
{
    int64_t wrong = 0;
    for (int64_t at = 0; at < size;) {
        int length;
        wrong += mixt__utf8_decode(bytes + at, size - at, &length) == MIXT_CODE_INVALID;
        at += length;
    }
    return wrong;
}

mixt_status mixt__text_check(const char *path, const unsigned char *bytes, int64_t size)
{
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (size >= (int64_t)marks[i].length && !memcmp(bytes, marks[i].begin, marks[i].length))
            return mixt__fail(MIXT_ERROR_DATA, "%s: is not a text file but %s", path, marks[i].what);
    const unsigned char *nul = memchr(bytes, 0, (size_t)size);
    if (nul)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: offset %lld: a zero byte: it is not a text file; name its kind with data.kind, or save it as UTF-8",
            path, (long long)(nul - bytes));
    int64_t looked = size < LOOKED_AT ? size : LOOKED_AT, wrong = count_wrong(bytes, looked);
    if (wrong * 4 > looked)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: %lld of its first %lld bytes are not UTF-8: it is not a text file, or in another "
                          "encoding; save it as UTF-8",
                          path, (long long)wrong, (long long)looked);
    return MIXT_OK;
}
