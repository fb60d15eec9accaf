/* Max and average pooling over (N, H, W, C) and the gradient: the plain candidates and the lists.
 *
 * The plain gradient gathers: each source element asks every window that covers it, so overlapping windows add up in
 * one place and nothing has to be cleared first.
 */
#include "backend/cpu/pool/pool.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

/** Where (n, y, x, c) stands in a contiguous tensor. */
static int64_t place(const mixt__shape *s, int64_t n, int64_t y, int64_t x, int64_t c)
{
    return ((n * s->dims[1] + y) * s->dims[2] + x) * s->dims[3] + c;
}

static float window_value(const mixt__pool_attrs *at, const mixt__tensor *src, int64_t n, mixt__window w, int64_t c)
{
    double sum = 0;
    float best = -INFINITY;
    for (int64_t y = w.y0; y < w.y1; y++)
        for (int64_t x = w.x0; x < w.x1; x++) {
            float v = mixt__load(src->data, src->dtype, place(&src->shape, n, y, x, c));
            sum += (double)v;
            if (v > best || isnan(v))
                best = v;
            if (isnan(v) && at->kind == MIXT_POOL_MAX)
                return v;
        }
    int64_t count = (w.y1 - w.y0) * (w.x1 - w.x0);
    if (at->kind == MIXT_POOL_MAX)
        return best;
    return count > 0 ? (float)(sum / (double)count) : 0;
}

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const int64_t *out = dst->shape.dims;
    for (int64_t n = 0; n < out[0]; n++)
        for (int64_t oy = 0; oy < out[1]; oy++)
            for (int64_t ox = 0; ox < out[2]; ox++) {
                mixt__window w = mixt__pool_window(call->attrs, &src->shape, oy, ox);
                for (int64_t c = 0; c < out[3]; c++)
                    mixt__store(dst->data, dst->dtype, place(&dst->shape, n, oy, ox, c),
                                window_value(call->attrs, src, n, w, c));
            }
    return MIXT_OK;
}

/** Whether (y, x) is the first element of the window, in row order, that equals its maximum (or is NaN, as it). */
static bool is_first_maximum(const mixt__tensor *src, int64_t n, mixt__window w, int64_t c, float maximum, int64_t y,
                             int64_t x)
{
    for (int64_t wy = w.y0; wy < w.y1; wy++)
        for (int64_t wx = w.x0; wx < w.x1; wx++) {
            float v = mixt__load(src->data, src->dtype, place(&src->shape, n, wy, wx, c));
            if (v == maximum || isnan(v))
                return wy == y && wx == x;
        }
    return false;
}

/** The sum of what the windows over one source element give it. */
static float gathered(const mixt__call *call, int64_t n, int64_t y, int64_t x, int64_t c)
{
    const mixt__pool_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->in[1], *grad_dst = &call->in[2];
    double sum = 0;
    for (int64_t oy = 0; oy < dst->shape.dims[1]; oy++) {
        if (oy * at->stride - at->pad > y || oy * at->stride - at->pad + at->size <= y)
            continue;
        for (int64_t ox = 0; ox < dst->shape.dims[2]; ox++) {
            if (ox * at->stride - at->pad > x || ox * at->stride - at->pad + at->size <= x)
                continue;
            mixt__window w = mixt__pool_window(at, &src->shape, oy, ox);
            int64_t o = place(&dst->shape, n, oy, ox, c);
            double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, o);
            if (at->kind == MIXT_POOL_AVG)
                sum += g / (double)((w.y1 - w.y0) * (w.x1 - w.x0));
            else if (is_first_maximum(src, n, w, c, mixt__load(dst->data, dst->dtype, o), y, x))
                sum += g;
        }
    }
    return (float)sum;
}

static mixt_status plain_grad_run(const mixt__call *call)
{
    const mixt__tensor *grad_src = &call->out[0];
    const int64_t *dims = grad_src->shape.dims;
    for (int64_t n = 0; n < dims[0]; n++)
        for (int64_t y = 0; y < dims[1]; y++)
            for (int64_t x = 0; x < dims[2]; x++)
                for (int64_t c = 0; c < dims[3]; c++)
                    mixt__store(grad_src->data, grad_src->dtype, place(&grad_src->shape, n, y, x, c),
                                gathered(call, n, y, x, c));
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};
static const mixt__kernel plain_grad = {.name = "plain", .run = plain_grad_run};

const mixt__kernel *const mixt__cpu_pool_kernels[] = {&mixt__pool_avx512, &mixt__pool_avx2, &plain, NULL};
const mixt__kernel *const mixt__cpu_pool_grad_kernels[] = {&mixt__pool_grad_avx512, &mixt__pool_grad_avx2, &plain_grad,
                                                           NULL};
