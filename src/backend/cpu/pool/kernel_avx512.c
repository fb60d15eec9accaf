/* Pooling for AVX-512. */
#include "backend/cpu/pool/kernel.h"
