/* Softmax over the last dimension and its gradient, in FP32 whatever the format; threads split the rows.
 *
 * A row that fits a tile is read once; a longer one is read twice (its second reading comes from the L2 cache), so no
 * workspace is needed. The output may be the memory of an input: a tile is read before it is written.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"

#include <math.h>

static int64_t columns_of(const mixt__call *call)
{
    const mixt__shape *shape = &call->out[0].shape;
    return shape->rank ? shape->dims[shape->rank - 1] : 1;
}

static int64_t rows_of(const mixt__call *call)
{
    int64_t columns = columns_of(call);
    return columns ? mixt__shape_count(&call->out[0].shape) / columns : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- rows ---- */

static void softmax_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__narrow_fn *narrow = mixt__narrow(dst->dtype);
    int64_t columns = columns_of(call);
    float tile[MIXT__ROW_TILE];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        mixt__row_peak peak = mixt__row_peak_of(tile, src->data, src->dtype, r * columns, columns);
        float factor = (float)(1.0 / peak.sum);
        if (columns <= MIXT__ROW_TILE) {
            loops->scale(tile, tile, factor, columns);
            narrow(mixt__row_at(dst->data, dst->dtype, r * columns), tile, columns);
            continue;
        }
        for (int64_t c = 0; c < columns; c += MIXT__ROW_TILE) {
            int64_t width = least(columns - c, MIXT__ROW_TILE);
            const float *x = mixt__row_load(tile, src->data, src->dtype, r * columns + c, width);
            loops->exp_below_affine(tile, x, peak.max, 0, factor, width);
            narrow(mixt__row_at(dst->data, dst->dtype, r * columns + c), tile, width);
        }
    }
}

static void softmax_grad_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *y = &call->in[0], *grad_dst = &call->in[1], *grad_src = &call->out[0];
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__narrow_fn *narrow = mixt__narrow(grad_src->dtype);
    int64_t columns = columns_of(call);
    float y_tile[MIXT__ROW_TILE], g_tile[MIXT__ROW_TILE];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        double dot = 0;
        for (int pass = 0; pass < 2; pass++) // the product of the rows, then what it is needed for
            for (int64_t c = 0; c < columns; c += MIXT__ROW_TILE) {
                int64_t width = least(columns - c, MIXT__ROW_TILE), at = r * columns + c;
                const float *p = mixt__row_load(y_tile, y->data, y->dtype, at, width);
                const float *g = mixt__row_load(g_tile, grad_dst->data, grad_dst->dtype, at, width);
                if (pass == 0) {
                    dot += (double)loops->dot(p, g, width);
                    continue;
                }
                loops->scaled_difference(y_tile, p, g, (float)dot, width);
                narrow(mixt__row_at(grad_src->data, grad_src->dtype, at), y_tile, width);
            }
    }
}

static mixt_status softmax_run(const mixt__call *call)
{
    mixt__parallel(rows_of(call), mixt__row_grain(columns_of(call)), softmax_rows, (void *)call);
    return MIXT_OK;
}

static mixt_status softmax_grad_run(const mixt__call *call)
{
    mixt__parallel(rows_of(call), mixt__row_grain(columns_of(call)), softmax_grad_rows, (void *)call);
    return MIXT_OK;
}

/* ---- plain ---- */

static double load(const mixt__tensor *t, int64_t index)
{
    return (double)mixt__load(t->data, t->dtype, index);
}

static mixt_status softmax_plain_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    int64_t rows = rows_of(call), columns = columns_of(call);
    for (int64_t r = 0; r < rows; r++) {
        double max = -INFINITY, sum = 0;
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            max = fmax(max, load(src, i));
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            sum += exp(load(src, i) - max);
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            mixt__store(dst->data, dst->dtype, i, (float)(exp(load(src, i) - max) / sum));
    }
    return MIXT_OK;
}

static mixt_status softmax_grad_plain_run(const mixt__call *call)
{
    const mixt__tensor *y = &call->in[0], *grad_dst = &call->in[1], *grad_src = &call->out[0];
    int64_t rows = rows_of(call), columns = columns_of(call);
    for (int64_t r = 0; r < rows; r++) {
        double dot = 0;
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            dot += load(y, i) * load(grad_dst, i);
        for (int64_t i = r * columns; i < (r + 1) * columns; i++)
            mixt__store(grad_src->data, grad_src->dtype, i, (float)(load(y, i) * (load(grad_dst, i) - dot)));
    }
    return MIXT_OK;
}

static const mixt__kernel softmax_fast = {.name = "rows", .run = softmax_run},
                          softmax_plain = {.name = "plain", .run = softmax_plain_run},
                          softmax_grad_fast = {.name = "rows", .run = softmax_grad_run},
                          softmax_grad_plain = {.name = "plain", .run = softmax_grad_plain_run};

const mixt__kernel *const mixt__cpu_softmax_kernels[] = {&softmax_fast, &softmax_plain, NULL};
const mixt__kernel *const mixt__cpu_softmax_grad_kernels[] = {&softmax_grad_fast, &softmax_grad_plain, NULL};
