/* What a tokenizer.json says, read into tables: for tokenizer_json.c. */
#ifndef MIXT_DATA_TOKENIZER_JSON_H
#define MIXT_DATA_TOKENIZER_JSON_H

#include "data/text/bpe.h"

/** How text becomes pieces that are merged on their own. */
typedef enum mixt__json_rule {
    MIXT_JSON_GPT2,     // GPT-2's rule, over bytes
    MIXT_JSON_LLAMA3,   // Llama 3's, over bytes
    MIXT_JSON_DIGITS,   // GPT-2's between single digits, over bytes
    MIXT_JSON_SENTENCE, // blanks become U+2581, and nothing is cut; characters that are no tokens fall back to bytes
} mixt__json_rule;

typedef struct mixt__json_tables {
    mixt__bpe bpe;
    mixt__json_rule rule;
    int digits;         // LLAMA3: numbers are cut after so many
    bool whole;         // a piece that is a token is not cut, whatever the merges say
    bool compose;       // over bytes: text is composed first (NFC)
    bool prefix;        // SENTENCE: a text begins with a blank
    bool prefix_first;  // but what follows an added token does not
    bool prefix_lone;   // nor does a text that has one already
    bool replaced;      // by a normalizer: added tokens of normalised texts are written so too
    bool words;         // SENTENCE: no token goes on past the end of a word, so words can be merged one by one
    int64_t unknown;    // SENTENCE: the token of a character without any; -1: there is none
    int64_t bytes[256]; // SENTENCE: tokens of bytes; -1: there is none
    int64_t start, end; // tokens that a text begins with, and ends with; -1: none
} mixt__json_tables;

/** Reads FOLDER/tokenizer.json. On failure what was made is the caller's to free, as on success. */
mixt_status mixt__tokenizer_json_read(const char *folder, mixt__vocabulary *vocabulary, mixt__json_tables *tables,
                                      mixt__added_tokens *added, uint64_t *fingerprint);

/** Whether FOLDER/tokenizer.json is of WordPiece; then its tokens, and whether text is folded. MIXT_END: it is of
 * another model. */
mixt_status mixt__tokenizer_json_pieces(const char *folder, mixt__vocabulary *vocabulary, bool *fold);

/** U+2581, a blank in vocabularies of SentencePiece. */
#define MIXT_SENTENCE_BLANK "\xe2\x96\x81"

#endif
