/* Convolution and its gradients as the sums they are, in FP32: any shape, any format.
 *
 * A thread makes one value of dst or grad_src; a block makes one value of grad_weight, its threads take every
 * so-many-th pixel and are added up in a fixed tree. Every operand is read as often as it is used.
 */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/core/device.cuh"

enum { THREADS = 256 };

typedef struct job {
    mixt__cuda_conv v;
    const void *a, *b; // in the order of the op's inputs
    const float *bias;
    void *dst;
    bool add;
} job;

template <typename T> static __global__ void forward_kernel(const job j)
{
    const mixt__cuda_conv &v = j.v;
    const T *src = static_cast<const T *>(j.a), *weight = static_cast<const T *>(j.b);
    int64_t count = v.n * v.out_h * v.out_w * v.o, step = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
        int64_t o = at % v.o, x = at / v.o % v.out_w, y = at / v.o / v.out_w % v.out_h,
                n = at / v.o / v.out_w / v.out_h;
        float sum = j.bias ? j.bias[o] : 0.0f;
        for (int64_t i = 0; i < v.kernel_h; i++)
            for (int64_t k = 0; k < v.kernel_w; k++) {
                int64_t sy = y * v.stride + i - v.pad, sx = x * v.stride + k - v.pad;
                if (sy < 0 || sy >= v.h || sx < 0 || sx >= v.w)
                    continue;
                const T *pixel = src + ((n * v.h + sy) * v.w + sx) * v.c;
                const T *tap = weight + ((o * v.kernel_h + i) * v.kernel_w + k) * v.c;
                for (int64_t c = 0; c < v.c; c++)
                    sum = fmaf(to_float(pixel[c]), to_float(tap[c]), sum);
            }
        static_cast<T *>(j.dst)[at] = from_float<T>(sum);
    }
}

/** Every output pixel whose patch holds the source pixel. */
template <typename T> static __global__ void grad_src_kernel(const job j)
{
    const mixt__cuda_conv &v = j.v;
    const T *grad_dst = static_cast<const T *>(j.a), *weight = static_cast<const T *>(j.b);
    int64_t count = v.n * v.h * v.w * v.c, step = (int64_t)gridDim.x * THREADS, patch = v.kernel_h * v.kernel_w * v.c;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
        int64_t c = at % v.c, x = at / v.c % v.w, y = at / v.c / v.w % v.h, n = at / v.c / v.w / v.h;
        float sum = 0;
        for (int64_t i = 0; i < v.kernel_h; i++)
            for (int64_t k = 0; k < v.kernel_w; k++) {
                int64_t dy = y + v.pad - i, dx = x + v.pad - k;
                if (dy < 0 || dx < 0 || dy % v.stride || dx % v.stride || dy / v.stride >= v.out_h ||
                    dx / v.stride >= v.out_w)
                    continue;
                const T *pixel = grad_dst + ((n * v.out_h + dy / v.stride) * v.out_w + dx / v.stride) * v.o;
                const T *tap = weight + (i * v.kernel_w + k) * v.c + c;
                for (int64_t o = 0; o < v.o; o++)
                    sum = fmaf(to_float(pixel[o]), to_float(tap[o * patch]), sum);
            }
        static_cast<T *>(j.dst)[at] = from_float<T>(sum);
    }
}

template <typename T, typename R> static __global__ void grad_weight_kernel(const job j)
{
    __shared__ float shared[32];
    const mixt__cuda_conv &v = j.v;
    const T *src = static_cast<const T *>(j.a), *grad_dst = static_cast<const T *>(j.b);
    R *dst = static_cast<R *>(j.dst);
    int64_t count = v.o * v.kernel_h * v.kernel_w * v.c, pixels = v.n * v.out_h * v.out_w;
    for (int64_t at = blockIdx.x; at < count; at += gridDim.x) {
        int64_t c = at % v.c, k = at / v.c % v.kernel_w, i = at / v.c / v.kernel_w % v.kernel_h,
                o = at / v.c / v.kernel_w / v.kernel_h;
        float sum = 0;
        for (int64_t p = threadIdx.x; p < pixels; p += THREADS) {
            int64_t n = p / v.out_w / v.out_h, y = p / v.out_w % v.out_h, x = p % v.out_w;
            int64_t sy = y * v.stride + i - v.pad, sx = x * v.stride + k - v.pad;
            if (sy >= 0 && sy < v.h && sx >= 0 && sx < v.w)
                sum = fmaf(to_float(src[((n * v.h + sy) * v.w + sx) * v.c + c]), to_float(grad_dst[p * v.o + o]), sum);
        }
        sum = block_sum(sum, shared);
        if (threadIdx.x == 0)
            dst[at] = from_float<R>(j.add ? to_float(dst[at]) + sum : sum);
    }
}

/* ---- candidates ---- */

static unsigned blocks_of(int64_t count)
{
    int64_t most = (int64_t)mixt__cuda.multiprocessors * 64;
    return (unsigned)(count < most ? count : most);
}

static job job_of(const mixt__call *call, mixt__cuda_conv_kind kind)
{
    job j = {};
    j.v = mixt__cuda_conv_of(call, kind);
    j.a = call->in[0].data;
    j.b = call->in[1].data;
    j.dst = call->out[0].data;
    j.add = call->accumulate & 1;
    return j;
}

static mixt_status forward(const mixt__call *call)
{
    const mixt__conv2d_attrs *at = (const mixt__conv2d_attrs *)call->attrs;
    job j = job_of(call, MIXT_CONV_FORWARD);
    unsigned blocks = blocks_of(mixt__ceil_div(mixt__tensor_count(&call->out[0]), THREADS));
    j.bias = at->bias ? (const float *)call->in[2].data : NULL;
    if (blocks)
        DISPATCH(call->in[0].dtype, T, (forward_kernel<T><<<blocks, THREADS, 0, mixt__cuda.stream>>>(j)));
    return mixt__cuda_launched("conv2d");
}

static mixt_status grad_src(const mixt__call *call)
{
    job j = job_of(call, MIXT_CONV_GRAD_SRC);
    unsigned blocks = blocks_of(mixt__ceil_div(mixt__tensor_count(&call->out[0]), THREADS));
    if (blocks)
        DISPATCH(call->in[0].dtype, T, (grad_src_kernel<T><<<blocks, THREADS, 0, mixt__cuda.stream>>>(j)));
    return mixt__cuda_launched("conv2d_grad_src");
}

static mixt_status grad_weight(const mixt__call *call)
{
    job j = job_of(call, MIXT_CONV_GRAD_WEIGHT);
    unsigned blocks = blocks_of(mixt__tensor_count(&call->out[0]));
    if (blocks && call->out[0].dtype == MIXT_DTYPE_FP32)
        DISPATCH(call->in[0].dtype, T, (grad_weight_kernel<T, float><<<blocks, THREADS, 0, mixt__cuda.stream>>>(j)));
    else if (blocks)
        DISPATCH(call->in[0].dtype, T, (grad_weight_kernel<T, T><<<blocks, THREADS, 0, mixt__cuda.stream>>>(j)));
    return mixt__cuda_launched("conv2d_grad_weight");
}

const mixt__kernel mixt__cuda_conv2d_plain = {"plain", NULL, NULL, forward, NULL};
const mixt__kernel mixt__cuda_conv2d_grad_src_plain = {"plain", NULL, NULL, grad_src, NULL};
const mixt__kernel mixt__cuda_conv2d_grad_weight_plain = {"plain", NULL, NULL, grad_weight, NULL};
