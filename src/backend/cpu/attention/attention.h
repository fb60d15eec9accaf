/* What the attention kernels share: the sizes of a call, and the candidates. */
#ifndef MIXT_BACKEND_CPU_ATTENTION_ATTENTION_H
#define MIXT_BACKEND_CPU_ATTENTION_ATTENTION_H

#include "backend/backend.h"
#include "ops/attrs.h"

typedef struct mixt__heads {
    int64_t batch, count, dim; // heads and their size
    int64_t group;             // heads of q that share one of k and v
    int64_t queries, keys;
    float scale;
    bool causal;
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
                         .causal = at->causal};
}

extern const mixt__kernel mixt__attention_amx, mixt__attention_avx512bf16, mixt__attention_avx512, mixt__attention_avx2,
    mixt__attention_plain;
extern const mixt__kernel mixt__attention_grad_amx, mixt__attention_grad_avx512bf16, mixt__attention_grad_avx512,
    mixt__attention_grad_avx2, mixt__attention_grad_plain;

#endif
