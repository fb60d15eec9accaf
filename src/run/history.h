/* history.jsonl of a run directory: one row of JSON each time that a run was resumed or went on under other
 * settings, with old and new values. Appended to, never rewritten.
 */
#ifndef MIXT_RUN_HISTORY_H
#define MIXT_RUN_HISTORY_H

#include "run/run.h"

/** Appends a row, which is taken over, with the time; what fails is told as a note: it is no reason to end a run. */
void mixt__history_add(mixt_run *run, json_t *row);

#endif
