/* A copy between two tensors of one shape with any strides. */
#ifndef MIXT_BACKEND_CUDA_MOVEMENT_STRIDED_COPY_H
#define MIXT_BACKEND_CUDA_MOVEMENT_STRIDED_COPY_H

#include "backend/cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt__cuda_copy {
    int rank;
    int64_t dims[MIXT_MAX_RANK], src_strides[MIXT_MAX_RANK], dst_strides[MIXT_MAX_RANK]; // in elements
    const char *src;
    char *dst;
    int size; // bytes of an element: 1, 2, 4, 8 or 16
} mixt__cuda_copy;

/** Issues it. Source and destination must not overlap. */
mixt_status mixt__cuda_copy_run(const mixt__cuda_device *gpu, mixt__cuda_copy copy);

#ifdef __cplusplus
}
#endif
#endif
