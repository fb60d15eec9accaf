/* The register tiles of direct convolution: what an instruction-set file offers, and what it is given.
 *
 * A unit is 32 bits: one FP32 value, or two BF16 values that follow each other along a patch. In NHWC a patch is one
 * contiguous run of units per kernel row, so a tile reads the source where it lies (or its padded copy) and no patch
 * is ever built.
 */
#ifndef MIXT_BACKEND_CPU_CONV_TILE_H
#define MIXT_BACKEND_CPU_CONV_TILE_H

#include "backend/cpu/gemm/kernel.h"

/** dst[p][o] = bias[o] + Σ patch(p) · panel, for some pixels of one row and some outputs. */
typedef struct mixt__conv_tile {
    const float *src;   /**< first unit of the first pixel's patch */
    int64_t pixel_step; /**< units from a pixel's patch to the next one's */
    int64_t row_step;   /**< units from a kernel row to the next */
    int64_t rows, run;  /**< kernel rows, units of each */
    const float *panel; /**< rows · run units of `panel` outputs; 64-byte aligned */
    const float *bias;  /**< of the first output; NULL for none */
    void *dst;
    mixt_dtype dst_dtype; /**< FP32, FP16 or BF16 */
    int64_t dst_step;     /**< elements from a pixel to the next */
    int pixels, cols;     /**< 1..rows, 1..panel of the tiles */
} mixt__conv_tile;

/** sums[t][o] += Σ over pixels of src[t] · grad[o], for some taps of one kernel row and some outputs. */
typedef struct mixt__conv_grad_tile {
    const float *src;           /**< the first tap's value at the first pixel; taps follow each other */
    int64_t src_pixel, src_row; /**< from a pixel to the next one in its row, from a row of pixels to the next */
    const void *grad;           /**< the first output of the first pixel */
    mixt_dtype grad_dtype;      /**< FP32, FP16 or BF16 */
    int64_t grad_pixel, grad_row;
    int64_t rows, pixels; /**< rows of pixels, pixels in a row */
    float *sums;          /**< `panel` outputs a tap; 64-byte aligned */
    int taps, cols;       /**< 1..rows, 1..panel of the tiles */
} mixt__conv_grad_tile;

typedef struct mixt__conv_tiles {
    int rows;  /**< pixels or taps of a tile at most */
    int panel; /**< outputs of a tile */
    void (*forward)(const mixt__conv_tile *tile);
    void (*forward_pairs)(
        const mixt__conv_tile *tile); /**< units are BF16 pairs; NULL where the CPU has no such product */
    void (*grad)(const mixt__conv_grad_tile *tile);
    const mixt__gemm_kernel *packer,
        *pairs_packer; /**< of the engine, whose panels of B are as wide: they pack the weight */
} mixt__conv_tiles;

extern const mixt__conv_tiles mixt__conv_tiles_avx2, mixt__conv_tiles_avx512, mixt__conv_tiles_avx512bf16;

/** Shared by the AVX-512 levels. */
void mixt__conv_forward_avx512(const mixt__conv_tile *tile);
void mixt__conv_grad_avx512(const mixt__conv_grad_tile *tile);

#endif
