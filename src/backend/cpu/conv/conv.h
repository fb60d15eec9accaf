/* What the candidates of the convolution ops share: the sizes of a call, and the candidates themselves.
 *
 * src (N, D, H, W, C), weight (O, KD, KH, KW, C / groups), dst (N, D', H', W', O); all contiguous. In conv2d depth is
 * 1: its sizes are those of one plane.
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
    return mixt__conv_taps(conv) * (conv->c / conv->groups);
}

/** What no fast candidate takes: other formats than FP32, FP16 and BF16, and calls without a single product. */
bool mixt__conv_is_ordinary(const mixt__call *call, const char **reason);

/** What the direct candidates do not take: groups, dilation, another stride of width than of height. */
static inline bool mixt__conv_is_special(const mixt__conv *conv, const char **reason)
{
    *reason = mixt__conv_unusual(conv, true);
    if (!*reason && conv->stride != conv->stride_w)
        *reason = "only one stride for height and width";
    return *reason != NULL;
}

// for planes and volumes alike
extern const mixt__kernel mixt__conv_plain, mixt__conv_grad_src_plain, mixt__conv_grad_weight_plain;
extern const mixt__kernel mixt__conv_gemm;
// each channel by itself
extern const mixt__kernel mixt__conv_depthwise_avx512, mixt__conv_depthwise_avx2;
extern const mixt__kernel mixt__conv_depthwise_weight_avx512, mixt__conv_depthwise_weight_avx2;
// groups of few channels
extern const mixt__kernel mixt__conv_groups_avx512, mixt__conv_groups_avx2;
extern const mixt__kernel mixt__conv_groups_weight_avx512, mixt__conv_groups_weight_avx2;
// for planes
extern const mixt__kernel mixt__conv2d_direct, mixt__conv2d_grad_src_direct, mixt__conv2d_grad_weight_direct;

#endif
