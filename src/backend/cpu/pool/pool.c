/* Max and average pooling over (N, H, W, C) or (N, D, H, W, C) and the gradient: the plain candidates and the lists.
 *
 * The plain gradient gathers: each source element asks every window that covers it, so overlapping windows add up in
 * one place and nothing has to be cleared first.
 */
#include "backend/cpu/pool/pool.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

/** One channel of a source, and a pixel of it. */
typedef struct reading {
    const mixt__tensor *tensor;
    mixt__pool_dims dims;
    int64_t n, c;
} reading;

static float read_at(const reading *r, int64_t z, int64_t y, int64_t x)
{
    return mixt__load(r->tensor->data, r->tensor->dtype, mixt__pool_pixel(&r->dims, r->n, z, y, x) + r->c);
}

static float window_value(mixt__pool_kind kind, const reading *r, const mixt__window *w)
{
    double sum = 0;
    float best = -INFINITY;
    for (int64_t z = w->z0; z < w->z1; z += w->dz)
        for (int64_t y = w->y0; y < w->y1; y += w->dy)
            for (int64_t x = w->x0; x < w->x1; x += w->dx) {
                float v = read_at(r, z, y, x);
                sum += (double)v;
                if (v > best || isnan(v))
                    best = v;
                if (isnan(v) && kind == MIXT_POOL_MAX)
                    return v;
            }
    int64_t count = w->divisor;
    if (kind == MIXT_POOL_MAX)
        return best;
    return count > 0 ? (float)(sum / (double)count) : 0;
}

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__pool_attrs *at = call->attrs;
    const mixt__tensor *dst = &call->out[0];
    reading r = {.tensor = &call->in[0], .dims = mixt__pool_dims_of(&call->in[0].shape)};
    mixt__pool_dims out = mixt__pool_dims_of(&dst->shape);
    for (int64_t pixel = 0; pixel < out.n * out.d * out.h * out.w; pixel++) {
        int64_t plane = pixel / out.w / out.h;
        mixt__window w = mixt__pool_window(at, &r.dims, plane % out.d, pixel / out.w % out.h, pixel % out.w);
        r.n = plane / out.d;
        for (r.c = 0; r.c < out.c; r.c++)
            mixt__store(dst->data, dst->dtype, pixel * out.c + r.c, window_value(at->kind, &r, &w));
    }
    return MIXT_OK;
}

/** The first element of the window, in row order, that equals its maximum (or is NaN, as it). */
static int64_t first_maximum(const reading *r, const mixt__window *w, float maximum)
{
    for (int64_t z = w->z0; z < w->z1; z += w->dz)
        for (int64_t y = w->y0; y < w->y1; y += w->dy)
            for (int64_t x = w->x0; x < w->x1; x += w->dx) {
                float v = read_at(r, z, y, x);
                if (v == maximum || isnan(v))
                    return mixt__pool_pixel(&r->dims, r->n, z, y, x) + r->c;
            }
    return -1;
}

/** What the window of the result's element o gives to the source's element `at`. */
static double given(const mixt__call *call, const reading *r, const mixt__window *w, int64_t o, int64_t at)
{
    const mixt__pool_attrs *attrs = call->attrs;
    const mixt__tensor *dst = &call->in[1], *grad_dst = &call->in[2];
    double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, o);
    if (attrs->kind == MIXT_POOL_AVG)
        return g / (double)w->divisor;
    return first_maximum(r, w, mixt__load(dst->data, dst->dtype, o)) == at ? g : 0;
}

/** Whether a position is one of begin, begin + step … below end. */
static bool lies_in(int64_t position, int64_t begin, int64_t end, int64_t step)
{
    return position >= begin && position < end && (position - begin) % step == 0;
}

/** The sum of what the windows over source element (z, y, x) give it. */
static float gathered(const mixt__call *call, const reading *r, int64_t z, int64_t y, int64_t x)
{
    mixt__pool_dims out = mixt__pool_dims_of(&call->in[1].shape);
    int64_t at = mixt__pool_pixel(&r->dims, r->n, z, y, x) + r->c;
    double sum = 0;
    for (int64_t row = 0; row < out.d * out.h; row++) {
        mixt__window w = mixt__pool_window(call->attrs, &r->dims, row / out.h, row % out.h, 0);
        if (!lies_in(z, w.z0, w.z1, w.dz) || !lies_in(y, w.y0, w.y1, w.dy))
            continue;
        for (int64_t ox = 0; ox < out.w; ox++) {
            w = mixt__pool_window(call->attrs, &r->dims, row / out.h, row % out.h, ox);
            if (lies_in(x, w.x0, w.x1, w.dx))
                sum += given(call, r, &w, ((r->n * out.d * out.h + row) * out.w + ox) * out.c + r->c, at);
        }
    }
    return (float)sum;
}

static mixt_status plain_grad_run(const mixt__call *call)
{
    const mixt__tensor *grad_src = &call->out[0];
    reading r = {.tensor = &call->in[0], .dims = mixt__pool_dims_of(&call->in[0].shape)};
    const mixt__pool_dims *s = &r.dims;
    for (int64_t pixel = 0; pixel < s->n * s->d * s->h * s->w; pixel++) {
        int64_t plane = pixel / s->w / s->h;
        r.n = plane / s->d;
        for (r.c = 0; r.c < s->c; r.c++)
            mixt__store(grad_src->data, grad_src->dtype, pixel * s->c + r.c,
                        gathered(call, &r, plane % s->d, pixel / s->w % s->h, pixel % s->w));
    }
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};
static const mixt__kernel plain_grad = {.name = "plain", .run = plain_grad_run};

const mixt__kernel *const mixt__cpu_pool_kernels[] = {&mixt__pool_avx512, &mixt__pool_avx2, &plain, NULL};
const mixt__kernel *const mixt__cpu_pool_grad_kernels[] = {&mixt__pool_grad_avx512, &mixt__pool_grad_avx2, &plain_grad,
                                                           NULL};
