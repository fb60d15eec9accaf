/* Inside the audio kind: which recordings a part has, and how one becomes a sample. */
#ifndef MIXT_DATA_AUDIO_H
#define MIXT_DATA_AUDIO_H

#include "data/data.h"
#include "data/audio/mel.h"
#include "data/audio/wav.h"

// audio_features.c

/** How recordings become samples. */
typedef struct mixt__audio {
    mixt__mel mel;
    int64_t count;  // samples of a recording that a sample shows at most
    int64_t tail;   // samples of silence behind it, which are heard
    int64_t frames; // of the longest sample
    double shift, noise;
    int64_t time_mask, mel_mask;
    bool whole; // nothing of a recording may be lost: none is longer
} mixt__audio;

/** Fills in what the options leave open (the rate must be known) and makes the tables. `what` begins messages. */
mixt_status mixt__audio_make(const char *what, mixt_data_options *options, mixt__audio *audio);
void mixt__audio_free(mixt__audio *audio);
/** Refuses a recording, of so many samples of `rate` a second, that is longer than a sample where all of it counts. */
mixt_status mixt__audio_fits(const mixt__audio *audio, const char *path, int64_t count, int64_t rate);
/** Reads a recording at `rate`. */
mixt_status mixt__audio_read(const char *path, int64_t rate, mixt__wav *wav);
/** The features (frames, mels) of a recording: all of it, or its middle part where it is longer than a sample. In
 *  training, with a `key` of the sample's own, behind some silence or another part of it, and with noise, as the
 * options ask; NULL: as it is.
 *  @param frames set to those that it has; no more than mixt__audio_frames says */
mixt_status mixt__audio_features(const mixt__audio *audio, const mixt__wav *wav, const uint64_t *key, float *features,
                                 int64_t *frames);
/** Frames of a recording of so many samples, at the rate of the set: as it is, or moved the furthest. */
int64_t mixt__audio_frames(const mixt__audio *audio, int64_t count, bool moved);
/** Fills frames from `from` on with what silence looks like. */
void mixt__audio_silence(const mixt__audio *audio, int64_t from, float *features);
/** Hides some of so many frames, and bands, as the options ask: they become 0, the mean of features that are
 *  normalised. */
void mixt__audio_mask(const mixt__audio *audio, uint64_t key, int64_t frames, float *features);

// audio.c

/** Samples whose texts have more letters than a model has outputs for them: CTC leaves those out. */
typedef struct mixt__ctc_too_short {
    int64_t count;
    const char *first;       // its path
    int64_t needed, outputs; // the first one's: an output for each letter, and one between two that are the same
} mixt__ctc_too_short;

/** Finds them, for a model with an output every `stride` frames, which has seen `window` of them. None in sets without
 *  texts; words that are drawn are judged by the longest. */
mixt_status mixt__audio_ctc_too_short(const mixt_data *data, int64_t window, int64_t stride,
                                      mixt__ctc_too_short *too_short);

// audio_files.c

typedef struct mixt__recording {
    const char *path, *name; // name: what comes behind the folder of the set; both in the data set's memory
    const char *word;        // its class; "": its name says none
    const char *text;        // what is said, where that is the target
    int32_t label;
    int64_t samples; // at the rate of the set
    mixt__part part; // ALL: a share decides
} mixt__recording;

typedef struct mixt__recordings {
    mixt__recording *files; // owned
    int64_t count, capacity;
    struct mixt__transcript_file *transcripts; // owned; those beside the recordings, where such were looked for
    int64_t transcript_count, transcript_capacity;
    int64_t lines, unused;    // of transcripts, and how many of those name no recording
    const char *first_unused; // "FILE:LINE: 'NAME'", in the data set's memory
} mixt__recordings;

/** The recordings below a folder: FOLDER/CLASS/FILE.wav, or FOLDER/CLASS_….wav, in the order of their names. */
mixt_status mixt__recordings_list(mixt_data *data, const char *folder, mixt__recordings *list);
/** The same for recordings whose texts count: files at any depth, and files of transcripts among them. A recording need
 *  not have a class. */
