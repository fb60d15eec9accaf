/* Matrix products. "packed" is the engine of gemm.h; "widened" the same for operands in FP8 (widened.c); "plain" three
 * loops; "rows_…" are for a few rows, where packing the weight would cost more than the product.
 *
 * A call is a batch of equal products: one when b is a plain matrix (the leading dimensions of a are rows), else one
 * per leading index. Operands may be strided views whose last dimension is contiguous.
 */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/core/maths.h"
#include "backend/cpu/core/rows.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

typedef struct product {
    int64_t batch, m, n, k;
    int64_t a_row, a_col, b_row, b_col; // element strides of op(a), op(b)
    int64_t a_step, b_step, c_step;     // from one product of the batch to the next, in elements
} product;

/** Whether all leading dimensions of a strided operand can be walked with one stride. */
static bool one_stride(const mixt__tensor *t, int dims)
{
    for (int i = 0; i + 1 < dims; i++)
        if (t->shape.dims[i] != 1 && t->strides[i] != t->strides[i + 1] * t->shape.dims[i + 1])
            return false;
    return true;
}

static product describe(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    int ra = a->shape.rank, rb = b->shape.rank;
    bool rows = rb == 2 && ra != 2;
    product p = {
        .batch = 1, .m = 1, .n = b->shape.dims[rb - 1 - at->trans_b], .k = b->shape.dims[rb - 2 + at->trans_b]};
    int64_t row = ra > 1 ? a->strides[ra - 2] : 0;
    p.a_row = at->trans_a ? 1 : row;
    p.a_col = at->trans_a ? row : 1;
    p.b_row = at->trans_b ? 1 : b->strides[rb - 2];
    p.b_col = at->trans_b ? b->strides[rb - 2] : 1;
    if (rows) {
        for (int i = 0; i + 1 < ra; i++)
            p.m *= a->shape.dims[i];
        return p;
    }
    p.m = a->shape.dims[ra - 2 + at->trans_a];
    for (int i = 0; i < ra - 2; i++)
        p.batch *= a->shape.dims[i];
    if (ra > 2) {
        p.a_step = a->strides[ra - 3];
        p.b_step = b->strides[rb - 3];
        p.c_step = p.m * p.n;
    }
    return p;
}

static bool regular(const mixt__call *call, const char **reason)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    bool rows = b->shape.rank == 2 && a->shape.rank != 2;
    *reason = "operands in FP8 are for another kernel";
    if (mixt__tensor_is_scaled(a) || mixt__tensor_is_scaled(b))
        return false;
    *reason = "an addend or an activation other than ReLU in the product is not for this kernel";
    if (at->addend || at->epilogue == MIXT_EPILOGUE_GELU || at->epilogue == MIXT_EPILOGUE_GELU_GRAD)
        return false;
    *reason = "the gradient of ReLU in a batch of products is not for this kernel";
    if (at->epilogue == MIXT_EPILOGUE_RELU_GRAD && !rows && a->shape.rank > 2)
        return false;
    *reason = "an operand is a view whose leading dimensions have no common stride";
    return one_stride(a, a->shape.rank - (rows ? 1 : 2)) && one_stride(b, b->shape.rank - 2);
}

static void relu(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *block, int64_t ld)
{
    (void)argument, (void)row, (void)col;
    if (ld == cols) { // as one row
        cols *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++)
        mixt__row_loops_best()->relu(block + r * ld, cols);
}

/** The argument is a (rows, n) tensor: what ReLU made. */
static void relu_grad(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *block,
                      int64_t ld)
{
    const mixt__tensor *pre = argument;
    const mixt__row_loops *loops = mixt__row_loops_best();
    for (int64_t r = 0; r < rows; r++) {
        const void *mask = mixt__row_at(pre->data, pre->dtype, (row + r) * mixt__tensor_cols(pre) + col);
        if (pre->dtype == MIXT_DTYPE_FP32)
            loops->keep_where(block + r * ld, mask, cols);
        else
            loops->keep_where_low(block + r * ld, mask, pre->dtype == MIXT_DTYPE_BF16 ? 0x7f80 : 0x7c00, cols);
    }
}

static mixt__gemm_problem problem(const mixt__call *call, const product *p)
{
    const mixt__matmul_attrs *at = call->attrs;
    mixt__gemm_problem g = {.m = p->m, .n = p->n, .k = p->k, .alpha = at->alpha, .ldc = p->n};
    g.a = (mixt__gemm_operand){
        .data = call->in[0].data, .dtype = call->in[0].dtype, .row_stride = p->a_row, .col_stride = p->a_col};
    g.b = (mixt__gemm_operand){
        .data = call->in[1].data, .dtype = call->in[1].dtype, .row_stride = p->b_row, .col_stride = p->b_col};
    g.c = call->out[0].data;
    g.c_dtype = call->out[0].dtype;
    g.accumulate = call->accumulate & 1;
    g.bias = at->bias ? call->in[2].data : NULL;
    g.epilogue = at->epilogue == MIXT_EPILOGUE_RELU ? relu : at->epilogue == MIXT_EPILOGUE_RELU_GRAD ? relu_grad : NULL;
    g.epilogue_argument = &call->in[call->in_count - 1];
    g.row_sums = at->row_sums ? call->out[1].data : NULL;
    g.add_row_sums = mixt__call_adds(call, 1);
    g.b.pair = mixt__tensor_is_pair(&call->in[1]);
    g.b.scaled_columns = at->trans_b;
    g.b.scales = call->in[1].scales;
    g.low = g.a.dtype == MIXT_DTYPE_BF16 && (g.b.dtype == MIXT_DTYPE_BF16 || g.b.pair);
    return g;
}

