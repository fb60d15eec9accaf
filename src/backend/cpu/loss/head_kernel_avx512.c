/* A classifier's head, for AVX-512. */
#include "backend/cpu/loss/head_kernel.h"
