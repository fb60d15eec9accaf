/* AVX-512 tiles whose units are BF16 pairs: two products a lane and instruction, FP32 sums. */
#include "backend/cpu/conv/tile_avx512.h"

#define PAIRS_CASE(count)                                                                                              \
    case count:                                                                                                        \
        if (t->cols > TILE_LANES)                                                                                      \
            tile_pixels(t, count, 2, true);                                                                            \
        else                                                                                                           \
            tile_pixels(t, count, 1, true);                                                                            \
        break;

static void forward_pairs(const mixt__conv_tile *t)
{
    switch (t->pixels) {
        TILE_EACH(PAIRS_CASE)
    }
}

const mixt__conv_tiles mixt__conv_tiles_avx512bf16 = {TILE_ROWS,
                                                      TILE_PANEL,
                                                      mixt__conv_forward_avx512,
                                                      forward_pairs,
                                                      mixt__conv_grad_avx512,
                                                      &mixt__gemm_kernel_avx512,
                                                      &mixt__gemm_kernel_avx512bf16};
