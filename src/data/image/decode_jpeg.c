/* JPEG through libjpeg, where it was there when mixt was built. A file that ends early is a failure, not a grey half.
 *
 * libjpeg reports errors by a call that must not return: it jumps back to where decoding began.
 */
#include "data/image/picture.h"

#include "data/data.h"

#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>

/** A header of some bytes can claim any size: blank pictures take a byte for about 57 pixels, photographs for 4. */
enum { PIXELS_A_BYTE = 256, SMALL = 256 };

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    mixt__picture picture;
    unsigned char *row; // of CMYK
    bool cut_off;
    int orientation; // of EXIF
} decoder;

static void on_error(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->text);
    longjmp(d->back, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    decoder *d = jpeg->client_data;
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF)
        d->cut_off = true;
}

/** One row; inks (stored as how much light they let through) multiply to colours. */
static void read_row(decoder *d, unsigned char *to)
{
    JSAMPROW rows[1] = {d->row ? d->row : to};
    jpeg_read_scanlines(&d->jpeg, rows, 1);
    for (int64_t x = 0; d->row && x < d->picture.width; x++)
        for (int c = 0; c < 3; c++)
            to[3 * x + c] = (unsigned char)((d->row[4 * x + c] * d->row[4 * x + 3] + 127) / 255);
}

/** Everything between the two ends of the jump. False: no memory. */
static bool decode(decoder *d, const unsigned char *bytes, int64_t size)
{
    jpeg_create_decompress(&d->jpeg);
    jpeg_mem_src(&d->jpeg, bytes, (unsigned long)size);
    jpeg_save_markers(&d->jpeg, JPEG_APP0 + 1, 0xffff); // EXIF
    jpeg_read_header(&d->jpeg, TRUE);
    for (jpeg_saved_marker_ptr m = d->jpeg.marker_list; m && d->orientation == 1; m = m->next)
        d->orientation = mixt__exif_orientation(m->data, m->data_length);
    int64_t pixels = (int64_t)d->jpeg.image_width * d->jpeg.image_height;
    if (pixels > MIXT_PICTURE_PIXELS || pixels / PIXELS_A_BYTE > size + SMALL) {
        snprintf(d->text, sizeof d->text, "its %lld bytes claim %u x %u pixels: too many", (long long)size,
                 d->jpeg.image_width, d->jpeg.image_height);
        longjmp(d->back, 1);
    }
    bool inks = d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK;
    d->jpeg.out_color_space = inks ? JCS_CMYK : d->jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&d->jpeg);
    d->picture.height = d->jpeg.output_height;
    d->picture.width = d->jpeg.output_width;
    d->picture.channels = d->jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    d->picture.pixels = mixt__alloc_uninit((size_t)(d->picture.height * d->picture.width * d->picture.channels));
    d->row = inks ? mixt__alloc_uninit((size_t)d->picture.width * 4) : NULL;
    if (!d->picture.pixels || (inks && !d->row))
        return false;
    while (d->jpeg.output_scanline < d->jpeg.output_height)
        read_row(d, d->picture.pixels + (int64_t)d->jpeg.output_scanline * d->picture.width * d->picture.channels);
    jpeg_finish_decompress(&d->jpeg);
    return true;
}

/** The only frame that is jumped back to: it changes nothing between setting the mark and returning. */
static mixt_status run(decoder *d, const char *path, const unsigned char *bytes, int64_t size)
{
    if (setjmp(d->back))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: JPEG: %s", path, d->text);
    if (!decode(d, bytes, size))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its pixels", path);
    if (d->cut_off)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: JPEG: the file is cut off after %lld bytes", path, (long long)size);
    return MIXT_OK;
}

mixt_status mixt__decode_jpeg(const char *path, const unsigned char *bytes, int64_t size, mixt__picture *picture)
{
    decoder d = {.orientation = 1};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    mixt_status status = run(&d, path, bytes, size);
    jpeg_destroy_decompress(&d.jpeg);
    mixt__free(d.row);
    if (status == MIXT_OK)
        status = mixt__picture_orient(&d.picture, d.orientation);
    if (status == MIXT_OK)
        *picture = d.picture;
    else
        mixt__picture_free(&d.picture);
    return status;
}
