/* PNG: chunks with checksums, one deflate stream of filtered rows (ISO/IEC 15948).
 *
 * Grey, colour and palette of 1 to 16 bits; transparency is dropped, 16 bits become 8. Rows are unpacked one at a time:
 * beside the picture itself only two of them are held. Interlaced files are refused.
 */
#include "data/image/picture.h"

#include "data/data.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MARK = 8, CHUNK = 12, DEFLATE_MOST = 1032 }; // CHUNK: bytes of a chunk beside its contents

typedef enum colour_type { GREY = 0, COLOUR = 2, PALETTE = 3, GREY_ALPHA = 4, COLOUR_ALPHA = 6 } colour_type;

typedef struct decoder {
    const char *path;
    const unsigned char *bytes;
    int64_t size, at; // at: the next chunk
    colour_type type;
    int depth;
    int64_t samples, row_bytes, step; // numbers a pixel; bytes of a row; bytes from a pixel to the one before it
    unsigned char palette[256][3];
    int64_t colours;
    bool ended; // the last chunk is taken
    z_stream stream;
    unsigned char *rows[2]; // (1 + row_bytes) each, the filter first: this row and the one above
    mixt__picture picture;
} decoder;

/** A chunk: its name's place, its contents. */
typedef struct chunk {
    const unsigned char *name, *data;
    int64_t size;
} chunk;

static mixt_status bad(const decoder *d, int64_t offset, const char *what)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %lld: PNG: %s", d->path, (long long)offset, what);
}

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static mixt_status next_chunk(decoder *d, chunk *c)
{
    const unsigned char *at = d->bytes + d->at;
    if (d->size - d->at < CHUNK || d->size - d->at - CHUNK < big_endian(at))
        return bad(d, d->at, "the file is cut off");
    *c = (chunk){at + 4, at + 8, big_endian(at)};
    if (crc32_z(crc32_z(0, NULL, 0), c->name, (size_t)c->size + 4) != big_endian(c->data + c->size))
        return bad(d, d->at, "the checksum of a chunk is wrong: the file is damaged");
    d->at += CHUNK + c->size;
    return MIXT_OK;
}

static bool is(const chunk *c, const char *name)
{
    return !memcmp(c->name, name, 4);
}

/** Bits that a colour type may have, as a mask. */
static int depths_of(int type)
{
    static const int allowed[7] = {1 | 2 | 4 | 8 | 16, 0, 8 | 16, 1 | 2 | 4 | 8, 8 | 16, 0, 8 | 16};
    return type < 7 ? allowed[type] : 0;
}

static mixt_status read_header(decoder *d)
{
    static const int samples[7] = {1, 0, 3, 1, 2, 0, 4};
    chunk c = {0};
    d->at = MARK;
    MIXT_TRY(next_chunk(d, &c));
    if (!is(&c, "IHDR") || c.size != 13)
        return bad(d, MARK, "no header at its start");
    mixt__picture *p = &d->picture;
    p->width = big_endian(c.data);
    p->height = big_endian(c.data + 4);
    d->depth = c.data[8];
    int type = c.data[9];
    if (p->width < 1 || p->height < 1 || p->width > MIXT_PICTURE_SIDE || p->height > MIXT_PICTURE_SIDE ||
        p->width * p->height > MIXT_PICTURE_PIXELS)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: PNG: %lld x %lld pixels: none, or too many", d->path,
                          (long long)p->width, (long long)p->height);
    if (d->depth < 1 || !(depths_of(type) & d->depth) || (d->depth & (d->depth - 1)) || c.data[10] || c.data[11])
        return bad(d, MARK + 16, "no such colour type, depth or method");
    if (c.data[12])
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: PNG: is interlaced; save it without interlacing", d->path);
    d->type = (colour_type)type;
    d->samples = samples[type];
    d->row_bytes = (p->width * d->samples * d->depth + 7) / 8;
    d->step = d->samples * d->depth < 8 ? 1 : d->samples * d->depth / 8;
    p->channels = d->type == GREY || d->type == GREY_ALPHA ? 1 : 3;
    if (p->height * (1 + d->row_bytes) / DEFLATE_MOST > d->size)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: PNG: its %lld bytes claim %lld x %lld pixels: too many", d->path,
                          (long long)d->size, (long long)p->width, (long long)p->height);
    return MIXT_OK;
}

static mixt_status read_palette(decoder *d, const chunk *c)
{
    if (c->size % 3 || c->size > (int64_t)sizeof d->palette)
        return bad(d, d->at, "a palette of an impossible size");
    memcpy(d->palette, c->data, (size_t)c->size);
    d->colours = c->size / 3;
    return MIXT_OK;
}

/** Moves to the next chunk of pixels; what stands between others is skipped. *found is false at the end. */
static mixt_status next_pixels(decoder *d, bool *found)
{
    chunk c = {0};
    *found = false;
    while (!d->ended) {
        MIXT_TRY(next_chunk(d, &c));
        d->ended = is(&c, "IEND");
        if (d->ended || is(&c, "IDAT"))
            break;
        if (is(&c, "PLTE"))
            MIXT_TRY(read_palette(d, &c));
        else if (!(c.name[0] & 0x20))
            return bad(d, d->at, "an unknown chunk that must not be skipped");
    }
    *found = !d->ended;
    d->stream.next_in = (unsigned char *)(uintptr_t)c.data;
    d->stream.avail_in = (unsigned)(*found ? c.size : 0);
    return MIXT_OK;
}

