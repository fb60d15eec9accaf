/* The products of the recurrences and the loops over their steps: the parts that every cell shares. */
#include "backend/cpu/recurrent/steps.h"

#include "backend/cpu/gemm/gemm.h"
#include "num/num.h"

#include <string.h>

/** Batch entries a thread takes at least. */
static int64_t grain(const mixt__recurrent_sizes *s)
{
    return 1024 / (s->hidden + 1) + 1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t floats(int64_t count)
{
    return aligned((size_t)count * sizeof(float));
}

/* ---- forward ---- */

/** (B, H) · weight_hhᵀ → (B, rows); `dst` the states before the step. */
static mixt__gemm_problem forward_product(const mixt__call *call, const mixt__recurrent_sizes *s)
{
    mixt_dtype dtype = call->out[0].dtype, weight = call->in[1].dtype;
    mixt__gemm_problem p = {.m = s->batch, .n = s->rows, .k = s->hidden, .c_dtype = MIXT_DTYPE_FP32, .alpha = 1};
    p.a = (mixt__gemm_operand){.dtype = dtype, .row_stride = s->steps * s->hidden, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = call->in[1].data, .dtype = weight, .row_stride = 1, .col_stride = s->hidden};
    p.ldc = p.n;
    p.low = dtype == MIXT_DTYPE_BF16 && weight == dtype;
    return p;
}

mixt_status mixt__recurrent_forward_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    mixt__gemm_problem p = forward_product(call, &s);
    (void)arena;
    call->workspace_bytes = floats(s.batch * s.rows) + aligned(mixt__gemm_packed_bytes(&p));
    p.b_packed = &p; // only that there is one matters here
    call->workspace_bytes += mixt__gemm_workspace(&p);
    return MIXT_OK;
}

mixt_status mixt__recurrent_forward(const mixt__call *call, mixt__range_fn *pass)
{
    mixt__recurrent_step k = {.call = call, .s = mixt__recurrent_sizes_of(call), .product = call->workspace};
    mixt__gemm_problem p = forward_product(call, &k.s);
    if (k.s.batch * k.s.hidden * k.s.steps == 0)
        return MIXT_OK;
    char *packed = (char *)call->workspace + floats(k.s.batch * k.s.rows);
    char *scratch = packed + aligned(mixt__gemm_packed_bytes(&p));
    mixt__gemm_pack_whole_b(&p, packed);
    p.b_packed = packed;
    p.c = k.product;
    for (k.t = 0; k.t < k.s.steps; k.t++) {
        if (k.t > 0) {
            p.a.data = (const char *)call->out[0].data + (size_t)((k.t - 1) * k.s.hidden) * mixt_dtype_size(p.a.dtype);
            mixt__gemm_run(&p, scratch);
        }
        mixt__parallel(k.s.batch, grain(&k.s), pass, &k);
    }
    return MIXT_OK;
}

/* ---- gradient ---- */

/** Where the parts of a gradient's workspace begin; `total` without the products' own. */
typedef struct parts {
    size_t product, flow, sums, packed, total;
} parts;

/** (B, rows) · weight_hh → (B, H); a: what flows back from the step after. */
static mixt__gemm_problem grad_product(const mixt__call *call, const mixt__recurrent_sizes *s)
{
    mixt_dtype dtype = call->out[0].dtype, weight = call->in[0].dtype;
    mixt__gemm_problem p = {.m = s->batch, .n = s->hidden, .k = s->rows, .c_dtype = MIXT_DTYPE_FP32, .alpha = 1};
    p.a = (mixt__gemm_operand){.dtype = dtype, .row_stride = s->steps * s->rows, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = call->in[0].data, .dtype = weight, .row_stride = s->hidden, .col_stride = 1};
    p.ldc = p.n;
    p.low = dtype == MIXT_DTYPE_BF16 && weight == dtype;
    return p;
}

static parts parts_of(const mixt__call *call, const mixt__recurrent_sizes *s)
{
    mixt__gemm_problem p = grad_product(call, s);
    parts at = {.product = mixt__recurrent_side_bytes(call)};
    at.flow = at.product + floats(s->batch * s->hidden);
    at.sums = at.flow + floats(s->batch * s->hidden);
    at.packed = at.sums + (mixt__recurrent_side(call) ? floats(s->rows) : 0);
    at.total = at.packed + aligned(mixt__gemm_packed_bytes(&p));
    return at;
}

