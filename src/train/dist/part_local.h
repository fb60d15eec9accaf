/* Of an update that ranks share (train/dist/ranks.h): what those have that compress (train/dist/local.h). */
#ifndef MIXT_TRAIN_PART_LOCAL_H
#define MIXT_TRAIN_PART_LOCAL_H

#include "dist/compress.h"

typedef struct mixt__part_local {
    mixt__compression compression; // what travels of weights that ranks update by themselves …
    int64_t compress_after;        // … after so many updates that they make together
    bool local;                    // this update: every rank makes it by itself
    bool own_weights;              // the masters are this rank's own; else those that all have in common
    bool overflowed;               // on some rank: all skip the update
    float *feedback;               // (total) where ranks compress: common weights less this rank's own
    mixt__compressor compressor;   // and what exchanges them
} mixt__part_local;

#endif
