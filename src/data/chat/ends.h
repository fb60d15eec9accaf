/* How an answer ends: by tokens that a model's files name, and by what its template writes behind one. */
#ifndef MIXT_DATA_CHAT_ENDS_H
#define MIXT_DATA_CHAT_ENDS_H

#include "data/chat/chat_template.h"
#include "data/text/tokenizer.h"

enum { MIXT_CHAT_ENDS = 16 };

typedef struct mixt__chat_ends {
    int32_t tokens[MIXT_CHAT_ENDS];
    int count;
    char text[256]; // what stands behind an answer where that is no token; "": it is one
} mixt__chat_ends;

/** Finds them.
 *  @param folder with generation_config.json, config.json and tokenizer_config.json, as far as they are there
 *  @param others what the template sees beside messages; may be NULL */
mixt_status mixt__chat_ends_find(const char *folder, const mixt_chat_template *chat, const json_t *others,
                                 const mixt_tokenizer *tokenizer, mixt__chat_ends *ends);
bool mixt__chat_ends_have(const mixt__chat_ends *ends, int32_t token);

#endif
