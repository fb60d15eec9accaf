/* Pictures as files hold them: decoded to bytes, rows from the top. */
#ifndef MIXT_DATA_PICTURE_H
#define MIXT_DATA_PICTURE_H

#include "mixt/types.h"

/** (height, width, channels) bytes; free with mixt__picture_free. */
typedef struct mixt__picture {
    unsigned char *pixels;
    int64_t height, width, channels; // 1: grey, 3: red, green, blue
} mixt__picture;

/** Largest side, and most pixels, that a decoder accepts: a file of a few bytes can claim any size. */
enum { MIXT_PICTURE_SIDE = 65500, MIXT_PICTURE_PIXELS = 1 << 28 };

/** Whether files of this name are pictures that can be decoded here. */
bool mixt__picture_is(const char *name);
/** Whether they are pictures of a kind that cannot. */
bool mixt__picture_is_unread(const char *name);
/** Whether the file is a PGM, or a PNG without colour, by its first bytes. */
bool mixt__picture_is_grey(const char *path);
/** Reads and decodes a file, whatever its name, and turns grey into colour or colour into grey where `channels` (1 or
 *  3; 0: as it is) asks for it. Failures name the file and the offset. */
mixt_status mixt__picture_read(const char *path, int64_t channels, mixt__picture *picture);
void mixt__picture_free(mixt__picture *picture);

/** The orientation that a segment of EXIF asks for, 1 to 8; 1, as the rows lie, where it asks for none or is damaged. */
int mixt__exif_orientation(const unsigned char *segment, int64_t size);
/** Turns and mirrors a picture as an orientation says: 6 is a quarter to the right. */
mixt_status mixt__picture_orient(mixt__picture *picture, int orientation);

/** Bytes that a whole PPM or PGM has by its header; -1: it is neither, or the header is not whole. */
int64_t mixt__pnm_promise(const unsigned char *bytes, int64_t size);

/** Decoders of one format each: bytes to a picture, which they leave empty on failure. `path` is for messages. */
mixt_status mixt__decode_pnm(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture);
mixt_status mixt__decode_png(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture);
mixt_status mixt__decode_jpeg(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture);

#endif
