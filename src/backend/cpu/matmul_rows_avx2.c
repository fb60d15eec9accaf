/* Products with a few rows, for AVX2. */
#include "backend/cpu/matmul_rows_kernel.h"
