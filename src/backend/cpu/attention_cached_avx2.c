/* Attention that goes on from a cache, for AVX2. */
#include "backend/cpu/attention_cached_kernel.h"
