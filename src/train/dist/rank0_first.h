/* Work that times algorithms to choose among them: rank 0 does it first, the others take over what it chose.
 *
 * Ranks that timed by themselves would choose differently now and then, more so where they share a GPU, and their
 * gradients would have other last digits than those of one process.
 */
#ifndef MIXT_TRAIN_RANK0_FIRST_H
#define MIXT_TRAIN_RANK0_FIRST_H

#include "backend/backend.h"
#include "dist/group.h"

/** Does `work` on all ranks; on a device that times nothing, or without a group, at once. Where it fails on rank 0 it
 *  fails on all. @param group NULL: none */
mixt_status mixt__rank0_first(mixt__group *group, mixt__device *device, mixt_status (*work)(void *user), void *user);

#endif
