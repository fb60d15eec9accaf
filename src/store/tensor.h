/* What a weights or array file holds: named tensors. Shared by the readers and writers of each file format. */
#ifndef MIXT_STORE_TENSOR_H
#define MIXT_STORE_TENSOR_H

#include "mixt/types.h"

enum { MIXT__FILE_RANK = 8 };

typedef struct mixt__file_tensor {
    const char *name;
    mixt_dtype dtype;
    int rank;
    int64_t dims[MIXT__FILE_RANK];
    const void *data; /**< row-major; from a file of another program possibly not aligned to its elements */
    size_t bytes;
    bool summed;    // whether it is known what the data should be, …
    uint64_t words; // … which is mixt__checksum_words of it
} mixt__file_tensor;

/** Elements of a shape; -1 when a dimension is negative or the product (in bytes too) does not fit. */
int64_t mixt__file_tensor_count(mixt_dtype dtype, int rank, const int64_t *dims);

/** MIXT_ERROR_DATA, naming tensor and element, where one of `count` FP32 weights is not finite.
 *  @param from the first one's number in the tensor @param then what that means, for the message */
mixt_status mixt__weights_finite(const char *name, const void *values, int64_t from, int64_t count, const char *then);

/** "[2, 3]", for messages; `text` holds it. */
typedef struct mixt__dims_text {
    char text[MIXT__FILE_RANK * 22 + 3];
} mixt__dims_text;
mixt__dims_text mixt__dims_print(int rank, const int64_t *dims);

#endif
