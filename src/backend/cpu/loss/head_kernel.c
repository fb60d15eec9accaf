/* A classifier's head, compiled for AVX2 and AVX-512.
 *
 * Each thread takes some rows, a few at a time, through all that goes row by row: logits (dot products with the
 * classes' weights), loss and its gradient (cross_entropy.h), gradient of the input. Then they wait for each other, and
 * each sums its columns of the weight's gradient over all rows. The weight is small and is read where it lies: packing
 * it would cost as much as the products. All arithmetic is FP32, whatever the format.
 */
#include "backend/cpu/loss/head.h"
#include "backend/cpu/core/vec.h"
#include "base/threads.h"

enum {
    ROWS_AT_LEAST = 8, // a thread's
    ROWS = 4,          // at once
    CLASSES = VEC_LANES == 16 ? 5 : 2,
    SUMMED_CLASSES = 5,
    VECTORS = 2,
};

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

/** The gradient of `rows` × `vectors` inputs. */
VEC_INLINE void gradient_block(const mixt__head *h, const mixt_dtype dtype, int64_t row, const int rows, int64_t input,
                               const int vectors, int64_t count)
{
    vec sums[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sums[r][v] = vec_zero();
    for (int64_t c = 0; c < h->classes; c++)
        for (int v = 0; v < vectors; v++) {
            vec w = vec_get_part(h->w, dtype, c * h->inputs + input + v * VEC_LANES, count);
            for (int r = 0; r < rows; r++)
                sums[r][v] = vec_fma(vec_set(h->logits[(row + r) * h->classes + c]), w, sums[r][v]);
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
    int64_t i = 0;
    for (; i + VECTORS * VEC_LANES <= h->inputs; i += VECTORS * VEC_LANES)
        gradient_block(h, dtype, row, rows, i, VECTORS, VEC_LANES);
    for (; i + VEC_LANES <= h->inputs; i += VEC_LANES)
        gradient_block(h, dtype, row, rows, i, 1, VEC_LANES);
    if (i < h->inputs)
        gradient_block(h, dtype, row, rows, i, 1, h->inputs - i);
}

/** The weight's gradient at `classes` × `vectors` places, summed over all rows. */
VEC_INLINE void weight_block(const mixt__head *h, const mixt_dtype dtype, int64_t first, const int classes,
                             int64_t input, const int vectors, int64_t count)
{
    vec sums[SUMMED_CLASSES][VECTORS];
    for (int c = 0; c < classes; c++)
        for (int v = 0; v < vectors; v++)
            sums[c][v] = vec_zero();
    for (int64_t row = 0; row < h->rows; row++) {
        const float *grad = h->logits + row * h->classes + first;
        for (int v = 0; v < vectors; v++) {
            vec x = vec_get_part(h->x, dtype, row * h->inputs + input + v * VEC_LANES, count);
            for (int c = 0; c < classes; c++)
                sums[c][v] = vec_fma(vec_set(grad[c]), x, sums[c][v]);
        }
    }
    for (int c = 0; c < classes; c++)
        for (int v = 0; v < vectors; v++) {
            int64_t at = (first + c) * h->inputs + input + v * VEC_LANES;
            vec old = h->add_w ? vec_get_part(h->grad_w, MIXT_DTYPE_FP32, at, count) : vec_zero();
            vec_put_part(h->grad_w, MIXT_DTYPE_FP32, at, count, vec_add(old, sums[c][v]));
        }
}

VEC_INLINE void weight_columns(const mixt__head *h, const mixt_dtype dtype, int64_t input, const int vectors,
                               int64_t count)
{
    int64_t first = 0;
    for (; first + SUMMED_CLASSES <= h->classes; first += SUMMED_CLASSES)
        weight_block(h, dtype, first, SUMMED_CLASSES, input, vectors, count);
    for (; first < h->classes; first++)
        weight_block(h, dtype, first, 1, input, vectors, count);
}

VEC_INLINE void weight_range(const mixt__head *h, const mixt_dtype dtype, int64_t begin, int64_t end)
{
    int64_t i = begin;
    for (; i + VECTORS * VEC_LANES <= end; i += VECTORS * VEC_LANES)
        weight_columns(h, dtype, i, VECTORS, VEC_LANES);
    for (; i + VEC_LANES <= end; i += VEC_LANES)
        weight_columns(h, dtype, i, 1, VEC_LANES);
    if (i < end)
        weight_columns(h, dtype, i, 1, end - i);
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

VEC_INLINE void run_parts(mixt__head *h, const mixt_dtype dtype, int first, int end, int threads)
{
    for (int thread = first; thread < end; thread++) {
        mixt__range rows = mixt__range_part(h->rows, ROWS, thread, threads);
        run_range(h, dtype, rows.begin, rows.end);
    }
    if (threads > 1)
        mixt__team_barrier();
    for (int thread = first; thread < end; thread++) {
        mixt__range columns = mixt__range_part(h->inputs, VECTORS * VEC_LANES, thread, threads);
        weight_range(h, dtype, columns.begin, columns.end);
    }
    if (first == 0)
        mixt__head_grad_bias(h);
}

static void work(void *argument, int first, int end, int threads)
{
    mixt__head *h = argument;
    switch (h->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        run_parts(h, MIXT_DTYPE_FP32, first, end, threads);
        break;
    case MIXT_DTYPE_BF16:
        run_parts(h, MIXT_DTYPE_BF16, first, end, threads);
        break;
    default:
        run_parts(h, MIXT_DTYPE_FP16, first, end, threads);
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__head h;
    mixt__head_describe(call, &h);
    MIXT_TRY(mixt__loss_begin(&h.loss, &h.halves));
    int64_t most = h.rows / ROWS_AT_LEAST, threads = mixt__threads_count();
    threads = threads < most ? threads : most;
    if (threads <= 1 || !mixt__team_run((int)threads, work, &h))
        work(&h, 0, 1, 1);
    mixt__loss_end(&h.halves);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__head_rows) = {
    .name = "rows_" MIXT_AT_NAME, .supports = vec_supports, .prepare = mixt__head_prepare, .run = run};
