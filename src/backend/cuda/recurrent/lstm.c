/* The candidates of lstm and lstm_grad on the GPU, best first. */
#include "backend/cuda/recurrent/lstm.h"

const mixt__kernel *const mixt__cuda_lstm_kernels[] = {&mixt__cuda_lstm_cluster, &mixt__cuda_lstm_cluster_fp32,
                                                       &mixt__cuda_lstm_grid, &mixt__cuda_lstm_plain, NULL};
const mixt__kernel *const mixt__cuda_lstm_grad_kernels[] = {
    &mixt__cuda_lstm_grad_cluster, &mixt__cuda_lstm_grad_cluster_fp32, &mixt__cuda_lstm_grad_grid,
    &mixt__cuda_lstm_grad_plain, NULL};
