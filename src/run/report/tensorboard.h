/* The observer behind train.tensorboard: what rows, validations and notes say, as event files in the run's directory.
 *
 * Charts are no reason to end a run: what cannot be written is said once, and training goes on.
 */
#ifndef MIXT_RUN_TENSORBOARD_H
#define MIXT_RUN_TENSORBOARD_H

#include "mixt/run.h"
#include "store/tfevents.h"

typedef struct mixt__tensorboard {
    mixt__tfevents events;
    double flushed;  // when the file was last brought up to date
    int64_t weights; // the update whose weights were last counted; -1: none yet
    bool failed;     // said so, and silent since
    bool busy;       // is at work: a note about itself is not for it
} mixt__tensorboard;

/** Makes the file. @param resumed the update that the run goes on from; -1: it is a new one */
void mixt__tensorboard_open(mixt__tensorboard *board, mixt_run *run, const char *folder, int64_t resumed);
/** The run has gone back: what is shown of later updates than `step` is no longer so. */
void mixt__tensorboard_return(mixt__tensorboard *board, mixt_run *run, int64_t step);
/** `user` is a mixt__tensorboard; one that is not open hears nothing. */
mixt_observer mixt__tensorboard_observe;
/** @param discard nothing has happened: the file goes too */
void mixt__tensorboard_close(mixt__tensorboard *board, bool discard);

#endif
