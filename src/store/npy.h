/* NumPy .npy files: one array, little-endian, C order. Header versions 1, 2 and 3 are read; 1 is written. */
#ifndef MIXT_STORE_NPY_H
#define MIXT_STORE_NPY_H

#include "store/file.h"
#include "store/tensor.h"

/** Numbers that .npy has and mixt has no dtype for: data sets read them, nothing computes with them. */
typedef enum mixt__npy_numbers {
    MIXT_NPY_DTYPE, // as the tensor's dtype says
    MIXT_NPY_BOOL,
    MIXT_NPY_INT16,
    MIXT_NPY_UINT16,
    MIXT_NPY_UINT32,
} mixt__npy_numbers;

typedef struct mixt__npy {
    mixt__file_tensor tensor;  /**< its name is "array"; the data stays mapped until the file is closed */
    mixt__npy_numbers numbers; /**< other than MIXT_NPY_DTYPE: the tensor's dtype is NONE */
    size_t element;            /**< bytes of one number */
    size_t start;              /**< offset of the first */
    mixt__file_map map;
} mixt__npy;

/** Strict: the header must be one that NumPy writes, and the file exactly as long as header and array. */
mixt_status mixt__npy_open(const char *path, mixt__npy *file);
/** The same, with all of mixt__npy_numbers. */
mixt_status mixt__npy_open_numbers(const char *path, mixt__npy *file);
void mixt__npy_close(mixt__npy *file);

/** Reads the header at the beginning of `bytes` alone: all of `file` but the data and the map. */
mixt_status mixt__npy_read_header(const char *path, const unsigned char *bytes, size_t size, mixt__npy *file);
/** Bytes within which every header ends. */
enum { MIXT_NPY_HEADER = 12 + 65536 };

/** Writes a tensor (name and `bytes` are not read), all or nothing. BF16 and FP8 do not exist in this file format. */
mixt_status mixt__npy_write(const char *path, const mixt__file_tensor *tensor, bool overwrite);

/** The type string of a dtype ("<f2"); NULL where .npy has none. */
const char *mixt__npy_descr(mixt_dtype dtype);

#endif
