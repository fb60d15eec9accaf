/* What has a run measured? The figures that it wrote while it trained: metrics.jsonl, read back as columns of numbers.
 *
 *   mixt_metrics *m;
 *   if (mixt_metrics_read("runs/a", &m) == MIXT_OK)
 *       use(mixt_metrics_column(m, "step"), mixt_metrics_column(m, "loss"), mixt_metrics_describe(m).rows);
 *   mixt_metrics_free(m);
 *
 * A run that still goes on can be read at any time. Epochs count from 1, also where an earlier version of mixt wrote
 * the file and counted from 0.
 */
#ifndef MIXT_METRICS_H
#define MIXT_METRICS_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The rows of one run; read-only. */
typedef struct mixt_metrics mixt_metrics;

/**
 * Reads all whole rows. A last row without its end is one that is being written: it is passed over. A row that is no
 * JSON object with a step is left out and counted.
 * @param path a run directory, or a file like its metrics.jsonl.
 * @param metrics set to NULL on failure; free it with mixt_metrics_free.
 * @return MIXT_ERROR_FILE where there is no such file, MIXT_ERROR_DATA where it has no whole row.
 */
MIXT_API mixt_status mixt_metrics_read(const char *path, mixt_metrics **metrics);
/** NULL is allowed. */
MIXT_API void mixt_metrics_free(mixt_metrics *metrics);

/** What was read. The text belongs to the metrics. */
typedef struct mixt_metrics_info {
    int64_t rows;        /**< numbers in each column */
    int64_t left_out;    /**< rows that could not be read */
    const char *problem; /**< of the first of those, with its line; "" where there is none */
} mixt_metrics_info;
/** NULL has no rows. */
MIXT_API mixt_metrics_info mixt_metrics_describe(const mixt_metrics *metrics);

/** The name of a column, "step", "loss", …, in the order of the rows; NULL past the last. @param index from 0. */
MIXT_API const char *mixt_metrics_name(const mixt_metrics *metrics, int64_t index);
/** The numbers of a column, one a row, NaN where a row has none; NULL where there is no such column. */
MIXT_API const double *mixt_metrics_column(const mixt_metrics *metrics, const char *name);

#ifdef __cplusplus
}
#endif
#endif
