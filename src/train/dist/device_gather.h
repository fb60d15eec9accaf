/* Weights that are sharded (train/dist/gather.h), gathered in a device's memory by its own library: see
 * mixt__device_sums.
 *
 * When a group's memory is taken, this rank's masters of it are put there, rounded where it is read so, in order with
 * the kernels: those that read the memory before have run then. From there everyone's part goes to everyone beside what
 * is issued next, and the first node that reads the group waits for it. The host has no part in any of this, so passes
 * are recorded as others are.
 */
#ifndef MIXT_TRAIN_DEVICE_GATHER_H
#define MIXT_TRAIN_DEVICE_GATHER_H

#include "train/trainer.h"

/** Before a pass. @param which MIXT_GATHER_TRAIN, … */
void mixt__device_gather_begin(mixt__trainer *t, int which);
/** Before node number `next` is issued. */
mixt_status mixt__device_gather_prepare(mixt__trainer *t, int64_t next);

#endif
