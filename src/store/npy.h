/* NumPy .npy files: one array, little-endian, C order. Header versions 1, 2 and 3 are read; 1 is written. */
#ifndef MIXT_STORE_NPY_H
#define MIXT_STORE_NPY_H

#include "store/file.h"
#include "store/tensor.h"

typedef struct mixt__npy {
    mixt__file_tensor tensor; /**< its name is "array"; the data stays mapped until the file is closed */
    mixt__file_map map;
} mixt__npy;

/** Strict: the header must be one that NumPy writes, and the file exactly as long as header and array. */
mixt_status mixt__npy_open(const char *path, mixt__npy *file);
void mixt__npy_close(mixt__npy *file);

/** Writes a tensor (name and `bytes` are not read), all or nothing. BF16 and FP8 do not exist in this file format. */
mixt_status mixt__npy_write(const char *path, const mixt__file_tensor *tensor, bool overwrite);

/** The type string of a dtype ("<f2"); NULL where .npy has none. */
const char *mixt__npy_descr(mixt_dtype dtype);

#endif