/** Unpacks one row, over as many chunks as it takes. */
static mixt_status unpack_row(decoder *d, unsigned char *row)
{
    d->stream.next_out = row;
    d->stream.avail_out = (unsigned)(1 + d->row_bytes);
    while (d->stream.avail_out) {
        bool found = true;
        if (!d->stream.avail_in)
            MIXT_TRY(next_pixels(d, &found));
        if (!found)
            return bad(d, d->at, "fewer rows than its header says");
        int result = inflate(&d->stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: PNG: no memory to unpack it", d->path);
        if (result == Z_STREAM_END && d->stream.avail_out)
            return bad(d, d->at, "fewer rows than its header says");
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return bad(d, d->at, "pixels that do not unpack: the file is damaged");
    }
    return MIXT_OK;
}

/** Nothing may come behind the last row but the end of the file. */
static mixt_status check_end(decoder *d)
{
    unsigned char more;
    int result = Z_OK;
    d->stream.next_out = &more;
    d->stream.avail_out = 1;
    for (bool found = true; found && result != Z_STREAM_END;) {
        if (!d->stream.avail_in)
            MIXT_TRY(next_pixels(d, &found));
        result = inflate(&d->stream, Z_NO_FLUSH);
        if (!d->stream.avail_out)
            return bad(d, d->at, "more pixels than its header says");
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return bad(d, d->at, "pixels that do not unpack: the file is damaged");
    }
    if (result != Z_STREAM_END)
        return bad(d, d->at, "the pixels are cut off");
    for (bool found = true; found;)
        MIXT_TRY(next_pixels(d, &found));
    return d->at == d->size ? MIXT_OK : bad(d, d->at, "there are bytes after its end");
}

static int paeth(int left, int up, int corner)
{
    int guess = left + up - corner;
    int a = abs(guess - left), b = abs(guess - up), c = abs(guess - corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** Undoes a row's filter in place; false: there is no such filter. */
static bool unfilter(const decoder *d, unsigned char *row, const unsigned char *above)
{
    int filter = row[0];
    row++;
    above++;
    for (int64_t i = 0; i < d->row_bytes && filter; i++) {
        int left = i < d->step ? 0 : row[i - d->step], corner = i < d->step ? 0 : above[i - d->step], up = above[i];
        int guess = filter == 1 ? left : filter == 2 ? up : filter == 3 ? (left + up) / 2 : paeth(left, up, corner);
        row[i] = (unsigned char)(row[i] + guess);
    }
    return filter <= 4;
}

/** Number `index` of a row, 0 to 255; an index of a palette as it is. */
static int number_at(const decoder *d, const unsigned char *row, int64_t index)
{
    if (d->depth == 8)
        return row[index];
    if (d->depth == 16)
        return ((row[2 * index] << 8 | row[2 * index + 1]) * 255 + 32767) / 65535;
    int64_t bit = index * d->depth;
    int most = (1 << d->depth) - 1, value = row[bit / 8] >> (8 - d->depth - (int)(bit % 8)) & most;
    return d->type == PALETTE ? value : value * 255 / most;
}

static mixt_status write_row(const decoder *d, const unsigned char *row, unsigned char *to)
{
    const mixt__picture *p = &d->picture;
    for (int64_t x = 0; x < p->width; x++) {
        if (d->type == PALETTE) {
            int colour = number_at(d, row, x);
            if (colour >= d->colours)
                return bad(d, d->at, "a colour that its palette does not have");
            memcpy(to + 3 * x, d->palette[colour], 3);
            continue;
        }
        for (int64_t c = 0; c < p->channels; c++)
            to[x * p->channels + c] = (unsigned char)number_at(d, row, x * d->samples + c);
    }
    return MIXT_OK;
}

static mixt_status read_rows(decoder *d)
{
    mixt__picture *p = &d->picture;
    size_t row = (size_t)(1 + d->row_bytes);
    p->pixels = mixt__alloc_uninit((size_t)(p->width * p->height * p->channels));
    d->rows[0] = mixt__alloc(2 * row);
    if (!p->pixels || !d->rows[0] || inflateInit(&d->stream) != Z_OK)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: PNG: no memory for %lld x %lld pixels", d->path, (long long)p->width,
                          (long long)p->height);
    d->rows[1] = d->rows[0] + row;
    for (int64_t y = 0; y < p->height; y++) {
        unsigned char *here = d->rows[y % 2], *above = d->rows[(y + 1) % 2];
        MIXT_TRY(unpack_row(d, here));
        if (!unfilter(d, here, above))
            return bad(d, d->at, "a filter that does not exist");
        MIXT_TRY(write_row(d, here + 1, p->pixels + y * p->width * p->channels));
    }
    return check_end(d);
}

mixt_status mixt__decode_png(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture)
{
    decoder d = {.path = path, .bytes = bytes, .size = size};
    mixt_status status = read_header(&d);
    if (status == MIXT_OK)
        status = read_rows(&d);
    inflateEnd(&d.stream);
    mixt__free(d.rows[0]);
    if (status == MIXT_OK)
        *picture = d.picture;
    else
        mixt__picture_free(&d.picture);
    return status;
}
