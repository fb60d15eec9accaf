/* Texts to be judged: lines of a file, or one that is given as it is. For inputs.c. */
#ifndef MIXT_DATA_INPUTS_TEXT_H
#define MIXT_DATA_INPUTS_TEXT_H

#include "data/data.h"

/** Texts as tokens, ready to be padded. */
typedef struct mixt__input_texts mixt__input_texts;

/** Whether samples of a set are texts with a class. */
bool mixt__are_texts(const mixt_data_info *info);
/** Opens "text:WORDS", a file of one text a line, or the column of texts of a .tsv or .csv file.
 *  @param like knows the tokenizer and the longest sample; borrowed during the call only */
mixt_status mixt__input_texts_open(const char *path, const mixt_data *like, mixt__input_texts **texts);
void mixt__input_texts_close(mixt__input_texts *texts);
int64_t mixt__input_texts_count(const mixt__input_texts *texts);
/** Of the file, from 1, that a text begins on; 0: it is not from a file. */
int64_t mixt__input_texts_line(const mixt__input_texts *texts, int64_t index);
/** Whether a text was longer than a sample can be. */
bool mixt__input_texts_cut(const mixt__input_texts *texts, int64_t index);
/** Texts [first, first + count) as the inputs of a batch of `count`. */
void mixt__input_texts_read(const mixt__input_texts *texts, const mixt_data *like, int64_t first, int64_t count,
                            void *samples);

#endif
