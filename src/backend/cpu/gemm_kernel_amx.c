/* AMX BF16 products: a 32 × 32 tile of C in four tile registers (amx.h). A panel of A holds 16 rows of 16 pairs, one
 * after the other. */
#include "backend/cpu/amx.h"
#include "backend/cpu/gemm_kernel.h"

enum { UNIT = 4 };

static void multiply(const amx_product *p, int rows, int cols)
{
    if (rows > AMX_TILE)
        (cols > AMX_TILE ? amx_32x32 : amx_32x16)(p);
    else
        (cols > AMX_TILE ? amx_16x32 : amx_16x16)(p);
}

static void tile_packed(const mixt__gemm_tile *t)
{
    _Alignas(64) float sums[AMX_SIDE * AMX_SIDE];
    amx_product p = {.a = t->a,
                     .a_row = AMX_ROW_BYTES,
                     .a_half = AMX_TILE * AMX_ROW_BYTES,
                     .a_step = AMX_SIDE * AMX_ROW_BYTES,
                     .b = t->b,
                     .b_row = AMX_SIDE * UNIT,
                     .steps = t->k / AMX_TILE,
                     .c = sums,
                     .c_row = AMX_SIDE * UNIT};
    multiply(&p, t->rows, t->cols);
    mixt__gemm_store_avx512(t, sums, AMX_SIDE);
}

const mixt__gemm_kernel mixt__gemm_kernel_amx = {.name = "amx",
                                                 .isa = MIXT_ISA_AMX,
                                                 .pairs = true,
                                                 .mr = AMX_SIDE,
                                                 .nr = AMX_SIDE,
                                                 .a_width = AMX_SIDE,
                                                 .k_step = AMX_TILE,
                                                 .m_grain = AMX_TILE,
                                                 .kc_max = 1024,
                                                 .a_block = 1024 * 1024,
                                                 .macs = 512,
                                                 .tile = tile_packed,
                                                 .pack_a = mixt__gemm_pack_rows_avx512,
                                                 .pack_b = mixt__gemm_pack_pairs_avx512,
                                                 .begin = amx_begin,
                                                 .end = amx_end};
