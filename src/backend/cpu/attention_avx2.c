/* Attention for AVX2. */
#include "backend/cpu/attention_kernel.h"
