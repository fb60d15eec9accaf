/* Gradients that are summed over ranks in the device's own memory: see mixt__device_sums.
 *
 * Each bucket goes as soon as the backward pass has issued what makes it, beside what is issued next; all of that is a
 * part of the recorded step. One rank can do it too: nothing changes but that the library is in between.
 */
#ifndef MIXT_TRAIN_DEVICE_SUMS_H
#define MIXT_TRAIN_DEVICE_SUMS_H

#include "runtime/executable.h"
#include "train/ranks.h"

/** Before the last pass of an update: `run` tells of its nodes. */
void mixt__device_sums_begin(mixt__trainer *t, mixt__run *run);
/** After it: the buckets that are left; what is issued next waits for all. */
mixt_status mixt__device_sums_finish(mixt__trainer *t);
/** Until the device has run what was issued, with sums or without: a rank that is lost is noticed. */
mixt_status mixt__device_sums_wait(mixt__trainer *t);
/** Masters that each rank has made of its share, to all; shares begin at the ranks' cuts. */
mixt_status mixt__device_sums_gather(mixt__trainer *t);

#endif
