/* What a set of kind chat knows of its samples. */
#ifndef MIXT_DATA_CHAT_CHAT_H
#define MIXT_DATA_CHAT_CHAT_H

#include "data/chat/chat_pack.h"
#include "data/chat/chat_set.h"

typedef struct mixt__chat_state {
    mixt__chat_set set;
    mixt__chat_packing packing; // of sets that are packed
    mixt_chat_template *chat;   // owned
    float *reference;           // of pairs: see chat_pairs.h; NULL: not known
    mixt_chat_info info;
} mixt__chat_state;

/** NULL: the set is of another kind. */
const mixt__chat_state *mixt__chat_state_of(const mixt_data *data);

/** Fills state->info of a set whose samples are known. */
mixt_status mixt__chat_info_fill(mixt_data *data);

/** Whether a folder has files of conversations by a name: train.jsonl or train.json. */
bool mixt__chat_is_in(mixt_data *data, const char *folder);

#endif
