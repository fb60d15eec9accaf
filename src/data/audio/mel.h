/* Log-mel features: short-time spectra of a recording, summed into bands as wide as the ear's, as logarithms.
 *
 * Frame t is centred on sample t × hop: a Hann window (periodic) of `window` samples in the middle of `size`, zeros
 * before and behind the recording; power |X|²; triangles between points that are equally far apart on the mel scale
 * 2595 log10(1 + f / 700) from 0 to half the rate, each with a peak of 1; log of at least 1e-6. FP64 inside.
 */
#ifndef MIXT_DATA_MEL_H
#define MIXT_DATA_MEL_H

#include "mixt/types.h"

#define MIXT_MEL_FLOOR 1e-6

/** All that does not depend on the recording; read-only once made, for any number of threads. */
typedef struct mixt__mel {
    int64_t rate, mels;
    int64_t window, hop;         // samples
    int64_t size;                // of the transform: the next power of 2
    double *taper;               // (window)
    double *cosine, *sine;       // (size / 2) of 2 pi k / size
    double *weights;             // of bands, one behind the other; band m has bins first[m] to first[m + 1] - …
    int32_t *first, *count, *at; // (mels): its first bin, how many, where its weights begin
    void *block;                 // owned: all of the above
} mixt__mel;

/** Fails where a band would hold no line of the spectrum. `what` begins messages.
 *  @param window, hop milliseconds */
mixt_status mixt__mel_make(const char *what, int64_t rate, int64_t mels, double window, double hop, mixt__mel *mel);
void mixt__mel_free(mixt__mel *mel);

/** Frames of a recording of `count` samples. */
int64_t mixt__mel_frames(const mixt__mel *mel, int64_t count);
/** Bytes of memory that mixt__mel_apply needs. */
size_t mixt__mel_workspace(const mixt__mel *mel);
/** Writes (frames, mels). */
void mixt__mel_apply(const mixt__mel *mel, const float *samples, int64_t count, void *workspace, float *features);

/** Samples of `from` a second to `to` a second: each is the sum of its neighbours by a sinc as wide as the lower of
 * both rates allows (0.99 of it), under a Hann window of 6 of its zeros to each side.
 *  @param made room for mixt__resampled(count, from, to) */
void mixt__rate_change(const float *samples, int64_t count, int64_t from, int64_t to, float *made);
int64_t mixt__resampled(int64_t count, int64_t from, int64_t to);

#endif
