/* The table for a paper or a README: FP32 beside mixed precision, from runs, results of mixt_verify and experiments of
 * mixt_compare.
 *
 *   const char *const paths[] = {"runs/fp32", "runs/bf16"};
 *   mixt_table *t;
 *   if (mixt_table_read(paths, 2, &t) == MIXT_OK)
 *       (void)mixt_table_write(t, MIXT_TABLE_LATEX, "speed.tex", false);
 *   mixt_table_free(t);
 *
 * Runs of one configuration that differ in precision and seed find each other by themselves; what finds no partner has
 * a row with one side, and a note. What a source does not say is NaN here and "–" in a text: nothing is guessed.
 */
#ifndef MIXT_TABLE_H
#define MIXT_TABLE_H

#include "mixt/stats.h"
#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_table mixt_table;

enum { MIXT_TABLE_SOURCES_MAX = 10000 };

/**
 * Reads runs and pairs them.
 * @param paths `count` of them, from 1 to MIXT_TABLE_SOURCES_MAX: a run directory, a file of mixt_verification_write,
 * or the folder of an experiment (runs/compare-NAME), in any mix. "NAME=PATH" gives the model of that source a name to
 * show; a path that exists as a whole is a path.
 * @param table set to NULL on failure; free it with mixt_table_free.
 * @return MIXT_ERROR_FILE where one of them is not there, MIXT_ERROR_DATA where none has a run that can be read: the
 * text names it. One of several that cannot be read is left out, with a note.
 */
MIXT_API mixt_status mixt_table_read(const char *const *paths, int64_t count, mixt_table **table);
/** NULL is allowed. */
MIXT_API void mixt_table_free(mixt_table *table);

typedef enum mixt_table_side { MIXT_TABLE_FP32, MIXT_TABLE_MIXED, MIXT_TABLE_SIDES } mixt_table_side;

/** Bytes of a training step by role. NaN: the run does not say, as those of older versions. */
typedef struct mixt_table_memory {
    double weights; /**< masters, working copies, running statistics and frozen ones */
    double gradients, moments, activations, workspace;
    double other; /**< input buffers on a GPU, control */
    double total;
} mixt_table_memory;

/** A mean over runs and its 95% interval (Student's); interval NaN: of one run. */
typedef struct mixt_table_mean {
    double mean;
    mixt_stats_interval interval;
} mixt_table_mean;

/** The runs of one side. */
typedef struct mixt_table_cell {
    const char *precision;          /**< "fp32", "bf16", a policy file's name; "": there are no runs */
    int64_t runs;                   /**< each with a seed of its own */
    int64_t diverged;               /**< of those: no loss and no accuracy of them counts */
    double samples_s;               /**< the mean over runs of each one's median */
    mixt_table_mean loss, accuracy; /**< of the last validation; accuracy from 0 to 1; NaN: none */
    mixt_table_memory memory;
} mixt_table_cell;

typedef struct mixt_table_row {
    const char *model; /**< its name, and the keys in which it differs from others of that name */
    mixt_table_cell sides[MIXT_TABLE_SIDES];
    double speedup; /**< mixed samples_s over FP32's */
    double saved;   /**< share of FP32's memory that mixed does not need; below 0: it needs more */
} mixt_table_row;
/** @param index from 0; NULL past the last. */
MIXT_API const mixt_table_row *mixt_table_row_at(const mixt_table *table, int64_t index);
/** What could not be paired or was left out, a sentence each. @param index from 0; NULL past the last. */
MIXT_API const char *mixt_table_note(const mixt_table *table, int64_t index);

typedef enum mixt_table_format {
    MIXT_TABLE_TEXT,     /**< for a terminal: a figure a line, models side by side */
    MIXT_TABLE_MARKDOWN, /**< a row a model, as GitHub shows it */
    MIXT_TABLE_CSV,      /**< RFC 4180; plain numbers in bytes, samples a second and shares; missing ones are empty */
    MIXT_TABLE_LATEX,    /**< a tabular without packages */
} mixt_table_format;
/** @param text set to the table in UTF-8; it belongs to the table, until the next call. */
MIXT_API mixt_status mixt_table_print(mixt_table *table, mixt_table_format format, const char **text);
/** Writes it to a file, whole or not at all. @param overwrite replace a file that exists; else it is an error. */
MIXT_API mixt_status mixt_table_write(mixt_table *table, mixt_table_format format, const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
