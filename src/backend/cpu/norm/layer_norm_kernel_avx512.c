/* Layer norm for AVX-512. */
#include "backend/cpu/norm/layer_norm_kernel.h"
