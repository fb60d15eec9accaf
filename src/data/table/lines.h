/* Lines of a text file in memory whose fields are separated by "::" or as in CSV, by what the first line has. */
#ifndef MIXT_DATA_LINES_H
#define MIXT_DATA_LINES_H

#include "data/table/csv_text.h"
#include "data/data.h"

typedef struct mixt__lines {
    mixt__csv_text text; // text.line is the number of the line last taken
    bool begun, colons;
} mixt__lines;

/** Reads a file that must be text, of fewer than 2^31 lines. */
mixt_status mixt__lines_read(const char *path, mixt__bytes *file);
/** Before the first line. @param file must stay; doubled quotes in it become one when a line is taken */
mixt__lines mixt__lines_of(mixt__bytes *file);
/** The fields of the next line that says something, up to `most` of them; returns how many it has, also beyond those;
 *  -1: there is no more. */
int mixt__lines_next(mixt__lines *lines, mixt__csv_field *fields, int most);
/** How many lines the file has at most. */
int64_t mixt__lines_count(const mixt__bytes *file);

#endif
