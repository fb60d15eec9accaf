/* Which decoder a file needs, by its first bytes, and grey or colour as the reader of a set wants it. */
#include "data/image/picture.h"

#include "base/files.h"
#include "data/data.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#ifdef MIXT_HAVE_JPEG
#define OR_JPEG ", PNG or JPEG"
#else
#define OR_JPEG " or PNG"
#endif

typedef mixt_status decode_fn(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture);

typedef struct format {
    const char *begin;   // of the file
    const char *endings; // of its name
    decode_fn *decode;
} format;

static const format formats[] = {
    {"P5", ".pgm .pnm", mixt__decode_pnm},
    {"P6", ".ppm .pnm", mixt__decode_pnm},
    {"\x89PNG\r\n\x1a\n", ".png", mixt__decode_png},
#ifdef MIXT_HAVE_JPEG
    {"\xff\xd8\xff", ".jpg .jpeg", mixt__decode_jpeg},
#endif
};

enum { FORMAT_COUNT = sizeof formats / sizeof formats[0], PNM_HEADER = 1024 };

/** Endings of pictures that nothing here decodes. */
static const char UNREAD[] = ".gif .bmp .webp .tif .tiff"
#ifndef MIXT_HAVE_JPEG
                             " .jpg .jpeg"
#endif
    ;

static bool has_ending(const char *name, const char *endings)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot ? strlen(dot) : 0;
    for (const char *at = endings; length > 1 && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !strncasecmp(at, dot, length))
            return true;
    return false;
}

bool mixt__picture_is(const char *name)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (has_ending(name, formats[i].endings))
            return true;
    return false;
}

bool mixt__picture_is_unread(const char *name)
{
    return has_ending(name, UNREAD);
}

bool mixt__picture_is_grey(const char *path)
{
    unsigned char head[26] = {0}; // of a PNG: mark, length, name, size, depth, colour type
    FILE *file = mixt__file_open_stream(path);
    size_t got = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    if (got == sizeof head && !memcmp(head, "\x89PNG", 4))
        return head[25] == 0 || head[25] == 4;
    return got > 2 && !memcmp(head, "P5", 2);
}

static mixt_status decode(const char *path, const mixt__bytes *file, mixt__picture *picture)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        size_t length = strlen(formats[i].begin);
        if (file->size >= (int64_t)length && !memcmp(file->bytes, formats[i].begin, length))
            return formats[i].decode(path, file->bytes, file->size, picture);
    }
#ifndef MIXT_HAVE_JPEG
    if (file->size > 2 && !memcmp(file->bytes, "\xff\xd8\xff", 3))
        return mixt__fail(
            MIXT_ERROR_UNSUPPORTED,
            "%s: is a JPEG file, and mixt was built without libjpeg; install libjpeg-dev and build again, "
            "or convert it to PPM",
            path);
#endif
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset 0: not an image: expected PPM, PGM (P6, P5)%s", path, OR_JPEG);
}

/** Grey from colour by the luma of BT.601, colour from grey by repeating it. */
static mixt_status change_channels(const char *path, mixt__picture *p, int64_t channels)
{
    int64_t count = p->height * p->width;
    if (!channels || p->channels == channels)
        return MIXT_OK;
    unsigned char *pixels = mixt__alloc_uninit((size_t)(count * channels));
    if (!pixels)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld pixels", path, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *from = p->pixels + i * p->channels;
        if (channels == 1)
            pixels[i] = (unsigned char)((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
        else
            pixels[3 * i] = pixels[3 * i + 1] = pixels[3 * i + 2] = from[0];
    }
    mixt__free(p->pixels);
    p->pixels = pixels;
    p->channels = channels;
    return MIXT_OK;
}

mixt_status mixt__picture_read(const char *path, int64_t channels, mixt__picture *picture)
{
    mixt__bytes file;
    *picture = (mixt__picture){0};
    MIXT_TRY(mixt__bytes_read_promised(path, PNM_HEADER, mixt__pnm_promise, &file));
    mixt_status status = decode(path, &file, picture);
    mixt__bytes_free(&file);
    if (status == MIXT_OK)
        status = change_channels(path, picture, channels);
    if (status != MIXT_OK)
        mixt__picture_free(picture);
    return status;
}

void mixt__picture_free(mixt__picture *picture)
{
    mixt__free(picture->pixels);
    *picture = (mixt__picture){0};
}
