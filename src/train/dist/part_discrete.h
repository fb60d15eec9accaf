/* Of an update that ranks share (train/dist/ranks.h): what a device with memory of its own needs for it
 * (train/dist/discrete.h), and sums that it makes there (train/dist/device_sums.h). */
#ifndef MIXT_TRAIN_PART_DISCRETE_H
#define MIXT_TRAIN_PART_DISCRETE_H

#include "backend/backend.h"
#include "backend/training.h"
#include "dist/transport.h"

typedef struct mixt__part_discrete {
    float *staged;                      // where gradients wait on the host
    size_t update_bytes, measure_bytes; // what an update of slices takes
    mixt__segment_stats *segment_stats; // those of all gradients, on the host
    float *masters;                     // this rank's, on the host, where they are sharded
    char *gathered;                     // where the host gathers groups of weights
    void *own_workspace;                // device: of the update of its own segments, a part for each group
    void *measure_workspace;            // device: of the statistics of its chunks
    mixt__segment_stats *own_stats;     // device: those statistics
    mixt__control *still;               // device: of an update that changes nothing
    bool on_device;                     // gradients are summed in the device's memory
    uint32_t *arrived;                  // (buckets) of those: not 0: it is on the host
    mixt__device_sums *sums;            // by this; NULL: they are not, or the ranks are only planned. Borrowed
    int64_t summed;                     // buckets of this update so far
    mixt_status sum_status;
} mixt__part_discrete;

#endif
