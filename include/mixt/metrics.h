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

/** What the figures of a run say about its learning. */
typedef enum mixt_outcome {
    MIXT_OUTCOME_UNDECIDED,   /**< too few rows, or losses that scatter more than they move */
    MIXT_OUTCOME_LEARNED,     /**< the loss fell */
    MIXT_OUTCOME_OVERFITTING, /**< the validation loss rises since `step` while the training loss falls */
    MIXT_OUTCOME_DIVERGED     /**< the loss rose, or ended as no finite number */
} mixt_outcome;

/** An outcome with its figures. The text belongs to the metrics. */
typedef struct mixt_metrics_outcome {
    mixt_outcome outcome;
    int64_t step;           /**< OVERFITTING: of the lowest validation loss; else of the last row */
    double first, last;     /**< training loss: means of the first and the last tenth of the rows */
    double best_validation; /**< lowest validation loss; NaN: there was no validation */
    double last_validation; /**< the last one */
    double last_accuracy;   /**< of the last validation, in percent; NaN: none */
    const char *text;       /**< one sentence with these figures */
} mixt_metrics_outcome;
/** Judges the rows that were read. Means are told apart by twice their standard error. NULL is UNDECIDED. */
MIXT_API mixt_metrics_outcome mixt_metrics_judge(const mixt_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
