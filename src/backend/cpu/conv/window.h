/* The source of a direct convolution as its tiles read it: rows with their padding, as 32-bit units.
 *
 * A thread copies a few rows at a time into its own buffer, which stays in its second-level cache; widening happens on
 * the way. Where no padding and no widening is needed the tiles read the tensor itself.
 */
#ifndef MIXT_BACKEND_CPU_CONV_WINDOW_H
#define MIXT_BACKEND_CPU_CONV_WINDOW_H

#include "backend/cpu/conv/tile.h"

/** Output row y, column x reads source rows y·stride − top + [0, taps_h), columns x·stride − left + [0, taps_w). */
typedef struct mixt__conv_window {
    mixt_dtype dtype;
    int64_t h, w, c; // of the source
    int64_t stride, taps_h, taps_w, top, left;
    int64_t out_h, out_w;
    bool pairs; // units are BF16 pairs, else FP32
    /* set by mixt__conv_window_plan */
    bool in_place;
    int64_t row_units;  // from a row to the next
    int64_t block_rows; // output rows whose source fits the buffer
    size_t buffer_bytes;
} mixt__conv_window;

void mixt__conv_window_plan(mixt__conv_window *window);

/** The first unit of output row `row` of image `image`, with `rows` output rows from there readable. */
const float *mixt__conv_window_rows(const mixt__conv_window *window, const void *src, int64_t image, int64_t row,
                                    int64_t rows, void *buffer);

/** Kernel rows [*first, *end) of output row `row` that lie in the image: the others are zero and need no product. */
void mixt__conv_window_taps(const mixt__conv_window *window, int64_t row, int64_t *first, int64_t *end);
/** Output rows [*first, *end) of `rows` from `row` for which kernel row `tap` lies in the image. */
void mixt__conv_window_reach(const mixt__conv_window *window, int64_t tap, int64_t row, int64_t rows, int64_t *first,
                             int64_t *end);

/** Units from an output pixel to the next. */
int64_t mixt__conv_window_step(const mixt__conv_window *window);
/** Units of one kernel row. */
int64_t mixt__conv_window_run(const mixt__conv_window *window);

/** The best tiles of this CPU; NULL when it has none. */
const mixt__conv_tiles *mixt__conv_tiles_here(void);

#endif
