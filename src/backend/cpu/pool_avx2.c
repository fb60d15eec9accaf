/* Pooling for AVX2. */
#include "backend/cpu/pool_kernel.h"
