/* Products with a few rows, for AVX-512. */
#include "backend/cpu/matmul_rows_kernel.h"
