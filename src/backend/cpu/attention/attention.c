/* Attention on the CPU: the candidates, best first.
 *
 * On 16 threads of a Sapphire Rapids CPU "amx" takes the GPT of `mixt bench` from 71.5 to 66.7 ms a step.
 */
#include "backend/cpu/attention/attention.h"
#include "backend/cpu/kernels.h"

const mixt__kernel *const mixt__cpu_attention_kernels[] = {&mixt__attention_amx,    &mixt__attention_avx512bf16,
                                                           &mixt__attention_avx512, &mixt__attention_avx2,
                                                           &mixt__attention_plain,  NULL};
const mixt__kernel *const mixt__cpu_attention_grad_kernels[] = {
    &mixt__attention_grad_amx,  &mixt__attention_grad_avx512bf16, &mixt__attention_grad_avx512,
    &mixt__attention_grad_avx2, &mixt__attention_grad_plain,      NULL};
