/* Resizing by a triangle filter, columns before rows: each row of the sample is first a weighted sum of source rows
 * (long contiguous loops), then gathered along the row. No image is made in between.
 */
#include "data/image/augment.h"

#include "data/data.h"

#include <math.h>

/** Source positions that one position of the sample is made of, and their weights, which sum to 1. */
typedef struct taps {
    int64_t *first, *count; // (size) each
    float *weights;         // (size, most)
    int64_t most;
} taps;

/** How far a tap reaches to either side of its middle: one pixel, or one pixel of the smaller image. */
static double reach_of(double window, int64_t size)
{
    double scale = window / (double)size;
    return scale > 1 ? scale : 1;
}

static void find_taps(taps *t, double begin, double window, int64_t size, int64_t limit)
{
    double scale = window / (double)size, reach = reach_of(window, size);
    for (int64_t i = 0; i < size; i++) {
        double middle = begin + ((double)i + 0.5) * scale, sum = 0;
        int64_t first = (int64_t)floor(middle - reach + 0.5), end = (int64_t)floor(middle + reach + 0.5);
        float *weights = t->weights + i * t->most;
        first = first < 0 ? 0 : first;
        end = end > limit ? limit : end;
        if (end <= first) { // rounding at an edge: the nearest pixel
            first = first >= limit ? limit - 1 : first;
            end = first + 1;
        }
        for (int64_t k = first; k < end; k++)
            sum += fmax(0, 1 - fabs((double)k + 0.5 - middle) / reach);
        for (int64_t k = first; k < end; k++)
            weights[k - first] =
                sum > 0 ? (float)(fmax(0, 1 - fabs((double)k + 0.5 - middle) / reach) / sum) : k == first;
        t->first[i] = first;
        t->count[i] = end - first;
    }
}

/** row = Σ weight × source row, over columns [left, left + width). */
static void sum_rows(const mixt__image *image, const taps *rows, int64_t y, int64_t left, int64_t width, float *row)
{
    int64_t pitch = image->width * image->channels, length = width * image->channels;
    for (int64_t k = 0; k < rows->count[y]; k++) {
        int64_t at = (rows->first[y] + k) * pitch + left * image->channels;
        float weight = rows->weights[y * rows->most + k];
        const unsigned char *bytes = (const unsigned char *)image->pixels + at;
        const float *floats = (const float *)image->pixels + at;
        if (image->dtype == MIXT_DTYPE_UINT8 && k == 0)
            for (int64_t i = 0; i < length; i++)
                row[i] = weight * (float)bytes[i];
        else if (image->dtype == MIXT_DTYPE_UINT8)
            for (int64_t i = 0; i < length; i++)
                row[i] += weight * (float)bytes[i];
        else if (k == 0)
            for (int64_t i = 0; i < length; i++)
                row[i] = weight * floats[i];
        else
            for (int64_t i = 0; i < length; i++)
                row[i] += weight * floats[i];
    }
}

static inline __attribute__((always_inline)) void gather(const float *row, const taps *columns, int64_t left,
                                                         int64_t width, bool mirror, int64_t channels, bool bytes,
                                                         const mixt__normal *n, float *sample)
{
    for (int64_t x = 0; x < width; x++) {
        const float *weights = columns->weights + x * columns->most;
        const float *from = row + (columns->first[x] - left) * channels;
        float *to = sample + (mirror ? width - 1 - x : x) * channels;
        for (int64_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int64_t k = 0; k < columns->count[x]; k++)
                sum += weights[k] * from[k * channels + c];
            to[c] = bytes ? sum * n->scale[c] + n->shift[c] : (sum - n->mean[c]) * n->scale[c];
        }
    }
}

static void make_row(const mixt__image *image, const float *row, const taps *columns, int64_t left, int64_t width,
                     bool mirror, const mixt__normal *n, float *sample)
{
    bool bytes = image->dtype == MIXT_DTYPE_UINT8;
    if (image->channels == 3 && bytes)
        gather(row, columns, left, width, mirror, 3, true, n, sample);
    else
        gather(row, columns, left, width, mirror, image->channels, bytes, n, sample);
}

/** Lays two sets of taps and one row out in one block; NULL when there is no memory. */
static void *take_block(taps *rows, taps *columns, int64_t height, int64_t width, int64_t row_length, float **row)
{
    size_t indices = (size_t)(2 * height + 2 * width) * sizeof(int64_t);
    size_t floats = (size_t)(height * rows->most + width * columns->most + row_length) * sizeof(float);
    int64_t *block = mixt__alloc_uninit(indices + floats);
    if (!block)
        return NULL;
    rows->first = block;
    rows->count = rows->first + height;
    columns->first = rows->count + height;
    columns->count = columns->first + width;
    rows->weights = (float *)(columns->count + width);
    columns->weights = rows->weights + height * rows->most;
    *row = columns->weights + width * columns->most;
    return block;
}

mixt_status mixt__resample(const mixt__image *image, const mixt__window *window, int64_t height, int64_t width,
                           const mixt__normal *normal, float *sample)
{
    taps rows = {.most = 2 * (int64_t)ceil(reach_of(window->height, height)) + 2};
    taps columns = {.most = 2 * (int64_t)ceil(reach_of(window->width, width)) + 2};
    float *row;
    void *block = take_block(&rows, &columns, height, width, image->width * image->channels, &row);
    if (!block)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to resize an image of %lld x %lld", (long long)image->height,
                          (long long)image->width);
    find_taps(&rows, window->top, window->height, height, image->height);
    find_taps(&columns, window->left, window->width, width, image->width);
    int64_t left = columns.first[0], used = columns.first[width - 1] + columns.count[width - 1] - left;
    for (int64_t y = 0; y < height; y++) {
        sum_rows(image, &rows, y, left, used, row);
        make_row(image, row, &columns, left, width, window->mirror, normal, sample + y * width * image->channels);
    }
    mixt__free(block);
    return MIXT_OK;
}
