/* history.jsonl of a run directory: one row of JSON each time that a run was resumed or went on under other
 * settings, with old and new values, and one when a resumed run came to its end. Appended to, never rewritten.
 */
#ifndef MIXT_RUN_HISTORY_H
#define MIXT_RUN_HISTORY_H

#include "run/run.h"

/** Appends a row, which is taken over, with the time; what fails is told as a note: it is no reason to end a run. */
void mixt__history_add(mixt_run *run, json_t *row);
/** Whether a run was resumed and has not come to its end since; *step: where it went on from. */
mixt_status mixt__history_unfinished(const char *run, bool *is, int64_t *step);

#endif
