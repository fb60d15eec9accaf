/* A CSV file while it is read: what its lines are, which columns count, its rows as cells. */
#ifndef MIXT_DATA_CSV_READER_H
#define MIXT_DATA_CSV_READER_H

#include "data/table/cells.h"
#include "data/table/class_words.h"
#include "data/table/schema.h"

typedef struct mixt__csv_reader {
    mixt_data *data; // whose options count; holds what is kept
    const char *path;
    mixt__csv_text text;
    mixt__csv_text rows;    // where they begin
    mixt__csv_field header; // the first line, where it is one
    int64_t header_line;
    int64_t stated_rows, stated_classes; // of a scikit-learn header; 0: none
    bool numbered;                       // the header is one only for its numbers, those of columns
    bool untargeted;                     // a file to predict: its target, if it has one, is not read
    bool worded;                         // targets are words
    int64_t word_line;                   // of the first one
    mixt__class_words words;
    const mixt__schema *schema; // of the training part, to agree with; NULL: it is learned from this file
    int64_t *from;              // (schema->columns) columns of this file; -1: it has none
    mixt__cells cells;
    int64_t **lines; // set to those of the rows; NULL: nobody asks
} mixt__csv_reader;

enum { MIXT_SHOWN = 24 }; // characters of a bad field in a message

/** Characters of a field in a message. */
static inline int mixt__shown(const mixt__csv_field *field)
{
    return (int)(field->length < MIXT_SHOWN ? field->length : MIXT_SHOWN);
}

// csv_head.c

/** Takes separator, header and columns from the first lines; reader->rows is where rows begin. */
mixt_status mixt__csv_read_head(mixt__csv_reader *reader);

// csv_columns.c

/** " (age)" of a column that has a name, else "": for a message of this thread. */
const char *mixt__csv_called(const mixt__cells_column *column);

/** Says what each column is: by reader->schema, else by the options and by all its fields. */
mixt_status mixt__csv_judge_columns(mixt__csv_reader *reader);

// csv_rows.c

/** Reads all rows into reader->cells. */
mixt_status mixt__csv_read_rows(mixt__csv_reader *reader);

// csv.c

/** Whether a path has the ending of a table that is read here, of CSV or TSV. */
bool mixt__csv_is_table(const char *path);
/** Reads the file of reader->path, which *file keeps, up to where its rows begin. */
mixt_status mixt__csv_open(mixt__csv_reader *reader, mixt__bytes *file);
/** Frees what both have; also after a failure. */
void mixt__csv_close(mixt__csv_reader *reader, mixt__bytes *file);
/** Reads the rows of a file to predict, as samples of `like`, whatever kind that is: into `table` and the lines of rows
 *  into *lines; what they own is the caller's. `data` is for what is kept and told. */
mixt_status mixt__csv_read_inputs(mixt_data *data, const mixt_data *like, const char *path, mixt__table *table,
                                  int64_t **lines);

#endif
