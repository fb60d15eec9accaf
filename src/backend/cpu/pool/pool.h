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

/** The part of an output pixel's window that lies inside the source: along each axis from 0 to before 1, by steps. */
typedef struct mixt__window {
    int64_t z0, z1, y0, y1, x0, x1;
    int64_t dz, dy, dx;
    int64_t divisor; // of an average
} mixt__window;

/** Along one axis: begin, end and step of result position o; returns the elements that an average divides by. */
static inline int64_t mixt__window_axis(const mixt__pool_attrs *at, const mixt__pool_axis *a, int64_t src, int64_t o,
                                        int64_t *begin, int64_t *end, int64_t *step)
{
    int64_t first = o * a->stride - a->pad, dilation = a->dilation ? a->dilation : 1;
    int64_t last = first + (a->size - 1) * dilation + 1, room = src + a->pad_end < last ? src + a->pad_end : last;
    int64_t padded = (room - first + dilation - 1) / dilation;
    *step = dilation;
    *begin = first < 0 ? first + (-first + dilation - 1) / dilation * dilation : first;
    *end = last < src ? last : src;
    *end = *end > *begin ? *end : *begin;
    return at->count_pad ? padded : (*end - *begin + dilation - 1) / dilation;
}

static inline mixt__window mixt__pool_window(const mixt__pool_attrs *at, const mixt__pool_dims *src, int64_t oz,
                                             int64_t oy, int64_t ox)
{
    mixt__window w = {.z1 = 1, .dz = 1};
    int64_t z = at->d.size ? mixt__window_axis(at, &at->d, src->d, oz, &w.z0, &w.z1, &w.dz) : 1;
    int64_t y = mixt__window_axis(at, &at->h, src->h, oy, &w.y0, &w.y1, &w.dy);
    w.divisor = z * y * mixt__window_axis(at, &at->w, src->w, ox, &w.x0, &w.x1, &w.dx);
    return w;
}

extern const mixt__kernel mixt__pool_avx512, mixt__pool_avx2;
extern const mixt__kernel mixt__pool_grad_avx512, mixt__pool_grad_avx2;

#endif
