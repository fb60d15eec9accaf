/* What does a model say of each row of a table? The table again as CSV, with a prediction beside each row.
 *
 *   mixt_table_predict(mixt_run_trainer(run), mixt_run_facts(run), "new.csv", NULL, &predictions);
 *   fputs(predictions.text, stdout);
 *   mixt_table_predictions_free(&predictions);
 */
#ifndef MIXT_TASKS_TABLE_H
#define MIXT_TASKS_TABLE_H

#include "mixt/data.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_table_options {
    size_t struct_size;
    const char *out; /**< file to write instead of giving the text back; default NULL */
    bool overwrite;  /**< also one that is there; default false */
} mixt_table_options;
MIXT_API void mixt_table_options_default(mixt_table_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_table_options .struct_size = sizeof(mixt_table_options)

typedef struct mixt_table_predictions {
    char *text;     /**< CSV (RFC 4180, commas, a header): the table's columns as they stand, then "prediction", of
                         classes "probability"; NULL where a file was written */
    int64_t rows;   /**< that have a prediction */
    char *warnings; /**< what in the table may not be meant, a line each; NULL: nothing */
} mixt_table_predictions;

/**
 * Predicts every row of a table: CSV or TSV, plain or gzip, with its target or without.
 * @param trainer of a model of rows, with trained weights (mixt_run_trainer of a loaded run).
 * @param like the data that the model was trained on, or what a run remembers of it (mixt_run_facts).
 * @param options NULL for the defaults.
 * @param predictions filled; to be freed with mixt_table_predictions_free; nothing on failure.
 * @return MIXT_ERROR_DATA where the table has not the columns of the training part, or a cell cannot be read: the
 *   message names line and column.
 */
MIXT_API mixt_status mixt_table_predict(mixt_trainer *trainer, const mixt_data *like, const char *path,
                                        const mixt_table_options *options, mixt_table_predictions *predictions);
/** Frees the texts. NULL is allowed. */
MIXT_API void mixt_table_predictions_free(mixt_table_predictions *predictions);
/** Whether a path names a table by its ending (.csv, .tsv, .jsonl, or such with .gz) and a model of such data takes its
 *  rows. */
MIXT_API bool mixt_table_is(const char *path, const mixt_data *like);

#ifdef __cplusplus
}
#endif
#endif
