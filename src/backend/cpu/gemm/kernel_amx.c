/* AMX BF16 products: a 32 × 32 tile of C in four tile registers (amx.h). A panel of A holds 16 rows of 16 pairs, one
 * after the other; rows in place are read the same way, further apart. */
#include "backend/cpu/core/amx.h"
#include "backend/cpu/gemm/kernel.h"

enum { UNIT = 4 };

static void multiply(const amx_product *p, int rows, int cols)
{
    if (rows > AMX_TILE)
        (cols > AMX_TILE ? amx_32x32 : amx_32x16)(p);
    else
        (cols > AMX_TILE ? amx_16x32 : amx_16x16)(p);
}

/** Whether the sums can go straight to C: it has room for all of them, and nothing else is done to them. */
static bool stores_plainly(const mixt__gemm_tile *t)
{
    return t->rows == AMX_SIDE && t->cols == AMX_SIDE && t->alpha == 1.0f && !t->bias && !t->add;
}

static void tile_packed(const mixt__gemm_tile *t)
{
    _Alignas(64) float sums[AMX_SIDE * AMX_SIDE];
    bool plainly = stores_plainly(t);
    amx_product p = {.a = t->a,
                     .a_row = AMX_ROW_BYTES,
                     .a_half = AMX_TILE * AMX_ROW_BYTES,
                     .a_step = AMX_SIDE * AMX_ROW_BYTES,
                     .b = t->b,
                     .b_row = AMX_SIDE * UNIT,
                     .steps = t->k / AMX_TILE,
                     .c = plainly ? t->c : sums,
                     .c_row = (plainly ? t->ldc : AMX_SIDE) * UNIT};
    multiply(&p, t->rows, t->cols);
    if (!plainly)
        mixt__gemm_store_avx512(t, sums, AMX_SIDE);
}

/** The last, incomplete step of K: A's rows packed after all, added to what the whole steps gave. */
static void multiply_rest(amx_product *p, const mixt__gemm_tile *t, const uint16_t *a, int64_t count)
{
    _Alignas(64) uint16_t rows[AMX_SIDE][AMX_STEP];
    mixt__gemm_pack pack = {.src = a, .dtype = MIXT_DTYPE_BF16, .lane_stride = t->a_stride, .k_stride = 1, .dst = rows};
    pack.lanes = t->rows;
    pack.k = count;
    pack.units = AMX_TILE;
    pack.used = pack.width = AMX_SIDE;
    mixt__gemm_pack_rows_avx512(&pack);
    p->a = (const char *)rows;
    p->a_row = AMX_ROW_BYTES;
    p->a_half = AMX_TILE * AMX_ROW_BYTES;
    p->b += p->steps * AMX_TILE * p->b_row;
    p->add = p->steps > 0;
    p->steps = 1;
    multiply(p, t->rows, t->cols);
}

static void tile_direct(const mixt__gemm_tile *t)
{
    _Alignas(64) float sums[AMX_SIDE * AMX_SIDE];
    bool plainly = stores_plainly(t);
    int64_t row = t->a_stride * (int64_t)sizeof(uint16_t), rest = t->a_count % AMX_STEP;
    amx_product p = {.a = t->a,
                     .a_row = row,
                     .a_half = AMX_TILE * row,
                     .a_step = AMX_ROW_BYTES,
                     .b = t->b,
                     .b_row = AMX_SIDE * UNIT,
                     .steps = t->a_count / AMX_STEP,
                     .c = plainly ? t->c : sums,
                     .c_row = (plainly ? t->ldc : AMX_SIDE) * UNIT};
    if (p.steps || !rest)
        multiply(&p, t->rows, t->cols);
    if (rest)
        multiply_rest(&p, t, (const uint16_t *)t->a + p.steps * AMX_STEP, rest);
    if (!plainly)
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
                                                 .tile_direct = tile_direct,
                                                 .pack_a = mixt__gemm_pack_rows_avx512,
                                                 .pack_b = mixt__gemm_pack_pairs_avx512,
                                                 .begin = amx_begin,
                                                 .end = amx_end};