static mixt_status packed_prepare(mixt__call *call, mixt__arena *arena)
{
    product p = describe(call);
    mixt__gemm_problem g = problem(call, &p);
    call->workspace_bytes = mixt__gemm_workspace(&g) * (size_t)(p.batch > 1 ? mixt__threads_count() : 1);
    if (p.batch > 1)
        return MIXT_OK;
    call->state = (void *)(uintptr_t)mixt__gemm_plan_keep(&g, arena);
    return call->state ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to plan a product");
}

static mixt_status plain_run(const mixt__call *call);

static mixt_status packed_run(const mixt__call *call)
{
    product p = describe(call);
    mixt__gemm_problem g = problem(call, &p);
    // The engine adds before the epilogue, and does nothing where there are no columns; no step asks for either.
    if ((g.epilogue && g.accumulate) || (g.row_sums && !g.n))
        return plain_run(call);
    int64_t size = (int64_t)mixt_dtype_size(g.a.dtype), c_size = (int64_t)mixt_dtype_size(g.c_dtype);
    g.plan = call->state;
    if (p.batch == 1)
        mixt__gemm_run(&g, call->workspace);
    else
        mixt__gemm_run_batched(&g, p.batch, p.a_step * size, p.b_step * size, p.c_step * c_size, call->workspace);
    return MIXT_OK;
}

const mixt__kernel mixt__matmul_packed = {
    .name = "packed", .supports = regular, .prepare = packed_prepare, .run = packed_run};

/* ---- plain ---- */

/** Element offset of matrix number `index` among the leading dimensions of a batched operand. */
static int64_t matrix_offset(const mixt__tensor *t, int dims, int64_t index)
{
    int64_t offset = 0;
    for (int i = dims - 1; i >= 0; i--) {
        offset += index % t->shape.dims[i] * t->strides[i];
        index /= t->shape.dims[i];
    }
    return offset;
}

static float dot(const mixt__call *call, const product *p, int64_t a, int64_t b)
{
    double sum = 0;
    for (int64_t k = 0; k < p->k; k++)
        sum += (double)mixt__tensor_load(&call->in[0], a + k * p->a_col) *
               (double)mixt__tensor_load(&call->in[1], b + k * p->b_row);
    return (float)sum;
}

/** The product's element i, alpha and bias in it, as it is stored: with the addend, after the epilogue. */
static float finish(const mixt__call *call, int64_t i, float x)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *addend = &call->in[2 + at->bias], *pre = &call->in[call->in_count - 1];
    if (at->addend)
        x += mixt__load(addend->data, addend->dtype, i);
    switch (at->epilogue) {
    case MIXT_EPILOGUE_NONE:
        return x;
    case MIXT_EPILOGUE_RELU:
        return x <= 0.0f ? 0.0f : x; // NaN stays
    case MIXT_EPILOGUE_GELU:
        mixt__store(call->out[1].data, call->out[1].dtype, i, x);
        return mixt__maths_gelu(x);
    case MIXT_EPILOGUE_RELU_GRAD:
        return mixt__load(pre->data, pre->dtype, i) > 0.0f ? x : 0.0f;
    default:
        return x * mixt__maths_gelu_slope(mixt__load(pre->data, pre->dtype, i));
    }
}

static void plain_row_sums(const mixt__call *call, const product *p)
{
    for (int64_t row = 0; row < p->m; row++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += (double)mixt__tensor_load(&call->in[0], row * p->a_row + k * p->a_col);
        float *total = (float *)call->out[1].data + row;
        *total = (float)sum + (mixt__call_adds(call, 1) ? *total : 0.0f);
    }
}

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *ta = &call->in[0], *tb = &call->in[1], *c = &call->out[0];
    product p = describe(call);
    bool rows = tb->shape.rank == 2 && ta->shape.rank != 2;
    if (at->row_sums)
        plain_row_sums(call, &p);
    for (int64_t i = 0; i < p.batch * p.m; i++) {
        int64_t a = rows ? matrix_offset(ta, ta->shape.rank - 1, i)
                         : matrix_offset(ta, ta->shape.rank - 2, i / p.m) + i % p.m * p.a_row;
        int64_t b = rows ? 0 : matrix_offset(tb, tb->shape.rank - 2, i / p.m);
        for (int64_t j = 0; j < p.n; j++) {
            float value = at->alpha * dot(call, &p, a, b + j * p.b_col);
            if (at->bias)
                value += ((const float *)call->in[2].data)[j];
            value = finish(call, i * p.n + j, value);
            if (call->accumulate & 1)
                value += mixt__load(c->data, c->dtype, i * p.n + j);
            mixt__store(c->data, c->dtype, i * p.n + j, value);
        }
    }
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};

extern const mixt__kernel mixt__matmul_rows_avx512, mixt__matmul_rows_avx2, mixt__matmul_widened;

const mixt__kernel *const mixt__cpu_matmul_kernels[] = {
    &mixt__matmul_rows_avx512, &mixt__matmul_rows_avx2, &mixt__matmul_packed, &mixt__matmul_widened, &plain, NULL,
};
