/* Layer norm and root-mean-square norm over rows, forward and gradient, compiled for AVX2 and AVX-512.
 *
 * The second is the first with a mean of 0 and no bias; which of both is a constant of every step below.
 * Four rows at a time, so that four independent sums hide the latency of additions and a column's weight, or its part
 * of the parameters' gradients, is touched once for the four. Threads split the rows. Gradients of weight and bias add
 * up in FP32 over at most 128 rows, then in doubles of the thread's own.
 */
#include "backend/cpu/norm/layer_norm.h"
#include "backend/cpu/core/partials.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/core/vec.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <math.h>

enum { ROWS = 4, CHUNK = 128 };

typedef struct task {
    const mixt__call *call;
    bool rms;
    int64_t cols, kinds;        // kinds of parameters: weight, and for layer norm bias
    const void *src, *grad_dst; // grad_dst: gradient only
    const float *weight, *bias; // bias: forward only
    float *mean, *rstd;         // mean: NULL with rms
    mixt__partials partials;    // gradient: (kinds, cols)
    float *sums;                // gradient, by thread: (2, cols)
} task;

static task task_of(const mixt__call *call, bool gradient)
{
    bool rms = call->op == &mixt__op_rms_norm || call->op == &mixt__op_rms_norm_grad;
    mixt__tensor *stats = gradient ? call->in + 2 : call->out + 1;
    return (task){
        .call = call,
        .rms = rms,
        .cols = mixt__tensor_cols(&call->in[0]),
        .kinds = rms ? 1 : 2,
        .src = call->in[0].data,
        .grad_dst = gradient ? call->in[rms ? 3 : 4].data : NULL,
        .weight = call->in[1].data,
        .bias = gradient || rms ? NULL : call->in[2].data,
        .mean = rms ? NULL : stats[0].data,
        .rstd = stats[rms ? 0 : 1].data,
    };
}

/* The steps below handle `n` columns from c on of `rows` rows from r on. Callers pass constants for dtype, rms, rows
 * and, in all but the last step of a row, n. */

VEC_INLINE vec centred(mixt_dtype dtype, const task *t, int64_t row, float mean, int64_t c, int64_t n)
{
    vec x = vec_sub(vec_get_part(t->src, dtype, row * t->cols + c, n), vec_set(mean));
    return n < VEC_LANES ? vec_keep(x, n, vec_zero()) : x;
}

VEC_INLINE void forward_sum(mixt_dtype dtype, int rows, const task *t, int64_t r, int64_t c, int64_t n, vec *sum)
{
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        sum[i] = vec_add(sum[i], vec_get_part(t->src, dtype, (r + i) * t->cols + c, n));
}

VEC_INLINE void forward_squares(mixt_dtype dtype, int rows, const task *t, int64_t r, int64_t c, int64_t n,
                                const float *mean, vec *squares)
{
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        vec x = centred(dtype, t, r + i, mean[i], c, n);
        squares[i] = vec_fma(x, x, squares[i]);
    }
}

VEC_INLINE void forward_store(mixt_dtype dtype, bool rms, int rows, const task *t, int64_t r, int64_t c, int64_t n,
                              const float *mean, const float *rstd)
{
    vec w = vec_get_part(t->weight, MIXT_DTYPE_FP32, c, n),
        b = rms ? vec_zero() : vec_get_part(t->bias, MIXT_DTYPE_FP32, c, n);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        vec x = vec_mul(centred(dtype, t, r + i, mean[i], c, n), vec_set(rstd[i]));
        vec_put_part(t->call->out[0].data, dtype, (r + i) * t->cols + c, n, vec_fma(x, w, b));
    }
}

VEC_INLINE void forward_rows(mixt_dtype dtype, bool rms, int rows, const task *t, int64_t r)
{
    const mixt__norm_attrs *at = t->call->attrs;
    int64_t cols = t->cols, whole = cols / VEC_LANES * VEC_LANES;
    float mean[ROWS], rstd[ROWS];
    vec sum[ROWS], squares[ROWS];
    for (int i = 0; i < rows; i++)
        sum[i] = squares[i] = vec_zero();
    for (int64_t c = 0; !rms && c < whole; c += VEC_LANES)
        forward_sum(dtype, rows, t, r, c, VEC_LANES, sum);
    if (!rms && whole < cols)
        forward_sum(dtype, rows, t, r, whole, cols - whole, sum);
    for (int i = 0; i < rows; i++)
        mean[i] = rms ? 0 : vec_sum(sum[i]) / (float)cols;
    for (int64_t c = 0; c < whole; c += VEC_LANES)
        forward_squares(dtype, rows, t, r, c, VEC_LANES, mean, squares);
    if (whole < cols)
        forward_squares(dtype, rows, t, r, whole, cols - whole, mean, squares);
    for (int i = 0; i < rows; i++) {
        rstd[i] = 1 / sqrtf(vec_sum(squares[i]) / (float)cols + at->eps);
        if (!rms)
            t->mean[r + i] = mean[i];
        t->rstd[r + i] = rstd[i];
    }
    for (int64_t c = 0; c < whole; c += VEC_LANES)
        forward_store(dtype, rms, rows, t, r, c, VEC_LANES, mean, rstd);
    if (whole < cols)
        forward_store(dtype, rms, rows, t, r, whole, cols - whole, mean, rstd);
}

