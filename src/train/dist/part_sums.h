/* Of an update that ranks share (train/dist/ranks.h): what they tell each other after their passes, and the sums of
 * their parts. */
#ifndef MIXT_TRAIN_PART_SUMS_H
#define MIXT_TRAIN_PART_SUMS_H

#include "dist/group.h"

#include <stdint.h>

/** A running statistic, in the arena of state. */
typedef struct mixt__moved {
    int64_t offset, count;
    double share; // see mixt__op
} mixt__moved;

typedef struct mixt__part_sums {
    mixt__moved *moved;               // statistics that passes move
    int64_t moved_count, moved_total; // of those; of their elements
    float *sum;                       // one process: of the parts so far
    float *start;                     // (moved_total) statistics before the update
    float *added;                     // (passes, moved_total) what each pass adds to them
    void *workspace;                  // of the sum over ranks
    char *mine, *all;                 // what ranks tell each other after their passes
    int signal, agreed_signal;        // that this rank caught, and any rank before the newest update
    uint32_t asked, agreed_asked;     // the same of what observers ask for
    int64_t check;                    // updates after which weights are compared; 0: never
    int64_t hashed;                   // the newest of those
    int64_t hash;                     // of the weights after it
} mixt__part_sums;

#endif
