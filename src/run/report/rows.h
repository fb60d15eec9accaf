/* A file of rows of JSON: metrics.jsonl, events.jsonl. Rows go to the system as they come, so that a killed run keeps
 * what it logged; while the disk is full they wait in memory, so that a run does not end for want of a few bytes. One
 * process writes at a time.
 */
#ifndef MIXT_RUN_ROWS_H
#define MIXT_RUN_ROWS_H

#include "mixt/types.h"

#include <jansson.h>

typedef struct mixt__rows {
    char path[1200];
    int fd;        // meaningful while `open`
    int64_t bytes; // in the file, all of them whole rows
    char *waiting; // rows that the disk had no room for
    size_t waiting_bytes;
    bool open;
    bool silent; // nobody writes them here: another process does
    bool sealed; // each row gets a checksum (store/json_rows.h); set after opening
} mixt__rows;

/** Makes the file, or goes on with one that is there: its first `keep` bytes, as far as they are whole rows. Fails when
 * it exists and is not to be kept (`keep` negative), or when another process has it open.
 *  @param path kept up to 1199 bytes */
mixt_status mixt__rows_open(mixt__rows *rows, const char *path, int64_t keep);
/** Appends a row, which is taken over. */
mixt_status mixt__rows_add(mixt__rows *rows, json_t *row);
/** The beginning of the first row, as far as it fits; "" where there is none yet. */
void mixt__rows_first(const mixt__rows *rows, char *text, size_t size);
/** A number of a row: JSON has no NaN and no infinity, null stands for those. */
json_t *mixt__rows_number(double value);
/** Bytes of all rows so far, also of those that wait. */
int64_t mixt__rows_length(const mixt__rows *rows);
/** Takes back all rows after the first `keep` bytes: the end of a row. */
mixt_status mixt__rows_cut(mixt__rows *rows, int64_t keep);
/** Brings waiting rows to the file: the end of a run. */
mixt_status mixt__rows_flush(mixt__rows *rows);
/** Nothing to do on one that is not open. */
void mixt__rows_close(mixt__rows *rows);

#endif
