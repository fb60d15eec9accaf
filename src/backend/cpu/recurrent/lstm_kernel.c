/* The recurrence of an LSTM layer step by step, forward and gradient, compiled for AVX2 and AVX-512.
 *
 * A step is one product of all batch entries with weight_hh (packed once for all steps) and one pass over the gates,
 * whose batch entries threads split. The gradient of weight_hh is one product at the end: the states before each step
 * are gathered as its operand, zeros before a sequence's first.
 */
#include "backend/cpu/core/vecmath.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/recurrent/lstm.h"
#include "base/threads.h"
#include "num/num.h"

typedef struct task {
    const mixt__call *call;
    mixt__lstm_sizes s;
    int64_t t;        // the step
    float *product;   // forward: (B, 4H) from the state before; gradient: (B, H) from the step after
    float *grad_cell; // gradient: (B, H) from the step after
    void *packed, *scratch;
} task;

/** Element (b, t, 0) of a contiguous (B, T, width) tensor. */
static int64_t place(const task *k, int64_t b, int64_t width)
{
    return (b * k->s.steps + k->t) * width;
}

/** n units from j on of batch entry b: gates, cell and state after this step. */
VEC_INLINE void forward_vector(mixt_dtype dtype, int64_t n, const task *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = place(k, b, 4 * hidden) + j, state = place(k, b, hidden) + j;
    float *cell = call->out[2].data;
    vec gate[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        vec x = vec_get_part(call->in[0].data, dtype, gates + g * hidden, n);
        if (k->t > 0)
            x = vec_add(x, vec_get_part(k->product, MIXT_DTYPE_FP32, b * 4 * hidden + g * hidden + j, n));
        gate[g] = g == 2 ? vec_tanh(x) : vec_sigmoid(x);
        vec_put_part(call->out[1].data, dtype, gates + g * hidden, n, gate[g]);
    }
    vec c = vec_mul(gate[0], gate[2]);
    if (k->t > 0)
        c = vec_fma(gate[1], vec_get_part(cell, MIXT_DTYPE_FP32, state - hidden, n), c);
    vec_put_part(cell, MIXT_DTYPE_FP32, state, n, c);
    vec_put_part(call->out[0].data, dtype, state, n, vec_mul(gate[3], vec_tanh(c)));
}

/** x · (1 - x), the derivative of the logistic function by its value. */
VEC_INLINE vec logistic_slope(vec x)
{
    return vec_fnma(x, x, x);
}

VEC_INLINE void grad_vector(mixt_dtype dtype, int64_t n, const task *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = place(k, b, 4 * hidden) + j, state = place(k, b, hidden) + j;
    const float *cell = call->in[3].data;
    vec gate[4], one = vec_set(1), before = vec_zero(), grad_c = vec_zero();
    vec grad_h = vec_get_part(call->in[4].data, dtype, state, n);
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
        gate[g] = vec_get_part(call->in[2].data, dtype, gates + g * hidden, n);
    if (k->t + 1 < k->s.steps) {
        grad_h = vec_add(grad_h, vec_get_part(k->product, MIXT_DTYPE_FP32, b * hidden + j, n));
        grad_c = vec_get_part(k->grad_cell, MIXT_DTYPE_FP32, b * hidden + j, n);
    }
    if (k->t > 0)
        before = vec_get_part(cell, MIXT_DTYPE_FP32, state - hidden, n);
    vec out = vec_tanh(vec_get_part(cell, MIXT_DTYPE_FP32, state, n));
    grad_c = vec_fma(vec_mul(grad_h, gate[3]), vec_fnma(out, out, one), grad_c);
    vec result[4] = {vec_mul(vec_mul(grad_c, gate[2]), logistic_slope(gate[0])),
                     vec_mul(vec_mul(grad_c, before), logistic_slope(gate[1])),
                     vec_mul(vec_mul(grad_c, gate[0]), vec_fnma(gate[2], gate[2], one)),
                     vec_mul(vec_mul(grad_h, out), logistic_slope(gate[3]))};
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
        vec_put_part(call->out[0].data, dtype, gates + g * hidden, n, result[g]);
    vec_put_part(k->grad_cell, MIXT_DTYPE_FP32, b * hidden + j, n, vec_mul(grad_c, gate[1]));
}