/** Row (b, t) is the state before step t. */
static void gather_before(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *dst,
                          int64_t ld)
{
    const mixt__call *call = argument;
    const mixt__tensor *states = &call->in[1];
    int64_t steps = states->shape.dims[1], hidden = states->shape.dims[2];
    mixt__widen_fn *widen = mixt__widen(states->dtype);
    for (int64_t r = row; r < row + rows; r++, dst += ld) {
        size_t at = (size_t)((r - 1) * hidden + col) * mixt_dtype_size(states->dtype);
        if (r % steps)
            widen(dst, (const char *)states->data + at, cols);
        else
            memset(dst, 0, (size_t)cols * sizeof(float));
    }
}

/** grad_weight_hh (rows, H) = grad_sumsᵀ · states before. */
static mixt__gemm_problem weight_product(const mixt__call *call, const mixt__recurrent_sizes *s, void *grad_sums)
{
    const mixt__tensor *grad_weight = &call->out[1];
    mixt_dtype dtype = call->out[0].dtype;
    mixt__gemm_problem p = {.m = s->rows, .n = s->hidden, .k = s->batch * s->steps, .alpha = 1};
    p.a = (mixt__gemm_operand){.data = grad_sums, .dtype = dtype, .row_stride = 1, .col_stride = s->rows};
    p.b = (mixt__gemm_operand){.dtype = call->in[1].dtype, .gather = gather_before, .gather_argument = call};
    p.c = grad_weight->data;
    p.c_dtype = grad_weight->dtype;
    p.ldc = p.n;
    p.accumulate = call->accumulate >> 1 & 1;
    p.low = dtype == MIXT_DTYPE_BF16 && call->in[1].dtype == MIXT_DTYPE_BF16;
    if (mixt__recurrent_side(call))
        p.row_sums = (float *)(void *)((char *)call->workspace + parts_of(call, s).sums);
    return p;
}

mixt_status mixt__recurrent_backward_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    mixt__gemm_problem p = grad_product(call, &s), w = weight_product(call, &s, NULL);
    (void)arena;
    p.b_packed = &p; // only that there is one matters here
    size_t step = mixt__gemm_workspace(&p), weight = mixt__gemm_workspace(&w);
    call->workspace_bytes = parts_of(call, &s).total + (step > weight ? step : weight);
    return MIXT_OK;
}

/** The last rows' sums: those of the product that bias_hn is added to. */
static void bias_grad(const mixt__call *call, const mixt__recurrent_sizes *s, const float *row_sums)
{
    float *grad_bias = call->out[2].data;
    bool add = call->accumulate >> 2 & 1;
    for (int64_t j = 0; j < s->hidden; j++)
        grad_bias[j] = row_sums[s->rows - s->hidden + j] + (add ? grad_bias[j] : 0);
}

mixt_status mixt__recurrent_backward(const mixt__call *call, mixt__range_fn *pass)
{
    mixt__recurrent_step k = {.call = call, .s = mixt__recurrent_grad_sizes(call)};
    parts at = parts_of(call, &k.s);
    char *workspace = call->workspace;
    k.product = (float *)(void *)(workspace + at.product);
    k.flow = (float *)(void *)(workspace + at.flow);
    k.grad_sums = mixt__recurrent_grad_sums(call);
    mixt__gemm_problem p = grad_product(call, &k.s), w = weight_product(call, &k.s, k.grad_sums);
    if (k.s.batch * k.s.hidden * k.s.steps > 0) {
        mixt__gemm_pack_whole_b(&p, workspace + at.packed);
        p.b_packed = workspace + at.packed;
        p.c = k.product;
        for (k.t = k.s.steps - 1; k.t >= 0; k.t--) {
            if (k.t + 1 < k.s.steps) {
                size_t next = (size_t)((k.t + 1) * k.s.rows) * mixt_dtype_size(p.a.dtype);
                p.a.data = (const char *)k.grad_sums + next;
                mixt__gemm_run(&p, workspace + at.total);
            }
            mixt__parallel(k.s.batch, grain(&k.s), pass, &k);
        }
    }
    mixt__gemm_run(&w, workspace + at.total);
    if (w.row_sums)
        bias_grad(call, &k.s, w.row_sums);
    return MIXT_OK;
}
