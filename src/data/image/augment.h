/* From an image of any size to a sample: a window of it, mirrored or not, resized, normalised. */
#ifndef MIXT_DATA_AUGMENT_H
#define MIXT_DATA_AUGMENT_H

#include "mixt/data.h"

/** (height, width, channels), borrowed. */
typedef struct mixt__image {
    const void *pixels;
    mixt_dtype dtype; // UINT8 or FP32
    int64_t height, width, channels;
} mixt__image;

/** Normalising, (channels) each: bytes become value × scale + shift, floats (value − mean) × scale. */
typedef struct mixt__normal {
    const float *mean, *scale, *shift;
} mixt__normal;

typedef struct mixt__augment {
    int64_t height, width; // of a sample
    int64_t pad, resize;   // as in mixt_data_options
    bool flip;
    double min_area;
} mixt__augment;

/** A part of an image; it may reach past the edges. Sides that are not the sample's mean resizing. */
typedef struct mixt__window {
    double top, left, height, width;
    bool mirror;
} mixt__window;

// augment.c

/** What the options ask for with images of this size; a side of 0 says that images have various sizes. Fails where a
 *  crop is larger than the image. */
mixt_status mixt__augment_of(const mixt_data_options *options, const char *path, int64_t height, int64_t width,
                             mixt__augment *augment);
/** The window of sample `index` in `epoch`: a pure function of its arguments. A negative epoch gives the middle. */
mixt__window mixt__augment_window(const mixt__augment *augment, int64_t height, int64_t width, uint64_t seed,
                                  int64_t epoch, int64_t index);
/** Writes a sample (augment's height, width, image's channels). What lies outside the image becomes 0, the mean. */
mixt_status mixt__augment_apply(const mixt__augment *augment, const mixt__image *image, const mixt__window *window,
                                const mixt__normal *normal, float *sample);

// resample.c

/** Resizes a window to (height, width): bilinear, and where it shrinks each source pixel counts by how much of the
 *  sample's pixel it covers (a triangle as wide as two of the sample's pixels). Pixels beside the window count too;
 *  the window must lie inside the image. Takes one block of memory for the time of the call. */
mixt_status mixt__resample(const mixt__image *image, const mixt__window *window, int64_t height, int64_t width,
                           const mixt__normal *normal, float *sample);

#endif
