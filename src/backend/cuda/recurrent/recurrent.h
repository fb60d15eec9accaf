/* The recurrences' candidates of the GPU, and the parts of a gradient that they share. Plain C. */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_RECURRENT_H
#define MIXT_BACKEND_CUDA_RECURRENT_RECURRENT_H

#include "backend/cuda/kernels.h"
#include "backend/recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIXT__RECURRENT_CANDIDATES(op)                                                                                 \
    extern const mixt__kernel mixt__cuda_##op##_cluster, mixt__cuda_##op##_cluster_fp32, mixt__cuda_##op##_grid,       \
        mixt__cuda_##op##_plain
MIXT__RECURRENT_CANDIDATES(lstm);
MIXT__RECURRENT_CANDIDATES(lstm_grad);
MIXT__RECURRENT_CANDIDATES(gru);
MIXT__RECURRENT_CANDIDATES(gru_grad);
MIXT__RECURRENT_CANDIDATES(rnn);
MIXT__RECURRENT_CANDIDATES(rnn_grad);
#undef MIXT__RECURRENT_CANDIDATES

/* ---- grad_weight_hh, one product over all steps, and grad_bias_hn, after the steps: see weight.c ---- */

/** For every candidate of a gradient: sets call->state, and call->workspace_bytes to what these parts need. */
mixt_status mixt__cuda_recurrent_grad_prepare(mixt__call *call, mixt__arena *arena);
/** The same for candidates that multiply on Tensor Cores. */
mixt_status mixt__cuda_recurrent_grad_prepare_tensor(mixt__call *call, mixt__arena *arena);
void mixt__cuda_recurrent_grad_release(mixt__call *call);
/** A float for each unit of each sequence, the candidate's own until it runs the weights. */
float *mixt__cuda_recurrent_flow(const mixt__call *call);
mixt_status mixt__cuda_recurrent_weight_run(const mixt__call *call);

/** The state before each step: dst (B, T, H) moved one step on, zero at each sequence's start. */
mixt_status mixt__cuda_recurrent_shift(const mixt__cuda_device *gpu, const mixt__tensor *dst, void *shifted);

/** The sums of the last H columns of a gradient's (B·T, rows), into its output 2; `parts`: room for 32 times them. */
enum { MIXT__CUDA_BIAS_PARTS = 32 };
mixt_status mixt__cuda_recurrent_bias_run(const mixt__call *call, float *parts);

#ifdef __cplusplus
}
#endif
#endif
