/* Tensors of a file that are pairs: "NAME" holds numbers, "scale/NAME" in FP32 what each of its rows is multiplied by.
 */
#ifndef MIXT_STORE_PAIRS_H
#define MIXT_STORE_PAIRS_H

#include "store/safetensors.h"

#define MIXT_PAIR_SCALE "scale/"

/** The scales of a tensor, an error where it needs some and has none. @param scales receives NULL where it needs none
 */
mixt_status mixt__pair_scales(const mixt__safetensors *file, const mixt__file_tensor *tensor, const float **scales);
/** The values of a tensor, which is a pair or a float. @param values (elements) */
mixt_status mixt__pair_values(const mixt__safetensors *file, const mixt__file_tensor *tensor, float *values);
/** Shows pairs as FP32, in memory of the file's own, and their scales no longer. @param path for messages */
mixt_status mixt__pairs_widen(const char *path, mixt__safetensors *file);

#endif
