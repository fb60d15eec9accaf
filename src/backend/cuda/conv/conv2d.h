/* What the candidates of the convolution ops share: sizes, folding, and the plain candidates.
 *
 * src (N, D, H, W, C), weight (O, KD, KH, KW, C), dst (N, D', H', W', O); all contiguous. In conv2d depth is 1: its
 * sizes are those of one plane.
 *
 * A convolution of few channels wastes the matrix units, which take channels by eights. Folding makes blocks of
 * stride x stride source pixels into one pixel with all their channels, padded to a multiple of 8, and the weight
 * accordingly: the same products, with stride 1 and no padding, and zeros in between. ResNet's first, 7 x 7 over 3
 * channels with stride 2, becomes 4 x 4 over 16 channels. The depth of a volume's
 * kernel becomes channels too, so that what is left is a convolution of planes.
 */
#ifndef MIXT_BACKEND_CUDA_CONV_CONV2D_H
#define MIXT_BACKEND_CUDA_CONV_CONV2D_H

#include "backend/cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef mixt__conv mixt__cuda_conv;
typedef mixt__conv_kind mixt__cuda_conv_kind;

static inline mixt__cuda_conv mixt__cuda_conv_of(const mixt__call *call, mixt__cuda_conv_kind kind)
{
    return mixt__conv_sizes(kind, call->attrs, &call->in[0].shape, &call->in[1].shape, &call->out[0].shape);
}

/** A convolution and what it becomes folded. Folded pixel r holds source pixels r · stride - front and on; folded tap
 *  a holds taps a · stride - lead and on. A folded plane is one of the result's: its channels are those of the planes
 *  that the kernel reaches, plane by plane. */
typedef struct mixt__cuda_fold {
    mixt__cuda_conv from, to;
    int64_t front, lead;
} mixt__cuda_fold;

mixt__cuda_fold mixt__cuda_fold_of(const mixt__cuda_conv *conv);
/** Bytes of shared memory that folding takes: at most 48 KiB. */
size_t mixt__cuda_fold_shared(const mixt__cuda_fold *fold, mixt_dtype dtype);
/** Both ways in the same format, TF32: FP32 rounded to it; grad_weight from FP32 to dtype, overwritten or added to.
 *  Issued on the stream. */
mixt_status mixt__cuda_fold_src(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype,
                                const void *src, void *folded);
mixt_status mixt__cuda_fold_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype,
                                   const void *weight, void *folded);
mixt_status mixt__cuda_unfold_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype,
                                     const float *folded, void *grad, bool add);

/** Where element `at` of the weight lies in the folded weight. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int64_t
    mixt__cuda_fold_place(const mixt__cuda_fold *f, int64_t at)
{
    const mixt__cuda_conv *v = &f->from;
    int64_t c = at % v->c, x = at / v->c % v->kernel_w + f->lead, y = at / v->c / v->kernel_w % v->kernel_h + f->lead;
    int64_t z = at / v->c / v->kernel_w / v->kernel_h % v->kernel_d, s = v->stride;
    int64_t o = at / v->c / v->kernel_w / v->kernel_h / v->kernel_d;
    return ((o * f->to.kernel_h + y / s) * f->to.kernel_w + x / s) * f->to.c + ((z * s + y % s) * s + x % s) * v->c + c;
}

/** Folded convolutions on our own kernels (folded.cu), in FP16, BF16 and TF32: whether they take it, and workspace for
 *  the gradient. */
bool mixt__cuda_folded_supports(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype);
size_t mixt__cuda_folded_partials(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype);
/** bias may be NULL; src and weight are folded in the same format. */
mixt_status mixt__cuda_folded_forward(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype,
                                      const void *src, const void *weight, const float *bias, void *dst);
mixt_status mixt__cuda_folded_grad_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype,
                                          const void *src, const void *grad_dst, float *partials,
                                          const mixt__tensor *grad, bool add);

/** Those in TF32 (folded_tf32.cu), v folded: whether they take it, and how many blocks' sums (blocks, O, taps, 16) of
 *  the gradient there are. */
bool mixt__cuda_folded_tf32_supports(const mixt__cuda_device *gpu, const mixt__cuda_conv *v);
int mixt__cuda_folded_tf32_blocks(const mixt__cuda_device *gpu, const mixt__cuda_conv *v);
mixt_status mixt__cuda_folded_tf32_forward(const mixt__cuda_device *gpu, const mixt__cuda_conv *v, const float *src,
                                           const float *weight, const float *bias, float *dst);
mixt_status mixt__cuda_folded_tf32_grad_weight(const mixt__cuda_device *gpu, const mixt__cuda_conv *v, const float *src,
                                               const float *grad_dst, float *partials);

/** Strict FP32 on our own kernels (implicit.cu). a, b: in the order of the op's inputs; bias may be NULL; `add`
 *  is for grad_weight. All addresses multiples of 16. */
bool mixt__cuda_implicit_supports(const mixt__cuda_device *gpu, const mixt__cuda_conv *conv, mixt__cuda_conv_kind kind);
size_t mixt__cuda_implicit_workspace(const mixt__cuda_device *gpu, const mixt__cuda_conv *conv,
                                     mixt__cuda_conv_kind kind);
mixt_status mixt__cuda_implicit_run(const mixt__cuda_device *gpu, const mixt__cuda_conv *conv,
                                    mixt__cuda_conv_kind kind, const float *a, const float *b, const float *bias,
                                    float *dst, void *workspace, bool add);

/** grad += extra, both FP32. */
mixt_status mixt__cuda_conv_add(const mixt__cuda_device *gpu, float *grad, const float *extra, int64_t count);

/** Whether the call multiplies in FP32 without matrix units. */
static inline bool mixt__cuda_conv_strict(const mixt__call *call)
{
    return call->in[0].dtype == MIXT_DTYPE_FP32 && call->arithmetic != MIXT_DTYPE_TF32;
}

/* one tap, as matrix products (product.c) */
extern const mixt__kernel mixt__cuda_conv2d_product, mixt__cuda_conv2d_grad_src_product,
    mixt__cuda_conv2d_grad_weight_product;
extern const mixt__kernel mixt__cuda_conv_plain, mixt__cuda_conv_grad_src_plain, mixt__cuda_conv_grad_weight_plain;

#ifdef __cplusplus
}
#endif
#endif
