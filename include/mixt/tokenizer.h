/* How does text become tokens, and tokens text? Token files to train on, too, and text that comes token by token.
 *
 * Tokens depend on the text and the vocabulary alone, not on the number of threads. A tokenizer is read-only once it is
 * open: any number of threads may use it at once.
 */
#ifndef MIXT_TOKENIZER_H
#define MIXT_TOKENIZER_H

#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_tokenizer mixt_tokenizer;

/** What a tokenizer is. Tokens that the vocabulary lacks are -1. */
typedef struct mixt_tokenizer_info {
    const char *kind;                  /**< "bytes", "gpt2", "wordpiece", "wordpiece-cased", "json" */
    int64_t size;                      /**< of the vocabulary: tokens are below it */
    int64_t end;                       /**< [SEP]; gpt2: <|endoftext|> */
    int64_t mask, start, unknown, pad; /**< [MASK], [CLS], [UNK], [PAD]; json: start is what a text begins with */
} mixt_tokenizer_info;

/**
 * Opens a tokenizer.
 * @param kind "bytes" (every byte is a token), "gpt2" (byte-pair encoding), "wordpiece" (lower case, no accents),
 *   "wordpiece-cased", "json" (Llama's and GPT-2's tokenizer.json: byte-pair encoding over bytes, or over characters
 *   with bytes to fall back to, as SentencePiece has it; or BERT's WordPiece, whose kind it then
 *   is); NULL, "" or "auto": by the files of `folder`, bytes without
 * one.
 * @param folder of the vocabulary: encoder.json and vocab.bpe (or vocab.json and merges.txt), vocab.txt, or
 *   tokenizer.json; NULL or "" for bytes.
 * @param tokenizer set to the open one, or to NULL on failure; close it with mixt_tokenizer_close.
 */
MIXT_API mixt_status mixt_tokenizer_open(const char *kind, const char *folder, mixt_tokenizer **tokenizer);
/** NULL is allowed. */
MIXT_API void mixt_tokenizer_close(mixt_tokenizer *tokenizer);
/** Its kind is valid for the life of the program. */
MIXT_API mixt_tokenizer_info mixt_tokenizer_describe(const mixt_tokenizer *tokenizer);

/**
 * The tokens of a text, by all threads of the library.
 * @param text `size` bytes, of which none has a special meaning, 0 included.
 * @param tokens set to `count` tokens, to be freed with mixt_tokens_free; NULL where there are none, and on
 *   failure.
 */
MIXT_API mixt_status mixt_tokenizer_encode(const mixt_tokenizer *tokenizer, const void *text, int64_t size,
                                           int32_t **tokens, int64_t *count);
/** The same of a text in which the vocabulary's markers may be written out, as chat templates write them: "<|im_end|>"
 *  becomes one token, with or without the blanks beside it as the vocabulary says. Not for text of strangers: they
 * could write markers too. */
MIXT_API mixt_status mixt_tokenizer_encode_marked(const mixt_tokenizer *tokenizer, const void *text, int64_t size,
                                                  int32_t **tokens, int64_t *count);
/** The same of a file, gunzipped where it is gzip. */
MIXT_API mixt_status mixt_tokenizer_encode_file(const mixt_tokenizer *tokenizer, const char *path, int32_t **tokens,
                                                int64_t *count);
/** NULL is allowed. */
MIXT_API void mixt_tokens_free(int32_t *tokens);

/** The bytes of one token as the vocabulary has them ("##ing"), any bytes; valid while the tokenizer is open. */
MIXT_API mixt_status mixt_tokenizer_piece(const mixt_tokenizer *tokenizer, int32_t token, const char **bytes,
                                          int64_t *size);

/* ---- tokens to text, as they come ---- */

/** Makes text of tokens that come one after another: whole UTF-8 characters only, however tokens cut them; bytes that
 *  can never become one show as U+FFFD. For one thread at a time. */
typedef struct mixt_decoder mixt_decoder;

/**
 * @param tokenizer borrowed: must stay open as long as the decoder is used.
 * @param inside the text has begun already (with a prompt, say): where words are set apart by blanks, the first token
 *   gets one too.
 */
