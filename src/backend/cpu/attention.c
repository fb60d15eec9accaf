/* Attention on the CPU: the lists of candidates. */
#include "backend/cpu/attention.h"
#include "backend/cpu/kernels.h"

const mixt__kernel *const mixt__cpu_attention_kernels[] = {&mixt__attention_plain, NULL};
const mixt__kernel *const mixt__cpu_attention_grad_kernels[] = {&mixt__attention_grad_plain, NULL};
