/* Panels from an operand: from memory by the kernel's packer, or from a gather function.
 *
 * Gathered values are FP32. Where a panel of B is FP32 as well, the function writes straight into it; everything else
 * goes through the thread's own small buffer, and to BF16 first when the kernel multiplies pairs (exact: an operand
 * marked BF16 gathers BF16 values). Numbers with scales go the same way, a panel's worth at a time, in the order in
 * which they lie in memory: then they are rounded to BF16 there.
 */
#include "backend/cpu/gemm/plan.h"

#include "num/num.h"
#include "num/nf4.h"
#include "num/quantise.h"

enum { CHUNK = 128 }; // rows of B gathered at once on the way to pairs; a multiple of every kernel's step

static int64_t gather_elements(const mixt__gemm_problem *p, const mixt__gemm_plan *plan)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    int64_t a = p->a.gather && !plan->direct ? kernel->a_width * plan->kc : 0;
    int64_t b = p->b.pair || (p->b.gather && kernel->pairs) ? CHUNK * kernel->nr : 0;
    return ((a > b ? a : b) + 15) & ~(int64_t)15;
}

size_t mixt__gemm_gather_bytes(const mixt__gemm_problem *p, const mixt__gemm_plan *plan)
{
    return (size_t)gather_elements(p, plan) * (sizeof(float) + (plan->kernel->pairs ? sizeof(uint16_t) : 0));
}

/** Points `pack` at gathered values, narrowed to pairs' format where the kernel wants that. */
static void use_gathered(mixt__gemm_pack *pack, const mixt__gemm_kernel *kernel, float *values, int64_t count)
{
    pack->src = values;
    pack->dtype = MIXT_DTYPE_FP32;
    if (kernel->pairs) {
        uint16_t *narrow = (uint16_t *)(values + ((count + 15) & ~(int64_t)15));
        mixt__narrow(MIXT_DTYPE_BF16)(narrow, values, count);
        pack->src = narrow;
        pack->dtype = MIXT_DTYPE_BF16;
    }
}

static const void *at(const mixt__gemm_operand *operand, int64_t row, int64_t col)
{
    int64_t index = row * operand->row_stride + col * operand->col_stride;
    return (const char *)operand->data + index * (int64_t)mixt_dtype_size(operand->dtype);
}

void mixt__gemm_pack_a(const mixt__gemm_problem *p, const mixt__gemm_kernel *kernel, int64_t row, int64_t rows,
                       int64_t k0, int64_t k, void *dst, void *own)
{
    mixt__gemm_pack pack = {.lanes = rows,
                            .k = k,
                            .units = mixt__gemm_units(kernel, k),
                            .used = kernel->mr,
                            .width = kernel->a_width,
                            .dst = dst};
    if (!p->a.gather) {
        pack.src = at(&p->a, row, k0);
        pack.dtype = p->a.dtype;
        pack.lane_stride = p->a.row_stride;
        pack.k_stride = p->a.col_stride;
        kernel->pack_a(&pack);
        return;
    }
    pack.lane_stride = k;
    pack.k_stride = 1;
    for (int64_t done = 0; done < rows; done += kernel->mr) {
        pack.lanes = rows - done < kernel->mr ? rows - done : kernel->mr;
        pack.dst = (char *)dst + done / kernel->mr * pack.units * pack.width * 4;
        p->a.gather(p->a.gather_argument, row + done, pack.lanes, k0, k, own, k);
        use_gathered(&pack, kernel, own, pack.lanes * k);
        kernel->pack_a(&pack);
    }
}

