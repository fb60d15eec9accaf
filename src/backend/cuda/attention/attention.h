/* What the attention candidates share: the sizes of a call, and the candidates.
 *
 * Forward: q (B, T, C), k, v (B, S, C) → dst (B, T, C), lse (B, heads, T). Gradient: those five and grad_dst →
 * grad_q, grad_k, grad_v. Elements of a head lie side by side; the other strides are free. Where k and v have fewer
 * heads, each is read by a group of those of q; kernels of the gradient make grad_k and grad_v for every head of q, and
 * mixt__attention_grouped adds up those of a group. With lengths (B), a last input of both, an entry has fewer keys.
 */
#ifndef MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_H
#define MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_H

#include "backend/cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt__heads {
    int64_t batch, count, dim; // heads of q and their size
    int64_t group;             // of them that share one of k and v
    int64_t queries, keys;
    float scale, softcap; // softcap 0: none
    bool causal;
    int64_t window; // keys that a query sees, itself among them; 0: all before it
    bool packed;    // several texts a row
} mixt__heads;

/** Whether it is attention_grad. */
static inline bool mixt__attention_is_gradient(const mixt__call *call)
{
    return call->in_count > 4;
}

/** The keys that each batch entry has, INT32 (B) and the last input; NULL: all are there. */
static inline const mixt__tensor *mixt__attention_lengths(const mixt__call *call)
{
    bool last = call->in_count == 4 || call->in_count == 7;
    return last && !((const mixt__attention_attrs *)call->attrs)->packed ? &call->in[call->in_count - 1] : NULL;
}

/** The place of each token in its own text, INT32 (B, T) and the last input; NULL: a row is one text. */
static inline const mixt__tensor *mixt__attention_places(const mixt__call *call)
{
    return ((const mixt__attention_attrs *)call->attrs)->packed ? &call->in[call->in_count - 1] : NULL;
}

static inline mixt__heads mixt__heads_of(const mixt__call *call)
{
    const mixt__attention_attrs *at = (const mixt__attention_attrs *)call->attrs;
    const int64_t *q = call->in[0].shape.dims;
    mixt__heads s;
    s.batch = q[0];
    s.count = at->heads;
    s.dim = q[2] / at->heads;
    s.group = call->in[1].shape.dims[2] ? q[2] / call->in[1].shape.dims[2] : 1;
    s.queries = q[1];
    s.keys = call->in[1].shape.dims[1];
    s.scale = at->scale;
    s.softcap = at->softcap;
    s.causal = at->causal;
    s.window = at->window;
    s.packed = at->packed;
    return s;
}

/** Of candidates that read all keys. */
#define MIXT_ATTENTION_ALL_KEYS "keys that are not there in some entries (lengths)"

/** Why a candidate that knows no windows, no soft caps and one text a row cannot make the call; NULL: it can. */
static inline const char *mixt__attention_special(const mixt__call *call)
{
    mixt__heads s = mixt__heads_of(call);
    return s.packed        ? "several texts a row (positions)"
           : s.window      ? "a window of keys"
           : s.softcap > 0 ? "a soft cap of scores"
                           : NULL;
}

/** Whether rows of heads begin at multiples of 16 bytes from their tensor's start: strides are known at plan time,
 * addresses only at run time. lse, input 4 or output 1 of the forward pass, is read by itself. */
static inline bool mixt__attention_strides_fit(const mixt__call *call)
{
    bool gradient = mixt__attention_is_gradient(call);
    int64_t bits = 0;
    for (int i = 0; i < (gradient ? 6 : 3); i++)
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

/** The call of a gradient with grad_k and grad_v for every head of q, without memory; the call itself where no heads
 * are shared. `out` is its outputs' place. */
mixt__call mixt__attention_spread(const mixt__call *call, mixt__tensor out[3]);
/** The same with k and v themselves repeated for every head of q, for kernels that know no groups. */
mixt__call mixt__attention_repeat(const mixt__call *call, mixt__tensor in[6]);
/** Bytes of one of these tensors. */
size_t mixt__attention_full_bytes(const mixt__call *call);
/** Repeats k and v into two such places in device memory. */
mixt_status mixt__attention_copy_keys(const mixt__call *call, void *const full[2]);
/** Adds to the workspace of a gradient's call what mixt__attention_grouped needs. */
void mixt__attention_grouped_room(mixt__call *call);
/** Runs a gradient whose grad_k and grad_v have the heads of q, and adds up those that share one. */
mixt_status mixt__attention_grouped(const mixt__call *call, mixt_status (*run)(const mixt__call *call));

extern const mixt__kernel mixt__attention_grad_hopper;
extern const mixt__kernel mixt__attention_tf32, mixt__attention_grad_tf32;
extern const mixt__kernel mixt__attention_strict, mixt__attention_grad_strict;
extern const mixt__kernel mixt__attention_tiled, mixt__attention_grad_tiled;
extern const mixt__kernel mixt__attention_plain, mixt__attention_grad_plain;

#ifdef __cplusplus
}
#endif
#endif
