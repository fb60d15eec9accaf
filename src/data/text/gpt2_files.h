/* The two files of a GPT-2 vocabulary: encoder.json (or vocab.json), token to id, and vocab.bpe (or merges.txt). */
#ifndef MIXT_DATA_GPT2_FILES_H
#define MIXT_DATA_GPT2_FILES_H

#include "data/text/bpe.h"

/** Finds one of two names in a folder; the path in `path`, false when neither is there. */
bool mixt__vocabulary_file(const char *folder, const char *name, const char *other, char *path, size_t size);

/** The bytes that a token of such a file stands for; at most `size` of them. Text with characters that are not of its
 *  alphabet (a special token) stands for itself. */
int64_t mixt__gpt2_unprint(const char *text, int64_t size, unsigned char *bytes);

/** The end of the piece at `at` by GPT-2's rule; the text is UTF-8. */
int64_t mixt__gpt2_piece_end(const unsigned char *text, int64_t size, int64_t at);

/** Reads both. On failure what was made is the caller's to free, as on success. */
mixt_status mixt__gpt2_read(const char *folder, mixt__vocabulary *vocabulary, mixt__bpe *bpe, uint64_t *fingerprint);

#endif
