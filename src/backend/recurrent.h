/* What the kernels of lstm, gru and rnn of every backend share: the sizes of a call. Compiles as C++ too.
 *
 * Calls have one order: forward (gates_x, weight_hh, …) → (dst, …), gradient (weight_hh, dst, …, grad_dst) →
 * (grad_gates_x, grad_weight_hh, …), cached (gates_x, weight_hh, …, caches) → dst. See ops/lstm.c, gru.c and rnn.c.
 */
#ifndef MIXT_BACKEND_RECURRENT_H
#define MIXT_BACKEND_RECURRENT_H

#include "backend/backend.h"

typedef struct mixt__recurrent_sizes {
    int64_t batch, steps, hidden;
    int64_t rows; // of weight_hh: the hidden size times the cell's gates
} mixt__recurrent_sizes;

static inline mixt__recurrent_sizes mixt__recurrent_sizes_from(const mixt__tensor *sequences,
                                                               const mixt__tensor *weight)
{
    mixt__recurrent_sizes sizes = {sequences->shape.dims[0], sequences->shape.dims[1], weight->shape.dims[1],
                                   weight->shape.dims[0]};
    return sizes;
}

/** Of a forward or cached call. */
static inline mixt__recurrent_sizes mixt__recurrent_sizes_of(const mixt__call *call)
{
    return mixt__recurrent_sizes_from(&call->in[0], &call->in[1]);
}

/** Of a gradient. */
static inline mixt__recurrent_sizes mixt__recurrent_grad_sizes(const mixt__call *call)
{
    return mixt__recurrent_sizes_from(&call->in[1], &call->in[0]);
}

/** A GRU's gradient has an output for bias_hn. What flows back through its products with the state differs from the
 *  gradients of gates_x, as the new gate's lies behind the reset gate: it is kept, (B, T, 3H), in the workspace. */
static inline bool mixt__recurrent_side(const mixt__call *call)
{
    return call->out_count == 3;
}

/** Bytes at the beginning of the workspace for that, a whole number of 256; 0 for other cells. */
static inline size_t mixt__recurrent_side_bytes(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    size_t bytes = (size_t)(s.batch * s.steps * s.rows) * mixt_dtype_size(call->out[0].dtype);
    return mixt__recurrent_side(call) ? (bytes + 255) / 256 * 256 : 0;
}

/** What flows back through weight_hh, (B, T, rows). */
static inline void *mixt__recurrent_grad_sums(const mixt__call *call)
{
    return mixt__recurrent_side(call) ? call->workspace : call->out[0].data;
}

#endif
