/* A classifier's head, some rows a thread; head_avx2.c and head_avx512.c compile it.
 *
 * Rows go through all of it a few at a time: logits (dot products with the classes' weights), loss and its gradient
 * (cross_entropy.h), gradient of the input. The weight is small and is read where it lies: packing it would cost as
 * much as the products. All arithmetic is FP32, whatever the format.
 */
#include "backend/cpu/head.h"
#include "backend/cpu/vec.h"
#include "base/threads.h"
#include "num/num.h"

enum {
    ROWS_AT_LEAST = 8, // a thread's
    ROWS = 4,          // at once
    CLASSES = VEC_LANES == 16 ? 5 : 2,
    VECTORS = 2,
    CLASSES_MAX = 32,
};

static bool supports(const mixt__call *call, const char **reason)
{
    if (!vec_supports(call, reason))
        return false;
    *reason = "only for up to 32 classes";
    return call->in[1].shape.dims[0] <= CLASSES_MAX;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__head h;
    (void)arena;
    mixt__head_describe(call, &h);
    call->workspace_bytes = mixt__head_workspace(&h);
    return MIXT_OK;
}

/** Adds `count` products to each of `rows` × `classes` sums; those two are constants where this is called. */
VEC_INLINE void add_products(const mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows, int64_t first,
                             const int classes, int64_t i, int64_t count, vec sums[ROWS][CLASSES])
{
    vec w[CLASSES];
#pragma GCC unroll 8
    for (int c = 0; c < classes; c++)
        w[c] = vec_get_part(h->w, dtype, (first + c) * h->inputs + i, count);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        vec x = vec_get_part(h->x, dtype, (row + r) * h->inputs + i, count);
#pragma GCC unroll 8
        for (int c = 0; c < classes; c++)
            sums[r][c] = vec_fma(x, w[c], sums[r][c]);
    }
}

VEC_INLINE void logits_block(const mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows, int64_t first,
                             const int classes)
{
    vec sums[ROWS][CLASSES];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < classes; c++)
            sums[r][c] = vec_zero();
    int64_t i = 0;
    for (; i + VEC_LANES <= h->inputs; i += VEC_LANES)
        add_products(h, dtype, row, rows, first, classes, i, VEC_LANES, sums);
    if (i < h->inputs)
        add_products(h, dtype, row, rows, first, classes, i, h->inputs - i, sums);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < classes; c++)
            h->logits[(row + r) * h->classes + first + c] = vec_sum(sums[r][c]) + (h->bias ? h->bias[first + c] : 0.0f);
}

VEC_INLINE void logits_rows(const mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows)
{
    int64_t first = 0;
    for (; first + CLASSES <= h->classes; first += CLASSES)
        logits_block(h, dtype, row, rows, first, CLASSES);
    for (; first < h->classes; first++)
        logits_block(h, dtype, row, rows, first, 1);
}

/** The gradient of `rows` × `vectors` inputs from those of the logits, in FP32. */
VEC_INLINE void gradient_block(const mixt__head *h, const mixt_dtype dtype, const float (*grad)[CLASSES_MAX],
                               int64_t row, const int rows, int64_t input, const int vectors, int64_t count)
{
    vec sums[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sums[r][v] = vec_zero();
    for (int64_t c = 0; c < h->classes; c++)
        for (int v = 0; v < vectors; v++) {
            vec w = vec_get_part(h->w, dtype, c * h->inputs + input + v * VEC_LANES, count);
            for (int r = 0; r < rows; r++)
                sums[r][v] = vec_fma(vec_set(grad[r][c]), w, sums[r][v]);
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            int64_t at = (row + r) * h->inputs + input + v * VEC_LANES;
            vec sum = sums[r][v];
            if (h->relu)
                sum = vec_where(vec_above_zero(vec_get_part(h->x, dtype, at, count)), sum);
            vec_put_part(h->call->out[0].data, dtype, at, count, sum);
        }
}

VEC_INLINE void gradient_rows(const mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows)
{
    float grad[ROWS][CLASSES_MAX];
    int64_t i = 0, size = (int64_t)mixt_dtype_size(dtype);
    for (int r = 0; r < rows; r++)
        mixt__widen(dtype)(grad[r], (const char *)h->call->out[1].data + (row + r) * h->classes * size, h->classes);
    for (; i + VECTORS * VEC_LANES <= h->inputs; i += VECTORS * VEC_LANES)
        gradient_block(h, dtype, grad, row, rows, i, VECTORS, VEC_LANES);
    for (; i + VEC_LANES <= h->inputs; i += VEC_LANES)
        gradient_block(h, dtype, grad, row, rows, i, 1, VEC_LANES);
    if (i < h->inputs)
        gradient_block(h, dtype, grad, row, rows, i, 1, h->inputs - i);
}

VEC_INLINE void run_rows(mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows)
{
    logits_rows(h, dtype, row, rows);
    mixt__loss_rows(&h->halves, row, row + rows);
    gradient_rows(h, dtype, row, rows);
}

VEC_INLINE void run_range(mixt__head *h, const mixt_dtype dtype, int64_t begin, int64_t end)
{
    int64_t row = begin;
    for (; row + ROWS <= end; row += ROWS)
        run_rows(h, dtype, row, ROWS);
    for (; row < end; row++)
        run_rows(h, dtype, row, 1);
}

static void work(void *argument, int64_t begin, int64_t end, int thread)
{
    mixt__head *h = argument;
    (void)thread;
    switch (h->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        run_range(h, MIXT_DTYPE_FP32, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        run_range(h, MIXT_DTYPE_BF16, begin, end);
        break;
    default:
        run_range(h, MIXT_DTYPE_FP16, begin, end);
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__head h;
    mixt__head_describe(call, &h);
    MIXT_TRY(mixt__loss_begin(&h.loss, &h.halves));
    mixt__parallel(h.rows, ROWS_AT_LEAST, work, &h);
    mixt__loss_end(&h.halves);
    return MIXT_OK;
}

const mixt__kernel VEC_ISA(mixt__head_rows) = {
    .name = "rows_" VEC_ISA_NAME, .supports = supports, .prepare = prepare, .run = run};
