/* What ranks do that share out the state of training: sums of gradients that their owners keep, an update of the own
 * slices, weights that go to all.
 */
#ifndef MIXT_TRAIN_SHARDED_H
#define MIXT_TRAIN_SHARDED_H

#include "train/dist/ranks.h"
#include "train/trainer.h"

/** Whether gradients are summed by groups, each slice by its owner, who keeps it alone. */
bool mixt__sharded_gradients(const mixt__ranks *r);
/** Decides what is sharded and where it lies; again for another graph or other passes. */
mixt_status mixt__sharded_plan(mixt__trainer *t);

/** Bytes that this rank, of planned ones the first, sends in an update: weights that go to all, figures of its
 *  gradients, and those gradients of others where sums are sharded. */
int64_t mixt__sharded_sent_weights(const mixt__trainer *t);
int64_t mixt__sharded_sent_statistics(const mixt__trainer *t);
int64_t mixt__sharded_sent_gradients(const mixt__trainer *t);
/** Elements of the largest group. */
int64_t mixt__sharded_largest(const mixt__ranks *r);
/** Lists the own slices. Needs the blocks of mixt__ranks_take. */
void mixt__sharded_list(mixt__trainer *t);
/** Groups as they are summed. @param buckets (groups). @return how many */
int64_t mixt__sharded_buckets(const mixt__ranks *r, mixt__bucket *buckets);
/** Where the device makes the gradients of a group, and where it keeps the sums of this rank's slice. */
float *mixt__sharded_made(const mixt__params *params, const mixt__ranks *r, const mixt__bucket *bucket);
float *mixt__sharded_mine(const mixt__trainer *t, int64_t group);
/** Sums a group. */
mixt_status mixt__sharded_sum(mixt__trainer *t, const mixt__bucket *bucket);

/** Finds where the nodes of the coming pass write gradients, and which groups are complete behind which. */
void mixt__sharded_mark(mixt__trainer *t);
/** Before a pass whose gradients are summed by groups: sums and fetches may go. */
void mixt__sharded_begin(mixt__trainer *t);
/** Behind a node: whose memory the next one takes must be free. */
void mixt__sharded_passed(mixt__trainer *t, int64_t node);

/** Behind each node of a pass: sums and fetches that can be made then go, and what the next node needs is awaited.
 *  @param user the trainer */
void mixt__sharded_node(void *user, int64_t node);

/** Behind the last pass: waits for all sums and fetches. */
mixt_status mixt__sharded_finish(mixt__ranks *r);

/** Brings what ranks have gathered of their chunks into the order of the flat arenas.
 *  @param chunks (owners.chunks) elements of `size` bytes, by rank
 *  @param ordered as many */
void mixt__sharded_order(mixt__trainer *t, const void *chunks, size_t size, void *ordered);
/** Calls fn with an update of this rank's part of each group that it has a part of; of the first in any case, which
 *  settles statistics. Beside a device with memory of its own each has its own workspace. */
typedef mixt_status mixt__sharded_group_fn(void *user, const mixt__update *own, int64_t group);
mixt_status mixt__sharded_each(mixt__trainer *t, const mixt__update *update, mixt__sharded_group_fn *fn, void *user);
/** The optimizer, of the own slices. */
mixt_status mixt__sharded_update(mixt__trainer *t, const mixt__update *update);
/** Statistics of all gradients from everyone's own, by segment, as gradient_stats makes them. */
mixt_status mixt__sharded_measure(mixt__trainer *t, const mixt__update *update);
/** The update of the own slices, which then go to all. */
mixt_status mixt__sharded_apply(mixt__trainer *t, const mixt__update *update);
/** What is sharded, to rank 0: see mixt__ranks_collect. */
mixt_status mixt__sharded_collect(mixt__trainer *t, const mixt__ranks_own *own, char *const *roles);
/** The masters alone. @param all of rank 0; else NULL */
mixt_status mixt__sharded_collect_masters(mixt__trainer *t, float *all);
/** Plans when such a pass has its weights, where they are sharded. */
mixt_status mixt__sharded_plan_reading(mixt__trainer *t, const mixt__executable *executable, int which);
/** Bytes of the host's in which such a pass's weights come together; 0: they do so where the device reads them. */
size_t mixt__sharded_host_bytes(const mixt__trainer *t, int which);
/** Points a plan at the parameters. @param which of the passes that read weights it is: MIXT_GATHER_TRAIN, … */
void mixt__sharded_bind(mixt__trainer *t, mixt__executable *executable, int which, char *window, float *seed);

#endif