mixt_status mixt__recordings_list_spoken(mixt_data *data, const char *folder, mixt__recordings *list);
void mixt__recordings_free(mixt__recordings *list);
/** Gives each the part that the options val_files and test_files name. */
mixt_status mixt__recordings_share(const mixt_data *data, mixt__recordings *list);
/** The classes of a list in the order of their names, in the data set's memory. */
mixt_status mixt__recordings_classes(mixt_data *data, const mixt__recordings *list, const char *const **names,
                                     int64_t *count);
/** Gives each its label; a class that is not among `names` is an error. */
mixt_status mixt__recordings_label(mixt__recordings *list, const char *const *names, int64_t count);
/** Whether a folder has WAV files, or folders with some. */
bool mixt__recordings_are_in(const char *folder);
#define MIXT_TRANSCRIPTS "transcripts.tsv"
/** Whether transcripts lie in a folder, or somewhere below. */
bool mixt__transcripts_are_in(const char *folder);
/** Whether a name ends as that of LibriSpeech's transcripts does. */
bool mixt__is_librispeech(const char *name);

// transcripts.c

/** A file of transcripts. */
typedef struct mixt__transcript_file {
    const char *path;
    const char *inner; // what stands before its names, seen from the folder of the recordings: "" or "FOLDER/"
    bool spaced;       // LibriSpeech's: a space behind the name; else a tab
} mixt__transcript_file;

/** A line of one; strings are in the data set's memory. */
typedef struct mixt__transcript {
    const char *key, *text;
    const char *path; // of the file
    int64_t line;
    bool used; // some recording has it
} mixt__transcript;

typedef struct mixt__transcripts {
    mixt__transcript *items; // owned
    int64_t count, capacity;
} mixt__transcripts;

/** Adds the lines of a file. */
mixt_status mixt__transcripts_read(mixt_data *data, const mixt__transcript_file *file, mixt__transcripts *all);
/** Puts them in the order of their keys; of two with one key it is an error. */
mixt_status mixt__transcripts_sort(mixt__transcripts *all);
/** Gives each recording what is said in it: its line in the file of the option `labels`, else in those found beside the
 *  recordings, else its class.
 *  @param whole the list is that of all parts: a line for none of them is for none at all */
mixt_status mixt__recordings_spell(mixt_data *data, bool whole, mixt__recordings *list);
/** Warns of lines that name no recording. */
mixt_status mixt__recordings_warn_of_lines(mixt_data *data, const mixt__recordings *list);

// alphabet.c

/** Letters and the numbers that stand for them: that of a letter is its place, 0 is the blank. */
typedef struct mixt__alphabet {
    const char *const *names; // (count) in the data set's memory, the blank's is ""; in the order of their bytes
    int64_t count;
    int64_t longest; // letters that a sample has room for
} mixt__alphabet;

/** The letters of all texts of a list; those of `like` where that has some. `longest` is left 0. */
mixt_status mixt__alphabet_make(mixt_data *data, const mixt__recordings *list, mixt__alphabet *alphabet);
/** Warns of letters that are none of the alphabet's. */
mixt_status mixt__alphabet_check(mixt_data *data, const mixt__recordings *list, const mixt__alphabet *alphabet);
/** Writes the numbers of a text's letters, `count` for one that is not known, -1 behind them; returns how many. */
int32_t mixt__alphabet_spell(const mixt__alphabet *alphabet, const char *text, int32_t *letters);
/** Letters of a text. */
int64_t mixt__letters_of(const char *text);

// voice.c

enum {
    MIXT_VOICE_RATE = 8000,
    MIXT_VOICE_SAMPLES = 8000,
    MIXT_VOICE_WORDS = 10,
    MIXT_VOICE_LETTERS = 3,    // of the longest word,
    MIXT_VOICE_LONGEST = 5280, // and the samples that it takes at most
};
extern const char *const mixt__voice_words[MIXT_VOICE_WORDS];

/** One word in a voice of its own, a function of the key; returns which word.
 *  @param samples room for MIXT_VOICE_SAMPLES
 *  @param count set to the samples written */
int32_t mixt__voice_draw(uint64_t key, float *samples, int64_t *count);
/** The samples that it has. */
int64_t mixt__voice_length(uint64_t key);

#endif
