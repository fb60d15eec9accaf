/* Pooling: the window of an output pixel, and the candidates. */
#ifndef MIXT_BACKEND_CPU_POOL_POOL_H
#define MIXT_BACKEND_CPU_POOL_POOL_H

#include "backend/backend.h"
#include "ops/attrs.h"

/** The part of an output pixel's window that lies inside the source. */
typedef struct mixt__window {
    int64_t y0, y1, x0, x1;
} mixt__window;

static inline mixt__window mixt__pool_window(const mixt__pool_attrs *at, const mixt__shape *src, int64_t oy, int64_t ox)
{
    mixt__window w = {.y0 = oy * at->stride - at->pad, .x0 = ox * at->stride - at->pad};
    w.y1 = w.y0 + at->size < src->dims[1] ? w.y0 + at->size : src->dims[1];
    w.x1 = w.x0 + at->size < src->dims[2] ? w.x0 + at->size : src->dims[2];
    w.y0 = w.y0 > 0 ? w.y0 : 0;
    w.x0 = w.x0 > 0 ? w.x0 : 0;
    return w;
}

extern const mixt__kernel mixt__pool_avx512, mixt__pool_avx2;
extern const mixt__kernel mixt__pool_grad_avx512, mixt__pool_grad_avx2;

#endif
