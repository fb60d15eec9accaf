/* Texts with a class each: what the reader of the files (labelled_rows.c) hands to the kind (labelled.c). */
#ifndef MIXT_DATA_LABELLED_H
#define MIXT_DATA_LABELLED_H

#include "data/table/class_words.h"
#include "data/text/tokenizer.h"

/** One text of a file. */
typedef struct mixt__text_row {
    mixt__span text, label; // in the bytes of the file
    int64_t line;
} mixt__text_row;

/** All texts of a file. */
typedef struct mixt__text_rows {
    mixt__bytes file;
    const char *path;
    mixt__text_row *row;
    int64_t count, capacity;
    int text_column, label_column; // from 1
} mixt__text_rows;

/** Reads a file: its header, where it has one, and which columns hold texts and labels. */
mixt_status mixt__text_rows_read(const mixt_data *data, const char *path, mixt__text_rows *rows);
/** Reads texts without labels: the column of texts of a .tsv or .csv file, else a line each. */
mixt_status mixt__text_rows_read_alone(const mixt_data *data, const char *path, mixt__text_rows *rows);
void mixt__text_rows_free(mixt__text_rows *rows);

/** Texts that mixt writes itself, of data->part. */
mixt_status mixt__opinions_write(const mixt_data *data, int64_t count, mixt__text_rows *rows);

/** Appends the tokens of one text, at most `most`: [CLS] in front and [SEP] behind where the vocabulary has both.
 *  @param worker of the tokenizer's kind
 *  @param cut set where the text was longer */
mixt_status mixt__text_tokens(const mixt_tokenizer *tokenizer, void *worker, mixt__span text, int64_t most,
                              mixt__tokens *tokens, bool *cut);

#endif
