/* What is told of a run before it trains: what it will do (summary.c), and what about it cannot be meant (doubts.c). */
#ifndef MIXT_RUN_SUMMARY_H
#define MIXT_RUN_SUMMARY_H

#include "run/run.h"

/** The lines of mixt_run_summary, a NOTE each. */
void mixt__summary_tell(mixt_run *run);

/** What is doubtful about the data and the teacher's weights, as warnings. They may be there although the run could not
 * be opened. */
void mixt__doubts_tell_data(mixt_run *run);
/** What is doubtful about the settings, together with the data, as warnings. */
void mixt__doubts_tell(mixt_run *run);

#endif
