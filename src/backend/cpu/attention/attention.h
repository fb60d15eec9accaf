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
    bool packed;            // several texts a row
    const int32_t *places;  // (batch, queries) then: how many keys before itself a query sees; NULL at plan time
} mixt__heads;

/** What the last input of a call says, where there is one more than the others. */
static inline const int32_t *mixt__heads_last(const mixt__call *call)
{
    return call->in_count == 4 || call->in_count == 7 ? call->in[call->in_count - 1].data : NULL;
}

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
                         .packed = at->packed,
                         .lengths = at->packed ? NULL : mixt__heads_last(call),
                         .places = at->packed ? mixt__heads_last(call) : NULL};
}

/** Keys of a batch entry that are there. */
static inline int64_t mixt__heads_keys(const mixt__heads *s, int64_t b)
{
    int64_t keys = s->lengths ? s->lengths[b] : s->keys;
    return keys < 0 ? 0 : keys < s->keys ? keys : s->keys;
}

/** The first key that query i sees. @param places (queries) of its batch entry; NULL: a row is one text */
static inline int64_t mixt__first_key(int64_t window, const int32_t *places, int64_t i)
{
    int64_t first = window && i >= window ? i + 1 - window : 0;
    int64_t begin = places && places[i] >= 0 && places[i] <= i ? i - places[i] : 0;
    return begin > first ? begin : first;
}

static inline int64_t mixt__heads_first(const mixt__heads *s, int64_t b, int64_t i)
{
    return mixt__first_key(s->window, s->places ? s->places + b * s->queries : NULL, i);
}

extern const mixt__kernel mixt__attention_amx, mixt__attention_avx512bf16, mixt__attention_avx512, mixt__attention_avx2,
    mixt__attention_plain;
extern const mixt__kernel mixt__attention_grad_amx, mixt__attention_grad_avx512bf16, mixt__attention_grad_avx512,
    mixt__attention_grad_avx2, mixt__attention_grad_plain;

#endif
