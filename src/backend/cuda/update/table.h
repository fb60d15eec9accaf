/* The device's copy of an update's segments, cut into chunks: what the passes that end a step read.
 *
 * Made at the first call outside of a capture, and again when the segments have changed; a call under capture finds
 * what an earlier call made. A table lies at the end of its update->workspace, so that it is part of the memory that
 * was planned, and is forgotten when that block is given back.
 */
#ifndef MIXT_BACKEND_CUDA_UPDATE_TABLE_H
#define MIXT_BACKEND_CUDA_UPDATE_TABLE_H

#include "backend/cuda/core/cuda.h"

enum { MIXT_CUDA_CHUNK = 16384 };

/** One block's work: MIXT_CUDA_CHUNK elements of a segment, fewer at its end. */
typedef struct mixt__cuda_chunk {
    int64_t at;     // in the FP32 arenas, a multiple of 16
    int64_t low_at; // in the arena of the working copy
    int32_t count, segment;
    int32_t low; // mixt_dtype of the working copy; NONE: none
    float weight_decay, lr_scale;
    int32_t first; // number of its first element among those of all ranks, in sixteens
} mixt__cuda_chunk;

typedef struct mixt__cuda_table {
    int64_t segment_count, chunk_count;
    /* device memory */
    mixt__cuda_chunk *chunks;
    int64_t *first;    // (segment_count + 1): the chunks of segment i are first[i] … first[i + 1] - 1
    int32_t *order;    // (segment_count): segments as the backward pass finishes them
    unsigned *counter; // of last_block
} mixt__cuda_table;

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of update->workspace: partial sums, then the table. */
size_t mixt__cuda_update_workspace(mixt__device *device, const mixt__segment *segments, int64_t segment_count);
/** This block is given back: whatever gets addresses in it next has no table. */
void mixt__cuda_table_forget(mixt__device *device, const void *block, size_t bytes);
/** The table of this update; fails when the segments changed since the last call and a capture is under way. */
mixt_status mixt__cuda_table_get(mixt__device *device, const mixt__update *update, mixt__cuda_table *table);

#ifdef __cplusplus
}
#endif
#endif
