/* From a recording to a sample: the part of it that is shown, silence before it, noise, log-mel features, masks.
 *
 * What is random comes from a key of (seed, epoch, sample), as for images (augment.h).
 */
#include "data/audio/audio.h"

#include <math.h>
#include <string.h>

#define TAIL 0.5 // seconds of silence behind what is to be spelled

enum {
    FRAMES_MAX = 1 << 20,
    SHORTEST = 16, // frames: shorter recordings have silence behind them
    HIDDEN = 2,    // of a recording's frames one in so many may be hidden at most
};

mixt_status mixt__audio_make(const char *what, mixt_data_options *o, mixt__audio *audio)
{
    o->mels = o->mels ? o->mels : 40;
    o->seconds = o->seconds > 0 ? o->seconds : 1;
    *audio = (mixt__audio){.shift = o->shift, .noise = o->noise, .time_mask = o->time_mask, .mel_mask = o->mel_mask};
    audio->whole = o->target == MIXT_TARGET_TEXT;
    o->tail = o->tail == 0 && audio->whole ? TAIL : o->tail > 0 ? o->tail : -1;
    audio->count = (int64_t)(o->seconds * (double)o->rate + 0.5);
    audio->tail = o->tail > 0 ? (int64_t)(o->tail * (double)o->rate + 0.5) : 0;
    MIXT_TRY(mixt__mel_make(what, o->rate, o->mels, o->window, o->hop, &audio->mel));
    audio->frames = mixt__mel_frames(&audio->mel, audio->count + audio->tail);
    if (audio->count < 1 || audio->frames > FRAMES_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: %g seconds at %lld samples per second, a frame every %g ms: %lld frames", what,
                          o->seconds, (long long)o->rate, o->hop, (long long)audio->frames);
    bool time = o->time_mask >= audio->frames;
    if (time || o->mel_mask >= o->mels)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: data.%s=%lld hides all of the %lld %s", what,
                          time ? "time_mask" : "mel_mask", (long long)(time ? o->time_mask : o->mel_mask),
                          (long long)(time ? audio->frames : o->mels), time ? "frames" : "bands");
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
    return made.samples ? MIXT_OK
                        : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for it at %lld samples per second", path,
                                     (long long)rate);
}

/** Where a recording lies in what a sample shows. */
typedef struct stretch {
    int64_t at;    // of its first sample; negative where its start is cut off
    int64_t count; // samples of all: silence before it, the recording, silence behind it
} stretch;

/** White noise, up to `audio->noise` times as loud as the recording is on average. */
static void add_noise(const mixt__audio *audio, const mixt__wav *wav, mixt__rng *rng, int64_t count, float *samples)
{
    double squares = 0;
    for (int64_t i = 0; i < wav->count; i++)
        squares += (double)wav->samples[i] * (double)wav->samples[i];
    double loud = sqrt(squares / (double)wav->count) * audio->noise * (double)mixt__rng_uniform(rng);
    for (int64_t i = 0; i < count; i++)
        samples[i] += (float)(loud * (double)mixt__rng_normal(rng));
}

static int64_t within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/** Samples that a recording may be moved by. */
static int64_t most_of(const mixt__audio *audio)
{
    return (int64_t)(audio->shift * (double)audio->mel.rate);
}

/** Samples that `count` of them are shown as: no more than fit, with their tail, and no fewer than a model can hear
 *  something in. */
static int64_t shown(const mixt__audio *audio, int64_t count)
{
    int64_t least = (SHORTEST - 1) * audio->mel.hop, room = audio->count + audio->tail;
    int64_t all = (count < audio->count ? count : audio->count) + audio->tail;
    return within(all < least ? least : all, 0, room);
}

static stretch place(const mixt__audio *audio, int64_t count, mixt__rng *rng)
{
    int64_t rest = audio->count - count, most = most_of(audio);
    stretch s = {.at = rest < 0 ? rest / 2 : 0};
    if (rng && most && rest < 0)
        s.at = within(s.at + (int64_t)mixt__rng_below(rng, (uint64_t)(2 * most + 1)) - most, rest, 0);
    else if (rng && most)
        s.at = (int64_t)mixt__rng_below(rng, (uint64_t)(rest < most ? rest : most) + 1);
    s.count = shown(audio, s.at + count);
    return s;
}

int64_t mixt__audio_frames(const mixt__audio *audio, int64_t count, bool moved)
{
    return mixt__mel_frames(&audio->mel, shown(audio, count + (moved ? most_of(audio) : 0)));
}

void mixt__audio_silence(const mixt__audio *audio, int64_t from, float *features)
{
    for (int64_t i = from * audio->mel.mels; i < audio->frames * audio->mel.mels; i++)
        features[i] = (float)log(MIXT_MEL_FLOOR);
}

mixt_status mixt__audio_features(const mixt__audio *audio, const mixt__wav *wav, const uint64_t *key, float *features,
                                 int64_t *frames)
{
    mixt__rng rng = mixt__rng_start(key ? *key : 0);
    stretch s = place(audio, wav->count, key ? &rng : NULL);
    size_t bytes = (size_t)s.count * sizeof(float), aligned = (bytes + 63) / 64 * 64;
    char *block = mixt__alloc(aligned + mixt__mel_workspace(&audio->mel));
    if (!block)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the features of a recording");
    float *samples = (float *)block;
    int64_t begin = s.at > 0 ? s.at : 0, end = s.at + wav->count < s.count ? s.at + wav->count : s.count;
    if (end > begin)
        memcpy(samples + begin, wav->samples + (begin - s.at), (size_t)(end - begin) * sizeof(float));
    if (key && audio->noise > 0)
        add_noise(audio, wav, &rng, s.count, samples);
    mixt__mel_apply(&audio->mel, samples, s.count, block + aligned, features);
    *frames = mixt__mel_frames(&audio->mel, s.count);
    mixt__free(block);
    return MIXT_OK;
}

void mixt__audio_mask(const mixt__audio *audio, uint64_t key, int64_t frames, float *features)
{
    mixt__rng rng = mixt__rng_start(key);
    int64_t mels = audio->mel.mels, most = audio->time_mask < frames / HIDDEN ? audio->time_mask : frames / HIDDEN;
    int64_t length = (int64_t)mixt__rng_below(&rng, (uint64_t)most + 1);
    int64_t from = (int64_t)mixt__rng_below(&rng, (uint64_t)(frames - length) + 1);
    int64_t wide = (int64_t)mixt__rng_below(&rng, (uint64_t)audio->mel_mask + 1);
    int64_t low = (int64_t)mixt__rng_below(&rng, (uint64_t)(mels - wide) + 1);
    memset(features + from * mels, 0, (size_t)(length * mels) * sizeof *features);
    for (int64_t t = 0; t < frames; t++)
        memset(features + t * mels + low, 0, (size_t)wide * sizeof *features);
}
