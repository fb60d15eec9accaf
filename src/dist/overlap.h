/* Sums over ranks while the backward pass goes on, in a thread of its own.
 *
 * The gradients are cut into buckets, which are summed in a fixed order, each once the pass has made all of it: MPI
 * does not progress by itself, somebody must wait for the others while the rest computes. From begin to finish the
 * group belongs to the thread. What is done with a bucket is the caller's function.
 */
#ifndef MIXT_DIST_OVERLAP_H
#define MIXT_DIST_OVERLAP_H

#include "dist/group.h"

/** Elements that are summed at once. */
typedef struct mixt__bucket {
    int64_t begin, count;
    int64_t ready;                // the mark behind which they are made
    int64_t group;                // the caller's number
    double allowed, begun, ended; // seconds from mixt__overlap_begin: they were made; their sum
} mixt__bucket;

typedef struct mixt__overlap mixt__overlap;

/** Bytes that it takes itself. */
size_t mixt__overlap_bytes(void);
/** Sums one bucket, in the thread. */
typedef mixt_status mixt__overlap_fn(void *user, const mixt__bucket *bucket);
/** Starts the thread. @param user of `sum`, borrowed */
mixt_status mixt__overlap_start(mixt__group *group, mixt__overlap_fn *sum, void *user, mixt__overlap **overlap);
/** Ends it; NULL is allowed. */
void mixt__overlap_stop(mixt__overlap *overlap);

/** Begins a sum. @param buckets in the order in which they are made, the same on all ranks; borrowed, and given
 *  their times */
void mixt__overlap_begin(mixt__overlap *overlap, mixt__bucket *buckets, int64_t count);
/** All buckets that are ready at `mark` may go. */
void mixt__overlap_passed(mixt__overlap *overlap, int64_t mark);
/** The first `count` buckets may go, whatever they are ready at. */
void mixt__overlap_allow(mixt__overlap *overlap, int64_t count);
/** Waits for the first `count` of those that may go, or until one has failed. */
void mixt__overlap_wait(mixt__overlap *overlap, int64_t count);
/** Lets the rest go and waits for all of them. */
mixt_status mixt__overlap_finish(mixt__overlap *overlap);
/** Lets no more go, and waits for the one under way: this rank has failed. */
void mixt__overlap_cancel(mixt__overlap *overlap);

/** Seconds that sums took so far, and of those what the caller waited for them. */
void mixt__overlap_seconds(const mixt__overlap *overlap, double *all, double *waited);
/** When the rest was let go, in the newest sum: seconds from its begin. */
double mixt__overlap_passed_at(const mixt__overlap *overlap);

#endif
