/* Batch norm over channels, forward and gradient, compiled for AVX2 and AVX-512.
 *
 * Two passes each: sums by channel, then the elements. Threads split the rows. A strip of channels is summed in
 * registers over at most 128 rows, then in doubles of the thread's own. The variance comes from one pass: deviations
 * are taken from the first row instead of the mean, so that no large mean cancels. Where rows are masked, those that
 * count lie in runs, each summed as if it were all there is.
 */
#include "backend/cpu/norm/batch_norm.h"
#include "backend/cpu/core/partials.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/core/vec.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

enum {
    STRIP = 4,
    CHUNK = 128,
    APPLY = 16
}; // vectors of a strip; rows of a sum in FP32; rows that share loaded constants

typedef struct task {
    const mixt__call *call;
    mixt__norm_rows rows;
    int64_t cols;
    mixt__partials partials; // (2, cols)
    const float *mean, *rstd;
    float *scaled_g, *scaled_gx; // gradient: means of g, and of g · x̂ · rstd, by channel
} task;

/** Adds to two sums by channel: of x - first row that counts and its square, or for the gradient of g and g · (x -
 * mean). The strip is `vecs` whole vectors of channels from c on, or the last n channels. */
VEC_INLINE void sum_strip(mixt_dtype dtype, bool grad, int vecs, int64_t n, const task *t, int64_t from, int64_t to,
                          int64_t c, double *totals)
{
    const void *src = t->call->in[0].data, *grad_dst = grad ? t->call->in[4].data : NULL;
    int64_t cols = t->cols;
    vec first[STRIP], second[STRIP], centre[STRIP];
    float lanes[VEC_LANES];
#pragma GCC unroll 4
    for (int j = 0; j < vecs; j++) {
        int64_t at = c + j * VEC_LANES;
        first[j] = second[j] = vec_zero();
        centre[j] = grad ? vec_get_part(t->mean, MIXT_DTYPE_FP32, at, n)
                         : vec_get_part(src, dtype, t->rows.first * cols + at, n);
    }
    for (int64_t r = from; r < to; r++)
#pragma GCC unroll 4
        for (int j = 0; j < vecs; j++) {
            int64_t at = r * cols + c + j * VEC_LANES;
            vec x = vec_sub(vec_get_part(src, dtype, at, n), centre[j]);
            vec g = grad ? vec_get_part(grad_dst, dtype, at, n) : x;
            first[j] = vec_add(first[j], g);
            second[j] = vec_fma(g, x, second[j]);
        }
#pragma GCC unroll 4
    for (int j = 0; j < vecs; j++)
        for (int half = 0; half < 2; half++) {
            vec_store(lanes, half ? second[j] : first[j]);
            for (int64_t i = 0; i < n; i++)
                totals[half * cols + c + j * VEC_LANES + i] += (double)lanes[i];
        }
}

/** Sums of rows that all count. */
VEC_INLINE void sum_run(mixt_dtype dtype, bool grad, const task *t, int64_t begin, int64_t end, double *totals)
{
    for (int64_t from = begin; from < end; from += CHUNK) {
        int64_t to = end - from < CHUNK ? end : from + CHUNK, c = 0;
        for (; c + STRIP * VEC_LANES <= t->cols; c += STRIP * VEC_LANES)
            sum_strip(dtype, grad, STRIP, VEC_LANES, t, from, to, c, totals);
        for (; c + VEC_LANES <= t->cols; c += VEC_LANES)
            sum_strip(dtype, grad, 1, VEC_LANES, t, from, to, c, totals);
        if (c < t->cols)
            sum_strip(dtype, grad, 1, t->cols - c, t, from, to, c, totals);
    }
}

VEC_INLINE void sum_typed(mixt_dtype dtype, bool grad, const task *t, int64_t begin, int64_t end, double *totals)
{
    for (int64_t from = begin, to; from < end; from = to) {
        to = mixt__norm_run(&t->rows, from, end);
        if (mixt__norm_row_counts(&t->rows, from))
            sum_run(dtype, grad, t, from, to, totals);
    }
}

VEC_INLINE void sum_range(bool grad, const task *t, int64_t begin, int64_t end, int thread)
{
    double *totals = mixt__partials_of(&t->partials, thread);
    switch (t->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        sum_typed(MIXT_DTYPE_FP32, grad, t, begin, end, totals);
        break;
    case MIXT_DTYPE_BF16:
        sum_typed(MIXT_DTYPE_BF16, grad, t, begin, end, totals);
        break;
    default:
        sum_typed(MIXT_DTYPE_FP16, grad, t, begin, end, totals);
    }
}

static void statistics_range(void *argument, int64_t begin, int64_t end, int thread)
{
    sum_range(false, argument, begin, end, thread);
}

static void grad_sums_range(void *argument, int64_t begin, int64_t end, int thread)
{
    sum_range(true, argument, begin, end, thread);
}

/** dst = (x - mean) · rstd · weight + bias, or grad_src = (g - mean of g - (x - mean) · …) · rstd · weight; n channels.
 */
VEC_INLINE void apply_strip(mixt_dtype dtype, bool grad, int64_t n, const task *t, int64_t from, int64_t to, int64_t c)
{
    const mixt__call *call = t->call;
    vec mean = vec_get_part(t->mean, MIXT_DTYPE_FP32, c, n);
    vec factor =
        vec_mul(vec_get_part(t->rstd, MIXT_DTYPE_FP32, c, n), vec_get_part(call->in[1].data, MIXT_DTYPE_FP32, c, n));
    vec offset = vec_get_part(grad ? t->scaled_g : call->in[2].data, MIXT_DTYPE_FP32, c, n);
    vec slope = grad ? vec_get_part(t->scaled_gx, MIXT_DTYPE_FP32, c, n) : factor;
    for (int64_t r = from; r < to; r++) {
        int64_t at = r * t->cols + c;
        vec y, x = vec_sub(vec_get_part(call->in[0].data, dtype, at, n), mean);
        if (grad)
            y = vec_mul(vec_fnma(x, slope, vec_sub(vec_get_part(call->in[4].data, dtype, at, n), offset)), factor);
        else
            y = vec_fma(x, slope, offset);
        vec_put_part(call->out[0].data, dtype, at, n, y);
    }
}

