/* PGM and PPM, the raw forms (P5, P6): a header of words, then rows of bytes or of big-endian 16-bit numbers.
 *
 * Values are scaled so that the largest one that the header names becomes 255. One picture a file.
 */
#include "data/image/picture.h"

#include "data/data.h"

#include <string.h>

typedef struct reader {
    const char *path;
    const unsigned char *bytes;
    int64_t size, at;
} reader;

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/** Skips white space and comments, reads a number from 1 to `most`. */
static mixt_status read_number(reader *r, const char *what, int64_t most, int64_t *number)
{
    while (r->at < r->size && (is_space(r->bytes[r->at]) || r->bytes[r->at] == '#')) {
        if (r->bytes[r->at] == '#')
            while (r->at < r->size && r->bytes[r->at] != '\n')
                r->at++;
        else
            r->at++;
    }
    int64_t begin = r->at, value = 0;
    for (; r->at < r->size && r->bytes[r->at] >= '0' && r->bytes[r->at] <= '9' && value <= most; r->at++)
        value = value * 10 + (r->bytes[r->at] - '0');
    if (r->at == begin || value < 1 || value > most)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %lld: %s of the image: expected a number from 1 to %lld",
                          r->path, (long long)begin, what, (long long)most);
    *number = value;
    return MIXT_OK;
}

static mixt_status scale_values(const reader *r, int64_t largest, int64_t count, unsigned char *pixels)
{
    const unsigned char *from = r->bytes + r->at;
    int width = largest > 255 ? 2 : 1;
    if (largest == 255) {
        memcpy(pixels, from, (size_t)count);
        return MIXT_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t value = width == 1 ? from[i] : from[2 * i] << 8 | from[2 * i + 1];
        if (value > largest)
            return mixt__fail(MIXT_ERROR_FORMAT,
                              "%s: offset %lld: value %lld, but the header says that %lld is the largest", r->path,
                              (long long)(r->at + i * width), (long long)value, (long long)largest);
        pixels[i] = (unsigned char)((value * 255 + largest / 2) / largest);
    }
    return MIXT_OK;
}

/** Size and largest value; afterwards the pixels come. */
static mixt_status read_header(reader *r, mixt__picture *p, int64_t *largest)
{
    p->channels = r->bytes[1] == '6' ? 3 : 1;
    MIXT_TRY(read_number(r, "width", MIXT_PICTURE_SIDE, &p->width));
    MIXT_TRY(read_number(r, "height", MIXT_PICTURE_SIDE, &p->height));
    MIXT_TRY(read_number(r, "largest value", 65535, largest));
    if (r->at >= r->size || !is_space(r->bytes[r->at]))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %lld: expected one blank before the pixels", r->path,
                          (long long)r->at);
    r->at++;
    return MIXT_OK;
}

int64_t mixt__pnm_promise(const unsigned char *bytes, int64_t size)
{
    reader r = {.path = "", .bytes = bytes, .size = size, .at = 2};
    mixt__picture p = {0};
    int64_t largest;
    if (size < 2 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6') || read_header(&r, &p, &largest) != MIXT_OK)
        return -1;
    return r.at + p.height * p.width * p.channels * (largest > 255 ? 2 : 1);
}

mixt_status mixt__decode_pnm(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture)
{
    reader r = {.path = path, .bytes = bytes, .size = size, .at = 2};
    mixt__picture p = {0};
    int64_t largest;
    MIXT_TRY(read_header(&r, &p, &largest));
    int64_t count = p.height * p.width * p.channels, wanted = count * (largest > 255 ? 2 : 1);
    if (p.height * p.width > MIXT_PICTURE_PIXELS || size - r.at != wanted)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: %lld bytes of pixels after offset %lld, %lld x %lld need %lld: the file is %s", path,
                          (long long)(size - r.at), (long long)r.at, (long long)p.width, (long long)p.height,
                          (long long)wanted, size - r.at < wanted ? "cut off" : "longer than its header says");
    p.pixels = mixt__alloc_uninit((size_t)count);
    if (!p.pixels)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld bytes", path, (long long)count);
    mixt_status status = scale_values(&r, largest, count, p.pixels);
    if (status != MIXT_OK) {
        mixt__picture_free(&p);
        return status;
    }
    *picture = p;
    return MIXT_OK;
}
