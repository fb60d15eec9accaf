/* Rows of JSON read forgivingly: for pages of runs that went wrong, or are going on. */
#ifndef MIXT_PAGE_ROWS_READ_H
#define MIXT_PAGE_ROWS_READ_H

#include "mixt/types.h"

#include <jansson.h>

/** Takes over a row, or leaves it: false. @param row NULL: the line is no JSON */
typedef bool mixt__page_row(void *user, json_t *row);

/** Rows that were left. */
typedef struct mixt__page_damage {
    int64_t rows, first; // how many, and the line of the first
} mixt__page_damage;

/** Each whole line of a file in a folder; none where there is no such file. Fails where not all can be read. */
mixt_status mixt__page_rows(const char *folder, const char *file, mixt__page_row *take, void *user,
                            mixt__page_damage *damage);

#endif
