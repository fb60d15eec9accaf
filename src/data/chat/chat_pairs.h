/* Pairs of answers: a row of a batch has the chosen text and the rejected one behind it. */
#ifndef MIXT_DATA_CHAT_PAIRS_H
#define MIXT_DATA_CHAT_PAIRS_H

#include "data/chat/chat.h"

enum { MIXT_PAIR_ARRAYS = 6 };

/** Arrays and samples of a set of pairs. @param places tokens of a row; 0: as many as two of the longest text need */
mixt_status mixt__chat_pairs_describe(mixt_data *data, const mixt__chat_state *state, int64_t places);
/** A row of `places` tokens: both texts, and how much likelier the reference finds the first. */
void mixt__chat_pairs_read(const mixt__chat_state *state, int64_t index, int64_t places, char *const *at);

/** Pairs of a set; 0: it has none, or is of another kind. */
int64_t mixt__chat_pairs_count(const mixt_data *data);
/** What a reference says of each pair, which rows have from now on; before, they cannot be read.
 *  @param scores log p(chosen) - log p(rejected), one a pair; copied */
mixt_status mixt__chat_pairs_refer(mixt_data *data, const float *scores);

#endif
