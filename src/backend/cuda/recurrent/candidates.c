/* The candidates of the recurrences and of their gradients on the GPU, best first. */
#include "backend/cuda/recurrent/recurrent.h"

#define CANDIDATES(op)                                                                                                 \
    const mixt__kernel *const mixt__cuda_##op##_kernels[] = {&mixt__cuda_##op##_cluster,                               \
                                                             &mixt__cuda_##op##_cluster_fp32, &mixt__cuda_##op##_grid, \
                                                             &mixt__cuda_##op##_plain, NULL}
CANDIDATES(lstm);
CANDIDATES(lstm_grad);
CANDIDATES(gru);
CANDIDATES(gru_grad);
CANDIDATES(rnn);
CANDIDATES(rnn_grad);
