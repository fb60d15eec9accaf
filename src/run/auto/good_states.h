/* The last good states of a run, to go back to: snapshots in the host's memory (steer/snapshots.h) with all that a
 * checkpoint holds beside them; where there is no memory for that, the newest checkpoint of the directory, but not of
 * several ranks. The newest one counts, unless a diagnosis found that it was taken after something went wrong. Ranks
 * keep each their own, and have one where all of them have it.
 *
 * A run that is killed and goes on must go back to where it would have gone back to: so every checkpoint of a later
 * update has the good state beside it, as a checkpoint of its own.
 */
#ifndef MIXT_RUN_GOOD_STATES_H
#define MIXT_RUN_GOOD_STATES_H

#include "run/state.h"
#include "steer/snapshots.h"

typedef struct mixt_run mixt_run;

typedef struct mixt__good_states {
    bool open;    // there is memory for snapshots
    int64_t step; // of the newest; -1: none was taken
    int64_t best; // that was the best checkpoint then
    json_t *run;  // what a checkpoint holds of the run, as of the snapshot
    struct {
        int64_t step, best;
        json_t *run;
    } older; // the one before; step -1: none
    mixt__snapshots ring;
} mixt__good_states;

/** Takes the memory; without, says so. The trainer must have its own. */
void mixt__good_states_open(mixt__good_states *good, mixt_run *run);
/** Bytes that it takes. */
size_t mixt__good_states_bytes(const mixt_run *run);
/** The state after the newest update is the one to go back to. A failure is told, and the one before stays. */
void mixt__good_states_take(mixt_run *run, const mixt__loop_state *state);
/** The same for a run that goes on from a checkpoint: the good states of then; the state that it goes on from where
 *  something has changed that decides bits. */
void mixt__good_states_resume(mixt_run *run);
/** The update that the run would go back to; -1: there is no good state. */
int64_t mixt__good_states_step(const mixt_run *run);
/** The snapshot that it would go back to; NULL: there is none. */
const mixt__snapshot *mixt__good_states_snapshot(const mixt_run *run);
/** Takes in an update, for the trace. A failure is told. */
void mixt__good_states_add(mixt_run *run);
/** Lets the state of update `step`, which is kept, be the one to go back to. */
void mixt__good_states_choose(mixt_run *run, int64_t step);
/** Trainer and monitor as they were then. @param state receives the loop's */
mixt_status mixt__good_states_return(mixt_run *run, mixt__loop_state *state);
void mixt__good_states_close(mixt__good_states *good);

#endif
