/* Log-mel features of a WAV file as a set of recordings has them, before normalising, as FP32 on standard output:
 *
 *     features FILE RATE MELS WINDOW HOP
 *
 * RATE 0: the file's own. The recording is taken whole. compare_audio.py holds them against librosa's.
 */
#include "data/audio/audio.h"

#include <stdio.h>
#include <stdlib.h>

static int failed(void)
{
    fprintf(stderr, "features: %s\n", mixt_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    mixt__wav wav;
    mixt__mel mel;
    if (argc != 6) {
        fprintf(stderr, "usage: features FILE RATE MELS WINDOW HOP\n");
        return 2;
    }
    if (mixt__wav_probe(argv[1], &wav) != MIXT_OK)
        return failed();
    int64_t rate = atoll(argv[2]) ? atoll(argv[2]) : wav.rate;
    if (mixt__audio_read(argv[1], rate, &wav) != MIXT_OK ||
        mixt__mel_make(argv[1], rate, atoll(argv[3]), atof(argv[4]), atof(argv[5]), &mel) != MIXT_OK)
        return failed();
    int64_t count = mixt__mel_frames(&mel, wav.count) * mel.mels;
    float *features = malloc((size_t)count * sizeof *features);
    void *work = malloc(mixt__mel_workspace(&mel));
    if (!features || !work)
        return 1;
    mixt__mel_apply(&mel, wav.samples, wav.count, work, features);
    bool written = fwrite(features, sizeof *features, (size_t)count, stdout) == (size_t)count;
    free(features);
    free(work);
    mixt__mel_free(&mel);
    mixt__wav_free(&wav);
    return written ? 0 : 1;
}
