/* Attention that goes on from a cache, for AVX2. */
#include "backend/cpu/attention/cached_kernel.h"
