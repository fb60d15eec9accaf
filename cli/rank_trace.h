/* How gradients went over the ranks of a run, for people and for scripts. */
#ifndef MIXT_CLI_RANK_TRACE_H
#define MIXT_CLI_RANK_TRACE_H

#include <mixt/run.h>

#include <jansson.h>

/** A table of the newest update's buckets, and the share that was hidden; of a run in one process a line says so. */
void cli_rank_trace_print(const mixt_run *run);
/** NULL: the run was not one of several ranks. */
json_t *cli_rank_trace_json(const mixt_run *run);

#endif
