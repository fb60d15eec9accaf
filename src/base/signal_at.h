/* A signal at a place of the process's own course: "KILL@write:30" of MIXT_SIGNAL sends SIGKILL at the 30th write to a
 * file. So tests stop and kill runs where they mean to, and again at the same place, instead of after some
 * milliseconds. Without the variable a place costs one comparison. */
#ifndef MIXT_BASE_SIGNAL_AT_H
#define MIXT_BASE_SIGNAL_AT_H

#include "mixt/types.h"

#include <stdbool.h>

typedef enum mixt__place {
    MIXT_PLACE_WRITE,      // "write": bytes that go to a file, or a file or folder that takes its name
    MIXT_PLACE_UPDATE,     // "update": training has begun one; its result is not there yet
    MIXT_PLACE_VALIDATION, // "validation": before some of its samples are computed
    MIXT_PLACE_COUNT
} mixt__place;

/** MIXT_ERROR_ARGUMENT where the variable is set, and not as it should be. */
mixt_status mixt__signal_check(void);
/** Whether the signal is due now, the process being at `place` once more. */
bool mixt__signal_due(mixt__place place);
/** Sends it, to this thread: its handler has run when this returns. */
void mixt__signal_send(void);
/** Both. */
void mixt__signal_at(mixt__place place);

#endif
