/* What the kernels of cached attention share: the sizes of a call, and the candidates. */
#ifndef MIXT_BACKEND_CPU_ATTENTION_CACHED_H
#define MIXT_BACKEND_CPU_ATTENTION_CACHED_H

#include "backend/backend.h"
#include "ops/attrs.h"

#include <string.h>

typedef struct mixt__cached_heads {
    int64_t batch, count, dim; // heads and their size
    int64_t group, width;      // heads of q that share one of the caches; columns of those
    int64_t tokens, rows;      // new ones; places in the cache
    float scale, softcap;      // softcap 0: none
    int64_t window;            // places that a token sees, its own among them; 0: all before it
} mixt__cached_heads;

static inline mixt__cached_heads mixt__cached_heads_of(const mixt__call *call)
{
    const mixt__attention_attrs *at = call->attrs;
    const int64_t *q = call->in[0].shape.dims;
    return (mixt__cached_heads){.batch = q[0],
                                .count = at->heads,
                                .dim = q[2] / at->heads,
                                .group = call->in[4].shape.dims[2] ? q[2] / call->in[4].shape.dims[2] : 1,
                                .width = call->in[4].shape.dims[2],
                                .tokens = q[1],
                                .rows = call->in[4].shape.dims[1],
                                .scale = at->scale,
                                .softcap = at->softcap,
                                .window = at->window};
}

/** The first place that the token at `place` sees. */
static inline int64_t mixt__cached_first(const mixt__cached_heads *s, int64_t place)
{
    return s->window && place >= s->window ? place + 1 - s->window : 0;
}

/** Puts head `head`, of those that the caches have, of the new keys and values of batch entry b into them. */
static inline void mixt__cache_fill(const mixt__call *call, const mixt__cached_heads *s, int64_t b, int64_t head)
{
    const int32_t *positions = call->in[3].data;
    size_t size = mixt_dtype_size(call->in[0].dtype);
    for (int i = 0; i < 2; i++) {
        const mixt__tensor *from = &call->in[1 + i], *cache = &call->in[4 + i];
        for (int64_t t = 0; t < s->tokens; t++) {
            int64_t source = b * from->strides[0] + t * from->strides[1] + head * s->dim;
            int64_t place = (b * s->rows + positions[t]) * s->width + head * s->dim;
            memcpy((char *)cache->data + (size_t)place * size, (const char *)from->data + (size_t)source * size,
                   (size_t)s->dim * size);
        }
    }
}

extern const mixt__kernel mixt__attention_cached_avx512, mixt__attention_cached_avx2;

#endif
