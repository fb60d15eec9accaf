/* Inside the audio kind: which recordings a part has, and how one becomes a sample. */
#ifndef MIXT_DATA_AUDIO_H
#define MIXT_DATA_AUDIO_H

#include "data/data.h"
#include "data/mel.h"
#include "data/wav.h"

// audio_features.c

/** How recordings become samples of one shape. */
typedef struct mixt__audio {
    mixt__mel mel;
    int64_t count;  // samples of the recording that a sample shows
    int64_t frames; // of a sample
    double shift, noise;
    int64_t time_mask, mel_mask;
} mixt__audio;

/** Fills in what the options leave open (the rate must be known) and makes the tables. `what` begins messages. */
mixt_status mixt__audio_make(const char *what, mixt_data_options *options, mixt__audio *audio);
void mixt__audio_free(mixt__audio *audio);
/** Reads a recording at `rate`. */
mixt_status mixt__audio_read(const char *path, int64_t rate, mixt__wav *wav);
/** The features (frames, mels) of a recording: its middle part, or with silence around it. In training, with a `key` of
 *  the sample's own, moved and with noise as the options ask; NULL: as it is. */
mixt_status mixt__audio_features(const mixt__audio *audio, const mixt__wav *wav, const uint64_t *key, float *features);
/** Hides frames and bands, as the options ask: they become 0, the mean of features that are normalised. */
void mixt__audio_mask(const mixt__audio *audio, uint64_t key, float *features);

// audio_files.c

typedef struct mixt__recording {
    const char *path, *name; // name: what comes behind the folder of the set; both in the data set's memory
    const char *word;        // its class
    int32_t label;
    mixt__part part; // ALL: a share decides
} mixt__recording;

typedef struct mixt__recordings {
    mixt__recording *files; // owned
    int64_t count, capacity;
} mixt__recordings;

/** The recordings below a folder: FOLDER/CLASS/FILE.wav, or FOLDER/CLASS_….wav, in the order of their names. */
mixt_status mixt__recordings_list(mixt_data *data, const char *folder, mixt__recordings *list);
/** Gives each the part that the options val_files and test_files name. */
mixt_status mixt__recordings_share(const mixt_data *data, mixt__recordings *list);
/** The classes of a list in the order of their names, in the data set's memory. */
mixt_status mixt__recordings_classes(mixt_data *data, const mixt__recordings *list, const char *const **names,
                                     int64_t *count);
/** Gives each its label; a class that is not among `names` is an error. */
mixt_status mixt__recordings_label(mixt__recordings *list, const char *const *names, int64_t count);
/** Whether a folder has WAV files, or folders with some. */
bool mixt__recordings_are_in(const char *folder);

// voice.c

enum { MIXT_VOICE_RATE = 8000, MIXT_VOICE_SAMPLES = 8000, MIXT_VOICE_WORDS = 10 };
extern const char *const mixt__voice_words[MIXT_VOICE_WORDS];

/** One word in a voice of its own, a function of the key; returns which word.
 *  @param samples room for MIXT_VOICE_SAMPLES
 *  @param count set to the samples written */
int32_t mixt__voice_draw(uint64_t key, float *samples, int64_t *count);

#endif
