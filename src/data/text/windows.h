/* Samples cut out of one long row of tokens; text and tokens share it. */
#ifndef MIXT_DATA_WINDOWS_H
#define MIXT_DATA_WINDOWS_H

#include "data/data.h"
#include "data/text/token_file.h"

/** The state of a kind of windows. */
typedef struct mixt__windows {
    mixt__bytes bytes;        // owned: a text whose bytes are tokens
    mixt__token_file file;    // owned: or a mapped token file
    const unsigned char *ids; // of the part
    int width;                // bytes of a token: 1, 2 or 4
    int64_t count;            // tokens of the part
    int64_t vocabulary;
    mixt__special_tokens special;
} mixt__windows;

/** Fills bytes or file, then ids, width, count, vocabulary and special for a whole file. */
typedef mixt_status mixt__windows_load(mixt_data *data, const char *path, mixt__windows *windows);
/** The file that holds a part, NULL: none. */
typedef const char *mixt__windows_find(mixt_data *data, mixt__part part);

/** Finds the part's file or its share (the last tokens) of the training file, loads it, describes the samples. */
mixt_status mixt__windows_open(mixt_data *data, mixt__windows_find *find, mixt__windows_load *load);
mixt_status mixt__windows_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target);
const void *mixt__windows_raw(const mixt_data *data, int index, size_t *bytes);
void mixt__windows_close(mixt_data *data);
/** Takes a token file over as the whole of the windows. */
void mixt__windows_adopt(mixt__windows *windows);
/** The fingerprint of the tokenizer that made a token file; 0: its tokens are bytes, or a raw file's. */
uint64_t mixt__windows_tokenizer(const mixt_data *data);
/** Whether `like` has this very data open, so that its contents need no second check. */
bool mixt__windows_known(const mixt_data *data);

#endif
