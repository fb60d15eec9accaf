/* What the attention kernels share: the sizes of a call, and the candidates. */
#ifndef MIXT_BACKEND_CPU_ATTENTION_ATTENTION_H
#define MIXT_BACKEND_CPU_ATTENTION_ATTENTION_H

#include "backend/backend.h"
#include "ops/attrs.h"

typedef struct mixt__heads {
    int64_t batch, count, dim; // heads and their size
    int64_t group;             // heads of q that share one of k and v
    int64_t queries, keys;
    float scale, softcap; // softcap 0: none
    bool causal;
    int64_t window;         // keys that a query sees, itself among them; 0: all before it
    const int32_t *lengths; // (batch) keys that are there; NULL: all are, and always NULL at plan time
} mixt__heads;

static inline mixt__heads mixt__heads_of(const mixt__call *call)
{
    const mixt__attention_attrs *at = call->attrs;
    const int64_t *q = call->in[0].shape.dims, width = call->in[1].shape.dims[2];
    return (mixt__heads){.batch = q[0],
                         .count = at->heads,
                         .dim = q[2] / at->heads,
                         .group = width ? q[2] / width : 1,
                         .queries = q[1],
                         .keys = call->in[1].shape.dims[1],
                         .scale = at->scale,
                         .softcap = at->softcap,
                         .causal = at->causal,
                         .window = at->window,
                         .lengths = call->in_count == 4   ? call->in[3].data
                                    : call->in_count == 7 ? call->in[6].data
                                                          : NULL};
}

/** Keys of a batch entry that are there. */
static inline int64_t mixt__heads_keys(const mixt__heads *s, int64_t b)
{
    int64_t keys = s->lengths ? s->lengths[b] : s->keys;
    return keys < 0 ? 0 : keys < s->keys ? keys : s->keys;
}

/** The first key that query i sees. */
static inline int64_t mixt__heads_first(const mixt__heads *s, int64_t i)
{
    return s->window && i >= s->window ? i + 1 - s->window : 0;
}

extern const mixt__kernel mixt__attention_amx, mixt__attention_avx512bf16, mixt__attention_avx512, mixt__attention_avx2,
    mixt__attention_plain;
extern const mixt__kernel mixt__attention_grad_amx, mixt__attention_grad_avx512bf16, mixt__attention_grad_avx512,
    mixt__attention_grad_avx2, mixt__attention_grad_plain;

#endif
