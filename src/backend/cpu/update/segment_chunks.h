/* Work over all segments of the flat arenas, cut into chunks that never cross a segment. */
#ifndef MIXT_BACKEND_CPU_UPDATE_SEGMENT_CHUNKS_H
#define MIXT_BACKEND_CPU_UPDATE_SEGMENT_CHUNKS_H

#include "backend/cpu/update/loops.h"

/** Small, so that many threads get equal shares of a small model. */
enum { MIXT_CPU_CHUNK = MIXT_UPDATE_CHUNK_MIN };

typedef struct mixt__segment_chunk {
    int64_t index;          // among all chunks: where its partial sums go
    int64_t segment;        // it belongs to
    int64_t begin, count;   // within the segment, in elements
    mixt__chunk_sums *sums; // of who runs it; NULL: nobody sums
} mixt__segment_chunk;

typedef void mixt__segment_chunk_fn(const mixt__update *update, const mixt__segment_chunk *chunk);

/** Calls fn for each chunk once, on all threads. */
void mixt__segment_chunks_run(const mixt__update *update, mixt__segment_chunk_fn *fn);

/** The same, and what fn sums goes to update->sums, where there are any. */
void mixt__segment_chunks_sum(const mixt__update *update, mixt__segment_chunk_fn *fn);

/** Calls fn for each chunk in order on this thread: for reductions of partial sums. */
void mixt__segment_chunks_walk(const mixt__update *update, mixt__segment_chunk_fn *fn);

#endif
