/* Words that people type: lists of choices, and "did you mean …?". */
#ifndef MIXT_BASE_WORDS_H
#define MIXT_BASE_WORDS_H

#include <stddef.h>

/** Edits (insert, delete, replace, swap of neighbours) between two names, case ignored; names past 63 bytes are cut. */
int mixt__edit_distance(const char *a, const char *b);

/** Keeps the best of a series of candidates. Start with {.wanted = name}. */
typedef struct mixt__nearest {
    const char *wanted, *best;
    int distance;
} mixt__nearest;

void mixt__nearest_offer(mixt__nearest *nearest, const char *candidate);
/** The closest candidate, or NULL when none is close enough to be worth saying. */
const char *mixt__nearest_get(const mixt__nearest *nearest);

/* Choices are one text, "sgd|adam|lamb"; one that ends in ":N" is any word with a number of up to two digits there. */

/** Position of `word`; -1 when it is not there. */
int mixt__choice_find(const char *choices, const char *word);
/** The word at a position, copied to `word`; "" past the end. Returns `word`. */
const char *mixt__choice_name(const char *choices, int position, char *word, size_t size);
/** "sgd, adam, lamb". Returns `text`. */
const char *mixt__choice_list(const char *choices, char *text, size_t size);
/** " (did you mean adam?)", or "" when no choice is close to `word`. Returns `text`. */
const char *mixt__choice_hint(const char *choices, const char *word, char *text, size_t size);

#endif
