/* From a recording to a sample: its place in a stretch of fixed length, noise, log-mel features, masks.
 *
 * What is random comes from a key of (seed, epoch, sample), as for images (augment.h).
 */
#include "data/audio.h"

#include <math.h>
#include <string.h>

enum { FRAMES_MAX = 1 << 20 };

mixt_status mixt__audio_make(const char *what, mixt_data_options *o, mixt__audio *audio)
{
    o->mels = o->mels ? o->mels : 40;
    o->window = o->window > 0 ? o->window : 25;
    o->hop = o->hop > 0 ? o->hop : 10;
    o->seconds = o->seconds > 0 ? o->seconds : 1;
    *audio = (mixt__audio){.shift = o->shift, .noise = o->noise, .time_mask = o->time_mask, .mel_mask = o->mel_mask};
    audio->whole = o->target == MIXT_TARGET_TEXT;
    audio->count = (int64_t)(o->seconds * (double)o->rate + 0.5);
    MIXT_TRY(mixt__mel_make(what, o->rate, o->mels, o->window, o->hop, &audio->mel));
    audio->frames = mixt__mel_frames(&audio->mel, audio->count);
    if (audio->count < 1 || audio->frames > FRAMES_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: %g seconds at %lld samples a second, a frame every %g ms: %lld frames", what, o->seconds,
                          (long long)o->rate, o->hop, (long long)audio->frames);
    if (o->time_mask >= audio->frames || o->mel_mask >= o->mels)
        return mixt__fail(
            MIXT_ERROR_CONFIG, "%s: time_mask %lld or mel_mask %lld hides all of %lld frames or %lld bands", what,
            (long long)o->time_mask, (long long)o->mel_mask, (long long)audio->frames, (long long)o->mels);
    return MIXT_OK;
}

void mixt__audio_free(mixt__audio *audio)
{
    mixt__mel_free(&audio->mel);
}

mixt_status mixt__audio_fits(const mixt__audio *audio, const char *path, int64_t count, int64_t rate)
{
    if (!audio->whole || mixt__resampled(count, rate, audio->mel.rate) <= audio->count)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_DATA,
                      "%s: lasts %.2f seconds, but samples are %.2f long: train with a larger "
                      "data.seconds (in C: seconds)",
                      path, (double)count / (double)rate, (double)audio->count / (double)audio->mel.rate);
}

mixt_status mixt__audio_read(const char *path, int64_t rate, mixt__wav *wav)
{
    MIXT_TRY(mixt__wav_read(path, wav));
    if (wav->rate == rate)
        return MIXT_OK;
    mixt__wav made = {.count = mixt__resampled(wav->count, wav->rate, rate), .rate = rate};
    made.samples = mixt__alloc_uninit((size_t)made.count * sizeof *made.samples);
    if (made.samples)
        mixt__rate_change(wav->samples, wav->count, wav->rate, rate, made.samples);
    mixt__wav_free(wav);
    *wav = made;
    return made.samples
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for it at %lld samples a second", path, (long long)rate);
}

/** White noise, up to `audio->noise` times as loud as the recording is on average. */
static void add_noise(const mixt__audio *audio, const mixt__wav *wav, mixt__rng *rng, float *stretch)
{
    double squares = 0;
    for (int64_t i = 0; i < wav->count; i++)
        squares += (double)wav->samples[i] * (double)wav->samples[i];
    double loud = sqrt(squares / (double)wav->count) * audio->noise * (double)mixt__rng_uniform(rng);
    for (int64_t i = 0; i < audio->count; i++)
        stretch[i] += (float)(loud * (double)mixt__rng_normal(rng));
}

/** Where the recording begins in the stretch; negative where its start is cut off. Where all of it counts, silence is
 *  behind it: a recurrent layer that must say something has heard it by then. */
static int64_t place(const mixt__audio *audio, const mixt__wav *wav, mixt__rng *rng)
{
    int64_t rest = audio->count - wav->count, most = (int64_t)(audio->shift * (double)audio->mel.rate);
    int64_t still = audio->whole ? 0 : rest / 2;
    if (!rng || !most)
        return still;
    if (!audio->whole)
        return still + (int64_t)mixt__rng_below(rng, (uint64_t)(2 * most + 1)) - most;
    return (int64_t)mixt__rng_below(rng, (uint64_t)(rest < most ? rest : most) + 1);
}

mixt_status mixt__audio_features(const mixt__audio *audio, const mixt__wav *wav, const uint64_t *key, float *features)
{
    size_t bytes = (size_t)audio->count * sizeof(float);
    size_t aligned = (bytes + 63) / 64 * 64;
    char *block = mixt__alloc(aligned + mixt__mel_workspace(&audio->mel));
    if (!block)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the features of a recording");
    float *stretch = (float *)block;
    mixt__rng rng = mixt__rng_start(key ? *key : 0);
    int64_t at = place(audio, wav, key ? &rng : NULL);
    int64_t begin = at > 0 ? at : 0, end = at + wav->count < audio->count ? at + wav->count : audio->count;
    if (end > begin)
        memcpy(stretch + begin, wav->samples + (begin - at), (size_t)(end - begin) * sizeof(float));
    if (key && audio->noise > 0)
        add_noise(audio, wav, &rng, stretch);
    mixt__mel_apply(&audio->mel, stretch, audio->count, block + aligned, features);
    mixt__free(block);
    return MIXT_OK;
}

void mixt__audio_mask(const mixt__audio *audio, uint64_t key, float *features)
{
    mixt__rng rng = mixt__rng_start(key);
    int64_t frames = audio->frames, mels = audio->mel.mels;
    int64_t length = (int64_t)mixt__rng_below(&rng, (uint64_t)audio->time_mask + 1);
    int64_t from = (int64_t)mixt__rng_below(&rng, (uint64_t)(frames - length) + 1);
    int64_t wide = (int64_t)mixt__rng_below(&rng, (uint64_t)audio->mel_mask + 1);
    int64_t low = (int64_t)mixt__rng_below(&rng, (uint64_t)(mels - wide) + 1);
    memset(features + from * mels, 0, (size_t)(length * mels) * sizeof *features);
    for (int64_t t = 0; t < frames; t++)
        memset(features + t * mels + low, 0, (size_t)wide * sizeof *features);
}
