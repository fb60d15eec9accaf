/* What the candidates of the three convolution ops share: the sizes of a call, and the candidates themselves.
 *
 * src (N, H, W, C), weight (O, KH, KW, C), dst (N, H', W', O); all contiguous.
 */
#ifndef MIXT_BACKEND_CPU_CONV_CONV2D_H
#define MIXT_BACKEND_CPU_CONV_CONV2D_H

#include "backend/backend.h"
#include "ops/attrs.h"
#include "ops/ops.h"

typedef struct mixt__conv {
    int64_t n, h, w, c;         // src, grad_src
    int64_t out_h, out_w, o;    // dst, grad_dst
    int64_t kernel_h, kernel_w; // weight, grad_weight
    int64_t stride, pad;
} mixt__conv;

/** The sizes of a call of conv2d, conv2d_grad_src or conv2d_grad_weight. */
mixt__conv mixt__conv_of(const mixt__call *call);

/** Elements of a patch: one row of the weight. */
static inline int64_t mixt__conv_patch(const mixt__conv *conv)
{
    return conv->kernel_h * conv->kernel_w * conv->c;
}

/** What no fast candidate takes: other formats than FP32, FP16 and BF16, and calls without a single product. */
bool mixt__conv_is_ordinary(const mixt__call *call, const char **reason);

extern const mixt__kernel mixt__conv2d_plain, mixt__conv2d_grad_src_plain, mixt__conv2d_grad_weight_plain;
extern const mixt__kernel mixt__conv2d_gemm, mixt__conv2d_grad_src_gemm, mixt__conv2d_grad_weight_gemm;
extern const mixt__kernel mixt__conv2d_direct, mixt__conv2d_grad_src_direct, mixt__conv2d_grad_weight_direct;

#endif
