/* Records of a CSV or TSV file whose fields are text.
 *
 * CSV as RFC 4180 has it: a field in quotes may hold separators, line ends and doubled quotes. In TSV quotes are
 * letters like any, and a line is a record; a field that stands in quotes as a whole, with those inside doubled, loses
 * them. Empty lines are passed over. Not here: what fields mean (labelled.c); numbers (csv_text.h).
 */
#ifndef MIXT_DATA_RECORDS_H
#define MIXT_DATA_RECORDS_H

#include "data/data.h"
#include "data/text/vocabulary.h"

enum { MIXT_RECORD_FIELDS = 256 };

/** A file on its way. Fields are unquoted in its own bytes. */
typedef struct mixt__records {
    const char *path;
    unsigned char *at, *end; // what is left; *end is NUL
    int64_t line;            // of the next byte, from 1
    char separator;
} mixt__records;

typedef struct mixt__record {
    mixt__span field[MIXT_RECORD_FIELDS]; // in the bytes of the file
    int count;
    int64_t line; // where it begins
} mixt__record;

/** Whether a file's name says that it is of records: .tsv, .csv or JSON lines, plain or .gz. */
bool mixt__records_are(const char *path);
/** Begins with a file's bytes: passes over a byte order mark and finds the separator: a tab in .tsv, a comma or a
 *  semicolon in .csv, else what the first line has. */
mixt__records mixt__records_of(const char *path, mixt__bytes *file);
/** The next record. MIXT_END: there is none; MIXT_ERROR_DATA with the line where a quote is not closed, or text stands
 *  behind one. */
mixt_status mixt__records_next(mixt__records *records, mixt__record *record);

#endif
