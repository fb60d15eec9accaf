/* The memory of a whole run: the step and all that is held beside it, planned, taken, counted. */
#ifndef MIXT_RUN_MEMORY_H
#define MIXT_RUN_MEMORY_H

#include "run/run.h"

/** Refuses validation that can never be; plans the one that will be, in batches that fit, and tells where they are
 *  smaller than those asked for. Takes no memory. */
mixt_status mixt__run_plan_validation(mixt_run *run);
/** What the run will hold, but for prediction: plans validation where there is one. Takes no memory. */
mixt_status mixt__run_plan_memory(mixt_run *run, mixt_run_memory *memory);
/** The same as the trainer is planned now, graphs counted anew; tells nothing. For those who compare plans. */
mixt_status mixt__run_count_plan(mixt_run *run, mixt_run_memory *memory);
/** Takes the memory of the step and of validation, and notes what the run will hold in all. Before the first update:
 *  what a run needs it has then, however long it trains. */
mixt_status mixt__run_take_memory(mixt_run *run);
/** Plans validation anew and takes its memory, after the policy changed; tells where its batch changes by that.
 *  @param most samples in a pass; 0: as many as the configuration says */
void mixt__run_change_validation(mixt_run *run, int64_t most);
/** Notes what the run holds now: when its last update is made. */
void mixt__run_count_memory(mixt_run *run);

#endif
