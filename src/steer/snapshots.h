/* The last good states of training in host memory, and the trace of what was computed since.
 *
 * Two states: the newest may hold a number that went wrong already, and nobody has noticed. A state counts as good when
 * the monitor was calm for it. The trace reaches from behind the older one to the newest update. All memory is taken
 * when it is opened.
 */
#ifndef MIXT_STEER_SNAPSHOTS_H
#define MIXT_STEER_SNAPSHOTS_H

#include "steer/trace.h"
#include "train/checkpoint.h"

enum { MIXT_SNAPSHOTS = 2 };

typedef struct mixt__snapshots {
    mixt__trainer *trainer;                    // borrowed
    int64_t every;                             // updates between two of them
    mixt__snapshot states[MIXT_SNAPSHOTS + 1]; // the last one: where a diagnosis began
    int64_t at[MIXT_SNAPSHOTS];                // their updates; -1: none there
    mixt__trace trace;
} mixt__snapshots;

/** Bytes of the host that it takes. The trainer must be compiled. */
size_t mixt__snapshots_bytes(const mixt__trainer *trainer, int64_t every);
/** Takes the memory, and the state as it is as the first good one. The trainer must have its memory. */
mixt_status mixt__snapshots_open(mixt__snapshots *snapshots, mixt__trainer *trainer, int64_t every);
void mixt__snapshots_close(mixt__snapshots *snapshots);

/** Whether the state after this update is to be taken: nothing must be issued behind it before its note. */
bool mixt__snapshots_due(const mixt__snapshots *snapshots, int64_t step);
/** Takes in the result of an update, each one in its turn; and the state too, where that is due and `calm` says that
 *  nothing is wrong with it. */
mixt_status mixt__snapshots_note(mixt__snapshots *snapshots, const mixt_step *step, bool calm);
/** The parameter whose gradient is 0 everywhere in the last three updates and was not before: something that no loss
 *  need show. NULL: none. */
const char *mixt__snapshots_dead(const mixt__snapshots *snapshots);
/** Forgets all, and takes the state as it is: after something else was changed that results depend on. */
mixt_status mixt__snapshots_restart(mixt__snapshots *snapshots);

/** The update of the newest good state before update `step`; -1: there is none. */
int64_t mixt__snapshots_before(const mixt__snapshots *snapshots, int64_t step);
/** Puts the trainer back into the state of that update; what came later stays known. */
mixt_status mixt__snapshots_restore(const mixt__snapshots *snapshots, int64_t at);
/** The same, and forgets what came later: training goes on from there. */
mixt_status mixt__snapshots_go_back(mixt__snapshots *snapshots, int64_t at);

#endif
