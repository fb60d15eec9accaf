/* NumPy arrays, wherever they come from, as inputs and targets of a table. */
#ifndef MIXT_DATA_NPY_H
#define MIXT_DATA_NPY_H

#include "data/data.h"
#include "store/npy.h"

/** Samples of `file`, copied; `path` names them in messages and lives with the data set. What the table owns is the
 *  caller's to free, also on failure. */
mixt_status mixt__npy_take_inputs(const char *path, const mixt__npy *file, mixt__table *table);
/** Labels or values of the samples that `table` holds. */
mixt_status mixt__npy_take_targets(mixt_data *data, const char *path, const mixt__npy *file, mixt__table *table);

#endif
