/* Inputs, the corpus they are made from, and one random change after another. */
#ifndef MIXT_TESTS_FUZZ_MUTATE_H
#define MIXT_TESTS_FUZZ_MUTATE_H

#include "fuzz.h"

typedef struct fuzz_bytes {
    uint8_t data[FUZZ_INPUT_MAX];
    size_t size;
} fuzz_bytes;

typedef struct fuzz_entry {
    uint8_t *data;
    size_t size;
} fuzz_entry;

typedef struct fuzz_corpus {
    fuzz_entry *entries, *words; // words: of the dictionary
    int64_t count, capacity, word_count, word_capacity;
} fuzz_corpus;

/** Copies an input into the corpus. */
void fuzz_corpus_add(fuzz_corpus *corpus, const uint8_t *data, size_t size);
/** Reads a dictionary as libFuzzer does: lines of "text" with \xNN, \\ and \", # before comments. */
bool fuzz_corpus_dictionary(fuzz_corpus *corpus, const char *path);
void fuzz_corpus_free(fuzz_corpus *corpus);

/** An input of the corpus with one to eight changes; `state` is the random state, never 0. */
void fuzz_mutate(const fuzz_corpus *corpus, uint64_t *state, fuzz_bytes *bytes);

#endif
