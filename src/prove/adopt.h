/* An adoption, for the files of this folder: adopt.c goes from stage to stage, adopt_stages.c does what each stage
 * does, adopt_proof.c what the last one does, adopt_state.c keeps it on disk, adopt_report.c and adopt_page.c write it
 * for people.
 */
#ifndef MIXT_PROVE_ADOPT_H
#define MIXT_PROVE_ADOPT_H

#include "base/handles.h"
#include "config/config.h"
#include "mixt/adopt.h"
#include "mixt/compare.h"
#include "run/report/rows.h"

enum { MIXT_ADOPT_NAME = 80, MIXT_ADOPT_PATH = 300 };

struct mixt_adoption {
    mixt__handle handle;
    mixt_adopt_options options; // texts in it are borrowed, and not used after the call
    mixt_config *config;        // NULL where it was only opened
    char name[MIXT_ADOPT_NAME + 1];
    char folder[MIXT_ADOPT_PATH];
    mixt__rows rows;                  // history.jsonl
    json_t *history;                  // array of rows: stages done, stages taken back
    json_t *figures;                  // array of rows: of stages that were not taken back, and of the one under way
    json_t *current;                  // the row of the newest stage; borrowed from `history`; NULL: none is done
    json_t *stack[MIXT_ADOPT_STAGES]; // rows of the stages done, borrowed likewise
    int64_t done, versions;
    double started; // of the clock
    bool fresh;     // made by this call
    bool halted;    // by the one who hears how far it is
};

/** What a stage ends with. */
typedef struct mixt__adopt_end {
    char precision[MIXT_ADOPT_PATH]; // what a configuration's key takes
    char decision[120], reason[900], evidence[MIXT_ADOPT_PATH];
    const char *outcome; // of the last stage; NULL: of another one
    char shown[40];      // what people call the precision; "": as it is
} mixt__adopt_end;

/** Tells how far the stage under way is; false where it is to end. `p` has what is known of what the stage does. */
bool mixt__adopt_tell(mixt_adoption *a, mixt_progress p);
/** Tells a sentence: a note, or how the stage ended. */
bool mixt__adopt_say(mixt_adoption *a, mixt_progress_kind kind, const char *text);

/* ---- on disk ---- */

/** An empty one of that name. */
mixt_status mixt__adopt_new(const char *name, mixt_adoption **a);
/** A path in its folder; returns `path`. */
const char *mixt__adopt_file(const mixt_adoption *a, const char *name, char path[MIXT_ADOPT_PATH]);
/** The figure of the last stage that is about the policy of `mixed`: where that of `tuned` was shown not to be safe. */
#define MIXT_ADOPT_SECOND "compare-mixed"
/** The row of the stage whose policy is in question: `tuned`, then `mixed`. NULL: there is none yet. */
const json_t *mixt__adopt_question(const mixt_adoption *a);
/** The folder of the pairs that prove what a stage has given; returns `path`. */
const char *mixt__adopt_proof(const mixt_adoption *a, const json_t *stage, char path[MIXT_ADOPT_PATH]);
/** Takes in the history. @param write make the folder where it is not there, and keep others out */
mixt_status mixt__adopt_state_open(mixt_adoption *a, bool write);
/** Takes back a folder that this call made and in which nothing was begun, so that nothing refuses the next call. */
void mixt__adopt_state_discard(mixt_adoption *a);
/** Appends a figure of the stage under way. @param judgements what it says, `count` of them. @param details more of it,
 * as a part of a page (page/report.h), which is taken over; NULL: none */
mixt_status mixt__adopt_state_figure(mixt_adoption *a, const mixt_adopt_figure *figure, const char *verdict,
                                     const mixt_judgement *judgements, int count, json_t *details);
/** The row of a figure of the stage under way; NULL: it is still to be made. */
const json_t *mixt__adopt_state_find(const mixt_adoption *a, const char *name);
/** Writes policy and configuration of the stage under way as a version, then appends that it is done. */
mixt_status mixt__adopt_state_stage(mixt_adoption *a, const mixt__adopt_end *end);
/** Appends that the newest stage is taken back, and removes its runs. */
mixt_status mixt__adopt_state_undo(mixt_adoption *a);
/** adopted.yaml, report.md and report.html: what the history says, for use and for reading. */
mixt_status mixt__adopt_state_publish(const mixt_adoption *a);
mixt_status mixt__adopt_report_write(const mixt_adoption *a, const char *path);
mixt_status mixt__adopt_page_write(const mixt_adoption *a, const char *path);

/** A text of a row; "" where it is not there. */
const char *mixt__adopt_text(const json_t *row, const char *key);
/** A number of a row; NaN where it is not there. */
double mixt__adopt_number(const json_t *row, const char *key);

/* ---- stages ---- */

/** What verifying, comparing and a run's data tell, as of this adoption. */
bool mixt__adopt_hear(void *adoption, const mixt_progress *told);
/** What a stage ends with, and why. */
void mixt__adopt_reason(mixt__adopt_end *end, const char *decision, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** The configuration in another precision, to be freed. */
mixt_status mixt__adopt_in_precision(const mixt_adoption *a, const char *precision, mixt_config **config);
/** Figures of a run that ended. */
mixt_status mixt__adopt_measure(const mixt_adoption *a, const char *folder, mixt_compare_run *run);
/** Whether it is worth it by a number measured once each: faster by that ratio, smaller by that share. */
void mixt__adopt_worth(const mixt_adoption *a, double faster, double saved, mixt_judgement found[2]);
/** The last stage: is it safe, is it worth it? */
mixt_status mixt__adopt_validated(mixt_adoption *a, mixt__adopt_end *end);

/** Does what is left of a stage; *end is filled unless it was halted. */
mixt_status mixt__adopt_stage_run(mixt_adoption *a, mixt_adopt_stage stage, mixt__adopt_end *end);

#endif
