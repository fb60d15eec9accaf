/* A classifier's head, for AVX2. */
#include "backend/cpu/loss/head_kernel.h"