MIXT_API mixt_status mixt_decoder_new(const mixt_tokenizer *tokenizer, bool inside, mixt_decoder **decoder);
/** NULL is allowed. */
MIXT_API void mixt_decoder_free(mixt_decoder *decoder);
/**
 * Takes the next tokens.
 * @param text set to the characters that are whole now, `size` bytes and a zero behind them; valid until the next call.
 */
MIXT_API mixt_status mixt_decoder_put(mixt_decoder *decoder, const int32_t *tokens, int64_t count, const char **text,
                                      int64_t *size);
/** Takes bytes that are text already, such as a prompt. */
MIXT_API mixt_status mixt_decoder_put_bytes(mixt_decoder *decoder, const void *bytes, int64_t count, const char **text,
                                            int64_t *size);
/** What is left when no more tokens come: half a character becomes U+FFFD. Another text may follow. */
MIXT_API mixt_status mixt_decoder_end(mixt_decoder *decoder, const char **text, int64_t *size);

/* ---- token files ---- */

/** Tokens on disk, as data sets of kind "tokens" read them: with a header that says what they are, or raw 16-bit ones.
 *  Read by mapping. */
typedef struct mixt_token_file mixt_token_file;

typedef struct mixt_token_file_info {
    int64_t count;      /**< tokens */
    int64_t vocabulary; /**< they are below it */
    int64_t bytes;      /**< of the whole file */
} mixt_token_file_info;

/**
 * Learns a vocabulary of byte pairs, as GPT-2's is, and writes it into a folder: encoder.json and vocab.bpe, which
 * mixt_tokenizer_open and other programs read. What is learned depends on the texts alone.
 * @param files paths of texts, plain or gzip: one vocabulary for all.
 * @param size tokens wanted, all 256 bytes and <|endoftext|> among them; fewer come where no pair of tokens is left
 *   that comes up twice.
 * @param folder made where it is not there.
 * @param overwrite replaces files that are there; else that is an error.
 * @param progress hears of merges done and in all; NULL: nobody does.
 * @param made set to the number of tokens; may be NULL.
 */
MIXT_API mixt_status mixt_tokenizer_train(const char *const *files, int64_t count, int64_t size, const char *folder,
                                          bool overwrite, mixt_progress_fn *progress, void *user, int64_t *made);

/**
 * Tokenises a text into a token file, which is put in its place whole or not at all.
 * @param text path of the text, plain or gzip.
 * @param path file to write; never `text` itself.
 * @param overwrite replaces a file that is there; else that is an error.
 * @param progress hears of bytes done and in all; NULL: nobody does.
 * @param made what was written; may be NULL.
 */
MIXT_API mixt_status mixt_token_file_make(const mixt_tokenizer *tokenizer, const char *text, const char *path,
                                          bool overwrite, mixt_progress_fn *progress, void *user,
                                          mixt_token_file_info *made);

/**
 * Opens a token file and checks every token.
 * @param tokenizer that made it: a file of another one is refused. Raw files, which do not say what they hold, need
 *   it; NULL: only files with a header.
 */
MIXT_API mixt_status mixt_token_file_open(const char *path, const mixt_tokenizer *tokenizer, mixt_token_file **file);
/** NULL is allowed. */
MIXT_API void mixt_token_file_close(mixt_token_file *file);
MIXT_API mixt_token_file_info mixt_token_file_describe(const mixt_token_file *file);
/**
 * Reads tokens first, first + 1, …
 * @param tokens room for `count`.
 * @return MIXT_ERROR_ARGUMENT when there are not that many.
 */
MIXT_API mixt_status mixt_token_file_read(const mixt_token_file *file, int64_t first, int64_t count, int32_t *tokens);
/** Writes the text of the whole file to a file descriptor, which stays open: 1 is what a program prints to. Exact for
 *  bytes and gpt2; WordPiece puts single blanks between words. */
MIXT_API mixt_status mixt_token_file_print(const mixt_token_file *file, const mixt_tokenizer *tokenizer,
                                           int descriptor);
/** The same into a file, which is put in its place whole or not at all; never the token file itself. */
MIXT_API mixt_status mixt_token_file_write_text(const mixt_token_file *file, const mixt_tokenizer *tokenizer,
                                                const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
