/* A loss that rises slowly: by 2% above its best level, held against its own noise, block by block.
 *
 * A block is the mean of a few updates' losses (logarithms). One that lies above the best level by 1%, or three times
 * what blocks scatter by where that is more, comes by chance in half of the cases at most; where the loss has risen, in
 * nine of ten. The odds are multiplied from block to block, over every block at which it may have begun: of all runs
 * whose loss does not rise, however long, MIXT_DRIFT_ERROR at most are told to.
 */
#ifndef MIXT_MONITOR_DRIFT_H
#define MIXT_MONITOR_DRIFT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MIXT_DRIFT_ERROR 0.01

enum { MIXT_DRIFT_BLOCK = 16, MIXT_DRIFT_BLOCKS = 8 }; // updates of a block; blocks that tell a level

/** Zero-initialised: nothing was seen. */
typedef struct mixt__drift {
    double sum; // of the block under way
    int64_t in_block, blocks;
    double last[MIXT_DRIFT_BLOCKS]; // the newest, number `blocks` at (blocks - 1) % MIXT_DRIFT_BLOCKS
    double best;                    // lowest level; 0 before there are so many blocks
    double odds;
} mixt__drift;

/** Takes in a finite loss above 0. @return whether it has risen, at the end of a block */
bool mixt__drift_take(mixt__drift *drift, double loss);
/** What it is now is how it is to be, or something else is computed from here on. */
void mixt__drift_restart(mixt__drift *drift);

json_t *mixt__drift_pack(const mixt__drift *drift);
void mixt__drift_unpack(mixt__drift *drift, const json_t *object);

#endif
