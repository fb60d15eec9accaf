/* Products with a few rows, for AVX2. */
#include "backend/cpu/gemm/rows_kernel.h"
