/* Batch norm for AVX-512. */
#include "backend/cpu/norm/batch_norm_kernel.h"
