/* How do I convert numbers? Single values and arrays, between any two formats.
 *
 * Rounding is to nearest, ties to even, unless stochastic rounding is asked for. NaN stays NaN, infinities stay
 * infinite where the format has them (E4M3 has none: they become NaN, as does a value past its range when saturation is
 * off), subnormals survive. Integers are clamped to their range; NaN becomes 0 there.
 */
#ifndef MIXT_NUM_H
#define MIXT_NUM_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

MIXT_API uint16_t mixt_fp16_from_fp32(float value);
MIXT_API float mixt_fp16_to_fp32(uint16_t bits);
MIXT_API uint16_t mixt_bf16_from_fp32(float value);
MIXT_API float mixt_bf16_to_fp32(uint16_t bits);
MIXT_API uint8_t mixt_fp8_e4m3_from_fp32(float value);
MIXT_API float mixt_fp8_e4m3_to_fp32(uint8_t bits);
MIXT_API uint8_t mixt_fp8_e5m2_from_fp32(float value);
MIXT_API float mixt_fp8_e5m2_to_fp32(uint8_t bits);
/** The nearest value with 10 mantissa bits, as FP32. */
MIXT_API float mixt_tf32_round(float value);

/** How an array conversion rounds and scales. */
typedef struct mixt_convert_options {
    size_t struct_size;
    bool stochastic; /**< round up with probability equal to the distance (floats to narrower floats; INT8) */
    uint64_t seed;   /**< of the stochastic bits: same seed, same result, whatever the thread count */
    float scale;     /**< INT8, UINT8 and FP8 only, read or written: stored = value / scale; above 0; default 1 */
    bool saturate;   /**< clamp to the largest finite value instead of giving infinity or NaN (FP16, FP8) */
} mixt_convert_options;
MIXT_API void mixt_convert_options_default(mixt_convert_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_convert_options .struct_size = sizeof(mixt_convert_options), .scale = 1

/**
 * Converts `count` elements. Regions must not overlap, except that dst == src is allowed when both formats have the
 * same size. Runs on all threads of the library for large arrays.
 * @param options NULL for the defaults.
 * @return MIXT_OK; MIXT_ERROR_DTYPE when a format is MIXT_DTYPE_NONE; MIXT_ERROR_ARGUMENT for a negative count, NULL,
 * overlapping regions or a scale that is negative or not finite.
 */
MIXT_API mixt_status mixt_convert(void *dst, mixt_dtype dst_dtype, const void *src, mixt_dtype src_dtype, int64_t count,
                                  const mixt_convert_options *options);

#ifdef __cplusplus
}
#endif
#endif
