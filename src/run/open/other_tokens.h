/* What a number means to another model and here: a token is one only where both have the same text for it. The other is
 * a teacher, or the one whose weights a run begins with.
 */
#ifndef MIXT_RUN_OTHER_TOKENS_H
#define MIXT_RUN_OTHER_TOKENS_H

#include "run/open/experiment.h"

enum { MIXT_TOKENS_WHY = 1024 }; // bytes of a text for people

/** Begins as zeros, but for the first three. */
typedef struct mixt__other_tokens {
    const char *path;              // of the other, for messages; borrowed
    const char *to, *whose;        // what it is there: "to the teacher", "the teacher's"
    char vocab[4400];              // the folder of its vocabulary; "": bytes, or nobody knows
    struct mixt_tokenizer *theirs; // NULL: its data is not text, or nobody knows
    struct mixt_tokenizer *mine;   // the experiment's; the same
    const char *file;              // of tokens that the experiment reads; NULL: it reads no such file
    uint64_t fingerprint;          // of the tokenizer that made it; 0: nobody knows
} mixt__other_tokens;

/** Opens the other's tokenizer. A run of a mixt that kept no copy of the vocabulary, whose folder is gone by now, is
 *  taken at its word.
 *  @param run the folder that it belongs to
 *  @param config its own; the vocabulary of the run is put in
 *  @param kind of the data that it was trained on */
mixt_status mixt__other_tokens_open(mixt__other_tokens *tokens, const char *run, mixt_config *config, const char *kind);
/** Opens that of the experiment. */
mixt_status mixt__other_tokens_of(mixt__other_tokens *tokens, const mixt__experiment *e);
/** Whether some token is another text to the other, as far as both are known. @param why which, for people */
bool mixt__other_tokens_differ(const mixt__other_tokens *tokens, char why[MIXT_TOKENS_WHY]);
/** Fails where a teacher has not as many tokens. */
mixt_status mixt__other_tokens_count(const mixt__other_tokens *tokens, int64_t mine, int64_t theirs);
/** Fails at the first token that is another text to a teacher. */
mixt_status mixt__other_tokens_check(const mixt__other_tokens *tokens);
void mixt__other_tokens_close(mixt__other_tokens *tokens);

#endif
