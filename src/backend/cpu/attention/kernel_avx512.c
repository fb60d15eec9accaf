/* Attention for AVX-512. */
#include "backend/cpu/attention/kernel.h"
