/* The LSTM that goes on from a state, for AVX2. */
#include "backend/cpu/recurrent/lstm_cached_kernel.h"
