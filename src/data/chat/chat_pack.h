/* Which samples share a row of a batch. */
#ifndef MIXT_DATA_CHAT_PACK_H
#define MIXT_DATA_CHAT_PACK_H

#include "data/chat/chat_set.h"

typedef struct mixt__chat_packing {
    int64_t *sample; // of row r those from begin[r] to begin[r + 1]
    int64_t *begin;  // (rows + 1)
    int64_t rows;
} mixt__chat_packing;

/** Puts each sample into the fullest row that has room for it, the longest first; or, `in_order`, one behind the other
 *  in the file's order. What comes out depends on the lengths alone.
 *  @param places tokens of a row; longer samples are cut when they are read */
mixt_status mixt__chat_pack(const mixt__chat_set *set, int64_t places, bool in_order, mixt__chat_packing *packing);
void mixt__chat_packing_free(mixt__chat_packing *packing);

#endif
