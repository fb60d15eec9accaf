/* Pooling: the window of an output pixel, and the candidates. */
#ifndef MIXT_BACKEND_CPU_POOL_POOL_H
#define MIXT_BACKEND_CPU_POOL_POOL_H

#include "backend/backend.h"
#include "ops/attrs.h"

/** Sizes of (N, D, H, W, C); of (N, H, W, C) with a depth of 1. */
typedef struct mixt__pool_dims {
    int64_t n, d, h, w, c;
} mixt__pool_dims;

static inline mixt__pool_dims mixt__pool_dims_of(const mixt__shape *s)
{
    const int64_t *plane = s->dims + s->rank - 3;
    return (mixt__pool_dims){s->dims[0], s->rank == 5 ? s->dims[1] : 1, plane[0], plane[1], plane[2]};
}

/** Where pixel (n, z, y, x) starts in a contiguous tensor. */
static inline int64_t mixt__pool_pixel(const mixt__pool_dims *s, int64_t n, int64_t z, int64_t y, int64_t x)
{
    return (((n * s->d + z) * s->h + y) * s->w + x) * s->c;
}

/** The part of an output pixel's window that lies inside the source. */
typedef struct mixt__window {
    int64_t z0, z1, y0, y1, x0, x1;
} mixt__window;

static inline mixt__window mixt__pool_window(const mixt__pool_attrs *at, const mixt__pool_dims *src, int64_t oz,
                                             int64_t oy, int64_t ox)
{
    mixt__window w = {.z1 = 1, .y0 = oy * at->stride - at->pad, .x0 = ox * at->stride - at->pad};
    if (at->size_d) {
        w.z0 = oz * at->stride_d - at->pad_d;
        w.z1 = w.z0 + at->size_d < src->d ? w.z0 + at->size_d : src->d;
        w.z0 = w.z0 > 0 ? w.z0 : 0;
    }
    w.y1 = w.y0 + at->size < src->h ? w.y0 + at->size : src->h;
    w.x1 = w.x0 + at->size < src->w ? w.x0 + at->size : src->w;
    w.y0 = w.y0 > 0 ? w.y0 : 0;
    w.x0 = w.x0 > 0 ? w.x0 : 0;
    return w;
}

/** Elements of it. */
static inline int64_t mixt__window_count(const mixt__window *w)
{
    return (w->z1 - w->z0) * (w->y1 - w->y0) * (w->x1 - w->x0);
}

extern const mixt__kernel mixt__pool_avx512, mixt__pool_avx2;
extern const mixt__kernel mixt__pool_grad_avx512, mixt__pool_grad_avx2;

#endif
