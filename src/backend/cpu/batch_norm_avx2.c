/* Batch norm for AVX2. */
#include "backend/cpu/batch_norm_kernel.h"
