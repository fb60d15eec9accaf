/* Of an update that ranks share (train/dist/ranks.h): state that is sharded (train/dist/sharded.h), and where it lies.
 */
#ifndef MIXT_TRAIN_PART_SHARDS_H
#define MIXT_TRAIN_PART_SHARDS_H

#include "backend/training.h"
#include "train/dist/gather.h"
#include "train/dist/stage.h"

/** Passes that read weights. */
enum { MIXT_GATHER_TRAIN, MIXT_GATHER_INSTRUMENTED, MIXT_GATHER_EVAL, MIXT_GATHERS };

typedef struct mixt__part_shards {
    int zero;                           // what ranks share out: 1: moments; 2: gradients too; 3: masters too
    mixt__owners owners;                // where state is sharded: who owns what
    mixt__stage window;                 // where gradients are made that are sharded
    mixt__gather gathers[MIXT_GATHERS]; // where masters are sharded: when they are there
    mixt__gather *reading;              // of the pass that runs; NULL: its weights are there
    int64_t taken;                      // groups whose memory this pass has taken
    int64_t *cuts;                      // (ranks + 1) of the group that is worked on
    mixt__segment *own;                 // this rank's segments, or parts of those, in its own arenas
    int64_t *own_first;                 // (groups + 1) among those
    mixt__segment *chunks;              // of its gradients, where those are sharded
    int64_t *chunk_first;               // (groups + 1) among those
    int64_t *rank_chunks;               // (ranks + 1) where each rank's begin in …
    mixt__segment_stats *chunk_stats;   // … what ranks tell each other of them, then in the order of the flat arenas
    double *lamb_sums;                  // (owners.chunks, 2) of LAMB, where its state is sharded; then in that order
    float *lamb_ratios;                 // (segments), then those of `own`
} mixt__part_shards;

#endif
