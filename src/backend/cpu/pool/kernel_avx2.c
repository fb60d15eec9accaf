/* Pooling for AVX2. */
#include "backend/cpu/pool/kernel.h"
