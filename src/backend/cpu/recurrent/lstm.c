/* The recurrence of an LSTM layer on the CPU: the candidates, best first. */
#include "backend/cpu/recurrent/lstm.h"
#include "backend/cpu/kernels.h"

const mixt__kernel *const mixt__cpu_lstm_kernels[] = {&mixt__lstm_avx512, &mixt__lstm_avx2, &mixt__lstm_plain, NULL};
const mixt__kernel *const mixt__cpu_lstm_grad_kernels[] = {&mixt__lstm_grad_avx512, &mixt__lstm_grad_avx2,
                                                           &mixt__lstm_grad_plain, NULL};
