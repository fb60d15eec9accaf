/* A classifier's head, for AVX2. */
#include "backend/cpu/head_kernel.h"
