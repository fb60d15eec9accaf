/* Ranks that shard state (train/dist/sharded.h) on a device with memory of its own.
 *
 * Messages between ranks go over the host, unless the device's own library carries gradients and weights
 * (mixt__device_sums): what follows is the way over the host, and train/dist/device_gather.h the other. Everything that
 * the device does is issued by one thread, in order. What the device makes for the host is followed by a number that is
 * not 0 (train/dist/device_sums.h), and so is what it has taken from the host: nobody waits for the device longer than
 * for the one thing that is needed next.
 *
 * Gradients: a group is copied to the host, or summed where it is, beside the pass, behind the node that completes it;
 * the node that takes its memory for another group waits for that, on the device. All of it is part of the recorded
 * step. The host sums each slice for its owner and brings this rank's back.
 *
 * Weights: the host has this rank's masters as they are during a pass. A group is put together from all ranks in the
 * host's memory and copied over before the first node that reads it is issued; while the device runs what was issued,
 * the next is fetched. The host has a part in that, so such passes are issued anew each time.
 *
 * The update is one of this rank's slices, a group at a time; statistics go over the host, so that every rank decides
 * from the same ones.
 */
#ifndef MIXT_TRAIN_DISCRETE_H
#define MIXT_TRAIN_DISCRETE_H

#include "train/trainer.h"

/** Says what an update of slices takes. Needs owners. */
mixt_status mixt__discrete_plan(mixt__trainer *t);
/** Bytes of the workspace of some of them: a device may keep there what it knows of these. */
size_t mixt__discrete_workspace(mixt__device *device, const mixt__segment *segments, int64_t count);

/** Before a pass whose gradients are sharded. */
mixt_status mixt__discrete_begin(mixt__trainer *t, mixt__run *run);
/** Before one that makes none: see mixt__ranks_begin_reading. */
mixt_status mixt__discrete_begin_reading(mixt__trainer *t, int which, mixt__run *run);
/** Lets the first `count` sums and fetches of a pass go, each once the host has what it needs. */
mixt_status mixt__discrete_allow(mixt__trainer *t, int64_t count);
/** This rank's sums, which the host has, to the device. */
mixt_status mixt__discrete_put_sums(mixt__trainer *t);

/** Statistics of this rank's chunks, to the host. @param own an update of those */
mixt_status mixt__discrete_measure(mixt__trainer *t, const mixt__update *own);
/** The update of the own slices; of masters that all ranks have, they then go to all. */
mixt_status mixt__discrete_apply(mixt__trainer *t, const mixt__update *update);
/** Rounds all masters to their working copies, on the device. */
mixt_status mixt__discrete_round_copies(const mixt__trainer *t);
/** This rank's masters to the host, where they are sharded. */
mixt_status mixt__discrete_fetch_masters(mixt__trainer *t);

#endif
