/* The plain kernel: no instruction beyond the baseline, every format, any CPU. */
#include "backend/cpu/gemm/kernel.h"

#include "num/num.h"

enum { ROWS = 4, COLS = 8 };

static void tile_4x8(const mixt__gemm_tile *t)
{
    float sum[ROWS][COLS] = {{0}};
    const float *a = t->a, *b = t->b;
    for (int64_t k = 0; k < t->k; k++, a += ROWS, b += COLS)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLS; c++)
                sum[r][c] += a[r] * b[c];
    for (int r = 0; r < t->rows; r++) {
        float *dst = t->c + r * t->ldc;
        for (int c = 0; c < t->cols; c++) {
            float value = t->alpha * sum[r][c];
            if (t->bias)
                value += t->bias[c];
            dst[c] = t->add ? dst[c] + value : value;
        }
    }
}

static float element(const mixt__gemm_pack *p, int64_t index)
{
    switch (p->dtype) {
    case MIXT_DTYPE_FP32:
        return ((const float *)p->src)[index];
    case MIXT_DTYPE_BF16:
        return mixt__bf16_widen(((const uint16_t *)p->src)[index]);
    default:
        return mixt_fp16_to_fp32(((const uint16_t *)p->src)[index]);
    }
}

static void pack_plain(const mixt__gemm_pack *p)
{
    float *dst = p->dst;
    for (int64_t first = 0; first < p->lanes; first += p->used)
        for (int64_t k = 0; k < p->k; k++, dst += p->width)
            for (int64_t l = 0; l < p->width; l++) {
                bool exists = l < p->used && first + l < p->lanes;
                dst[l] = exists ? element(p, (first + l) * p->lane_stride + k * p->k_stride) : 0.0f;
            }
}

const mixt__gemm_kernel mixt__gemm_kernel_scalar = {.name = "scalar",
                                                    .isa = MIXT_ISA_SCALAR,
                                                    .mr = ROWS,
                                                    .nr = COLS,
                                                    .a_width = ROWS,
                                                    .k_step = 1,
                                                    .m_grain = 1,
                                                    .kc_max = 256,
                                                    .a_block = 128 * 1024,
                                                    .macs = 4,
                                                    .tile = tile_4x8,
                                                    .pack_a = pack_plain,
                                                    .pack_b = pack_plain};
