/* Classes that a file gives as words: which there are, and the number of each. */
#ifndef MIXT_DATA_CLASS_WORDS_H
#define MIXT_DATA_CLASS_WORDS_H

#include "data/data.h"

enum { MIXT_CLASS_WORDS = 1000 }; // more different words are no classes

typedef struct mixt__class_words {
    const char *names[MIXT_CLASS_WORDS]; // in the data set's memory, in the order in which they came
    int64_t count;
    bool given; // taken from the training part: no more are added
} mixt__class_words;

/** Takes over the names of the set that `table` must agree with, where it has some. */
mixt_status mixt__class_words_start(mixt_data *data, const mixt__table *table, mixt__class_words *words);
/** The number of a word (with doubled quotes, as CSV has them), added where it is new. -1: there is no such class,
 * there are too many, or no memory. */
int64_t mixt__class_words_number(mixt_data *data, mixt__class_words *words, const char *text, int64_t length);
/** Brings the names into their order, unless they were given; numbers[old] becomes the new one. */
void mixt__class_words_sort(mixt__class_words *words, int64_t numbers[MIXT_CLASS_WORDS]);

#endif
