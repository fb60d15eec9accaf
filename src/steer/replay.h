/* Updates computed once more, from a good state on the same batches: as they were, or in FP32.
 *
 * The trainer itself runs them, so that a replay is the very same computation. In FP32 it is compiled for that policy
 * from the state's masters, with moments, schedule, batches and random numbers as they were; afterwards it has its own
 * policy again. Ranks do all of it together, each with its own passes.
 */
#ifndef MIXT_STEER_REPLAY_H
#define MIXT_STEER_REPLAY_H

#include "steer/snapshots.h"

typedef struct mixt__replay {
    mixt__snapshots *ring;
    const mixt_data *data;
    int64_t updates;                  // computed so far
    bool fp32;                        // under that policy now
    mixt__trainer_settings settings;  // the trainer's own, meanwhile
    mixt__trace_row row;              // the newest update
    const mixt__segment_stats *stats; // of it; the trainer's, until the next but one
    mixt__trace_mark *marks;          // (ranks of the trace) of it; the caller's
} mixt__replay;

/** Puts the trainer back to update `at`, of a good state. */
mixt_status mixt__replay_from(mixt__replay *replay, int64_t at);
/** One update, on the batch that it had: the row and its statistics are in `replay` then. */
mixt_status mixt__replay_step(mixt__replay *replay);
/** Up to update `step` without looking. */
mixt_status mixt__replay_to(mixt__replay *replay, int64_t step);
/** Whether the newest update has the bits that the trace knows.
 *  @param rank the first whose own passes made other figures; -1: those of none or of all are, or there is one rank */
bool mixt__replay_same(const mixt__replay *replay, int *rank);

/** Compiles the trainer for FP32, without loss scaling; mixt__replay_from follows. Fails where memory does not suffice,
 *  on any rank; those where it did are in FP32 then, and must leave it. */
mixt_status mixt__replay_enter_fp32(mixt__replay *replay);
/** Gives the trainer its own policy again; a state must be restored after that. */
mixt_status mixt__replay_leave_fp32(mixt__replay *replay);

#endif
