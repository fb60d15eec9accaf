/* A vocabulary learned from texts: their words by how often they come up.
 *
 * It is one of WordPiece that holds whole words alone: what is not in it is [UNK], and so are words that came up once,
 * so that a model learns what an unknown word is.
 */
#ifndef MIXT_DATA_WORDS_LEARN_H
#define MIXT_DATA_WORDS_LEARN_H

#include "data/names.h"
#include "data/text/tokenizer.h"

/** Takes a word, as WordPiece cuts text: lower case without accents where it is folded. */
typedef mixt_status mixt__word_taker(void *user, const unsigned char *word, int64_t size);

/** Words and how often each came up. Begins as zeros. */
typedef struct mixt__word_counts {
    mixt__names words;
    int64_t *counts;
    int64_t capacity;
} mixt__word_counts;

/** Counts the words of one more text. */
mixt_status mixt__word_counts_add(mixt__word_counts *counts, const unsigned char *text, int64_t size, bool fold);
void mixt__word_counts_free(mixt__word_counts *counts);
/** The tokenizer of the most frequent words, of those as frequent by their alphabet: at most `most` tokens, special
 * ones included. */
mixt_status mixt__words_learn(const mixt__word_counts *counts, int64_t most, bool fold, mixt_tokenizer **tokenizer);

// tokenizer_wordpiece.c

/** Cuts a text into words, as the tokenizer does before it cuts them into pieces; those too long for it are left out.
 */
mixt_status mixt__wordpiece_words(const unsigned char *text, int64_t size, bool fold, mixt__word_taker *take,
                                  void *user);
/** Finds the special tokens of a vocabulary that is there, and its fingerprint. `path` is for messages. */
mixt_status mixt__wordpiece_finish(mixt_tokenizer *tokenizer, const char *path);
/** A tokenizer of these tokens, [UNK] among them. */
mixt_status mixt__wordpiece_make(const mixt__span *tokens, int64_t count, bool fold, mixt_tokenizer **tokenizer);

#endif
