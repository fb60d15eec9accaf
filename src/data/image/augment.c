/* Random crops and mirroring, drawn for each sample and epoch apart, and the copying of unscaled windows.
 *
 * The draws come from a key of (seed, epoch, sample): which thread makes a sample, what was made before it and where a
 * run was resumed changes nothing.
 */
#include "data/image/augment.h"

#include "data/data.h"

#include <math.h>
#include <string.h>

enum { ATTEMPTS = 10 }; // at a window that fits, before the largest one in the middle is taken

mixt_status mixt__augment_of(const mixt_data_options *o, const char *path, int64_t height, int64_t width,
                             mixt__augment *augment)
{
    *augment = (mixt__augment){.height = o->crop ? o->crop : height, .width = o->crop ? o->crop : width};
    augment->pad = o->pad;
    augment->resize = o->resize;
    augment->flip = o->flip;
    augment->min_area = (double)o->min_area;
    bool scaled = o->resize || o->min_area > 0;
    if (!scaled && (augment->height > height + 2 * o->pad || augment->width > width + 2 * o->pad))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: a crop of %lld does not fit into images of %lld x %lld with a border of %lld; lower "
                          "'crop', raise 'pad', or set 'resize'",
                          path, (long long)o->crop, (long long)height, (long long)width, (long long)o->pad);
    return MIXT_OK;
}

/** A window of random area and shape, as for ImageNet (Szegedy et al. 2015). */
static void draw_scaled(const mixt__augment *a, int64_t height, int64_t width, mixt__rng *rng, mixt__window *window)
{
    double most = log(4.0 / 3.0), area = (double)height * (double)width;
    double shape = (double)a->width / (double)a->height;
    for (int i = 0; i < ATTEMPTS; i++) {
        double part = area * (a->min_area + (1 - a->min_area) * (double)mixt__rng_uniform(rng));
        double ratio = shape * exp(most * (2 * (double)mixt__rng_uniform(rng) - 1));
        double w = round(sqrt(part * ratio)), h = round(sqrt(part / ratio));
        if (w >= 1 && h >= 1 && w <= (double)width && h <= (double)height) {
            window->height = h;
            window->width = w;
            window->top = (double)mixt__rng_below(rng, (uint64_t)((double)height - h) + 1);
            window->left = (double)mixt__rng_below(rng, (uint64_t)((double)width - w) + 1);
            return;
        }
    }
    double side = fmin((double)height, (double)width / shape);
    window->height = side;
    window->width = side * shape;
    window->top = floor(((double)height - window->height) / 2);
    window->left = floor(((double)width - window->width) / 2);
}

/** Where a window of `size` begins: anywhere from -pad to where it ends pad behind the image. */
static double draw_begin(const mixt__augment *a, int64_t image, double size, mixt__rng *rng)
{
    if (a->resize)
        return (double)mixt__rng_uniform(rng) * ((double)image - size);
    return (double)mixt__rng_below(rng, (uint64_t)(image + 2 * a->pad - (int64_t)size) + 1) - (double)a->pad;
}

/** Source pixels to one pixel of the resized image. */
static double scale_of(const mixt__augment *a, int64_t height, int64_t width)
{
    return a->resize ? (double)(height < width ? height : width) / (double)a->resize : 1;
}

mixt__window mixt__augment_window(const mixt__augment *a, int64_t height, int64_t width, uint64_t seed, int64_t epoch,
                                  int64_t index)
{
    double scale = scale_of(a, height, width);
    mixt__window window = {.height = (double)a->height * scale, .width = (double)a->width * scale};
    if (!a->resize && a->min_area > 0) { // evaluation of what is trained on resized windows: the largest one
        double fit = fmin((double)height / (double)a->height, (double)width / (double)a->width);
        window.height *= fit;
        window.width *= fit;
    }
    if (epoch < 0) {
        window.top = ((double)height - window.height) / 2;
        window.left = ((double)width - window.width) / 2;
        if (!a->resize && a->min_area <= 0) { // whole pixels
            window.top = floor(window.top);
            window.left = floor(window.left);
        }
        return window;
    }
    mixt__rng rng =
        mixt__rng_start(mixt__rng_key(mixt__rng_key(seed, MIXT_STREAM_AUGMENT, (uint64_t)epoch), (uint64_t)index, 0));
    window.mirror = mixt__rng_u32(&rng) >> 31 && a->flip;
    if (a->min_area > 0) {
        draw_scaled(a, height, width, &rng, &window);
        return window;
    }
    window.top = draw_begin(a, height, window.height, &rng);
    window.left = draw_begin(a, width, window.width, &rng);
    return window;
}

