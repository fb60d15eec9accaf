/* The candidates of convolution and its gradients, best first, and the sizes they share.
 *
 * avx512, avx2: depthwise, channels in vectors.
 * groups: groups of few channels, in vectors.
 * direct: no patches are built; BF16 and FP16 cost no more than FP32 on any CPU.
 * gemm: patches gathered block by block into the matrix-product engine: 1 x 1 kernels, few pixels, AMX,
 * wide groups and dilation.
 */
#include "backend/cpu/conv/conv.h"

#include "backend/cpu/kernels.h"

static mixt__conv_kind kind_of(const mixt__op *op)
{
    if (op == &mixt__op_conv2d_grad_src || op == &mixt__op_conv3d_grad_src)
        return MIXT_CONV_GRAD_SRC;
    return op == &mixt__op_conv2d_grad_weight || op == &mixt__op_conv3d_grad_weight ? MIXT_CONV_GRAD_WEIGHT
                                                                                    : MIXT_CONV_FORWARD;
}

mixt__conv mixt__conv_of(const mixt__call *call)
{
    return mixt__conv_sizes(kind_of(call->op), call->attrs, &call->in[0].shape, &call->in[1].shape,
                            &call->out[0].shape);
}

static bool is_low_or_fp32(const mixt__tensor *tensor)
{
    return tensor->dtype == MIXT_DTYPE_FP32 || tensor->dtype == MIXT_DTYPE_FP16 || tensor->dtype == MIXT_DTYPE_BF16;
}

bool mixt__conv_is_ordinary(const mixt__call *call, const char **reason)
{
    mixt__conv v = mixt__conv_of(call);
    *reason = NULL;
    if (!is_low_or_fp32(&call->in[0]) || !is_low_or_fp32(&call->in[1]) || !is_low_or_fp32(&call->out[0]))
        *reason = "only fp32, fp16 and bf16";
    else if (!v.n || !v.d || !v.h || !v.w || !v.c || !v.out_d || !v.out_h || !v.out_w || !v.o)
        *reason = "nothing to multiply";
    return !*reason;
}

#define LISTS(kind, ...) const mixt__kernel *const mixt__cpu_##kind##_kernels[] = {__VA_ARGS__, NULL}

#define DEPTHWISE &mixt__conv_depthwise_avx512, &mixt__conv_depthwise_avx2
#define GROUPS &mixt__conv_groups_avx512, &mixt__conv_groups_avx2
#define DEPTHWISE_WEIGHT &mixt__conv_depthwise_weight_avx512, &mixt__conv_depthwise_weight_avx2
#define GROUPS_WEIGHT &mixt__conv_groups_weight_avx512, &mixt__conv_groups_weight_avx2

LISTS(conv2d, DEPTHWISE, GROUPS, &mixt__conv2d_direct, &mixt__conv_gemm, &mixt__conv_plain);
LISTS(conv2d_grad_src, DEPTHWISE, GROUPS, &mixt__conv2d_grad_src_direct, &mixt__conv_gemm, &mixt__conv_grad_src_plain);
LISTS(conv2d_grad_weight, DEPTHWISE_WEIGHT, GROUPS_WEIGHT, &mixt__conv2d_grad_weight_direct, &mixt__conv_gemm,
      &mixt__conv_grad_weight_plain);
LISTS(conv3d, DEPTHWISE, GROUPS, &mixt__conv_gemm, &mixt__conv_plain);
LISTS(conv3d_grad_src, DEPTHWISE, GROUPS, &mixt__conv_gemm, &mixt__conv_grad_src_plain);
LISTS(conv3d_grad_weight, DEPTHWISE_WEIGHT, GROUPS_WEIGHT, &mixt__conv_gemm, &mixt__conv_grad_weight_plain);
