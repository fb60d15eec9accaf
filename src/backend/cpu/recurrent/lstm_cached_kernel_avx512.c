/* The LSTM that goes on from a state, for AVX-512. */
#include "backend/cpu/recurrent/lstm_cached_kernel.h"
