/* Learning a byte-pair vocabulary from text, and the two files that hold one. */
#ifndef MIXT_DATA_BPE_LEARN_H
#define MIXT_DATA_BPE_LEARN_H

#include "data/text/token_cache.h"
#include "data/text/vocabulary.h"

enum { MIXT_BPE_LEAST = 257 }; // all bytes and <|endoftext|>

/** Token i below 256 is byte i; merge i joins two tokens into token 256 + i; the last token is <|endoftext|>. */
typedef struct mixt__bpe_learned {
    uint32_t (*merges)[2]; // (count)
    int64_t count;
} mixt__bpe_learned;

/**
 * Joins, until there are `size` tokens, the two neighbours inside the pieces of GPT-2's rule that are most frequent; of
 * equally frequent ones those of the lowest ids. Ends early where no pair comes up twice. A function of the texts and
 * their order alone.
 * @param size tokens in all, from MIXT_BPE_LEAST
 */
mixt_status mixt__bpe_learn(const mixt__span *texts, int64_t text_count, int64_t size, mixt__teller teller,
                            mixt__bpe_learned *learned);
void mixt__bpe_learned_free(mixt__bpe_learned *learned);

/** Writes encoder.json and vocab.bpe into a folder, which is made where it is not there. */
mixt_status mixt__bpe_write(const mixt__bpe_learned *learned, const char *folder, bool overwrite);

#endif
