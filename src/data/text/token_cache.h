/* Text files as token files: tokenised once, kept in the cache folder, mapped from then on. */
#ifndef MIXT_DATA_TOKEN_CACHE_H
#define MIXT_DATA_TOKEN_CACHE_H

#include "data/text/token_file.h"

/** The folder `name` inside the cache folder MIXT_CACHE, $XDG_CACHE_HOME/mixt or ~/.cache/mixt, made where it is not
 *  there; false where there is none that can be written. */
bool mixt__cache_folder(const char *name, char *path, size_t room);

/** A text's own fingerprint: its size, time of change and contents (samples of them, past 4 MiB). */
mixt_status mixt__text_fingerprint(const char *path, uint64_t *fingerprint);

/** What a token file of a text says in its header. */
mixt__token_facts mixt__token_facts_of(const mixt_tokenizer *tokenizer, uint64_t source);

/** Tokenises `text` (plain or gzip) into a token file. */
mixt_status mixt__text_to_tokens(const mixt_tokenizer *tokenizer, const char *text, uint64_t source, const char *path,
                                 bool overwrite, mixt__teller teller);

/** The tokens of a text: the file made before where it still fits, else tokenised now. The file goes to the folder
 *  MIXT_CACHE, $XDG_CACHE_HOME/mixt or ~/.cache/mixt; where there is none or it cannot be written, the tokens stay in
 *  memory (file->block). */
mixt_status mixt__token_cache_open(const mixt_tokenizer *tokenizer, const char *text, bool trusted, mixt__teller teller,
                                   mixt__token_file *file);

/** The tokens of a text in memory, which stay there (file->block). */
mixt_status mixt__tokens_of_memory(const mixt_tokenizer *tokenizer, const unsigned char *text, int64_t size,
                                   mixt__token_file *file);

#endif
