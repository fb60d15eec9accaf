/* The LSTM candidates of the GPU and the weight gradient that they share. Plain C. */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_LSTM_H
#define MIXT_BACKEND_CUDA_RECURRENT_LSTM_H

#include "backend/cuda/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt__lstm_sizes {
    int64_t batch, steps, hidden;
} mixt__lstm_sizes;

/** From a tensor of gates, (B, T, 4H). */
static inline mixt__lstm_sizes mixt__lstm_sizes_of(const mixt__tensor *gates)
{
    mixt__lstm_sizes sizes = {gates->shape.dims[0], gates->shape.dims[1], gates->shape.dims[2] / 4};
    return sizes;
}

extern const mixt__kernel mixt__cuda_lstm_cluster, mixt__cuda_lstm_cluster_fp32, mixt__cuda_lstm_grid,
    mixt__cuda_lstm_plain;
extern const mixt__kernel mixt__cuda_lstm_grad_cluster, mixt__cuda_lstm_grad_cluster_fp32, mixt__cuda_lstm_grad_grid,
    mixt__cuda_lstm_grad_plain;

/* ---- grad_weight_hh of a lstm_grad call: one product over all steps, after grad_gates_x ---- */

/** For every candidate of lstm_grad: sets call->state, and call->workspace_bytes to what the product needs and at least
 *  a float for each unit of each sequence, which is the candidate's own until the product runs. */
mixt_status mixt__cuda_lstm_grad_prepare(mixt__call *call, mixt__arena *arena);
/** The same for candidates that multiply on Tensor Cores. */
mixt_status mixt__cuda_lstm_grad_prepare_tensor(mixt__call *call, mixt__arena *arena);
void mixt__cuda_lstm_grad_release(mixt__call *call);
mixt_status mixt__cuda_lstm_weight_run(const mixt__call *call);

/** The state before each step: dst (B, T, H) moved one step on, zero at each sequence's start. */
mixt_status mixt__cuda_lstm_shift(const mixt__tensor *dst, void *shifted);

#ifdef __cplusplus
}
#endif
#endif
