/* WAV files: one recording, mixed down to one channel, as FP32 in [-1, 1]. */
#ifndef MIXT_DATA_WAV_H
#define MIXT_DATA_WAV_H

#include "mixt/types.h"

typedef struct mixt__wav {
    float *samples; // owned; (count); of float files some may lie outside [-1, 1]
    int64_t count;
    int64_t rate; // samples a second
} mixt__wav;

/** Reads a whole file: PCM of 8, 16, 24 or 32 bits, or float of 32 or 64, of any number of channels, whose mean is
 *  taken. Refused, with what is wrong: other codings, what is cut off, and numbers that are not finite. */
mixt_status mixt__wav_read(const char *path, mixt__wav *wav);
/** Reads the header alone: `samples` stays NULL. What mixt__wav_read refuses for its header is refused here. */
mixt_status mixt__wav_probe(const char *path, mixt__wav *wav);
void mixt__wav_free(mixt__wav *wav);

/** Whether a name ends as a WAV file's does. */
bool mixt__wav_is(const char *name);
/** Whether it ends as that of sound which cannot be read does. */
bool mixt__wav_is_unread(const char *name);

#endif
