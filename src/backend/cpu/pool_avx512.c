/* Pooling for AVX-512. */
#include "backend/cpu/pool_kernel.h"
