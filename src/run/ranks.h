/* A run of several ranks: one run directory, written by rank 0 but for checkpoints; everything else on all ranks alike.
 *
 * What could differ between ranks is agreed on: how they are opened, signals, what observers ask for, how it ends. What
 * follows from numbers of training is the same on all by itself.
 */
#ifndef MIXT_RUN_RANKS_H
#define MIXT_RUN_RANKS_H

#include "run/run.h"

/** Joins the other ranks where a launcher has started several and the options want it; else the run is an ordinary one.
 * The configuration is complete, nothing else is open. */
mixt_status mixt__run_ranks_open(mixt_run *run, const mixt_run_options *options);
/** Leaves them. */
void mixt__run_ranks_close(mixt_run *run);

/** Whether this process writes the run's directory. */
bool mixt__run_writes(const mixt_run *run);
/** One rank's failure is everyone's. @param status this rank's */
mixt_status mixt__run_agree(mixt_run *run, mixt_status status);
/** The same of something that the run can do without: it goes on where it fails, on all ranks alike. */
mixt_status mixt__run_agree_once(mixt_run *run, mixt_status status);
/** Whether all ranks have the same text; else a failure says who has what. @param what that is, as "decision" */
mixt_status mixt__run_agree_on(mixt_run *run, const char *what, const char *text);
/** After everything is open: the same data and plan everywhere. */
mixt_status mixt__run_ranks_check(mixt_run *run);
/** The directory, which rank 0 makes with `open`: for the others its name. Finds out whether all see its files. */
mixt_status mixt__run_ranks_directory(mixt_run *run, mixt_status (*open)(mixt_run *run));

/** Before an update: what this rank tells the others. */
void mixt__run_ranks_tell(mixt_run *run);
/** After it: what any of them said. */
void mixt__run_ranks_hear(mixt_run *run);
/** All ranks have heard that one asks for another policy: it is everyone's from here on. Where ranks ask for different
 *  ones none is, which is told as a warning. */
mixt_status mixt__run_ranks_policy(mixt_run *run);
/** The signal that ends the run, of any rank; 0: none. */
int mixt__run_signal(const mixt_run *run);

/** NOTEs about them, where there are several: before training, and after it. */
void mixt__run_ranks_note(mixt_run *run);
void mixt__run_ranks_note_end(mixt_run *run);

#endif
