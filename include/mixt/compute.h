/* How do I run a single op on arrays? A function of values is run once, without training, on arrays in host memory, in
 * the formats of those arrays.
 *
 * Products and reductions accumulate in FP32 whatever the formats are.
 */
#ifndef MIXT_COMPUTE_H
#define MIXT_COMPUTE_H

#include "mixt/graph.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An array in host memory, row-major. */
typedef struct mixt_array {
    void *data;
    mixt_dtype dtype; /**< FP32, FP16 or BF16; INT32 for indices */
    int rank;
    int64_t dims[MIXT_MAX_RANK];
} mixt_array;

/** Makes a result from the values of the input arrays, in their order, with any op that needs no parameters. */
typedef mixt_value (*mixt_compute_fn)(mixt_builder *b, const mixt_value *inputs);

/**
 * Computes fn once, in the format that inputs and result share, or in FP32 where they differ.
 * @param inputs read only; at most 16.
 * @param result its dims must be those of what fn makes; the numbers are rounded to its dtype.
 * @return what is wrong with shapes, formats or fn; also kept as mixt_error(context).
 */
MIXT_API mixt_status mixt_compute(mixt_context *context, mixt_compute_fn fn, const mixt_array *inputs, int input_count,
                                  const mixt_array *result);

#ifdef __cplusplus
}
#endif
#endif
