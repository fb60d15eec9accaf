/* LSTM for AVX-512. */
#include "backend/cpu/recurrent/lstm_kernel.h"