VEC_INLINE void step_typed(mixt_dtype dtype, bool grad, const task *k, int64_t begin, int64_t end)
{
    int64_t hidden = k->s.hidden, whole = hidden / VEC_LANES * VEC_LANES;
    for (int64_t b = begin; b < end; b++) {
        for (int64_t j = 0; j < whole; j += VEC_LANES)
            grad ? grad_vector(dtype, VEC_LANES, k, b, j) : forward_vector(dtype, VEC_LANES, k, b, j);
        if (whole < hidden)
            grad ? grad_vector(dtype, hidden - whole, k, b, whole) : forward_vector(dtype, hidden - whole, k, b, whole);
    }
}

VEC_INLINE void step_range(bool grad, const task *k, int64_t begin, int64_t end)
{
    switch (k->call->out[0].dtype) {
    case MIXT_DTYPE_FP32:
        step_typed(MIXT_DTYPE_FP32, grad, k, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        step_typed(MIXT_DTYPE_BF16, grad, k, begin, end);
        break;
    default:
        step_typed(MIXT_DTYPE_FP16, grad, k, begin, end);
    }
}

static void forward_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    step_range(false, argument, begin, end);
}

static void grad_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    step_range(true, argument, begin, end);
}

/** Batch entries a thread takes at least. */
static int64_t grain(const mixt__lstm_sizes *s)
{
    return 1024 / (s->hidden + 1) + 1;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/** (B, H) · weight_hhᵀ → (B, 4H); `dst` the states before the step. */
static mixt__gemm_problem forward_product(const mixt__call *call, const mixt__lstm_sizes *s)
{
    mixt_dtype dtype = call->out[0].dtype, weight = call->in[1].dtype;
    mixt__gemm_problem p = {.m = s->batch, .n = 4 * s->hidden, .k = s->hidden, .c_dtype = MIXT_DTYPE_FP32, .alpha = 1};
    p.a = (mixt__gemm_operand){.dtype = dtype, .row_stride = s->steps * s->hidden, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = call->in[1].data, .dtype = weight, .row_stride = 1, .col_stride = s->hidden};
    p.ldc = p.n;
    p.low = dtype == MIXT_DTYPE_BF16 && weight == dtype;
    return p;
}

static mixt_status forward_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[0]);
    mixt__gemm_problem p = forward_product(call, &s);
    (void)arena;
    call->workspace_bytes =
        aligned((size_t)(4 * s.batch * s.hidden) * sizeof(float)) + aligned(mixt__gemm_packed_bytes(&p));
    p.b_packed = &p; // only that there is one matters here
    call->workspace_bytes += mixt__gemm_workspace(&p);
    return MIXT_OK;
}

static mixt_status forward_run(const mixt__call *call)
{
    task k = {.call = call, .s = mixt__lstm_sizes_of(&call->in[0]), .product = call->workspace};
    mixt__gemm_problem p = forward_product(call, &k.s);
    if (k.s.batch * k.s.hidden * k.s.steps == 0)
        return MIXT_OK;
    k.packed = (char *)call->workspace + aligned((size_t)(4 * k.s.batch * k.s.hidden) * sizeof(float));
    k.scratch = (char *)k.packed + aligned(mixt__gemm_packed_bytes(&p));
    mixt__gemm_pack_whole_b(&p, k.packed);
    p.b_packed = k.packed;
    p.c = k.product;
    for (k.t = 0; k.t < k.s.steps; k.t++) {
        if (k.t > 0) {
            p.a.data = (const char *)call->out[0].data + (size_t)((k.t - 1) * k.s.hidden) * mixt_dtype_size(p.a.dtype);
            mixt__gemm_run(&p, k.scratch);
        }
        mixt__parallel(k.s.batch, grain(&k.s), forward_range, &k);
    }
    return MIXT_OK;
}

