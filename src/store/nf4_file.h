/* Weights in NF4 as bitsandbytes writes them into safetensors: beside "NAME", codes of two numbers a byte, stand
 * "NAME.absmax", "NAME.quant_map", "NAME.nested_absmax", "NAME.nested_quant_map" and the rest as JSON in
 * "NAME.quant_state.bitsandbytes__nf4".
 */
#ifndef MIXT_STORE_NF4_FILE_H
#define MIXT_STORE_NF4_FILE_H

#include "num/nf4.h"
#include "store/safetensors.h"

/** Such a weight; the data of a tensor of MIXT_DTYPE_NF4. */
typedef struct mixt__nf4_stored {
    const uint8_t *codes, *magnitude; // magnitude NULL: magnitudes are `plain`
    const float *nested, *plain;
    float offset;
    int64_t blocks, nested_count;
} mixt__nf4_stored;

/** Shows such weights as tensors of MIXT_DTYPE_NF4 in their own shape, of as many bytes as elements, and what belongs
 * to them no longer. Fails, naming it, on one that is not as it should be. @param path for messages */
mixt_status mixt__nf4_show(const char *path, mixt__safetensors *file);
/** The values of a tensor, of that format or a float. @param values (elements) */
mixt_status mixt__nf4_tensor_values(const mixt__file_tensor *tensor, float *values);
/** Puts such a tensor into the part of a matrix whose rows begin at `row`; false: it is not one part of it. */
bool mixt__nf4_put(const mixt__file_tensor *tensor, const mixt__nf4_matrix *matrix, int64_t row, uint8_t *codes,
                   float *scales);

#endif
