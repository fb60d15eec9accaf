/* IDX: the input as images beside labels that fit them, and as labels beside four images. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 4096 };

/** Opens the pair in one of four ways, chosen by the length of the input: opening is what takes the time. */
static void read_both(const char *images, const char *labels, size_t size)
{
    const mixt_data_options ways[] = {MIXT_OPTIONS(mixt_data_options, .split = "train"),
                                      MIXT_OPTIONS(mixt_data_options, .split = "val"),
                                      MIXT_OPTIONS(mixt_data_options, .split = "all"),
                                      MIXT_OPTIONS(mixt_data_options, .classes = 3, .shape = "2x2x1")};
    mixt_data_options options = ways[size % 4];
    char spec[700];
    snprintf(spec, sizeof spec, "idx:%s", images);
    options.labels = labels;
    fuzz_data_set(spec, options);
}

/** As many labels as the header of the images asks for. */
static const char *fitting_labels(const uint8_t *data, size_t size)
{
    static uint8_t labels[8 + ROWS_MAX] = {0, 0, 8, 1};
    uint32_t rows = size < 8 ? 1 : (uint32_t)data[4] << 24 | (uint32_t)data[5] << 16 | (uint32_t)data[6] << 8 | data[7];
    if (rows > ROWS_MAX)
        rows = ROWS_MAX;
    labels[6] = (uint8_t)(rows >> 8);
    labels[7] = (uint8_t)rows;
    for (uint32_t i = 0; i < rows; i++)
        labels[8 + i] = (uint8_t)(i % 3);
    return fuzz_file("labels", labels, 8 + rows);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static const uint8_t images[32] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 2, 255, 1};
    const char *input = fuzz_file("input", data, size);
    read_both(input, fitting_labels(data, size), size);
    read_both(fuzz_file("images", images, sizeof images), input, size);
}
