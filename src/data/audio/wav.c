/* Reading WAV: the walk over the chunks, the format's words, and samples of every coding to FP32.
 *
 * All that a header says is held against the bytes that are there before a sample is looked at.
 */
#include "data/audio/wav.h"

#include "data/data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    HEAD = 65536, // read to know a file by: chunks before the samples are small
    TAG_PCM = 1,
    TAG_FLOAT = 3,
    TAG_EXTENSIBLE = 0xfffe,
    CHANNELS_MAX = 256,
    RATE_MIN = 100,
    RATE_MAX = 768000,
};

#define LOUDEST 1e9 // of float files: some hold 16-bit numbers as they are; beyond this it is no sound

/** What a file says of its samples. */
typedef struct layout {
    unsigned tag, channels, bits;
    int64_t rate, frame;  // bytes of one sample of all channels
    int64_t begin, bytes; // of the samples in the file
    bool known;           // the format was read
} layout;

static unsigned u16(const unsigned char *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static uint32_t u32(const unsigned char *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

/* ---- codings ---- */

static double get_u8(const unsigned char *p)
{
    return ((double)*p - 128) / 128;
}

static double get_s16(const unsigned char *p)
{
    return (double)(int16_t)u16(p) / 32768;
}

static double get_s24(const unsigned char *p)
{
    return (double)(int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) / 2147483648.0;
}

static double get_s32(const unsigned char *p)
{
    return (double)(int32_t)u32(p) / 2147483648.0;
}

static double get_f32(const unsigned char *p)
{
    uint32_t bits = u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double get_f64(const unsigned char *p)
{
    uint64_t bits = (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

typedef struct coding {
    unsigned tag, bits;
    double (*get)(const unsigned char *);
} coding;

static const coding codings[] = {
    {TAG_PCM, 8, get_u8},   {TAG_PCM, 16, get_s16},   {TAG_PCM, 24, get_s24},
    {TAG_PCM, 32, get_s32}, {TAG_FLOAT, 32, get_f32}, {TAG_FLOAT, 64, get_f64},
};

static const coding *find_coding(const layout *l)
{
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++)
        if (codings[i].tag == l->tag && codings[i].bits == l->bits)
            return &codings[i];
    return NULL;
}

/** The refusal of a coding that is not read, with its name where it has one. */
static mixt_status refuse_coding(const char *path, const layout *l)
{
    static const struct {
        unsigned tag;
        const char *name;
    } names[] = {{TAG_PCM, "PCM"}, {TAG_FLOAT, "float"}, {2, "ADPCM"},  {6, "A-law"},
                 {7, "mu-law"},    {0x11, "IMA ADPCM"},  {0x31, "GSM"}, {0x55, "MP3"}};
    const char *name = "of an unknown coding";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].tag == l->tag)
            name = names[i].name;
    return mixt__fail(
        MIXT_ERROR_UNSUPPORTED,
        "%s: samples are %s of %u bits (format %u): convert the file to PCM of 8, 16, 24 or 32 bits, or to "
        "float",
        path, name, l->bits, l->tag);
}

/* ---- chunks ---- */

/** The content of "fmt ": 16 bytes, 18, or 40 where the format is extensible. */
static mixt_status read_format(const char *path, const unsigned char *p, int64_t size, layout *l)
{
    static const unsigned char rest_of_guid[14] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    if (size < 16)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its format has %lld bytes, expected 16 or more", path,
                          (long long)size);
    *l = (layout){
        .tag = u16(p), .channels = u16(p + 2), .bits = u16(p + 14), .rate = (int64_t)u32(p + 4), .known = true};
    if (l->tag == TAG_EXTENSIBLE && size >= 40 && !memcmp(p + 26, rest_of_guid, sizeof rest_of_guid))
        l->tag = u16(p + 24);
    if (!find_coding(l))
        return refuse_coding(path, l);
    l->frame = (int64_t)l->channels * (l->bits / 8);
    if (l->channels < 1 || l->channels > CHANNELS_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %u channels, expected 1 to %d", path, l->channels, CHANNELS_MAX);
    if (l->rate < RATE_MIN || l->rate > RATE_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %lld samples per second, expected %d to %d", path, (long long)l->rate,
                          RATE_MIN, RATE_MAX);
    if (u16(p + 12) != (unsigned)l->frame)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: says that %u bytes are one sample of %u channels of %u bits", path,
                          u16(p + 12), l->channels, l->bits);
    return MIXT_OK;
}

/** The place of the samples. `total` is the size of the whole file. */
static mixt_status take_samples(const char *path, int64_t at, int64_t size, int64_t total, layout *l)
{
    if (!l->known)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its samples come before its format", path);
    l->begin = at;
    l->bytes = size == UINT32_MAX ? total - at : size; // a program that wrote to a pipe could not know
    if (l->bytes > total - at)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is cut off: its header says %lld bytes of samples, but it has %lld",
                          path, (long long)l->bytes, (long long)(total - at));
    if (!l->bytes)
        return mixt__fail(MIXT_ERROR_DATA, "%s: has no samples", path);
    if (l->bytes % l->frame)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its %lld bytes of samples end in the middle of one (%lld bytes each)",
                          path, (long long)l->bytes, (long long)l->frame);
    return l->bytes / l->frame <= INT32_MAX ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: is too long", path);
}

