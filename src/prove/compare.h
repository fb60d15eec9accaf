/* A comparison, for the files of this folder: compare.c opens and plans, compare_train.c makes runs, compare_measure.c
 * reads their figures, compare_state.c keeps them, compare_result.c concludes, compare_judge.c says
 * what follows, compare_draw.c draws.
 */
#ifndef MIXT_PROVE_COMPARE_H
#define MIXT_PROVE_COMPARE_H

#include "base/handles.h"
#include "config/config.h"
#include "mixt/compare.h"
#include "run/report/rows.h"

enum { MIXT_COMPARE_PATH = 900, MIXT_COMPARE_FIGURES = 16 };

/** The metric that decides, as one of a run's figures. */
typedef struct mixt__compare_metric {
    const char *name;
    size_t offset;     // in mixt_compare_run
    bool higher;       // is better
    bool share;        // a share of A's, unless an absolute margin was asked for; else points
    const char *needs; // what a run must have for it
} mixt__compare_metric;

typedef struct mixt__compare_pair {
    mixt_compare_run runs[MIXT_COMPARE_SIDES];
    bool done[MIXT_COMPARE_SIDES];
} mixt__compare_pair;

struct mixt_comparison {
    mixt__handle handle;
    mixt_compare_options options; // texts in it are borrowed, and not used after the call
    const mixt__compare_metric *metric;
    mixt_config *configs[MIXT_COMPARE_SIDES];
    char folder[MIXT_COMPARE_PATH]; // "": of finished runs
    mixt__rows rows;                // compare.jsonl
    bool fresh;                     // made by this call
    mixt__compare_pair *pairs;
    int64_t count, capacity; // of pairs; the last may have one run or none
    int64_t looks[MIXT_STATS_LOOKS_MAX];
    int look_count;
    mixt_compare_change *changes;
    int64_t change_count, change_capacity;
    double started, longest; // seconds: of the clock; of the longest run in this call
    bool halted;
    mixt_comparison_info info;
    char reason[900], advice[300];
    mixt_judgement judgements[MIXT_CLAIM_COUNT];
    bool judged[MIXT_CLAIM_COUNT]; // there is one
    mixt_compare_figure figures[MIXT_COMPARE_FIGURES];
};

/** An empty one. */
mixt_status mixt__compare_new(mixt_comparison **c);
/** What was asked for, checked. */
mixt_status mixt__compare_take_options(mixt_comparison *c, const mixt_compare_options *options);
/** What a difference in a key means: no pair; the precision, which is compared; more than that; nothing. */
typedef enum mixt__compare_relation {
    MIXT_RELATION_SAME_NEEDED,
    MIXT_RELATION_POLICY,
    MIXT_RELATION_MORE,
    MIXT_RELATION_IGNORED,
} mixt__compare_relation;
mixt__compare_relation mixt__compare_relation_of(mixt__config_key key);
/** Finds in which keys both configurations differ; fails where they cannot be compared. */
mixt_status mixt__compare_find_changes(mixt_comparison *c);

/** Tells how far it is; false where the experiment is to end. `p` has what is known of the run under way. */
bool mixt__compare_tell(mixt_comparison *c, mixt_progress p);
/** Something that a user should know. */
void mixt__compare_note(mixt_comparison *c, mixt_progress_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- on disk ---- */

/** Opens the folder, or makes it, and takes in what is there; fails where that is another experiment. */
mixt_status mixt__compare_state_open(mixt_comparison *c);
/** Takes back a folder that this call made and in which no run was begun, so that the same call can be made again. */
void mixt__compare_state_discard(mixt_comparison *c);
/** Appends that a run is done. */
mixt_status mixt__compare_state_run(mixt_comparison *c, int64_t pair, mixt_compare_side side);
/** Appends that a verdict was given. */
mixt_status mixt__compare_state_look(mixt_comparison *c, int64_t pairs);
/** Makes room for a pair and all before it. */
mixt_status mixt__compare_state_grow(mixt_comparison *c, int64_t pairs);
/** The directory of a run; returns `path`. */
const char *mixt__compare_run_folder(const mixt_comparison *c, int64_t pair, mixt_compare_side side,
                                     char path[MIXT_COMPARE_PATH + 100]);

/* ---- runs ---- */

/** Trains a run, or goes on with it, and measures it; *done: it came to its end. */
mixt_status mixt__compare_train(mixt_comparison *c, int64_t pair, mixt_compare_side side, bool *done);
/** Figures of a run from its directory. @param samples of an update */
mixt_status mixt__compare_measure(const char *folder, int64_t samples, mixt_compare_run *run);
/** When both were as low as the higher of their losses at the end: equal_steps and equal_seconds of both. */
mixt_status mixt__compare_equal(const char *a, const char *b, mixt_compare_run runs[MIXT_COMPARE_SIDES]);

/* ---- conclusions ---- */

/** By how much B is worse than A in a pair; NaN where that cannot be said. */
double mixt__compare_worse(const mixt_comparison *c, const mixt__compare_pair *pair);
/** Differences of the pairs that both ran to their end. @param worse room for c->count numbers. @return how many */
int64_t mixt__compare_differences(const mixt_comparison *c, double *worse);
/** Fills in info, reason and figures from the pairs that are there. */
mixt_status mixt__compare_conclude(mixt_comparison *c);
/** What follows from a verdict: judgements, and advice for one who has to choose. */
mixt_status mixt__compare_judge(mixt_comparison *c);
/** Learning curves and the report, where there is a pair: curves.svg and report.html in the folder. */
mixt_status mixt__compare_draw(mixt_comparison *c);
/** Figures of both sides as a part of a page (page/report.h). @param a, @param b what the sides are called */
json_t *mixt__compare_part(const mixt_comparison *c, const char *title, const char *a, const char *b);

#endif
