/* What the kernels of lstm, gru and rnn share: the sizes of a call, where a gradient's parts lie, and the candidates.
 *
 * Calls have one order: forward (gates_x, weight_hh, …) → (dst, …), gradient (weight_hh, dst, …, grad_dst) →
 * (grad_gates_x, grad_weight_hh, …), cached (gates_x, weight_hh, …, caches) → dst. See ops/lstm.c, gru.c and rnn.c.
 */
#ifndef MIXT_BACKEND_CPU_RECURRENT_RECURRENT_H
#define MIXT_BACKEND_CPU_RECURRENT_RECURRENT_H

#include "backend/backend.h"

typedef struct mixt__recurrent_sizes {
    int64_t batch, steps, hidden;
    int64_t rows; // of weight_hh: the hidden size times the cell's gates
} mixt__recurrent_sizes;

/** Of a forward or cached call. */
static inline mixt__recurrent_sizes mixt__recurrent_sizes_of(const mixt__call *call)
{
    const int64_t *gates = call->in[0].shape.dims, *weight = call->in[1].shape.dims;
    return (mixt__recurrent_sizes){gates[0], gates[1], weight[1], weight[0]};
}

/** Of a gradient. */
static inline mixt__recurrent_sizes mixt__recurrent_grad_sizes(const mixt__call *call)
{
    const int64_t *dst = call->in[1].shape.dims, *weight = call->in[0].shape.dims;
    return (mixt__recurrent_sizes){dst[0], dst[1], weight[1], weight[0]};
}

/** A GRU's gradient has an output for bias_hn. Its products with the state do not have the gradients of gates_x: those
 *  of the new gate lie behind the reset gate. They are kept (B, T, 3H) in the workspace. */
static inline bool mixt__recurrent_apart(const mixt__call *call)
{
    return call->out_count == 3;
}

/** Bytes of the workspace for them, a whole number of cache lines. */
static inline size_t mixt__recurrent_apart_bytes(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    size_t bytes = (size_t)(s.batch * s.steps * s.rows) * mixt_dtype_size(call->out[0].dtype);
    return mixt__recurrent_apart(call) ? (bytes + 63) / 64 * 64 : 0;
}

#define MIXT__RECURRENT_CANDIDATES(op)                                                                                 \
    extern const mixt__kernel mixt__##op##_avx512, mixt__##op##_avx2, mixt__##op##_plain
MIXT__RECURRENT_CANDIDATES(lstm);
MIXT__RECURRENT_CANDIDATES(lstm_grad);
MIXT__RECURRENT_CANDIDATES(lstm_cached);
MIXT__RECURRENT_CANDIDATES(gru);
MIXT__RECURRENT_CANDIDATES(gru_grad);
MIXT__RECURRENT_CANDIDATES(gru_cached);
MIXT__RECURRENT_CANDIDATES(rnn);
MIXT__RECURRENT_CANDIDATES(rnn_grad);
MIXT__RECURRENT_CANDIDATES(rnn_cached);
#undef MIXT__RECURRENT_CANDIDATES

#endif
