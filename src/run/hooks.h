/* Who may change the course of a run between its updates: keep states to go back to, leave batches out, decide about
 * trouble. A run has one (src/run/auto), which it gets when it is made. The loop and the saves ask it here, in the
 * order of the members, and do not know who it is.
 */
#ifndef MIXT_RUN_HOOKS_H
#define MIXT_RUN_HOOKS_H

#include "mixt/run.h"
#include "run/state.h"

#include <jansson.h>

#define MIXT_TRACE_FILE "trace.bin" // of a checkpoint: what updates before it have left

struct mixt__snapshot;

/** What will follow the update whose result has just been heard. */
typedef enum mixt__response {
    MIXT_RESPONSE_NONE,
    MIXT_RESPONSE_DECIDE,  // something will be decided about trouble: it alone does not end the run
    MIXT_RESPONSE_GO_BACK, // the run goes back: what else follows the update is of no use
} mixt__response;

/** A state to go back to that is kept in memory. */
typedef struct mixt__good_state {
    int64_t step, best;                    // its update, and that of the best checkpoint then; -1: there is none
    const json_t *run;                     // what a checkpoint says of the run then
    const struct mixt__snapshot *snapshot; // NULL: there is no such state
} mixt__good_state;

enum { MIXT_GOOD_STATES = 2 };

typedef struct mixt__hooks {
    // ---- before training
    /** What the configuration names is read, before anything is written. */
    mixt_status (*read)(mixt_run *run);
    /** Bytes of the host that states to go back to take. */
    size_t (*bytes)(const mixt_run *run);
    /** Takes memory, and goes on from the run's checkpoint, where there is one. The directory is open. */
    mixt_status (*open)(mixt_run *run);
    /** What the checkpoint says of it, alone: updates are made again on the way to one that is looked at. */
    void (*remember)(mixt_run *run);

    // ---- around an update
    /** Before anything of the next update, once all results are in: the next decision, of those too that are recorded
     *  for the place behind update `step`. Called until there is none. @param decision for mixt__decision_free */
    mixt_status (*next)(mixt_run *run, int64_t step, mixt_decision *decision, bool *found);
    /** Does what a decision says, but for going back, and tells of it. */
    mixt_status (*apply)(mixt_run *run, const mixt_decision *decision);
    /** Before the update is issued: passes over batches that are left out. */
    void (*skip)(mixt_run *run);
    /** Whether the update just issued must be settled before the next one is. */
    bool (*waits)(const mixt_run *run, int64_t step);
    /** After observers have heard the result. */
    mixt__response (*response)(const mixt_run *run);
    /** After an update is settled, and before the first one: the state may be kept to go back to.
     *  @param changed updates from here on are made otherwise than before: earlier states are of no use to compute them
     *  again */
    void (*keep)(mixt_run *run, const mixt__loop_state *state, bool changed);
    /** Trainer and monitor as they were in the newest good state. @param state receives the loop's */
    mixt_status (*go_back)(mixt_run *run, mixt__loop_state *state);

    // ---- in a checkpoint
    /** What it says of whoever decides. */
    json_t *(*pack)(mixt_run *run);
    /** The states that lie beside it, the older one first; false on all ranks alike: none are kept in memory. */
    bool (*states)(const mixt_run *run, mixt__good_state list[MIXT_GOOD_STATES]);
    /** What updates up to `step` have left, to be compared when they are made again, as bytes for mixt__free; NULL:
     *  nothing. */
    void *(*trace)(const mixt_run *run, int64_t step, size_t *bytes);

    // ---- after training; may be called again
    void (*close)(mixt_run *run);
} mixt__hooks;

#endif
