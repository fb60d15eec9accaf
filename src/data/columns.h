/* Named arrays in memory, a row a sample: what kinds with several inputs or targets have in common. */
#ifndef MIXT_DATA_COLUMNS_H
#define MIXT_DATA_COLUMNS_H

#include "data/data.h"

/** What a column is made from. */
typedef enum mixt__column_source {
    MIXT_COLUMN_VALUES,
    MIXT_COLUMN_LENGTH, // how long the samples of another column are
    MIXT_COLUMN_MASK,   // 1 where they have something
    MIXT_COLUMN_MADE,   // made by the kind itself
} mixt__column_source;

/** A named array of all samples. */
typedef struct mixt__column {
    mixt_data_array array; // its name lives as long as the set
    void *values;          // rows × elements, four bytes each; NULL: made from another column
    int64_t *begin; // (rows + 1) of samples of different lengths: where each begins, in elements; NULL: all whole
    mixt__column_source source;
    int of;                 // which other one
    const int32_t *lengths; // while a set is opened: the program's
} mixt__column;

/** All of a set's, inputs first. */
typedef struct mixt__columns {
    mixt__column column[MIXT_DATA_ARRAYS_MAX];
    int count;
    int64_t rows;    // in the arrays
    void *more;      // of the kind; not owned
    int64_t *chosen; // rows of this part, data->info.samples of them; NULL: the first ones
} mixt__columns;

/** Takes over columns and all that they own as the set's state: fills info.arrays, info.target and classes from them.
 *  info.samples is the caller's. Also on failure they are the set's. */
mixt_status mixt__columns_adopt(mixt_data *data, mixt__columns *columns);
/** Frees what they own. */
void mixt__columns_free(mixt__columns *columns);
/** Chooses the rows of data->part at random, as files are shared out. */
mixt_status mixt__columns_share(mixt_data *data, mixt__columns *columns);

// Callbacks of the kinds that are columns.
mixt_status mixt__columns_arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                                 char *const *at);
int64_t mixt__columns_length(const mixt_data *data, int64_t index, int array);
const void *mixt__columns_raw(const mixt_data *data, int index, size_t *bytes);
void mixt__columns_close(mixt_data *data);

#endif
