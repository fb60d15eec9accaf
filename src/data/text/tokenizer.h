/* Tokenizers: text to numbers and back.
 *
 * A kind is one const record in tokenizer.c's table. Encoding is a pure function of the text: cutting it at a
 * `boundary` and joining the parts' tokens gives the tokens of the whole, which is what lets threads share the work.
 * A tokenizer is read-only once open and may be used by any number of threads, each with a worker of its own.
 */
#ifndef MIXT_DATA_TOKENIZER_H
#define MIXT_DATA_TOKENIZER_H

#include "mixt/tokenizer.h"

#include "base/handles.h"
#include "base/progress.h"
#include "data/text/added_tokens.h"

#include <stdio.h>

/** Tokens in a growing array. */
typedef struct mixt__tokens {
    uint32_t *ids;
    int64_t count, capacity;
} mixt__tokens;

mixt_status mixt__tokens_reserve(mixt__tokens *tokens, int64_t more);
void mixt__tokens_free(mixt__tokens *tokens);

/** Ids that mean something to a model's data; -1: the vocabulary has none. */
typedef struct mixt__special_tokens {
    int64_t mask, start, end, unknown, pad; // [MASK], [CLS], [SEP], [UNK], [PAD]; GPT-2: end is <|endoftext|>
} mixt__special_tokens;

typedef struct mixt__tokenizer_kind {
    const char *name, *files; // as configured; what its folder must hold, for messages
    mixt_status (*open)(mixt_tokenizer *tokenizer, const char *folder);
    /** Room that one thread works in; NULL state is allowed where a kind needs none. */
    mixt_status (*worker_new)(const mixt_tokenizer *tokenizer, void **worker);
    void (*worker_free)(void *worker);
    mixt_status (*encode)(const mixt_tokenizer *tokenizer, void *worker, const unsigned char *text, int64_t size,
                          mixt__tokens *tokens);
    /** Where `encode` treats the beginning of a text or writes it otherwise first (NULL: neither): a part of a text in
     *  which added tokens are; what it is written as, freed with mixt__free; and the tokens of that. */
    mixt_status (*part)(const mixt_tokenizer *tokenizer, void *worker, const unsigned char *text, int64_t size,
                        bool first, mixt__tokens *tokens);
    mixt_status (*normalise)(const mixt_tokenizer *tokenizer, const unsigned char *text, int64_t size, bool first,
                             unsigned char **made, int64_t *bytes);
    mixt_status (*encode_normal)(const mixt_tokenizer *tokenizer, void *worker, const unsigned char *text, int64_t size,
                                 mixt__tokens *tokens);
    /** The last place in (low, high] where the text may be cut, low when there is none. */
    int64_t (*boundary)(const unsigned char *text, int64_t low, int64_t high);
    /** Bytes from the start that may be cut at boundaries at all; NULL: every one. */
    int64_t (*divisible)(const unsigned char *text, int64_t size);
    /** Appends the text of one token; `first` at the start of a text. */
    mixt_status (*decode)(const mixt_tokenizer *tokenizer, uint32_t id, bool first, FILE *stream);
    void (*close)(mixt_tokenizer *tokenizer);
} mixt__tokenizer_kind;

struct mixt_tokenizer {
    mixt__handle handle;
    const mixt__tokenizer_kind *kind;
    int64_t size;         // of the vocabulary
    uint64_t fingerprint; // of kind, vocabulary and settings
    mixt__special_tokens special;
    mixt__vocabulary vocabulary; // empty for bytes
    mixt__added_tokens added;    // that a text may have written out
    void *state;                 // of the kind
    int holders;                 // beside the owner
};

extern const mixt__tokenizer_kind mixt__tokenizer_bytes, mixt__tokenizer_gpt2, mixt__tokenizer_wordpiece,
    mixt__tokenizer_wordpiece_cased, mixt__tokenizer_json;

/** One more that needs the tokenizer; returns it. */
mixt_tokenizer *mixt__tokenizer_hold(mixt_tokenizer *tokenizer);
/** Ends a hold, or the owner's own; the last one closes it. NULL is allowed. */
void mixt__tokenizer_drop(mixt_tokenizer *tokenizer);

/** Takes the tokens of the next stretch of text, in order. */
typedef mixt_status mixt__token_sink(void *user, const uint32_t *ids, int64_t count);

typedef struct mixt__tokenize_job {
    const mixt_tokenizer *tokenizer;
    const unsigned char *text;
    int64_t size;
    int64_t chunk; // bytes that a thread takes at once; 0: 1 MiB. Does not change the result
    mixt__token_sink *sink;
    void *sink_user;
    mixt__teller teller;
    const char *name; // of the text, for it
} mixt__tokenize_job;

/** The tokens of a whole text, by all threads of the team. */
mixt_status mixt__tokenize(const mixt__tokenize_job *job);
/** The same into an array. */
mixt_status mixt__tokenizer_encode(const mixt_tokenizer *tokenizer, const void *text, int64_t size,
                                   mixt__tokens *tokens);
/** The tokens of a text in which added tokens are written out. @param worker of the kind; see worker_new */
mixt_status mixt__tokenizer_encode_marked(const mixt_tokenizer *tokenizer, void *worker, const void *text, int64_t size,
                                          mixt__tokens *tokens);
/** The same, and which token each of `count` places in the text, in ascending order, falls on: the number of tokens
 * that the text up to there has in common with the whole. Less than those before it where a token crosses the place.
 *  @param places as numbers in `tokens`, whose earlier ones count too */
mixt_status mixt__tokenizer_encode_cut(const mixt_tokenizer *tokenizer, void *worker, const void *text, int64_t size,
                                       const int64_t *cuts, int64_t count, int64_t *places, mixt__tokens *tokens);
/** Writes the text of tokens; `more` when other tokens went before. Exact for bytes and gpt2; WordPiece puts single
 *  blanks between words. */
mixt_status mixt__tokenizer_decode(const mixt_tokenizer *tokenizer, const uint32_t *ids, int64_t count, bool more,
                                   FILE *stream);

#endif
