/* The text of a CSV file: lines, fields and numbers. A field in quotes may hold separators, line ends and doubled
 * quotes (RFC 4180); a quote without its other is a letter like any. Blank lines and lines that begin with # are
 * skipped. Not here: what fields mean (csv.c).
 */
#ifndef MIXT_DATA_CSV_TEXT_H
#define MIXT_DATA_CSV_TEXT_H

#include "mixt/types.h"

/** A piece of the text: a field, or a line or the rest of one. */
typedef struct mixt__csv_field {
    const char *text;
    int64_t length;
    bool quoted; // quotes stood around it
} mixt__csv_field;

/** A position in it. */
typedef struct mixt__csv_text {
    const char *at, *end; // rest of the text; *end is NUL
    int64_t line;         // where the line last taken begins, from 1
    int64_t inside;       // line ends in quotes within it
    char separator;       // 0: not known yet
} mixt__csv_text;

/** The next line that says something; false at the end. */
bool mixt__csv_next_line(mixt__csv_text *text, mixt__csv_field *line);
/** What parts the fields of a line: the first of ; tab , and space that is there outside quotes, else a comma. */
char mixt__csv_separator(const mixt__csv_text *text, const mixt__csv_field *line);
/** Takes the first field off a line; false when none is left. An empty rest after a separator is one more field. */
bool mixt__csv_next_field(const mixt__csv_text *text, mixt__csv_field *rest, mixt__csv_field *field);
int64_t mixt__csv_count_fields(const mixt__csv_text *text, mixt__csv_field line);
/** A decimal number, also one that is not finite; false: it is none. */
bool mixt__csv_number(const mixt__csv_field *field, double *value);
/** Plain decimals exactly and fast; false for anything that needs strtod (long, large, or no number at all). */
bool mixt__csv_plain_number(const mixt__csv_field *field, double *value);
/** Nothing, or a word that programs write for nothing. */
bool mixt__csv_missing(const mixt__csv_field *field);

#endif
