/* Tokens that a tokenizer.json adds to the model's own: markers of conversations, found in a text before anything else
 * is done with it. */
#ifndef MIXT_DATA_ADDED_TOKENS_H
#define MIXT_DATA_ADDED_TOKENS_H

#include "data/text/vocabulary.h"

typedef struct mixt__added_token {
    unsigned char *text; // owned
    int64_t size;
    uint32_t id;
    bool left, right; // takes the blanks on that side with it
    bool word;        // only where no letter, digit or underscore stands beside it
    bool normal;      // found in a text that is normalised already, as it is itself
} mixt__added_token;

typedef struct mixt__added_tokens {
    mixt__added_token *tokens; // (count), the longest first
    int64_t count, room;
    bool begins[256]; // some token begins with this byte
    bool any_normal;
} mixt__added_tokens;

/** A stretch of a text: a token, or what lies between two. */
typedef struct mixt__stretch {
    int64_t begin, end;
    int64_t id; // -1: no token
} mixt__stretch;

mixt_status mixt__added_put(mixt__added_tokens *added, const mixt__added_token *token);
void mixt__added_free(mixt__added_tokens *added);
/** The next stretch of a text at `begin`, which is below `size`. `normal` says which tokens are looked for. */
mixt__stretch mixt__added_next(const mixt__added_tokens *added, const unsigned char *text, int64_t size, int64_t begin,
                               bool normal);

#endif
