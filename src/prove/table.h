/* A table, for the files of this folder: table_read.c reads sources, table.c pairs runs, table_print.c writes. */
#ifndef MIXT_PROVE_TABLE_H
#define MIXT_PROVE_TABLE_H

#include "base/alloc.h"
#include "base/handles.h"
#include "config/config.h"
#include "mixt/compare.h"

/** One training run. */
typedef struct mixt__table_run {
    const char *source; // the path that was given
    const char *name;   // of the model, where the user gave one; else NULL
    const char *folder; // of the run, for messages: the source, or a part of it
    mixt_config *config;
    int64_t alone; // runs with another number never pair: one experiment; 0: a run by itself
    mixt_table_side side;
    const char *precision; // to show
    const char *policy;    // all that makes it another precision, as text
    int64_t seed;
    bool diverged;
    double samples_s, loss, accuracy;
    mixt_table_memory memory;
    int64_t group; // the first run of its configuration
    bool counts;   // it is in a row …
    int64_t row;   // … this one, where it is mixed; FP32 runs are in all of their group
} mixt__table_run;

typedef struct mixt__table_row {
    mixt_table_row shown;
    int64_t group;
} mixt__table_row;

struct mixt_table {
    mixt__handle handle;
    mixt__arena arena; // texts
    mixt__table_run *runs;
    int64_t run_count, run_capacity;
    mixt__table_row *rows;
    int64_t row_count, row_capacity;
    const char **notes;
    int64_t note_count, note_capacity;
    char *text; // of free()
};

/** Whether runs that differ in this key still are of one configuration: seed, folders, what is only watched; and
 *  *policy: it is a part of the precision. */
bool mixt__table_key_free(mixt__config_key key, bool *policy);
/** A source by what the user gave, "NAME=PATH" or a path; fails where nothing is there. */
mixt_status mixt__table_find_source(mixt_table *t, const char *path, mixt__table_run *source);
/** Adds the run or the runs of a source. */
mixt_status mixt__table_read_source(mixt_table *t, mixt__table_run source);
/** Takes back all runs but the first `count`. */
void mixt__table_drop(mixt_table *t, int64_t count);
/** Adds a note. */
mixt_status mixt__table_note(mixt_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
