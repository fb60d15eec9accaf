/* A table as its file has it: a cell of four bytes for each field, by what its column holds. */
#ifndef MIXT_DATA_CELLS_H
#define MIXT_DATA_CELLS_H

#include "data/names.h"
#include "data/table/csv_text.h"
#include "data/table/dates.h"

typedef enum mixt__cells_use {
    MIXT_CELLS_OUT,      // nothing
    MIXT_CELLS_NUMBER,   // a float; NaN: missing
    MIXT_CELLS_DATE,     // minutes since 1970; MIXT_DATE_NONE: missing
    MIXT_CELLS_ONE_HOT,  // the number of a word; -1: missing
    MIXT_CELLS_EMBEDDED, // the same
    MIXT_CELLS_TARGET,
    MIXT_CELLS_USES,
} mixt__cells_use;

extern const char *const mixt__cells_uses[MIXT_CELLS_USES]; // in files

/** How a column writes its numbers. */
typedef enum mixt__number_form {
    MIXT_NUMBER_POINT,     // 1234.5
    MIXT_NUMBER_COMMA,     // 1234,5
    MIXT_NUMBER_THOUSANDS, // 1,234.5
    MIXT_NUMBER_FORMS,
} mixt__number_form;

typedef union mixt__cell {
    float number;
    int32_t whole;
} mixt__cell;

/** One column of a file. */
typedef struct mixt__cells_column {
    mixt__csv_field name; // in the header; no text: it has none
    mixt__cells_use use;  // one-hot or embedded: words, of which sort is not known yet
    mixt__number_form form;
    mixt__date_order order;
    const char *why;     // it is left out
    mixt__names words;   // by their numbers
    int64_t values;      // cells that are not missing
    int64_t strays;      // words among numbers or dates, which are taken to be missing
    int64_t first_stray; // line
    char stray[32];
} mixt__cells_column;

/** Begins as zeros. */
typedef struct mixt__cells {
    const char *path;
    mixt__cells_column *column; // (columns)
    int64_t columns, target;    // target: -1: the file has none
    mixt__cell *cell;           // (rows, columns)
    int64_t cell_capacity, cell_count;
    int64_t *line; // (rows)
    int64_t line_capacity, rows;
    int64_t dropped, untargeted; // rows left out: a cell is missing, their target is
} mixt__cells;

void mixt__cells_free(mixt__cells *cells);

/** What a comma, alone in a number, is in a file. */
typedef enum mixt__comma {
    MIXT_COMMA_UNKNOWN,
    MIXT_COMMA_DECIMAL, // another column has commas that can be nothing else
    MIXT_COMMA_GROUPS,  // between thousands: commas separate the cells too
} mixt__comma;

/** A number in one of the forms, with a sign of a currency or of percent beside it; false: it is none. */
bool mixt__number_read(const mixt__csv_field *field, mixt__number_form form, double *value);

/** What the fields of a column are, counted. */
typedef struct mixt__survey {
    int64_t values;                     // that are not missing
    int64_t numbers[MIXT_NUMBER_FORMS]; // in each form
    int64_t decimals;                   // commas that can only be decimal ones
    int64_t groups;                     // that can only part thousands
    int64_t dates[MIXT_DATE_ORDERS];
    bool slash;  // between the parts of dates
    bool counts; // rows: first, first + 1, ...
    double next;
} mixt__survey;

/** Counts a field. */
void mixt__survey_add(mixt__survey *survey, const mixt__csv_field *field);
/** What the column is by that; *doubtful: why that is not sure, NULL: it is. Words are MIXT_CELLS_ONE_HOT. */
void mixt__survey_judge(const mixt__survey *survey, mixt__comma comma, mixt__cells_column *column,
                        const char **doubtful);

#endif
