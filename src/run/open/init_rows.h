/* What rows of parameters stand for in the run that a run begins with, and here. Users and items are known by their
 * names: the order of a file says nothing. Rows of other classes or tokens are refused.
 */
#ifndef MIXT_RUN_INIT_ROWS_H
#define MIXT_RUN_INIT_ROWS_H

#include "run/open/experiment.h"
#include "store/weights.h"

enum { MIXT_INIT_ROWS = 16 };

/** Begins as zeros. */
typedef struct mixt__init_rows {
    mixt__weights_rows rows[MIXT_INIT_ROWS];
    int64_t count;
    char known[192];                 // which names the run knows, for people; "": rows have none
    char classes[512], tokens[1024]; // in which they are others, for people; "": they are the same, as far as is known
    mixt__arena arena;
} mixt__init_rows;

/** Compares a compiled experiment with what is known of the weights that it begins with.
 *  @param path as init has it */
mixt_status mixt__init_rows_open(mixt__init_rows *rows, const mixt__experiment *e, const char *path);
void mixt__init_rows_close(mixt__init_rows *rows);

#endif
