/* What a core makes ready for training in a second: images (crops, flips, resizing, decoding) and batches of tokens.
 * One thread. */
#include "base/alloc.h"
#include "base/threads.h"
#include "data/image/augment.h"
#include "data/image/picture.h"
#include "mixt/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef MIXT_HAVE_JPEG
#include <jpeglib.h>
#endif

enum { WIDTH = 500, HEIGHT = 375 }; // about the mean size of ImageNet's pictures

static unsigned char photo[HEIGHT * WIDTH * 3];
static float sample[224 * 224 * 3];

static const float mean[] = {0.48f, 0.45f, 0.4f}, scale[] = {0.017f, 0.017f, 0.017f}, shift[] = {-2.1f, -2, -1.8f};
static const mixt__normal normal = {mean, scale, shift};

typedef struct work {
    const char *title;
    mixt__augment augment;
    mixt__image image;
    bool decode;
} work;

static unsigned char *jpeg_bytes;
static unsigned long jpeg_size;

static void make_jpeg(void)
{
#ifdef MIXT_HAVE_JPEG
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &jpeg_bytes, &jpeg_size);
    jpeg.image_width = WIDTH;
    jpeg.image_height = HEIGHT;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 90, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW rows[1] = {photo + (size_t)jpeg.next_scanline * WIDTH * 3};
        jpeg_write_scanlines(&jpeg, rows, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
#endif
}

/** One sample; false when it fails. */
static bool make(const work *w, int64_t index)
{
    mixt__image image = w->image;
    mixt__picture picture = {0};
#ifdef MIXT_HAVE_JPEG
    if (w->decode) {
        if (mixt__decode_jpeg("memory", jpeg_bytes, (int64_t)jpeg_size, &picture) != MIXT_OK)
            return false;
        image.pixels = picture.pixels;
    }
#endif
    mixt__window window = mixt__augment_window(&w->augment, image.height, image.width, 1, 0, index);
    bool good = mixt__augment_apply(&w->augment, &image, &window, &normal, sample) == MIXT_OK;
    mixt__picture_free(&picture);
    return good;
}

static void measure(const work *w)
{
    double best = INFINITY, end = mixt__time_now() + 1;
    int64_t index = 0, count = w->image.width > 100 ? 8 : 512;
    do {
        double start = mixt__time_now();
        for (int64_t i = 0; i < count; i++)
            if (!make(w, index++)) {
                printf("%-44s %s\n", w->title, mixt_error_text());
                return;
            }
        best = fmin(best, (mixt__time_now() - start) / (double)count);
    } while (mixt__time_now() < end);
    printf("%-44s %10.0f\n", w->title, 1 / best);
}

/* ---- tokens ---- */

enum { TOKENS = 16 << 20, BATCH = 32, SEQ = 1024, VOCABULARY = 50257 };

static bool write_tokens(const char *path)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL;
    for (int64_t i = 0; good && i < TOKENS; i++) {
        uint16_t token = (uint16_t)(rand() % VOCABULARY);
        good = fwrite(&token, sizeof token, 1, file) == 1;
    }
    return file && fclose(file) == 0 && good;
}

/** Batches of GPT-2's benchmark from a mapped file of 32 MiB. */
static void measure_tokens(void)
{
    static int32_t input[BATCH * SEQ], target[BATCH * SEQ];
    char path[] = "/tmp/mixt-bench-XXXXXX.bin";
    mixt_data *data = NULL;
    int made = mkstemps(path, 4);
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = SEQ, .classes = VOCABULARY);
    char spec[sizeof path + 8];
    snprintf(spec, sizeof spec, "tokens:%s", path);
    if (made < 0 || close(made) || !write_tokens(path) || mixt_data_open_with(spec, &options, &data) != MIXT_OK) {
        printf("no batches of tokens: %s\n", mixt_error_text());
    } else {
        int64_t count = 0;
        double start = mixt__time_now(), seconds;
        do {
            mixt_data_batch(data, BATCH, count++, input, target);
            seconds = mixt__time_now() - start;
        } while (seconds < 1);
        printf("%-44s %10.0f (%.0f us each)\n", "batches of 32 x 1024 tokens", (double)count / seconds,
               1e6 * seconds / (double)count);
    }
    mixt_data_close(data);
    unlink(path);
}

int main(void)
{
    const mixt__augment shifted = {.height = 28, .width = 28, .pad = 2};
    const mixt__augment cifar = {.height = 32, .width = 32, .pad = 4, .flip = true};
    const mixt__augment zoom = {.height = 224, .width = 224, .min_area = 0.08, .resize = 256, .flip = true};
    const mixt__image small = {photo, MIXT_DTYPE_UINT8, 32, 32, 3}, digit = {photo, MIXT_DTYPE_UINT8, 28, 28, 1};
    const mixt__image large = {photo, MIXT_DTYPE_UINT8, HEIGHT, WIDTH, 3};
    const work all[] = {
        {"MNIST images, 28 x 28, shifted", shifted, digit, false},
        {"CIFAR images, 32 x 32, border, crop, flip", cifar, small, false},
        {"500 x 375 pixels, random resized crop to 224", zoom, large, false},
        {"500 x 375 JPEG, decoded, the same", zoom, large, true},
    };
    for (int64_t i = 0; i < HEIGHT * WIDTH * 3; i++) // smooth with some grain, as photographs are
        photo[i] = (unsigned char)(128 + 80 * sin((double)(i % (WIDTH * 3)) / 90) * cos((double)i / (WIDTH * 300)) +
                                   (double)(rand() % 24));
    make_jpeg();
    printf("%-44s %10s\n", "one core", "a second");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!all[i].decode || jpeg_size)
            measure(&all[i]);
    printf("JPEG of %lu bytes\n", jpeg_size);
    measure_tokens();
    free(jpeg_bytes);
    return 0;
}
