/* The two files of a GPT-2 vocabulary: encoder.json (or vocab.json), token to id, and vocab.bpe (or merges.txt). */
#ifndef MIXT_DATA_GPT2_FILES_H
#define MIXT_DATA_GPT2_FILES_H

#include "data/bpe.h"

/** Finds one of two names in a folder; the path in `path`, false when neither is there. */
bool mixt__vocabulary_file(const char *folder, const char *name, const char *other, char *path, size_t size);

/** Reads both. On failure what was made is the caller's to free, as on success. */
mixt_status mixt__gpt2_read(const char *folder, mixt__vocabulary *vocabulary, mixt__bpe *bpe, uint64_t *fingerprint);

#endif
