/* Words that mixt speaks itself, so that a first run needs no download: sums of harmonics under moving formants.
 *
 * A word is a row of vowels. Pitch, its fall, the length of the mouth, tempo, loudness and noise are drawn for each
 * word anew, so that only the movement of the formants tells which it is.
 */
#include "data/audio/audio.h"

#include <math.h>
#include <string.h>

enum { VOWELS = 5, FORMANTS = 3, HARMONICS = 40, STEP = 32 }; // STEP: samples between two looks at the formants

const char *const mixt__voice_words[MIXT_VOICE_WORDS] = {"aei", "aou", "eai", "eu", "iau",
                                                         "ie",  "oa",  "oie", "ua", "uio"};

/** Formants in Hz of a, e, i, o, u (Peterson and Barney's averages of men, about). */
static const double formants[VOWELS][FORMANTS] = {
    {730, 1090, 2440}, {530, 1840, 2480}, {270, 2290, 3010}, {570, 840, 2410}, {300, 870, 2240}};
static const double widths[FORMANTS] = {80, 110, 160}, heights[FORMANTS] = {1, 0.6, 0.3};

/** What is drawn for one word. */
typedef struct voice {
    const char *word;
    double pitch, fall; // Hz at the start, and how much of it is lost to the end
    double mouth;       // factor of all formants
    double syllable;    // samples
    double loud;
} voice;

static double between(mixt__rng *rng, double low, double high)
{
    return low + (high - low) * (double)mixt__rng_uniform(rng);
}

static int vowel_of(char letter)
{
    return (int)(strchr("aeiou", letter) - "aeiou");
}

/** The formants at a moment, gliding from vowel to vowel in the middle third of a syllable. */
static void formants_at(const voice *v, double syllables, double at[FORMANTS])
{
    int last = (int)strlen(v->word) - 1, now = (int)syllables < last ? (int)syllables : last;
    int next = now < last ? now + 1 : last;
    double into = syllables - now, glide = into < 0.6 ? 0 : (into - 0.6) / 0.4;
    for (int f = 0; f < FORMANTS; f++) {
        double from = formants[vowel_of(v->word[now])][f], to = formants[vowel_of(v->word[next])][f];
        at[f] = v->mouth * (from + (to - from) * fmin(glide, 1));
    }
}

/** How loud each harmonic is. */
static void weigh(const double at[FORMANTS], double pitch, double weights[HARMONICS])
{
    for (int h = 0; h < HARMONICS; h++) {
        double hertz = pitch * (h + 1);
        weights[h] = 0;
        for (int f = 0; f < FORMANTS && hertz < MIXT_VOICE_RATE / 2.0; f++) {
            double off = (hertz - at[f]) / widths[f];
            weights[h] += heights[f] / (1 + off * off);
        }
    }
}

/** One moment of the sound, from the angle of the pitch: sines of its multiples by recurrence. */
static double sum_of(const double weights[HARMONICS], double angle)
{
    double twice = 2 * cos(angle), before = 0, now = sin(angle), sum = 0;
    for (int h = 0; h < HARMONICS; h++) {
        sum += weights[h] * now;
        double next = twice * now - before;
        before = now;
        now = next;
    }
    return sum;
}

static void speak(const voice *v, int64_t count, float *samples)
{
    double weights[HARMONICS], at[FORMANTS], angle = 0, pitch = v->pitch;
    for (int64_t i = 0; i < count; i++) {
        double done = (double)i / (double)count;
        if (i % STEP == 0) {
            pitch = v->pitch * (1 - v->fall * done);
            formants_at(v, (double)i / v->syllable, at);
            weigh(at, pitch, weights);
        }
        angle = fmod(angle + 6.283185307179586 * pitch / MIXT_VOICE_RATE, 6.283185307179586);
        double swell = fmin(1, fmin(done * 12, (1 - done) * 6));
        samples[i] = (float)(v->loud * swell * sum_of(weights, angle) / 4);
    }
}

/** A voice and the number of its word. */
static voice choose(mixt__rng *rng, int32_t *label)
{
    *label = (int32_t)mixt__rng_below(rng, MIXT_VOICE_WORDS);
    voice v = {.word = mixt__voice_words[*label]};
    v.pitch = between(rng, 90, 240);
    v.fall = between(rng, -0.1, 0.3);
    v.mouth = between(rng, 0.88, 1.2);
    v.syllable = between(rng, 0.1, 0.22) * MIXT_VOICE_RATE;
    return v;
}

static int64_t length_of(const voice *v)
{
    return (int64_t)(v->syllable * (double)strlen(v->word));
}

int64_t mixt__voice_length(uint64_t key)
{
    mixt__rng rng = mixt__rng_start(key);
    int32_t label;
    voice v = choose(&rng, &label);
    return length_of(&v);
}

int32_t mixt__voice_draw(uint64_t key, float *samples, int64_t *count)
{
    mixt__rng rng = mixt__rng_start(key);
    int32_t label;
    voice v = choose(&rng, &label);
    v.loud = exp(between(&rng, log(0.03), log(0.5)));
    double hiss = v.loud * exp(between(&rng, log(0.003), log(0.1)));
    *count = length_of(&v);
    speak(&v, *count, samples);
    for (int64_t i = 0; i < *count; i++)
        samples[i] += (float)(hiss * (double)mixt__rng_normal(&rng));
    return label;
}
