/* What a number means to a teacher and to its student: a token is one only where both have the same text for it. */
#ifndef MIXT_RUN_TEACHER_TOKENS_H
#define MIXT_RUN_TEACHER_TOKENS_H

#include "run/experiment.h"

typedef struct mixt__teacher_tokens {
    const char *path;              // of the teacher, for messages; borrowed
    char vocab[4400];              // the folder of its vocabulary; "": bytes, or nobody knows
    struct mixt_tokenizer *theirs; // NULL: its data is not text, or nobody knows
    struct mixt_tokenizer *mine;   // the student's; the same
    const char *file;              // of tokens that the student reads; NULL: it reads no such file
    uint64_t fingerprint;          // of the tokenizer that made it; 0: nobody knows
} mixt__teacher_tokens;

/** Opens the tokenizer of a teacher. @param config the teacher's, with its vocabulary
 *  @param kind of the data that it was trained on */
mixt_status mixt__teacher_tokens_open(mixt__teacher_tokens *tokens, const char *path, const mixt_config *config,
                                      const char *kind);
/** Opens that of the experiment, whose teacher it is. */
mixt_status mixt__teacher_tokens_of(mixt__teacher_tokens *tokens, const mixt__experiment *e);
/** Fails where both have not as many tokens. */
mixt_status mixt__teacher_tokens_count(const mixt__teacher_tokens *tokens, int64_t mine, int64_t theirs);
/** Fails at the first token that is another text to the teacher, as far as both are known. */
mixt_status mixt__teacher_tokens_check(const mixt__teacher_tokens *tokens);
void mixt__teacher_tokens_close(mixt__teacher_tokens *tokens);

#endif
