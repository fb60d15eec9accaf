/* Products with a few rows on the left and a weight stored by rows of its result: what one more token of a text costs.
 * Compiled for AVX2 and AVX-512.
 *
 * Each element of the weight is read once and used at most ROWS_MAX times, so packing it first would only move it more
 * often. Threads split the columns of the result; four columns are summed side by side. All arithmetic is FP32.
 */
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/core/vec.h"
#include "base/threads.h"
#include "num/num.h"

enum { ROWS_MAX = 4, SIDE = 4, GRAIN = 64 };

typedef struct task {
    const mixt__call *call;
    int64_t m, n, k, ld; // ld: from one row of the weight to the next
    const float *rows;   // the left side in FP32, `pitch` apart, padded with zeros to whole vectors
    int64_t pitch;
} task;

static int64_t pitch_of(int64_t k)
{
    return (k + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

static task describe(const mixt__call *call)
{
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    task t = {.call = call, .m = mixt__tensor_rows(a), .rows = call->workspace};
    t.n = b->shape.dims[0];
    t.k = b->shape.dims[1];
    t.ld = b->strides[0];
    t.pitch = pitch_of(t.k);
    return t;
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0];
    if (!vec_supports(call, reason))
        return false;
    *reason = "an addend or an activation in the product is not for this kernel";
    if (at->addend || at->row_sums || at->epilogue != MIXT_EPILOGUE_NONE)
        return false;
    *reason = "only a plain weight of (columns, inputs) on the right, and no transpose or view on the left";
    if (!at->trans_b || at->trans_a || call->in[1].shape.rank != 2 || a->shape.rank < 1 || !a->contiguous)
        return false;
    *reason = "a weight with scales is for another kernel";
    if (mixt__tensor_is_pair(&call->in[1]))
        return false;
    *reason = "only for up to 4 rows: beyond that the weight is worth packing";
    return mixt__tensor_rows(a) <= ROWS_MAX;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    task t = describe(call);
    call->workspace_bytes = (size_t)(t.m * t.pitch) * sizeof(float);
    return MIXT_OK;
}

/** `columns` dot products of one row with rows of the weight from element `at` on. */
VEC_INLINE void dots(mixt_dtype dtype, int columns, const task *t, const float *row, int64_t at, float *result)
{
    const void *weight = t->call->in[1].data;
    vec sum[SIDE];
    int64_t i = 0;
    for (int c = 0; c < columns; c++)
        sum[c] = vec_zero();
    for (; i + VEC_LANES <= t->k; i += VEC_LANES) {
        vec x = vec_load(row + i);
        for (int c = 0; c < columns; c++)
            sum[c] = vec_fma(x, vec_get(weight, dtype, at + c * t->ld + i), sum[c]);
    }
    for (int c = 0; c < columns; c++) {
        if (i < t->k)
            sum[c] = vec_fma(vec_load(row + i), vec_get_part(weight, dtype, at + c * t->ld + i, t->k - i), sum[c]);
        result[c] = vec_sum(sum[c]);
    }
}

static void put(const task *t, int64_t row, int64_t column, float sum)
{
    const mixt__call *call = t->call;
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *c = &call->out[0];
    int64_t i = row * t->n + column;
    float x = at->alpha * sum;
    if (at->bias)
        x += ((const float *)call->in[2].data)[column];
    if (mixt__call_adds(call, 0))
        x += mixt__load(c->data, c->dtype, i);
    mixt__store(c->data, c->dtype, i, x);
}

VEC_INLINE void columns(mixt_dtype dtype, const task *t, int64_t begin, int64_t end)
{
    float sum[SIDE];
    int64_t j = begin;
    for (; j + SIDE <= end; j += SIDE)
        for (int64_t r = 0; r < t->m; r++) {
            dots(dtype, SIDE, t, t->rows + r * t->pitch, j * t->ld, sum);
            for (int c = 0; c < SIDE; c++)
                put(t, r, j + c, sum[c]);
        }
    for (; j < end; j++)
        for (int64_t r = 0; r < t->m; r++) {
            dots(dtype, 1, t, t->rows + r * t->pitch, j * t->ld, sum);
            put(t, r, j, sum[0]);
        }
}

static void range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *t = argument;
    (void)thread;
    switch (t->call->in[1].dtype) {
    case MIXT_DTYPE_FP32:
        columns(MIXT_DTYPE_FP32, t, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        columns(MIXT_DTYPE_BF16, t, begin, end);
        break;
    default:
        columns(MIXT_DTYPE_FP16, t, begin, end);
    }
}

static mixt_status run(const mixt__call *call)
{
    task t = describe(call);
    const mixt__tensor *a = &call->in[0];
    float *rows = call->workspace;
    for (int64_t r = 0; r < t.m; r++) {
        size_t from = (size_t)(r * t.k) * mixt_dtype_size(a->dtype);
        mixt__widen(a->dtype)(rows + r * t.pitch, (const char *)a->data + from, t.k);
        memset(rows + r * t.pitch + t.k, 0, (size_t)(t.pitch - t.k) * sizeof *rows);
    }
    mixt__parallel(t.n, GRAIN, range, &t);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__matmul_rows) = {
    .name = "rows_" MIXT_AT_NAME, .supports = supports, .prepare = prepare, .run = run};