/* ---- unscaled windows ---- */

/** `count` pixels from `from`, one channel count a copy of the loop so that the inner one unrolls. */
static inline __attribute__((always_inline)) void convert_bytes(const unsigned char *from, int64_t count, int64_t step,
                                                                int64_t channels, const mixt__normal *n, float *to)
{
    for (int64_t i = 0; i < count; i++, from += step, to += channels)
        for (int64_t c = 0; c < channels; c++)
            to[c] = (float)from[c] * n->scale[c] + n->shift[c];
}

static inline __attribute__((always_inline)) void convert_floats(const float *from, int64_t count, int64_t step,
                                                                 int64_t channels, const mixt__normal *n, float *to)
{
    for (int64_t i = 0; i < count; i++, from += step, to += channels)
        for (int64_t c = 0; c < channels; c++)
            to[c] = (from[c] - n->mean[c]) * n->scale[c];
}

/** `count` pixels of a row from column x, backwards when mirrored. */
static void convert_row(const mixt__image *image, int64_t y, int64_t x, int64_t count, bool mirror,
                        const mixt__normal *n, float *to)
{
    int64_t channels = image->channels, at = (y * image->width + x) * channels, step = mirror ? -channels : channels;
    if (image->dtype == MIXT_DTYPE_UINT8) {
        const unsigned char *bytes = (const unsigned char *)image->pixels + at;
        if (channels == 3 && !mirror)
            convert_bytes(bytes, count, 3, 3, n, to);
        else if (channels == 3)
            convert_bytes(bytes, count, -3, 3, n, to);
        else if (channels == 1)
            convert_bytes(bytes, count, mirror ? -1 : 1, 1, n, to);
        else
            convert_bytes(bytes, count, step, channels, n, to);
        return;
    }
    convert_floats((const float *)image->pixels + at, count, step, channels, n, to);
}

static void copy_window(const mixt__augment *a, const mixt__image *image, const mixt__window *window,
                        const mixt__normal *n, float *sample)
{
    int64_t top = (int64_t)window->top, left = (int64_t)window->left, channels = image->channels;
    int64_t first = left < 0 ? -left : 0; // columns of the window that lie in the image: [first, end)
    int64_t end = image->width - left < a->width ? image->width - left : a->width;
    size_t pixel = (size_t)channels * sizeof(float);
    for (int64_t y = 0; y < a->height; y++, sample += a->width * channels) {
        int64_t from = top + y;
        if (from < 0 || from >= image->height || end <= first) {
            memset(sample, 0, (size_t)a->width * pixel);
            continue;
        }
        int64_t before = window->mirror ? a->width - end : first, behind = a->width - before - (end - first);
        memset(sample, 0, (size_t)before * pixel);
        convert_row(image, from, left + (window->mirror ? end - 1 : first), end - first, window->mirror, n,
                    sample + before * channels);
        memset(sample + (a->width - behind) * channels, 0, (size_t)behind * pixel);
    }
}

mixt_status mixt__augment_apply(const mixt__augment *a, const mixt__image *image, const mixt__window *window,
                                const mixt__normal *normal, float *sample)
{
    if (window->height != (double)a->height || window->width != (double)a->width || window->top != floor(window->top) ||
        window->left != floor(window->left))
        return mixt__resample(image, window, a->height, a->width, normal, sample);
    copy_window(a, image, window, normal, sample);
    return MIXT_OK;
}
