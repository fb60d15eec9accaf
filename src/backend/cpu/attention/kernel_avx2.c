/* Attention for AVX2. */
#include "backend/cpu/attention/kernel.h"
