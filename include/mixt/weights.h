/* Files of weights and arrays: from one number format to another.
 *
 * Everything that is written is put in its place whole or not at all.
 */
#ifndef MIXT_WEIGHTS_H
#define MIXT_WEIGHTS_H

#include "mixt/num.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a conversion did beyond rounding, in values. */
typedef struct mixt_convert_report {
    int64_t kept;       /**< tensors as they were, for they hold no floating-point numbers */
    int64_t overflowed; /**< past the range of the format: infinite or NaN now */
    int64_t clamped;    /**< past the range: the nearest end of it now */
    int64_t vanished;   /**< not 0, too small for a floating-point format: 0 now */
    int64_t nan_lost;   /**< NaN that an integer format does not have: 0 now */
} mixt_convert_report;

/**
 * Converts an .npy array, or the floating-point tensors of a .safetensors file (others and the metadata are kept as
 * they are). Either kind of file gives either kind, as long as a .npy destination gets one tensor only and a format
 * that .npy has.
 * @param src file to read; its kind is known from the name.
 * @param dst file to write; may be `src` itself, with `overwrite`.
 * @param dtype format of the numbers in `dst`.
 * @param options NULL for the defaults. Stochastic rounding draws other bits for each tensor. A scale where neither
 *   the source nor `dtype` has a format with one is refused.
 * @param overwrite replaces a file that is there; else that is an error.
 * @param report may be NULL.
 */
mixt_status mixt_convert_file(const char *src, const char *dst, mixt_dtype dtype, const mixt_convert_options *options,
                              bool overwrite, mixt_convert_report *report);

#ifdef __cplusplus
}
#endif
#endif
