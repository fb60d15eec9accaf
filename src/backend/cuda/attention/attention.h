/* What the attention candidates share: the sizes of a call, and the candidates.
 *
 * Forward: q (B, T, C), k, v (B, S, C) → dst (B, T, C), lse (B, heads, T). Gradient: those five and grad_dst →
 * grad_q, grad_k, grad_v. Elements of a head lie side by side; the other strides are free.
 */
#ifndef MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_H
#define MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_H

#include "backend/cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt__heads {
    int64_t batch, count, dim; // heads and their size
    int64_t queries, keys;
    float scale;
    bool causal;
} mixt__heads;

static inline mixt__heads mixt__heads_of(const mixt__call *call)
{
    const mixt__attention_attrs *at = (const mixt__attention_attrs *)call->attrs;
    const int64_t *q = call->in[0].shape.dims;
    mixt__heads s;
    s.batch = q[0];
    s.count = at->heads;
    s.dim = q[2] / at->heads;
    s.queries = q[1];
    s.keys = call->in[1].shape.dims[1];
    s.scale = at->scale;
    s.causal = at->causal;
    return s;
}

/** Whether rows of heads begin at multiples of 16 bytes from their tensor's start: strides are known at plan time,
 * addresses only at run time. lse, input 4 or output 1 of the forward pass, is read by itself. */
static inline bool mixt__attention_strides_fit(const mixt__call *call)
{
    bool gradient = call->in_count > 3;
    int64_t bits = 0;
    for (int i = 0; i < call->in_count; i++)
        if (i != 4)
            bits |= call->in[i].strides[0] | call->in[i].strides[1];
    for (int o = 0; o < (gradient ? 3 : 1); o++)
        bits |= call->out[o].strides[0] | call->out[o].strides[1];
    return bits * (int64_t)mixt_dtype_size(call->in[0].dtype) % 16 == 0;
}

static inline bool mixt__attention_aligned(const mixt__call *call)
{
    uintptr_t bits = 0;
    for (int i = 0; i < call->in_count; i++)
        bits |= (uintptr_t)call->in[i].data;
    for (int o = 0; o < call->out_count; o++)
        bits |= (uintptr_t)call->out[o].data;
    return bits % 16 == 0;
}

extern const mixt__kernel mixt__attention_grad_hopper;
extern const mixt__kernel mixt__attention_tf32, mixt__attention_grad_tf32;
extern const mixt__kernel mixt__attention_strict, mixt__attention_grad_strict;
extern const mixt__kernel mixt__attention_tiled, mixt__attention_grad_tiled;
extern const mixt__kernel mixt__attention_plain, mixt__attention_grad_plain;

#ifdef __cplusplus
}
#endif
#endif
