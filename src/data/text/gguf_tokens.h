/* A tokenizer as GGUF has it: tokens with their types, merges or scores, special tokens, the name of the rule that cuts
 * text, the template of conversations. */
#ifndef MIXT_DATA_GGUF_TOKENS_H
#define MIXT_DATA_GGUF_TOKENS_H

#include "store/gguf.h"

#include <jansson.h>

typedef struct mixt__gguf_vocabulary {
    const char *kind;     // of the tokenizer: "json", "gpt2", "bytes"
    const char *folder;   // of its files, and of tokenizer_config.json, generation_config.json and the template
    const json_t *config; // config.json of the model
    int64_t rows;         // of its table of tokens: those without a token are padding
} mixt__gguf_vocabulary;

/** Puts its keys. */
mixt_status mixt__gguf_tokens_put(const mixt__gguf_vocabulary *vocabulary, mixt__gguf_fields *fields);

#endif
