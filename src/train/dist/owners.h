/* Which rank owns which elements of the flat arenas, where ranks shard state (dist.zero).
 *
 * The arenas are cut into groups, runs of whole parameters, and each group into one slice a rank: a parameter may be
 * cut between ranks. A rank keeps its slices of all groups one after the other in arenas of its own. Groups are what
 * gradients are summed by, so that all ranks send and add at once.
 *
 * Gradients that are sharded are cut where chunks of an update begin (backend/training.h): partial sums of a chunk
 * are then one rank's, and adding them up in the order of chunks gives the bits of one rank that has all. Moments alone
 * are cut to 16 elements.
 */
#ifndef MIXT_TRAIN_OWNERS_H
#define MIXT_TRAIN_OWNERS_H

#include "runtime/params.h"

typedef struct mixt__owners {
    int64_t ranks;       // 0: nothing is sharded
    int64_t groups;      // of parameters
    int64_t chunk;       // elements: slices begin where chunks of segments do; 0: where they come to lie
    int64_t *begins;     // (groups + 1) in the flat arenas
    int64_t *firsts;     // (groups + 1) segments
    int64_t room;        // elements of the largest share
    int64_t most_cuts;   // segments, or parts of those, of a rank at most
    int64_t most_chunks; // of a rank at most
    int64_t chunks;      // of all ranks
} mixt__owners;

/** What one rank has. */
typedef struct mixt__owner_size {
    int64_t elements, cuts, chunks;
} mixt__owner_size;

/** @param limit elements of a group, unless one parameter has more; 0: one group
 *  @param chunk of the device's update, see above; 0: moments alone are sharded */
mixt_status mixt__owners_make(mixt__owners *owners, const mixt__params *params, int64_t ranks, int64_t limit,
                              int64_t chunk);
void mixt__owners_free(mixt__owners *owners);

/** Where the slice of a rank begins in the flat arenas; that of number `ranks` is the group's end. */
int64_t mixt__owners_cut(const mixt__owners *owners, const mixt__params *params, int64_t group, int64_t rank);
/** All of a group. @param cuts (ranks + 1) */
void mixt__owners_cuts(const mixt__owners *owners, const mixt__params *params, int64_t group, int64_t *cuts);
mixt__owner_size mixt__owners_size(const mixt__owners *owners, const mixt__params *params, int64_t rank);

/** The group of segment number `s`. */
int64_t mixt__owners_group(const mixt__owners *owners, int64_t s);
/** The part of segment number `s` that lies in [begin, end) of the flat arenas; count 0: none. */
mixt__segment mixt__owners_segment(const mixt__params *params, int64_t s, int64_t begin, int64_t end);

#endif
