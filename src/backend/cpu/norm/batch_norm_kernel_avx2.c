/* Batch norm for AVX2. */
#include "backend/cpu/norm/batch_norm_kernel.h"
