/* AVX-512 FP32 products, and the end of a tile that the AMX kernel shares. */
#include "backend/cpu/gemm/tile_avx512.h"

TILE_DEFINE_ALL(tile_packed, false, false)
TILE_DEFINE_ALL(tile_direct, false, true)

void mixt__gemm_store_avx512(const mixt__gemm_tile *t, const float *sums, int64_t ld)
{
    for (int column = 0; column < t->cols; column += TILE_LANES) {
        __mmask16 mask = lanes_mask(t->cols - column);
        for (int64_t r = 0; r < t->rows; r++)
            store_vector(t, r, column, mask, _mm512_maskz_loadu_ps(mask, sums + r * ld + column));
    }
}

const mixt__gemm_kernel mixt__gemm_kernel_avx512 = {.name = "avx512",
                                                    .isa = MIXT_ISA_AVX512,
                                                    .mr = TILE_ROWS,
                                                    .nr = TILE_COLS,
                                                    .a_width = TILE_A_WIDTH,
                                                    .k_step = 1,
                                                    .m_grain = 1,
                                                    .kc_max = 512,
                                                    .a_block = 320 * 1024,
                                                    .macs = 16,
                                                    .tile = tile_packed,
                                                    .tile_direct = tile_direct,
                                                    .pack_a = mixt__gemm_pack_avx512,
                                                    .pack_b = mixt__gemm_pack_avx512};
