/* Short-time spectra by a radix-2 transform, two frames at a time: one is the real part, the next the imaginary one. */
#include "data/audio/mel.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

/** How high line `hertz` stands in the triangle from `low` over `peak` to `high`; 0 outside. */
static double triangle(double low, double peak, double high, double hertz)
{
    double rise = (hertz - low) / (peak - low), fall = (high - hertz) / (high - peak);
    return fmax(0, fmin(rise, fall));
}

/** Writes the bands, or with `weights` NULL only counts: returns all their lines; 0: band *empty has none. */
static int64_t make_bands(mixt__mel *mel, double *weights, int64_t *empty)
{
    double step = mel_of((double)mel->rate / 2) / (double)(mel->mels + 1);
    int64_t total = 0;
    for (int64_t m = 0; m < mel->mels; m++) {
        double low = hertz_of(step * (double)m), peak = hertz_of(step * (double)(m + 1)),
               high = hertz_of(step * (double)(m + 2));
        int64_t before = total;
        for (int64_t k = 0; k <= mel->size / 2; k++) {
            double weight = triangle(low, peak, high, (double)k * (double)mel->rate / (double)mel->size);
            if (weight <= 0)
                continue;
            if (weights && total == before)
                mel->first[m] = (int32_t)k;
            if (weights)
                weights[total] = weight;
            total++;
        }
        if (weights) {
            mel->at[m] = (int32_t)before;
            mel->count[m] = (int32_t)(total - before);
        }
        if (total == before) {
            *empty = m;
            return 0;
        }
    }
    return total;
}

static void fill_tables(mixt__mel *mel)
{
    for (int64_t i = 0; i < mel->window; i++)
        mel->taper[i] = 0.5 - 0.5 * cos(2 * PI * (double)i / (double)mel->window);
    for (int64_t k = 0; k < mel->size / 2; k++) {
        mel->cosine[k] = cos(2 * PI * (double)k / (double)mel->size);
        mel->sine[k] = sin(2 * PI * (double)k / (double)mel->size);
    }
}

mixt_status mixt__mel_make(const char *what, int64_t rate, int64_t mels, double window, double hop, mixt__mel *mel)
{
    *mel = (mixt__mel){.rate = rate, .mels = mels, .size = 2};
    mel->window = (int64_t)(window * (double)rate / 1000 + 0.5);
    mel->hop = (int64_t)(hop * (double)rate / 1000 + 0.5);
    if (mel->window < 2 || mel->window > 1 << 20 || mel->hop < 1)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: at %lld samples per second a window of %g ms has %lld samples and a hop of %g ms %lld: "
                          "too few or too many",
                          what, (long long)rate, window, (long long)mel->window, hop, (long long)mel->hop);
    while (mel->size < mel->window)
        mel->size *= 2;
    int64_t empty = 0, lines = make_bands(mel, NULL, &empty);
    if (!lines)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: of %lld mel bands number %lld covers no line of the spectrum, which has %lld: lower "
                          "data.mels, or raise data.window",
                          what, (long long)mels, (long long)empty + 1, (long long)mel->size / 2 + 1);
    int64_t doubles = mel->window + mel->size + lines;
    mel->block = mixt__alloc((size_t)doubles * sizeof(double) + (size_t)mels * 3 * sizeof(int32_t));
    if (!mel->block)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the tables of its features", what);
    mel->taper = mel->block;
    mel->cosine = mel->taper + mel->window;
    mel->sine = mel->cosine + mel->size / 2;
    mel->weights = mel->sine + mel->size / 2;
    mel->first = (int32_t *)(mel->weights + lines);
    mel->count = mel->first + mels;
    mel->at = mel->count + mels;
    fill_tables(mel);
    make_bands(mel, mel->weights, &empty);
    return MIXT_OK;
}

void mixt__mel_free(mixt__mel *mel)
{
    mixt__free(mel->block);
    *mel = (mixt__mel){0};
}

int64_t mixt__mel_frames(const mixt__mel *mel, int64_t count)
{
    return 1 + count / mel->hop;
}

size_t mixt__mel_workspace(const mixt__mel *mel)
{
    return (size_t)mel->size * 2 * sizeof(double);
}

/* ---- transform ---- */

/** Element i goes to where its number with its bits backwards says. */
static void reverse_order(double *re, double *im, int64_t size)
{
    for (int64_t i = 1, j = 0; i < size; i++) {
        int64_t bit = size >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j |= bit;
        if (i < j) {
            double r = re[i], m = im[i];
            re[i] = re[j];
            im[i] = im[j];
            re[j] = r;
            im[j] = m;
        }
    }
}

static void transform(const mixt__mel *mel, double *re, double *im)
{
    int64_t size = mel->size;
    reverse_order(re, im, size);
    for (int64_t half = 1; half < size; half *= 2) {
        int64_t step = size / (2 * half);
        for (int64_t begin = 0; begin < size; begin += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                int64_t a = begin + k, b = a + half;
                double c = mel->cosine[k * step], s = mel->sine[k * step];
                double r = re[b] * c + im[b] * s, m = im[b] * c - re[b] * s;
                re[b] = re[a] - r;
                im[b] = im[a] - m;
                re[a] += r;
                im[a] += m;
            }
    }
}

/** The windowed samples around frame t's middle; zeros outside the recording. */
static void load_frame(const mixt__mel *mel, const float *samples, int64_t count, int64_t t, double *to)
{
    int64_t pad = (mel->size - mel->window) / 2, first = t * mel->hop - mel->size / 2 + pad;
    memset(to, 0, (size_t)mel->size * sizeof *to);
    int64_t begin = first < 0 ? -first : 0, end = count - first < mel->window ? count - first : mel->window;
    for (int64_t i = begin; i < end; i++)
        to[pad + i] = (double)samples[first + i] * mel->taper[i];
}

/** Bands of power[0] to power[size / 2]. */
static void write_bands(const mixt__mel *mel, const double *power, float *features)
{
    for (int64_t m = 0; m < mel->mels; m++) {
        const double *weights = mel->weights + mel->at[m], *lines = power + mel->first[m];
        double sum = 0;
        for (int32_t i = 0; i < mel->count[m]; i++)
            sum += weights[i] * lines[i];
        features[m] = (float)log(fmax(sum, MIXT_MEL_FLOOR));
    }
}

/** From the transform of a + ib to the power of both: over `re` that of a, over `im` that of b. */
static void separate(double *re, double *im, int64_t size)
{
    for (int64_t k = 0; k <= size / 2; k++) {
        int64_t n = (size - k) % size;
        double ar = (re[k] + re[n]) / 2, ai = (im[k] - im[n]) / 2;
        double br = (im[k] + im[n]) / 2, bi = (re[n] - re[k]) / 2;
        re[k] = ar * ar + ai * ai;
        im[k] = br * br + bi * bi;
    }
}

void mixt__mel_apply(const mixt__mel *mel, const float *samples, int64_t count, void *workspace, float *features)
{
    double *re = workspace, *im = re + mel->size;
    int64_t frames = mixt__mel_frames(mel, count);
    for (int64_t t = 0; t < frames; t += 2) {
        load_frame(mel, samples, count, t, re);
        load_frame(mel, samples, t + 1 < frames ? count : 0, t + 1, im);
        transform(mel, re, im);
        separate(re, im, mel->size);
        write_bands(mel, re, features + t * mel->mels);
        if (t + 1 < frames)
            write_bands(mel, im, features + (t + 1) * mel->mels);
    }
}
