/* The candidates of convolution and its gradients, best first, and the sizes they share.
 *
 * direct: no patches are built; BF16 and FP16 cost no more than FP32 on any CPU.
 * gemm: patches gathered block by block into the matrix-product engine: 1 x 1 kernels, few pixels, AMX.
 */
#include "backend/cpu/conv/conv2d.h"

#include "backend/cpu/kernels.h"

mixt__conv mixt__conv_of(const mixt__call *call)
{
    const mixt__conv2d_attrs *attrs = call->attrs;
    bool grad_src = call->op == &mixt__op_conv2d_grad_src, grad_weight = call->op == &mixt__op_conv2d_grad_weight;
    const int64_t *src = grad_src ? call->out[0].shape.dims : call->in[0].shape.dims;
    const int64_t *dst = grad_src      ? call->in[0].shape.dims
                         : grad_weight ? call->in[1].shape.dims
                                       : call->out[0].shape.dims;
    return (mixt__conv){.n = src[0],
                        .h = src[1],
                        .w = src[2],
                        .c = src[3],
                        .out_h = dst[1],
                        .out_w = dst[2],
                        .o = dst[3],
                        .kernel_h = attrs->kernel_h,
                        .kernel_w = attrs->kernel_w,
                        .stride = attrs->stride,
                        .pad = attrs->pad};
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
    else if (!v.n || !v.h || !v.w || !v.c || !v.out_h || !v.out_w || !v.o)
        *reason = "nothing to multiply";
    return !*reason;
}

const mixt__kernel *const mixt__cpu_conv2d_kernels[] = {
    &mixt__conv2d_direct,
    &mixt__conv2d_gemm,
    &mixt__conv2d_plain,
    NULL,
};

const mixt__kernel *const mixt__cpu_conv2d_grad_src_kernels[] = {
    &mixt__conv2d_grad_src_direct,
    &mixt__conv2d_grad_src_gemm,
    &mixt__conv2d_grad_src_plain,
    NULL,
};

const mixt__kernel *const mixt__cpu_conv2d_grad_weight_kernels[] = {
    &mixt__conv2d_grad_weight_direct,
    &mixt__conv2d_grad_weight_gemm,
    &mixt__conv2d_grad_weight_plain,
    NULL,
};
