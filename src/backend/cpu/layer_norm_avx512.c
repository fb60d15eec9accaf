/* Layer norm for AVX-512. */
#include "backend/cpu/layer_norm_kernel.h"
