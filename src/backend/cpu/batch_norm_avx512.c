/* Batch norm for AVX-512. */
#include "backend/cpu/batch_norm_kernel.h"
