/* How a camera was held: EXIF's orientation, 1 to 8, which viewers turn a picture by. */
#include "data/image/picture.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

enum { HEAD = 6, TIFF_HEAD = 8, ENTRY = 12, TAG = 0x112, SHORT = 3 }; // "Exif\0\0"; bytes of a header, of an entry

/** An unsigned number of `bytes` bytes. */
static uint32_t number(const unsigned char *at, int bytes, bool little)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[little ? bytes - 1 - i : i];
    return value;
}

int mixt__exif_orientation(const unsigned char *segment, int64_t size)
{
    const unsigned char *tiff = segment + HEAD;
    int64_t room = size - HEAD;
    if (room < TIFF_HEAD || memcmp(segment, "Exif\0", HEAD) || (memcmp(tiff, "II*", 4) && memcmp(tiff, "MM\0*", 4)))
        return 1;
    bool little = tiff[0] == 'I';
    int64_t list = number(tiff + 4, 4, little);
    if (list > room - 2)
        return 1;
    int64_t entries = number(tiff + list, 2, little);
    for (int64_t at = list + 2; entries-- > 0 && at <= room - ENTRY; at += ENTRY)
        if (number(tiff + at, 2, little) == TAG && number(tiff + at + 2, 2, little) == SHORT) {
            uint32_t value = number(tiff + at + 8, 2, little);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    return 1;
}

mixt_status mixt__picture_orient(mixt__picture *p, int orientation)
{
    bool turned = orientation >= 5;
    bool rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7; // from the bottom
    bool columns = orientation == 2 || orientation == 3 || orientation >= 7;                  // from the right
    int64_t height = turned ? p->width : p->height, width = turned ? p->height : p->width, n = p->channels;
    if (orientation <= 1)
        return MIXT_OK;
    unsigned char *pixels = mixt__alloc_uninit((size_t)(height * width * n));
    if (!pixels)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to turn a picture");
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t row = turned ? x : y, column = turned ? y : x;
            row = rows ? p->height - 1 - row : row;
            column = columns ? p->width - 1 - column : column;
            memcpy(pixels + (y * width + x) * n, p->pixels + (row * p->width + column) * n, (size_t)n);
        }
    mixt__free(p->pixels);
    *p = (mixt__picture){pixels, height, width, n};
    return MIXT_OK;
}