static void gather_b(const mixt__gemm_problem *p, const mixt__gemm_kernel *kernel, int64_t col, int64_t k0,
                     mixt__gemm_pack pack, float *own)
{
    if (!kernel->pairs) {
        if (pack.lanes < kernel->nr)
            memset(pack.dst, 0, (size_t)(pack.k * kernel->nr) * sizeof(float));
        p->b.gather(p->b.gather_argument, k0, pack.k, col, pack.lanes, pack.dst, kernel->nr);
        return;
    }
    int64_t k = pack.k, units = pack.units;
    char *dst = pack.dst;
    pack.lane_stride = 1;
    pack.k_stride = kernel->nr;
    for (int64_t done = 0; done < k; done += CHUNK) {
        pack.k = k - done < CHUNK ? k - done : CHUNK;
        pack.units = k - done <= CHUNK ? units - done / 2 : CHUNK / 2;
        pack.dst = dst + done / 2 * kernel->nr * 4;
        p->b.gather(p->b.gather_argument, k0 + done, pack.k, col, pack.lanes, own, kernel->nr);
        use_gathered(&pack, kernel, own, pack.k * kernel->nr);
        kernel->pack_b(&pack);
    }
}

/** Elements of a panel's columns, scaled, into the thread's own buffer, column after column or row after row as they
 * lie in memory. */
static void scale_b(const mixt__gemm_operand *b, int64_t col, int64_t cols, int64_t row, int64_t rows, float *values)
{
    bool by_columns = b->scaled_columns;
    int64_t lines = by_columns ? cols : rows, width = by_columns ? rows : cols, first = by_columns ? col : row;
    if (b->dtype == MIXT_DTYPE_NF4) {
        int64_t all = by_columns ? b->col_stride : b->row_stride; // numbers of a line in memory
        for (int64_t i = 0; i < lines; i++)
            mixt__nf4_row(b->data, b->scales, all, first + i, by_columns ? row : col, width, values + i * width);
        return;
    }
    for (int64_t i = 0; i < lines; i++) {
        const void *src = by_columns ? at(b, row, col + i) : at(b, row + i, col);
        mixt__dequantise(values + i * width, src, b->dtype, width, b->scales[first + i]);
    }
}

static void pack_pair_b(const mixt__gemm_problem *p, const mixt__gemm_kernel *kernel, int64_t col, int64_t k0,
                        mixt__gemm_pack pack, float *own)
{
    int64_t k = pack.k, units = pack.units, per_unit = kernel->pairs ? 2 : 1;
    bool by_columns = p->b.scaled_columns;
    char *dst = pack.dst;
    for (int64_t done = 0; done < k; done += CHUNK) {
        pack.k = k - done < CHUNK ? k - done : CHUNK;
        pack.units = k - done <= CHUNK ? units - done / per_unit : CHUNK / per_unit;
        pack.lane_stride = by_columns ? pack.k : 1;
        pack.k_stride = by_columns ? 1 : pack.lanes;
        pack.dst = dst + done / per_unit * kernel->nr * 4;
        scale_b(&p->b, col, pack.lanes, k0 + done, pack.k, own);
        use_gathered(&pack, kernel, own, pack.k * pack.lanes);
        kernel->pack_b(&pack);
    }
}

void mixt__gemm_pack_b(const mixt__gemm_problem *p, const mixt__gemm_kernel *kernel, int64_t col, int64_t cols,
                       int64_t k0, int64_t k, void *dst, void *own)
{
    mixt__gemm_pack pack = {.lanes = cols,
                            .k = k,
                            .units = mixt__gemm_units(kernel, k),
                            .used = kernel->nr,
                            .width = kernel->nr,
                            .dst = dst};
    for (int64_t done = 0; (p->b.gather || p->b.pair) && done < cols; done += kernel->nr) {
        pack.lanes = cols - done < kernel->nr ? cols - done : kernel->nr;
        if (p->b.gather)
            gather_b(p, kernel, col + done, k0, pack, own);
        else
            pack_pair_b(p, kernel, col + done, k0, pack, own);
        pack.dst = (char *)pack.dst + pack.units * pack.width * 4;
    }
    if (p->b.gather || p->b.pair)
        return;
    pack.src = at(&p->b, k0, col);
    pack.dtype = p->b.dtype;
    pack.lane_stride = p->b.col_stride;
    pack.k_stride = p->b.row_stride;
    kernel->pack_b(&pack);
}
