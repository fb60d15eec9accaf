/* Copies between strided tensors of one element size: what view ops do when a view is not possible. */
#ifndef MIXT_BACKEND_CPU_MOVEMENT_STRIDED_COPY_H
#define MIXT_BACKEND_CPU_MOVEMENT_STRIDED_COPY_H

#include "graph/graph.h"

/** dst[i…] = src[i…] for all positions of `shape`; strides in elements. */
typedef struct mixt__strided_copy {
    mixt__shape shape;
    int64_t src_strides[MIXT_MAX_RANK], dst_strides[MIXT_MAX_RANK];
    const void *src;
    void *dst;
    size_t size; // of an element in bytes
} mixt__strided_copy;

/** Element by element. */
void mixt__strided_copy_plain(const mixt__strided_copy *copy);
/** Runs of neighbouring elements at once, transposes in blocks, on all threads. */
void mixt__strided_copy_blocked(const mixt__strided_copy *copy);

#endif
