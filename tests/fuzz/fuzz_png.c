/* PNG. Mutations would all end at a chunk's checksum, so those are set right first, in every second run. */
#include "fuzz.h"

#include "data/image/picture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/** Gives each chunk the checksum of what it holds now. */
static void set_checksums(uint8_t *bytes, size_t size)
{
    for (size_t at = 8; size >= 20 && at <= size - 12;) {
        size_t length =
            (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (length > size - at - 12)
            return;
        uLong sum = crc32(crc32(0, NULL, 0), bytes + at + 4, (unsigned)length + 4);
        for (int i = 0; i < 4; i++)
            bytes[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += length + 12;
    }
}

void fuzz_input(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, data, size);
    for (int fixed = 0; fixed < 2; fixed++) {
        mixt__picture picture;
        if (fixed)
            set_checksums(bytes, size);
        if (fuzz_taken(mixt__picture_read(fuzz_file("input.png", bytes, size), 0, &picture)))
            fuzz_require(picture.height > 0 && picture.width > 0 && (picture.channels == 1 || picture.channels == 3));
        else
            fuzz_require(!picture.pixels);
        mixt__picture_free(&picture);
    }
    free(bytes);
}
