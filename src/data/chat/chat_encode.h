/* From what a row says to tokens, each with whether it is trained. */
#ifndef MIXT_DATA_CHAT_ENCODE_H
#define MIXT_DATA_CHAT_ENCODE_H

#include "data/chat/chat_forms.h"
#include "data/chat/chat_template.h"
#include "mixt/data.h"
#include "data/text/tokenizer.h"

/** Set in a token that is trained; the rest is its number. */
#define MIXT_CHAT_TRAINED 0x80000000u

/** What rows are encoded with: read-only, for any number of threads. */
typedef struct mixt__chat_codec {
    const mixt_tokenizer *tokenizer;
    const mixt_chat_template *chat; // NULL: rows of texts alone
    const char *end;                // text of the token that ends a text; NULL: there is none
    mixt_loss_on loss_on;
    bool silent; // see mixt__chat_can_be_silent
} mixt__chat_codec;

/** What was done to rows. */
typedef struct mixt__chat_tally {
    int64_t thoughts, found; // answers: as in mixt__chat_spans
    int64_t alike;           // pairs whose answers have the same tokens
} mixt__chat_tally;

/** Appends the tokens of a row. @param worker of the tokenizer's kind */
mixt_status mixt__chat_encode(const mixt__chat_codec *codec, void *worker, const mixt__chat_turns *turns,
                              mixt__tokens *tokens, mixt__chat_tally *tally);

#endif
