/* AVX512-BF16 products: the same tile on pairs of BF16 values, two multiply-adds a lane and instruction (vdpbf16ps).
 *
 * The instruction rounds each of its two additions to nearest even and treats subnormal inputs and results as zero,
 * whatever MXCSR says: products below 2^-126 vanish here and survive in the FP32 kernels.
 */
#include "backend/cpu/gemm/tile_avx512.h"

TILE_DEFINE_ALL(tile_packed, true, false)

const mixt__gemm_kernel mixt__gemm_kernel_avx512bf16 = {.name = "avx512bf16",
                                                        .isa = MIXT_ISA_AVX512_BF16,
                                                        .pairs = true,
                                                        .mr = TILE_ROWS,
                                                        .nr = TILE_COLS,
                                                        .a_width = TILE_A_WIDTH,
                                                        .k_step = 1,
                                                        .m_grain = 1,
                                                        .kc_max = 1024,
                                                        .a_block = 320 * 1024,
                                                        .macs = 32,
                                                        .tile = tile_packed,
                                                        .pack_a = mixt__gemm_pack_pairs_avx512,
                                                        .pack_b = mixt__gemm_pack_pairs_avx512};
