/* Layer norm for AVX2. */
#include "backend/cpu/norm/layer_norm_kernel.h"
