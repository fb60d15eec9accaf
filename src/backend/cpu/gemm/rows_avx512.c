/* Products with a few rows, for AVX-512. */
#include "backend/cpu/gemm/rows_kernel.h"