VEC_INLINE void forward_typed(mixt_dtype dtype, bool rms, const task *t, int64_t begin, int64_t end)
{
    int64_t r = begin;
    for (; r + ROWS <= end; r += ROWS)
        forward_rows(dtype, rms, ROWS, t, r);
    for (; r < end; r++)
        forward_rows(dtype, rms, 1, t, r);
}

VEC_INLINE void forward_formed(mixt_dtype dtype, const task *t, int64_t begin, int64_t end)
{
    if (t->rms)
        forward_typed(dtype, true, t, begin, end);
    else
        forward_typed(dtype, false, t, begin, end);
}

static void forward_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *t = argument;
    (void)thread;
    switch (t->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        forward_formed(MIXT_DTYPE_FP32, t, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        forward_formed(MIXT_DTYPE_BF16, t, begin, end);
        break;
    default:
        forward_formed(MIXT_DTYPE_FP16, t, begin, end);
    }
}

/** Rows a thread takes at least: below about 16 Ki elements a second thread costs more than it brings. */
static int64_t grain(int64_t cols)
{
    int64_t rows = 16384 / (cols + 1) + 1;
    return (rows + ROWS - 1) / ROWS * ROWS;
}

static mixt_status forward_run(const mixt__call *call)
{
    task t = task_of(call, false);
    mixt__parallel(mixt__tensor_rows(&call->in[0]), grain(t.cols), forward_range, &t);
    return MIXT_OK;
}

/** Sums of the rows go to sum_g and sum_gx, sums of the columns to `sums`. */
VEC_INLINE void grad_sum(mixt_dtype dtype, bool rms, int rows, const task *t, int64_t r, int64_t c, int64_t n,
                         float *sums, vec *sum_g, vec *sum_gx)
{
    const float *rstd = t->rstd;
    vec w = vec_get_part(t->weight, MIXT_DTYPE_FP32, c, n);
    vec grad_w = vec_get_part(sums, MIXT_DTYPE_FP32, c, n),
        grad_b = rms ? vec_zero() : vec_get_part(sums, MIXT_DTYPE_FP32, t->cols + c, n);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        vec x = vec_mul(centred(dtype, t, r + i, rms ? 0 : t->mean[r + i], c, n), vec_set(rstd[r + i]));
        vec dy = vec_get_part(t->grad_dst, dtype, (r + i) * t->cols + c, n), g = vec_mul(dy, w);
        if (!rms)
            sum_g[i] = vec_add(sum_g[i], g);
        sum_gx[i] = vec_fma(g, x, sum_gx[i]);
        grad_w = vec_fma(dy, x, grad_w);
        if (!rms)
            grad_b = vec_add(grad_b, dy);
    }
    vec_put_part(sums, MIXT_DTYPE_FP32, c, n, grad_w);
    if (!rms)
        vec_put_part(sums, MIXT_DTYPE_FP32, t->cols + c, n, grad_b);
}

VEC_INLINE void grad_store(mixt_dtype dtype, bool rms, int rows, const task *t, int64_t r, int64_t c, int64_t n,
                           const float *mean_g, const float *mean_gx)
{
    const float *rstd = t->rstd;
    vec w = vec_get_part(t->weight, MIXT_DTYPE_FP32, c, n);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        vec scale = vec_set(rstd[r + i]), x = vec_mul(centred(dtype, t, r + i, rms ? 0 : t->mean[r + i], c, n), scale);
        vec g = vec_mul(vec_get_part(t->grad_dst, dtype, (r + i) * t->cols + c, n), w);
        g = vec_fnma(x, vec_set(mean_gx[i]), vec_sub(g, vec_set(mean_g[i])));
        vec_put_part(t->call->out[0].data, dtype, (r + i) * t->cols + c, n, vec_mul(g, scale));
    }
}

