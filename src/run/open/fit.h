/* A whole run within train.memory: planned when it is opened, kept when it goes on. */
#ifndef MIXT_RUN_FIT_H
#define MIXT_RUN_FIT_H

#include "run/run.h"

/** Counts all of a run for a budget: the measure of a mixt__fit_request. */
typedef struct mixt__fit_count {
    mixt_run *run;
    int64_t eval_asked; // samples in a pass of validation: halved until they fit, but for a loss that compares them
} mixt__fit_count;
/** @param user a mixt__fit_count */
mixt_status mixt__fit_measure(void *user, mixt__trainer *t, size_t budget, size_t *bytes, double *seconds);

/** Plans a new run, whose trainer is compiled, within train.memory; does nothing where that is 0. What was chosen
 *  becomes part of its configuration. */
mixt_status mixt__fit_new(mixt_run *run);
/** The same for a run that goes on: its plan is that of its configuration, only validation is cut to fit; under another
 *  train.memory than before it is planned anew, but for the parts of a batch, which are part of its bits. */
mixt_status mixt__fit_again(mixt_run *run);
/** Whether train.memory_may lets batches be passed in parts; with batch norm, or a loss that compares samples of a
 *  batch, only where it was written by hand, in a new run. */
bool mixt__fit_may_split(const mixt_run *run);
/** Tells what was chosen, as NOTEs, nothing of that without train.memory; and warns where parts of a batch are another
 *  training than the batch. */
void mixt__fit_tell(mixt_run *run);

/** Bytes that a run may take: what is free, and what it holds already, less a reserve for what no plan knows. */
size_t mixt__fit_room(const mixt_run *run);
/** The largest batch of an open run within `memory` bytes; 0: what is free. The run is left planned for some other one.
 *  @param seconds that the search may take, after which it fails; 0: as many as it needs
 */
mixt_status mixt__largest_find(mixt_run *run, size_t memory, double seconds, mixt_largest_batch *largest);

#endif
