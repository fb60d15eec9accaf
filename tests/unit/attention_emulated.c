/* The AMX attention kernels on emulated tile registers, for test_attention.c; compiled for AVX512-BF16. */
#include "amx_emulation.h"

#define MIXT_ISA_SUFFIX amx
#define MIXT_AT_LEVEL MIXT_ISA_AVX512_BF16
#define mixt__attention_amx emulated_attention
#define mixt__attention_grad_amx emulated_attention_grad
#include "backend/cpu/attention/kernel.c"
