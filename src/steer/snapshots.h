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

#include <jansson.h>

enum { MIXT_SNAPSHOTS = 2, MIXT_FORMER = 32 };

/** Losses of the first updates behind a state, as they were before training went back to it. */
typedef struct mixt__former {
    int64_t at, count; // losses[0] is of update at + 1; count 0: none are known
    double losses[MIXT_FORMER];
} mixt__former;

typedef struct mixt__snapshots {
    mixt__trainer *trainer;                    // borrowed
    int64_t every;                             // updates between two of them
    mixt__snapshot states[MIXT_SNAPSHOTS + 1]; // the last one: where a diagnosis began
    int64_t at[MIXT_SNAPSHOTS];                // their updates; -1: none there
    bool known[MIXT_SNAPSHOTS];                // all updates since can be computed again: see mixt__snapshots_check
    mixt__trace trace;
    mixt__former former; // as long as what is computed since is the same
} mixt__snapshots;

/** Bytes of the host that it takes. The trainer must be compiled. */
size_t mixt__snapshots_bytes(const mixt__trainer *trainer, int64_t every);
/** Takes the memory. The trainer must have its own. */
mixt_status mixt__snapshots_open(mixt__snapshots *snapshots, mixt__trainer *trainer, int64_t every);
void mixt__snapshots_close(mixt__snapshots *snapshots);

/** Takes in the result of an update, each one in its turn. */
mixt_status mixt__snapshots_add(mixt__snapshots *snapshots, const mixt_step *step);
/** The state as it is now is a good one: in place of the older one. All results up to it must be in. */
mixt_status mixt__snapshots_take(mixt__snapshots *snapshots);
/** Forgets all, and takes the state as it is. */
mixt_status mixt__snapshots_restart(mixt__snapshots *snapshots);
/** Forgets the state of update `at`, where there is one. */
void mixt__snapshots_drop(mixt__snapshots *snapshots, int64_t at);
/** Forgets the states; the trace goes on. */
void mixt__snapshots_forget(mixt__snapshots *snapshots);
/** The parameter whose gradient is 0 everywhere in the last three updates and was not before: something that no loss
 *  need show. NULL: none. */
const char *mixt__snapshots_dead(const mixt__snapshots *snapshots);

/** Finds out which states updates can be computed again from: those whose settings are the trainer's own by now, and
 *  behind which the trace has no gap. */
void mixt__snapshots_check(mixt__snapshots *snapshots);
/** The update of the newest such state before update `step`, and of the oldest; -1: there is none. */
int64_t mixt__snapshots_before(const mixt__snapshots *snapshots, int64_t step);
int64_t mixt__snapshots_oldest(const mixt__snapshots *snapshots);
/** The state of that update; NULL: it is not kept. */
const mixt__snapshot *mixt__snapshots_state(const mixt__snapshots *snapshots, int64_t at);
/** Puts the trainer back into the state of that update; what came later stays known. */
mixt_status mixt__snapshots_restore(const mixt__snapshots *snapshots, int64_t at);
/** The loss of an update before training went back behind it, where what is computed since is the same; NaN: not known.
 */
double mixt__snapshots_former(const mixt__snapshots *snapshots, int64_t step);
/** From here on something else is computed. */
void mixt__snapshots_forget_former(mixt__snapshots *snapshots);
json_t *mixt__snapshots_pack_former(const mixt__snapshots *snapshots);
void mixt__snapshots_unpack_former(mixt__snapshots *snapshots, const json_t *object);
/** The same as to restore, and forgets what came later but for losses: training goes on from there. */
mixt_status mixt__snapshots_go_back(mixt__snapshots *snapshots, int64_t at);

#endif
