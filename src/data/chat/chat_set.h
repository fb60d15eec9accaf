/* All samples of a part: tokens of rows, cut to the longest that a row of a batch takes. */
#ifndef MIXT_DATA_CHAT_SET_H
#define MIXT_DATA_CHAT_SET_H

#include "data/chat/chat_encode.h"
#include "data/chat/chat_rows.h"

typedef struct mixt__chat_sample {
    int64_t begin; // of its tokens
    int64_t line;  // of the file
    int32_t count; // tokens kept
    int32_t whole; // tokens before it was cut; INT32_MAX: that many or more
} mixt__chat_sample;

typedef struct mixt__chat_set {
    mixt__chat_form form;
    bool pairs;          // samples 2i and 2i + 1 are the chosen and the rejected answer of a row
    mixt__tokens tokens; // with MIXT_CHAT_TRAINED
    mixt__chat_sample *sample;
    int64_t count, capacity;
    int64_t rows;      // that were read
    int64_t trained;   // tokens that count in a loss: never the first of a sample
    int64_t cut;       // samples that were longer
    int64_t untrained; // rows without a token to train, left out
    int64_t lost;      // of those, by the cut
    mixt__chat_tally tally;
} mixt__chat_set;

/** Encodes rows by all threads; the result does not depend on their number.
 *  @param chosen (count) rows of the file, ascending
 *  @param most tokens of a sample */
mixt_status mixt__chat_set_make(const mixt__chat_codec *codec, const mixt__chat_rows *rows, const int64_t *chosen,
                                int64_t count, int64_t most, mixt__teller teller, mixt__chat_set *set);
void mixt__chat_set_free(mixt__chat_set *set);

#endif
