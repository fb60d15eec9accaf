/* Attention for AVX512-BF16: BF16 tensors only, products on pairs of BF16 numbers. */
#include "backend/cpu/attention/kernel.h"
