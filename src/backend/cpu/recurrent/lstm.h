/* What the LSTM kernels share: the sizes of a call, and the candidates. */
#ifndef MIXT_BACKEND_CPU_RECURRENT_LSTM_H
#define MIXT_BACKEND_CPU_RECURRENT_LSTM_H

#include "backend/backend.h"

typedef struct mixt__lstm_sizes {
    int64_t batch, steps, hidden;
} mixt__lstm_sizes;

/** From a tensor of gates, (B, T, 4H). */
static inline mixt__lstm_sizes mixt__lstm_sizes_of(const mixt__tensor *gates)
{
    return (mixt__lstm_sizes){gates->shape.dims[0], gates->shape.dims[1], gates->shape.dims[2] / 4};
}

extern const mixt__kernel mixt__lstm_avx512, mixt__lstm_avx2, mixt__lstm_plain;
extern const mixt__kernel mixt__lstm_grad_avx512, mixt__lstm_grad_avx2, mixt__lstm_grad_plain;

#endif
