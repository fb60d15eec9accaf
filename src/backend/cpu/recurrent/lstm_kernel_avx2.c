/* LSTM for AVX2. */
#include "backend/cpu/recurrent/lstm_kernel.h"
