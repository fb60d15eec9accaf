/* The byte strings of a vocabulary, by id and back. */
#ifndef MIXT_DATA_VOCABULARY_H
#define MIXT_DATA_VOCABULARY_H

#include "mixt/types.h"

enum { MIXT_VOCABULARY_MAX = 1 << 24 };

typedef struct mixt__span {
    const unsigned char *bytes;
    int64_t size;
} mixt__span;

typedef struct mixt__vocabulary {
    int64_t count;
    unsigned char *bytes; // of all tokens, one after the other
    int64_t *offsets;     // (count + 1)
    uint32_t *slots;      // open addressing: id + 1, 0 for none
    uint64_t mask;        // slots - 1
    int64_t longest;      // bytes of the longest token
} mixt__vocabulary;

/** Copies `count` tokens. When two are the same, *twice is the id of the second and the result MIXT_ERROR_FORMAT. */
mixt_status mixt__vocabulary_make(mixt__vocabulary *vocabulary, const mixt__span *tokens, int64_t count,
                                  int64_t *twice);
/** Writes FOLDER/vocab.txt, a token a line, the folder made where it is missing (words_learn.c). */
mixt_status mixt__vocabulary_write(const mixt__vocabulary *vocabulary, const char *folder);
void mixt__vocabulary_free(mixt__vocabulary *vocabulary);

/** The id of a token, -1 when there is none. */
int64_t mixt__vocabulary_find(const mixt__vocabulary *vocabulary, const void *bytes, int64_t size);
/** The bytes of an id below count. */
mixt__span mixt__vocabulary_at(const mixt__vocabulary *vocabulary, int64_t id);

#endif
