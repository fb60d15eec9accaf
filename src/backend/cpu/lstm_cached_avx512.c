/* The LSTM that goes on from a state, for AVX-512. */
#include "backend/cpu/lstm_cached_kernel.h"
