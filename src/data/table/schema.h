/* What the columns of a table become: learned from its training part, kept with a run, and the same for every file that
 * the run reads later.
 *
 * A column of numbers is a feature; one of dates is several; one of a few words is one-hot, a feature for each word;
 * one of many words is embedded: the model gets its number in a vocabulary, 0 for what training did not know. A column
 * with gaps has a feature beside it that says where they are. What a file holds is read into cells first (cells.h).
 */
#ifndef MIXT_DATA_SCHEMA_H
#define MIXT_DATA_SCHEMA_H

#include "data/data.h"
#include "data/table/cells.h"

#include <jansson.h>

/** Words of a column that is one-hot, at most; more are embedded. */
enum { MIXT_ONE_HOT_MAX = 32, MIXT_EMBEDDED_MAX = 1 << 17 };

typedef struct mixt__schema_column {
    const char *name; // in the header, or "column 3"
    mixt__cells_use use;
    mixt__number_form form;   // of numbers
    mixt__date_order order;   // of dates
    unsigned parts;           // mixt__date_parts
    int32_t origin;           // minutes of the day that is 0
    bool gaps;                // a feature says where cells are missing
    const char *const *words; // (count) by their alphabet; "" is a cell that is missing
    int64_t count;
    const char *why; // it is left out; "": it was asked for
} mixt__schema_column;

typedef struct mixt__schema {
    mixt__schema_column *column; // (columns) of the training file, the target among them
    int64_t columns, target;
    bool named;            // by a header
    int64_t features;      // numbers of a sample
    int64_t embedded, ids; // columns that are embedded, and numbers of their words in all
    bool plain;            // a feature each, as they stand
} mixt__schema;

/** What of a file did not fit: counted while it is encoded. */
typedef struct mixt__schema_misfits {
    int64_t unknown; // words
    int64_t first_column, first_line;
    char first[32];
} mixt__schema_misfits;

/** Learns a schema from the training rows of a file: `rows` of them, or chosen[0] to chosen[rows - 1]. */
mixt_status mixt__schema_learn(mixt_data *data, const mixt__cells *cells, const int64_t *chosen, int64_t rows,
                               const mixt__schema **schema);
/** Counts features and ids; once all columns are known. */
void mixt__schema_count(mixt__schema *schema);
/** The feature at which a column begins, of the first that is embedded the id 0. */
int64_t mixt__schema_features_of(const mixt__schema_column *column);
/** Writes the features of a row, NaN where a number is missing, and its ids.
 *  @param from the file's column for each of the schema; -1: it has none */
void mixt__schema_encode(const mixt__schema *schema, const mixt__cells *cells, const int64_t *from, int64_t row,
                         float *features, int32_t *ids, mixt__schema_misfits *misfits);
/** Features that say which word, or where a cell is missing, are left as they are: 0 and 1. */
void mixt__schema_keep(const mixt__schema *schema, float *mean, float *std);
/** What columns become, as a line for info.notes. */
mixt_status mixt__schema_tell(mixt_data *data, const mixt__schema *schema);

// schema_facts.c

/** As JSON; null for NULL. */
json_t *mixt__schema_pack(const mixt__schema *schema);
/** From that, with its memory in an arena; NULL where it is null or not there. */
mixt_status mixt__schema_unpack(mixt__arena *arena, const json_t *facts, const mixt__schema **schema);
mixt_status mixt__schema_copy(const mixt__schema *from, mixt__arena *arena, const mixt__schema **schema);
/** Of numbers without names, and a target behind them. */
mixt_status mixt__schema_plain(mixt__arena *arena, int64_t features, const mixt__schema **schema);

#endif