static mixt_status check_mark(const char *path, const unsigned char *bytes, int64_t size)
{
    if (size >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WAVE", 4))
        return MIXT_OK;
    if (size >= 4 && (!memcmp(bytes, "RIFX", 4) || !memcmp(bytes, "RF64", 4)))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: is WAV of the kind %.4s: convert it to the usual one (RIFF)",
                          path, (const char *)bytes);
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: is not a WAV file: it does not begin with RIFF and WAVE", path);
}

/** Finds format and samples in the first `size` bytes of a file of `total`. */
static mixt_status find_chunks(const char *path, const unsigned char *bytes, int64_t size, int64_t total, layout *l)
{
    *l = (layout){0};
    MIXT_TRY(check_mark(path, bytes, size));
    for (int64_t at = 12; at + 8 <= size;) {
        int64_t length = (int64_t)u32(bytes + at + 4), begin = at + 8;
        if (!memcmp(bytes + at, "data", 4))
            return take_samples(path, begin, length, total, l);
        if (length > total - begin)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: is cut off in the part at byte %lld", path, (long long)at);
        if (!memcmp(bytes + at, "fmt ", 4))
            MIXT_TRY(read_format(path, bytes + begin, length < size - begin ? length : size - begin, l));
        at = begin + length + length % 2;
    }
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: holds no samples: it is cut off, or its header is longer than %d bytes",
                      path, HEAD);
}

/* ---- files ---- */

static mixt_status decode(const char *path, const unsigned char *bytes, const layout *l, mixt__wav *wav)
{
    const coding *c = find_coding(l);
    int64_t step = l->bits / 8;
    const unsigned char *p = bytes + l->begin;
    wav->samples = mixt__alloc_uninit((size_t)wav->count * sizeof *wav->samples);
    if (!wav->samples)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld samples", path, (long long)wav->count);
    for (int64_t i = 0; i < wav->count; i++) {
        double sum = 0;
        for (unsigned k = 0; k < l->channels; k++, p += step)
            sum += c->get(p);
        sum /= (double)l->channels;
        if (!(fabs(sum) <= LOUDEST))
            return mixt__fail(MIXT_ERROR_DATA, "%s: sample %lld is %g, which is not a sample of sound", path,
                              (long long)i, sum);
        wav->samples[i] = (float)sum;
    }
    return MIXT_OK;
}

mixt_status mixt__wav_read(const char *path, mixt__wav *wav)
{
    mixt__bytes file;
    layout l;
    *wav = (mixt__wav){0};
    MIXT_TRY(mixt__bytes_read(path, &file));
    mixt_status status = find_chunks(path, file.bytes, file.size < HEAD ? file.size : HEAD, file.size, &l);
    if (status == MIXT_OK) {
        wav->rate = l.rate;
        wav->count = l.bytes / l.frame;
        status = decode(path, file.bytes, &l, wav);
    }
    mixt__bytes_free(&file);
    if (status != MIXT_OK)
        mixt__wav_free(wav);
    return status;
}

mixt_status mixt__wav_probe(const char *path, mixt__wav *wav)
{
    mixt__bytes head;
    struct stat info;
    layout l;
    *wav = (mixt__wav){0};
    MIXT_TRY(mixt__bytes_read_most(path, HEAD, &head));
    if (stat(path, &info)) {
        mixt__bytes_free(&head);
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s", path, strerror(errno));
    }
    int64_t total = head.size > HEAD ? (int64_t)info.st_size : head.size;
    mixt_status status = find_chunks(path, head.bytes, head.size < HEAD ? head.size : HEAD, total, &l);
    mixt__bytes_free(&head);
    MIXT_TRY(status);
    wav->rate = l.rate;
    wav->count = l.bytes / l.frame;
    return MIXT_OK;
}

void mixt__wav_free(mixt__wav *wav)
{
    mixt__free(wav->samples);
    *wav = (mixt__wav){0};
}

/* ---- names ---- */

static bool has_ending(const char *name, const char *const *endings, int count)
{
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && i < count; i++)
        if (!strcasecmp(dot, endings[i]))
            return true;
    return false;
}

bool mixt__wav_is(const char *name)
{
    static const char *const endings[] = {".wav", ".wave"};
    return has_ending(name, endings, 2);
}

bool mixt__wav_is_unread(const char *name)
{
    static const char *const endings[] = {".mp3", ".flac", ".ogg",  ".oga", ".opus", ".m4a",
                                          ".aac", ".aif",  ".aiff", ".au",  ".wma"};
    return has_ending(name, endings, sizeof endings / sizeof endings[0]);
}
