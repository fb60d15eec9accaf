/* Attention that goes on from a cache, for AVX-512. */
#include "backend/cpu/attention/cached_kernel.h"
