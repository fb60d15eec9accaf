/* LSTM for AVX-512. */
#include "backend/cpu/lstm_kernel.h"
