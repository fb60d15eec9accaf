/* Pictures that a table lists: a column of file names, one of labels. */
#ifndef MIXT_DATA_LISTED_H
#define MIXT_DATA_LISTED_H

#include "data/data.h"

/** The table of a part, where pictures are listed by one: `where` itself, or a table in that folder (train.csv,
 *  val.csv, test.csv, labels.csv, or the only one there). NULL: there is none. */
const char *mixt__listed_table(mixt_data *data, const char *where, mixt__part part);

/** Reads a table: the path of each picture, its label or value as `table` has them (rows, labels or values, classes,
 *  class_names), which agrees with table->train. What `table` owns is the caller's to free, also on failure.
 *  @param paths set to (table->rows) paths in the data set's memory */
mixt_status mixt__listed_read(mixt_data *data, const char *path, mixt__table *table, const char ***paths);

/** Whether the first rows of a table name pictures that are there. */
bool mixt__listed_looks(const char *path);

#endif
