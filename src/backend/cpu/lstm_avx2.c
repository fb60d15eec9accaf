/* LSTM for AVX2. */
#include "backend/cpu/lstm_kernel.h"
