/* Pictures (PPM, PGM, and JPEG where it is built in), and their way into a sample of a fixed size. */
#include "fuzz.h"

#include "data/image/augment.h"
#include "data/image/picture.h"

#include <math.h>

enum { SIDE = 8 };

static void make_sample(const mixt__picture *picture, int64_t epoch)
{
    static const float mean[3] = {0.5f, 0.25f, 0}, scale[3] = {1, 0.5f, 2}, shift[3] = {-1, 0, 1};
    const mixt__normal normal = {mean, scale, shift};
    const mixt__augment augment = {
        .height = SIDE, .width = SIDE, .resize = SIDE + 1, .flip = true, .min_area = epoch % 2 ? 0.1 : 0};
    float sample[SIDE * SIDE * 3];
    mixt__image image = {picture->pixels, MIXT_DTYPE_UINT8, picture->height, picture->width, picture->channels};
    mixt__window window = mixt__augment_window(&augment, image.height, image.width, 7, epoch, 3);
    fuzz_require(mixt__augment_apply(&augment, &image, &window, &normal, sample) == MIXT_OK);
    for (int64_t i = 0; i < SIDE * SIDE * picture->channels; i++)
        fuzz_require(isfinite(sample[i]) && fabsf(sample[i]) <= 512);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input.ppm", data, size);
    for (int64_t channels = 0; channels <= 3; channels += channels ? 2 : 1) {
        mixt__picture picture;
        if (!fuzz_taken(mixt__picture_read(path, channels, &picture))) {
            fuzz_require(!picture.pixels);
            return;
        }
        fuzz_require(picture.channels == (channels ? channels : picture.channels) && picture.height > 0);
        for (int64_t epoch = -1; epoch < 2; epoch++)
            make_sample(&picture, epoch);
        mixt__picture_free(&picture);
    }
}