VEC_INLINE void grad_rows(mixt_dtype dtype, bool rms, int rows, const task *t, int64_t r, float *sums)
{
    int64_t cols = t->cols, whole = cols / VEC_LANES * VEC_LANES;
    vec sum_g[ROWS], sum_gx[ROWS];
    float mean_g[ROWS], mean_gx[ROWS];
    for (int i = 0; i < rows; i++)
        sum_g[i] = sum_gx[i] = vec_zero();
    for (int64_t c = 0; c < whole; c += VEC_LANES)
        grad_sum(dtype, rms, rows, t, r, c, VEC_LANES, sums, sum_g, sum_gx);
    if (whole < cols)
        grad_sum(dtype, rms, rows, t, r, whole, cols - whole, sums, sum_g, sum_gx);
    for (int i = 0; i < rows; i++) {
        mean_g[i] = rms ? 0 : vec_sum(sum_g[i]) / (float)cols;
        mean_gx[i] = vec_sum(sum_gx[i]) / (float)cols;
    }
    for (int64_t c = 0; c < whole; c += VEC_LANES)
        grad_store(dtype, rms, rows, t, r, c, VEC_LANES, mean_g, mean_gx);
    if (whole < cols)
        grad_store(dtype, rms, rows, t, r, whole, cols - whole, mean_g, mean_gx);
}

VEC_INLINE void grad_typed(mixt_dtype dtype, bool rms, const task *t, int64_t begin, int64_t end, int thread)
{
    float *sums = t->sums + thread * 2 * t->cols;
    double *totals = mixt__partials_of(&t->partials, thread);
    for (int64_t from = begin; from < end; from += CHUNK) {
        int64_t r = from, to = end - from < CHUNK ? end : from + CHUNK;
        memset(sums, 0, (size_t)(2 * t->cols) * sizeof(float));
        for (; r + ROWS <= to; r += ROWS)
            grad_rows(dtype, rms, ROWS, t, r, sums);
        for (; r < to; r++)
            grad_rows(dtype, rms, 1, t, r, sums);
        for (int64_t c = 0; c < t->kinds * t->cols; c++)
            totals[c] += (double)sums[c];
    }
}

VEC_INLINE void grad_formed(mixt_dtype dtype, const task *t, int64_t begin, int64_t end, int thread)
{
    if (t->rms)
        grad_typed(dtype, true, t, begin, end, thread);
    else
        grad_typed(dtype, false, t, begin, end, thread);
}

static void grad_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *t = argument;
    switch (t->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        grad_formed(MIXT_DTYPE_FP32, t, begin, end, thread);
        break;
    case MIXT_DTYPE_BF16:
        grad_formed(MIXT_DTYPE_BF16, t, begin, end, thread);
        break;
    default:
        grad_formed(MIXT_DTYPE_FP16, t, begin, end, thread);
    }
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    int64_t cols = mixt__tensor_cols(&call->in[0]);
    (void)arena;
    call->workspace_bytes = mixt__partials_bytes(2 * cols) + (size_t)(mixt__threads_count() * 2 * cols) * sizeof(float);
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    task t = task_of(call, true);
    t.partials = mixt__partials_open(call->workspace, 2 * t.cols);
    t.sums = (float *)(void *)((char *)call->workspace + mixt__partials_bytes(2 * t.cols));
    mixt__parallel(mixt__tensor_rows(&call->in[0]), grain(t.cols), grad_range, &t);
    for (int o = 1; o <= t.kinds; o++) {
        float *grad = call->out[o].data;
        for (int64_t c = 0; c < t.cols; c++) {
            float total = (float)mixt__partials_total(&t.partials, (o - 1) * t.cols + c);
            grad[c] = mixt__call_adds(call, o) ? total + grad[c] : total; // rounded first: as ranks add their parts
        }
    }
    return MIXT_OK;
}

static bool grad_supports(const mixt__call *call, const char **reason)
{
    const mixt__norm_attrs *at = call->attrs;
    if (at->addend || at->totals) {
        *reason = "not with an addend or the result's sums";
        return false;
    }
    return vec_supports(call, reason);
}

const mixt__kernel MIXT_AT(mixt__layer_norm) = {MIXT_AT_NAME, vec_supports, NULL, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__layer_norm_grad) = {MIXT_AT_NAME, grad_supports, grad_prepare, grad_run, NULL};