/** The elements of rows that all count. */
VEC_INLINE void apply_run(mixt_dtype dtype, bool grad, const task *t, int64_t begin, int64_t end)
{
    for (int64_t from = begin; from < end; from += APPLY) {
        int64_t to = end - from < APPLY ? end : from + APPLY, c = 0;
        for (; c + VEC_LANES <= t->cols; c += VEC_LANES)
            apply_strip(dtype, grad, VEC_LANES, t, from, to, c);
        if (c < t->cols)
            apply_strip(dtype, grad, t->cols - c, t, from, to, c);
    }
}

VEC_INLINE void apply_typed(mixt_dtype dtype, bool grad, const task *t, int64_t begin, int64_t end)
{
    size_t row = (size_t)t->cols * mixt_dtype_size(dtype);
    for (int64_t from = begin, to; from < end; from = to) {
        to = mixt__norm_run(&t->rows, from, end);
        if (mixt__norm_row_counts(&t->rows, from))
            apply_run(dtype, grad, t, from, to);
        else
            memset((char *)t->call->out[0].data + (size_t)from * row, 0, (size_t)(to - from) * row);
    }
}

VEC_INLINE void apply_range(bool grad, const task *t, int64_t begin, int64_t end)
{
    switch (t->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        apply_typed(MIXT_DTYPE_FP32, grad, t, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        apply_typed(MIXT_DTYPE_BF16, grad, t, begin, end);
        break;
    default:
        apply_typed(MIXT_DTYPE_FP16, grad, t, begin, end);
    }
}

static void normalise_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    apply_range(false, argument, begin, end);
}

static void grad_src_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    apply_range(true, argument, begin, end);
}

/** Rows a thread takes at least: below about 16 Ki elements a second thread costs more than it brings. */
static int64_t grain(int64_t cols)
{
    return 16384 / (cols + 1) + 1;
}

static mixt_status forward_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = mixt__partials_bytes(2 * mixt__tensor_cols(&call->in[0]));
    return MIXT_OK;
}

static mixt_status forward_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0];
    task t = {.call = call, .rows = mixt__batch_norm_rows(call), .cols = mixt__tensor_cols(src)};
    t.mean = call->out[1].data;
    t.rstd = call->out[2].data;
    t.partials = mixt__partials_open(call->workspace, 2 * t.cols);
    if (at->training)
        mixt__parallel(t.rows.rows, grain(t.cols), statistics_range, &t);
    for (int64_t c = 0; c < t.cols; c++) {
        double mean = 0, squares = 0;
        if (at->training && t.rows.counted) {
            double sum = mixt__partials_total(&t.partials, c), rows = (double)t.rows.counted;
            mean = sum / rows;
            squares = mixt__partials_total(&t.partials, t.cols + c) - sum * mean;
            squares = squares < 0 ? 0 : squares;
            mean += (double)mixt__load(src->data, src->dtype, t.rows.first * t.cols + c);
        }
        mixt__batch_norm_finish(call, t.rows.counted, c, mean, squares);
    }
    mixt__parallel(t.rows.rows, grain(t.cols), normalise_range, &t);
    return MIXT_OK;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    int64_t cols = mixt__tensor_cols(&call->in[0]);
    (void)arena;
    call->workspace_bytes = mixt__partials_bytes(2 * cols) + (size_t)(2 * cols) * sizeof(float);
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0];
    float *grad_weight = call->out[1].data, *grad_bias = call->out[2].data;
    task t = {.call = call, .rows = mixt__batch_norm_rows(call), .cols = mixt__tensor_cols(src)};
    t.mean = call->in[2].data;
    t.rstd = call->in[3].data;
    t.partials = mixt__partials_open(call->workspace, 2 * t.cols);
    t.scaled_g = (float *)(void *)((char *)call->workspace + mixt__partials_bytes(2 * t.cols));
    t.scaled_gx = t.scaled_g + t.cols;
    mixt__parallel(t.rows.rows, grain(t.cols), grad_sums_range, &t);
    for (int64_t c = 0; c < t.cols; c++) {
        double rstd = (double)t.rstd[c], rows = (double)t.rows.counted;
        double sum_g = mixt__partials_total(&t.partials, c),
               sum_gx = mixt__partials_total(&t.partials, t.cols + c) * rstd;
        t.scaled_g[c] = (float)(sum_g / rows);
        t.scaled_gx[c] = (float)(sum_gx / rows * rstd);
        // rounded before they are added, as ranks add their parts
        grad_weight[c] = mixt__call_adds(call, 1) ? (float)sum_gx + grad_weight[c] : (float)sum_gx;
        grad_bias[c] = mixt__call_adds(call, 2) ? (float)sum_g + grad_bias[c] : (float)sum_g;
    }
    mixt__parallel(t.rows.rows, grain(t.cols), grad_src_range, &t);
    return MIXT_OK;
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__norm_attrs *at = call->attrs;
    if (at->addend || at->relu) {
        *reason = "not with an addend or ReLU";
        return false;
    }
    return vec_supports(call, reason);
}

const mixt__kernel MIXT_AT(mixt__batch_norm) = {MIXT_AT_NAME, supports, forward_prepare, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__batch_norm_grad) = {MIXT_AT_NAME, supports, grad_prepare, grad_run, NULL};
