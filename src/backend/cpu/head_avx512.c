/* A classifier's head, for AVX-512. */
#include "backend/cpu/head_kernel.h"
