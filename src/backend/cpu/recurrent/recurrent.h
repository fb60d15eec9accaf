/* The candidates of the recurrences on the CPU. */
#ifndef MIXT_BACKEND_CPU_RECURRENT_RECURRENT_H
#define MIXT_BACKEND_CPU_RECURRENT_RECURRENT_H

#include "backend/recurrent.h"

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
