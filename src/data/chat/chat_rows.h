/* Rows of a file of conversations: JSON objects, one a line, or in one array. */
#ifndef MIXT_DATA_CHAT_ROWS_H
#define MIXT_DATA_CHAT_ROWS_H

#include "data/data.h"

#include <jansson.h>

/** Where a row stands in the file. */
typedef struct mixt__chat_row {
    int64_t begin, end; // bytes
    int64_t line;       // that it begins on, from 1
} mixt__chat_row;

typedef struct mixt__chat_rows {
    mixt__bytes file;
    const char *path; // borrowed
    mixt__chat_row *row;
    int64_t count, capacity;
} mixt__chat_rows;

/** Finds the rows of a file, plain or gzip; what is in them is not looked at yet. Where it fails nothing is to free. */
mixt_status mixt__chat_rows_read(const char *path, mixt__chat_rows *rows);
void mixt__chat_rows_free(mixt__chat_rows *rows);
/** One row as JSON. MIXT_ERROR_FORMAT names file and line. */
mixt_status mixt__chat_row_parse(const mixt__chat_rows *rows, int64_t index, json_t **value);

#endif
