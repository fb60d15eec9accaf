/* The built-in set: digits that mixt draws itself, so that a first run needs no download.
 *
 * Sample i of a part is a pure function of (seed, part, i). The part is drawn once, on all threads, when it is
 * opened; from then on it is a table like any other.
 */
#include "data/data.h"
#include "data/image/digits.h"

#include "base/threads.h"

// Of the pixels of the default training part, measured; fixed so that every part and size is normalised alike.
#define DIGITS_MEAN 0.1082f
#define DIGITS_STD 0.2336f

static const int64_t default_samples[MIXT_PART_COUNT] = {20000, 2000, 4000, 20000};

typedef struct drawing {
    uint64_t seed;
    mixt__part part;
    unsigned char *pixels;
    int32_t *labels;
} drawing;

static void draw_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const drawing *d = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        uint64_t key = mixt__rng_key(d->seed, MIXT_STREAM_DIGITS + (uint64_t)d->part, (uint64_t)i);
        d->labels[i] = mixt__digit_draw(key, d->pixels + i * MIXT_DIGIT_PIXELS);
    }
}

static mixt_status open_digits(mixt_data *data)
{
    if (*data->path)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "digits are generated and have no path: leave out data.path, or set data.kind=auto to read %s", data->path);
    if (data->options.classes && data->options.classes < 10)
        return mixt__fail(MIXT_ERROR_CONFIG, "digits: has 10 classes, not %lld", (long long)data->options.classes);
    int64_t samples = data->options.samples ? data->options.samples : default_samples[data->part];
    if (data->options.limit && data->options.limit < samples)
        samples = data->options.limit;
    if (samples > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "digits: %lld samples are too many", (long long)samples);
    mixt__table table = {.path = "digits:",
                         .dtype = MIXT_DTYPE_UINT8,
                         .rows = samples,
                         .rank = 3,
                         .dims = {MIXT_DIGIT_SIDE, MIXT_DIGIT_SIDE, 1},
                         .classes = data->options.classes ? data->options.classes : 10};
    table.block = mixt__alloc_uninit((size_t)samples * MIXT_DIGIT_PIXELS);
    table.labels = mixt__alloc_uninit((size_t)samples * sizeof(int32_t));
    table.input = table.block;
    if (!table.block || !table.labels) {
        mixt__table_free(&table);
        return mixt__fail(MIXT_ERROR_MEMORY, "digits: no memory for %lld samples; lower 'samples'", (long long)samples);
    }
    mixt__part part = data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part;
    drawing d = {mixt__data_draw_seed(data), part, table.block, table.labels};
    mixt__parallel(samples, 64, draw_range, &d);
    return mixt__table_adopt(data, &table, DIGITS_MEAN, DIGITS_STD);
}

const mixt__data_kind mixt__data_digits = {
    .name = "digits",
    .what = "generated digits",
    .uses = MIXT_DATA_IMAGES | MIXT_DATA_DRAWN | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE |
            MIXT_DATA_SAMPLES,
    .drawn = true,
    .open = open_digits,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
