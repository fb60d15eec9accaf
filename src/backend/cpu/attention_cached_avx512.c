/* Attention that goes on from a cache, for AVX-512. */
#include "backend/cpu/attention_cached_kernel.h"
