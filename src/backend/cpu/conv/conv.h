/* What the candidates of the convolution ops share: the sizes of a call, and the candidates themselves.
 *
 * src (N, D, H, W, C), weight (O, KD, KH, KW, C), dst (N, D', H', W', O); all contiguous. In conv2d depth is 1: its
 * sizes are those of one plane.
 */
#ifndef MIXT_BACKEND_CPU_CONV_CONV_H
#define MIXT_BACKEND_CPU_CONV_CONV_H

#include "backend/backend.h"
#include "ops/attrs.h"
#include "ops/ops.h"

/** The sizes of a call of one of the convolution ops. */
mixt__conv mixt__conv_of(const mixt__call *call);

/** Taps of the kernel. */
static inline int64_t mixt__conv_taps(const mixt__conv *conv)
{
    return conv->kernel_d * conv->kernel_h * conv->kernel_w;
}

/** Elements of a patch: one row of the weight. */
static inline int64_t mixt__conv_patch(const mixt__conv *conv)
{
    return mixt__conv_taps(conv) * conv->c;
}

/** What no fast candidate takes: other formats than FP32, FP16 and BF16, and calls without a single product. */
bool mixt__conv_is_ordinary(const mixt__call *call, const char **reason);

// for planes and volumes alike
extern const mixt__kernel mixt__conv_plain, mixt__conv_grad_src_plain, mixt__conv_grad_weight_plain;
extern const mixt__kernel mixt__conv_gemm;
// for planes
extern const mixt__kernel mixt__conv2d_direct, mixt__conv2d_grad_src_direct, mixt__conv2d_grad_weight_direct;

#endif
