/* Gradients of a device with memory of its own on their way to the sum over ranks: see mixt__device_sums, or the host.
 *
 * Each bucket goes as soon as the backward pass has issued what makes it, beside what is issued next; all of that is a
 * part of the recorded step. Where the device's own library sums, one rank can do it too: nothing changes but that the
 * library is in between; of gradients that are sharded it sums each slice for its owner. Else a bucket is copied to
 * the host, and behind it a number that is not 0, by which the host knows that it is there: the thread that sums takes
 * it while the device goes on.
 */
#ifndef MIXT_TRAIN_DEVICE_SUMS_H
#define MIXT_TRAIN_DEVICE_SUMS_H

#include "runtime/executable.h"
#include "train/dist/ranks.h"

/** Before the passes of a part are issued. */
void mixt__device_sums_expect(mixt__trainer *t);
/** Before the last of them: `run` tells of its nodes. */
mixt_status mixt__device_sums_begin(mixt__trainer *t, mixt__run *run);
/** Those buckets go that are made once node number `node` is; what fails first is kept for the end. */
void mixt__device_sums_send(mixt__trainer *t, int64_t node);
/** Until the device has written a number that is not 0 there, or has run all and should have. */
mixt_status mixt__device_sums_await(mixt__device *device, const uint32_t *number);
/** What is issued next waits for the first `count` buckets. */
mixt_status mixt__device_sums_behind(mixt__device *device, mixt__ranks *r, int64_t count);
/** After it: the buckets that are left, or all gradients at once where there are no buckets; what is issued next waits
 *  for them. */
mixt_status mixt__device_sums_finish(mixt__trainer *t);
/** Until the device has run what was issued, with sums or without: a rank that is lost is noticed. */
mixt_status mixt__device_sums_wait(mixt__trainer *t);
/** Masters that each rank has made of its share, to all. */
mixt_status mixt__device_sums_gather(mixt__trainer *t);

#endif
