/* Of an update that ranks share (train/dist/ranks.h): gradients that are summed while the backward pass goes on. */
#ifndef MIXT_TRAIN_PART_OVERLAP_H
#define MIXT_TRAIN_PART_OVERLAP_H

#include "dist/overlap.h"

typedef struct mixt__part_overlap {
    int64_t bucket;        // elements that are under way at once
    int64_t step;          // elements of a bucket at most
    mixt__bucket *buckets; // of the gradients, in the order in which the backward pass completes them
    int64_t bucket_count;
    mixt__overlap *overlap; // sums them while it goes on; NULL: not with a group
    bool begun;             // the sum of this update
    int64_t let, handed;    // jobs of this pass that may go; sums among them
} mixt__part_overlap;

#endif
