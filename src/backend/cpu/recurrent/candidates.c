/* The recurrences on the CPU: the candidates of each op, best first. */
#include "backend/cpu/kernels.h"
#include "backend/cpu/recurrent/recurrent.h"

#define CANDIDATES(op)                                                                                                 \
    const mixt__kernel *const mixt__cpu_##op##_kernels[] = {&mixt__##op##_avx512, &mixt__##op##_avx2,                  \
                                                            &mixt__##op##_plain, NULL}
CANDIDATES(lstm);
CANDIDATES(lstm_grad);
CANDIDATES(lstm_cached);
CANDIDATES(gru);
CANDIDATES(gru_grad);
CANDIDATES(gru_cached);
CANDIDATES(rnn);
CANDIDATES(rnn_grad);
CANDIDATES(rnn_cached);
