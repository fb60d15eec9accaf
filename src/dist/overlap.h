/* Sums over ranks while the backward pass goes on, in a thread of its own.
 *
 * The gradients are cut into buckets, which are summed in a fixed order, each once the pass has made all of it: MPI
 * does not progress by itself, somebody must wait for the others while the rest computes. From begin to finish the
 * group belongs to the thread.
 */
#ifndef MIXT_DIST_OVERLAP_H
#define MIXT_DIST_OVERLAP_H

#include "dist/group.h"

/** Elements that are summed at once. */
typedef struct mixt__bucket {
    int64_t begin, count;
    int64_t ready; // the mark behind which they are made
} mixt__bucket;

typedef struct mixt__overlap mixt__overlap;

/** Bytes that it takes itself. */
size_t mixt__overlap_bytes(void);
/** Starts the thread. @param workspace for mixt__group_sum, of the largest bucket; borrowed */
mixt_status mixt__overlap_start(mixt__group *group, mixt_dtype format, int64_t most, void *workspace,
                                mixt__overlap **overlap);
/** Ends it; NULL is allowed. */
void mixt__overlap_stop(mixt__overlap *overlap);

/** Begins a sum of `data`. @param buckets in the order in which they are made, the same on all ranks; borrowed */
void mixt__overlap_begin(mixt__overlap *overlap, float *data, const mixt__bucket *buckets, int64_t count);
/** All buckets that are ready at `mark` may go. */
void mixt__overlap_passed(mixt__overlap *overlap, int64_t mark);
/** Lets the rest go and waits for all of them. */
mixt_status mixt__overlap_finish(mixt__overlap *overlap);
/** Lets no more go, and waits for the one under way: this rank has failed. */
void mixt__overlap_cancel(mixt__overlap *overlap);

/** Seconds that sums took so far, and of those what the caller waited for them. */
void mixt__overlap_seconds(const mixt__overlap *overlap, double *all, double *waited);

#endif
