/* Layer norm for AVX2. */
#include "backend/cpu/layer_norm_kernel.h"
