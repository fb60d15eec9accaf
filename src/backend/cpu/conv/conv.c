/* The candidates of convolution and its gradients, best first, and the sizes they share.
 *
 * direct: no patches are built; BF16 and FP16 cost no more than FP32 on any CPU.
 * gemm: patches gathered block by block into the matrix-product engine: 1 x 1 kernels, few pixels, AMX.
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
    const mixt__conv2d_attrs *plane = call->attrs;
    mixt__conv_kind kind = kind_of(call->op);
    const mixt__shape *src = kind == MIXT_CONV_GRAD_SRC ? &call->out[0].shape : &call->in[0].shape;
    const mixt__shape *dst =
        kind == MIXT_CONV_FORWARD ? &call->out[0].shape : &call->in[kind == MIXT_CONV_GRAD_WEIGHT].shape;
    const int64_t *s = src->dims + src->rank - 3, *t = dst->dims + dst->rank - 3; // height, width, channels
    mixt__conv v = {.kind = kind,
                    .n = src->dims[0],
                    .d = 1,
                    .h = s[0],
                    .w = s[1],
                    .c = s[2],
                    .out_d = 1,
                    .out_h = t[0],
                    .out_w = t[1],
                    .o = t[2],
                    .kernel_d = 1,
                    .kernel_h = plane->kernel_h,
                    .kernel_w = plane->kernel_w,
                    .stride = plane->stride,
                    .pad = plane->pad,
                    .stride_d = 1,
                    .bias = kind == MIXT_CONV_FORWARD && plane->bias};
    if (src->rank == 5) {
        const mixt__conv3d_attrs *at = call->attrs;
        v.d = src->dims[1];
        v.out_d = dst->dims[1];
        v.kernel_d = at->kernel_d;
        v.stride_d = at->stride_d;
        v.pad_d = at->pad_d;
    }
    return v;
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

const mixt__kernel *const mixt__cpu_conv2d_kernels[] = {
    &mixt__conv2d_direct,
    &mixt__conv_gemm,
    &mixt__conv_plain,
    NULL,
};

const mixt__kernel *const mixt__cpu_conv2d_grad_src_kernels[] = {
    &mixt__conv2d_grad_src_direct,
    &mixt__conv_gemm,
    &mixt__conv_grad_src_plain,
    NULL,
};

const mixt__kernel *const mixt__cpu_conv2d_grad_weight_kernels[] = {
    &mixt__conv2d_grad_weight_direct,
    &mixt__conv_gemm,
    &mixt__conv_grad_weight_plain,
    NULL,
};

const mixt__kernel *const mixt__cpu_conv3d_kernels[] = {&mixt__conv_gemm, &mixt__conv_plain, NULL};
const mixt__kernel *const mixt__cpu_conv3d_grad_src_kernels[] = {&mixt__conv_gemm, &mixt__conv_grad_src_plain, NULL};
const mixt__kernel *const mixt__cpu_conv3d_grad_weight_kernels[] = {&mixt__conv_gemm, &mixt__conv_grad_weight_plain,
                                                                    NULL};
