/* Conversion of a whole file to another number format. */
#ifndef MIXT_STORE_CONVERT_FILE_H
#define MIXT_STORE_CONVERT_FILE_H

#include "num/losses.h"

typedef struct mixt__convert_report {
    int64_t kept; /**< tensors as they were, for they hold no floating-point numbers */
    mixt__losses losses;
} mixt__convert_report;

/**
 * Converts an .npy array, or the floating-point tensors of a .safetensors file (others and the metadata are kept as
 * they are), to `dtype`. Either kind of file gives either kind, as long as a .npy destination gets one tensor only and
 * a format that .npy has. All or nothing; an existing `dst` is replaced only with `overwrite`.
 * @param options NULL for the defaults; stochastic rounding draws other bits for each tensor. A scale where neither the
 * source nor `dtype` has a format with one is refused.
 * @param report may be NULL.
 */
mixt_status mixt__convert_file(const char *src, const char *dst, mixt_dtype dtype, const mixt_convert_options *options,
                               bool overwrite, mixt__convert_report *report);

#endif
