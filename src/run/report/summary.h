/* What is told of a run before it trains: what it will do (summary.c), and what in it makes no sense (warnings.c). */
#ifndef MIXT_RUN_SUMMARY_H
#define MIXT_RUN_SUMMARY_H

#include "run/run.h"

/** The lines of mixt_run_summary, a NOTE each. */
void mixt__summary_tell(mixt_run *run);

/** What is doubtful about the teacher's weights, as a warning. */
void mixt__warnings_tell_teacher(mixt_run *run);
/** What is doubtful about a set, as warnings. NULL is allowed. */
void mixt__warnings_tell_data(mixt_run *run, const mixt_data *data);
/** What is doubtful about the settings, together with the data, as warnings. */
void mixt__warnings_tell(mixt_run *run);

#endif
