/* LAMB where its state is sharded between ranks: a parameter's rate follows from its norms, and it may be cut.
 *
 * Slices begin where chunks do, so every chunk's sums are one rank's. Ranks tell each other those sums, and each adds
 * up all of them in the order of chunks: the bits of one rank that has the whole parameter. They go over the host.
 */
#ifndef MIXT_TRAIN_LAMB_H
#define MIXT_TRAIN_LAMB_H

#include "train/trainer.h"

/** Whether there is such an update. */
bool mixt__lamb_shared(const mixt__trainer *t);
/** Updates the own slices. @param update of all segments */
mixt_status mixt__lamb_update(mixt__trainer *t, const mixt__update *update);

#endif