/** (B, 4H) · weight_hh → (B, H); a: grad_gates_x of the step after. */
static mixt__gemm_problem grad_product(const mixt__call *call, const mixt__lstm_sizes *s)
{
    mixt_dtype dtype = call->out[0].dtype, weight = call->in[0].dtype;
    mixt__gemm_problem p = {.m = s->batch, .n = s->hidden, .k = 4 * s->hidden, .c_dtype = MIXT_DTYPE_FP32, .alpha = 1};
    p.a = (mixt__gemm_operand){.dtype = dtype, .row_stride = s->steps * 4 * s->hidden, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = call->in[0].data, .dtype = weight, .row_stride = s->hidden, .col_stride = 1};
    p.ldc = p.n;
    p.low = dtype == MIXT_DTYPE_BF16 && weight == dtype;
    return p;
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

/** grad_weight_hh (4H, H) = grad_gates_xᵀ · states before. */
static mixt__gemm_problem weight_product(const mixt__call *call, const mixt__lstm_sizes *s)
{
    const mixt__tensor *grad = &call->out[0], *grad_weight = &call->out[1];
    mixt__gemm_problem p = {.m = 4 * s->hidden, .n = s->hidden, .k = s->batch * s->steps, .alpha = 1};
    p.a = (mixt__gemm_operand){.data = grad->data, .dtype = grad->dtype, .row_stride = 1, .col_stride = 4 * s->hidden};
    p.b = (mixt__gemm_operand){.dtype = call->in[1].dtype, .gather = gather_before, .gather_argument = call};
    p.c = grad_weight->data;
    p.c_dtype = grad_weight->dtype;
    p.ldc = p.n;
    p.accumulate = call->accumulate >> 1 & 1;
    p.low = grad->dtype == MIXT_DTYPE_BF16 && call->in[1].dtype == MIXT_DTYPE_BF16;
    return p;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    mixt__gemm_problem p = grad_product(call, &s), w = weight_product(call, &s);
    (void)arena;
    call->workspace_bytes =
        2 * aligned((size_t)(s.batch * s.hidden) * sizeof(float)) + aligned(mixt__gemm_packed_bytes(&p));
    p.b_packed = &p; // only that there is one matters here
    size_t step = mixt__gemm_workspace(&p), weight = mixt__gemm_workspace(&w);
    call->workspace_bytes += step > weight ? step : weight;
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    task k = {.call = call, .s = mixt__lstm_sizes_of(&call->in[2]), .product = call->workspace};
    mixt__gemm_problem p = grad_product(call, &k.s), w = weight_product(call, &k.s);
    size_t state = aligned((size_t)(k.s.batch * k.s.hidden) * sizeof(float));
    k.grad_cell = (float *)(void *)((char *)call->workspace + state);
    k.packed = (char *)call->workspace + 2 * state;
    k.scratch = (char *)k.packed + aligned(mixt__gemm_packed_bytes(&p));
    if (k.s.batch * k.s.hidden * k.s.steps > 0) {
        mixt__gemm_pack_whole_b(&p, k.packed);
        p.b_packed = k.packed;
        p.c = k.product;
        for (k.t = k.s.steps - 1; k.t >= 0; k.t--) {
            if (k.t + 1 < k.s.steps) {
                size_t next = (size_t)((k.t + 1) * 4 * k.s.hidden) * mixt_dtype_size(p.a.dtype);
                p.a.data = (const char *)call->out[0].data + next;
                mixt__gemm_run(&p, k.scratch);
            }
            mixt__parallel(k.s.batch, grain(&k.s), grad_range, &k);
        }
    }
    mixt__gemm_run(&w, k.scratch);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__lstm) = {MIXT_AT_NAME, vec_supports, forward_prepare, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__lstm_grad) = {MIXT_AT_NAME, vec_supports, grad_prepare, grad_run, NULL};
