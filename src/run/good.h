/* The last good state of a run, to go back to: a snapshot in the host's memory with all that a checkpoint holds beside
 * it; where there is no memory for that, the newest checkpoint of the directory.
 *
 * A run that is killed and goes on must go back to where it would have gone back to: so every checkpoint of a later
 * update has the good state beside it, as a checkpoint of its own.
 */
#ifndef MIXT_RUN_GOOD_H
#define MIXT_RUN_GOOD_H

#include "run/state.h"
#include "train/checkpoint.h"

typedef struct mixt_run mixt_run;

typedef struct mixt__good {
    bool open;    // there is memory for a snapshot
    int64_t step; // of the snapshot; -1: none was taken
    int64_t best; // that was the best checkpoint then
    mixt__snapshot snapshot;
    json_t *run; // what a checkpoint holds of the run, as of the snapshot
} mixt__good;

/** Takes the memory; without, says so. The trainer must have its own. */
void mixt__good_open(mixt__good *good, mixt_run *run);
/** Bytes that it takes. */
size_t mixt__good_bytes(const mixt_run *run);
/** The state after the newest update is the one to go back to. A failure is told, and the one before stays. */
void mixt__good_take(mixt_run *run, const mixt__loop_state *state);
/** The same for a run that goes on from a checkpoint: the good state of then. */
void mixt__good_resume(mixt_run *run);
/** The update that the run would go back to; -1: there is no good state. */
int64_t mixt__good_step(const mixt_run *run);
/** Trainer and monitor as they were then. @param state receives the loop's */
mixt_status mixt__good_return(mixt_run *run, mixt__loop_state *state);
void mixt__good_close(mixt__good *good);

#endif
