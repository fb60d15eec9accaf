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

/** A place in space: frame, row, column. */
struct spot {
    int64_t z, y, x;
};

static __device__ __forceinline__ spot spot_of(int64_t at, int64_t height, int64_t width)
{
    return {at / width / height, at / width % height, at % width};
}

/** The source pixel that tap `tap` reads for an output pixel of image n; -1: it lies outside. */
static __device__ __forceinline__ int64_t src_of(const mixt__cuda_conv &v, int64_t n, spot out, spot tap)
{
    int64_t z = out.z * v.stride_d + tap.z * v.dilation_d - v.pad_d,
            y = out.y * v.stride + tap.y * v.dilation_h - v.pad,
            x = out.x * v.stride_w + tap.x * v.dilation_w - v.pad_w;
    bool inside = z >= 0 && z < v.d && y >= 0 && y < v.h && x >= 0 && x < v.w;
    return inside ? ((n * v.d + z) * v.h + y) * v.w + x : -1;
}

/** The output pixel that reads a source pixel of image n by tap `tap`; -1: there is none. */
static __device__ __forceinline__ int64_t dst_of(const mixt__cuda_conv &v, int64_t n, spot src, spot tap)
{
    int64_t z = src.z + v.pad_d - tap.z * v.dilation_d, y = src.y + v.pad - tap.y * v.dilation_h,
            x = src.x + v.pad_w - tap.x * v.dilation_w;
    if (z < 0 || y < 0 || x < 0 || z % v.stride_d || y % v.stride || x % v.stride_w)
        return -1;
    z /= v.stride_d;
    y /= v.stride;
    x /= v.stride_w;
    return z < v.out_d && y < v.out_h && x < v.out_w ? ((n * v.out_d + z) * v.out_h + y) * v.out_w + x : -1;
}

template <typename T> static __global__ void forward_kernel(const job j)
{
    const mixt__cuda_conv &v = j.v;
    const T *src = static_cast<const T *>(j.a), *weight = static_cast<const T *>(j.b);
    int64_t image = v.out_d * v.out_h * v.out_w, count = v.n * image * v.o, step = (int64_t)gridDim.x * THREADS,
            taps = v.kernel_d * v.kernel_h * v.kernel_w, width = v.c / v.groups, outputs = v.o / v.groups;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
        int64_t o = at % v.o, pixel = at / v.o, first = o / outputs * width;
        spot out = spot_of(pixel % image, v.out_h, v.out_w);
        float sum = j.bias ? j.bias[o] : 0.0f;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = src_of(v, pixel / image, out, spot_of(tap, v.kernel_h, v.kernel_w));
            for (int64_t c = 0; from >= 0 && c < width; c++)
                sum = fmaf(to_float(src[from * v.c + first + c]), to_float(weight[(o * taps + tap) * width + c]), sum);
        }
        static_cast<T *>(j.dst)[at] = from_float<T>(sum);
    }
}

/** Every output pixel whose patch holds the source pixel. */
template <typename T> static __global__ void grad_src_kernel(const job j)
{
    const mixt__cuda_conv &v = j.v;
    const T *grad_dst = static_cast<const T *>(j.a), *weight = static_cast<const T *>(j.b);
    int64_t image = v.d * v.h * v.w, count = v.n * image * v.c, step = (int64_t)gridDim.x * THREADS,
            taps = v.kernel_d * v.kernel_h * v.kernel_w, width = v.c / v.groups, outputs = v.o / v.groups;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
        int64_t c = at % v.c, pixel = at / v.c, first = c / width * outputs;
        spot src = spot_of(pixel % image, v.h, v.w);
        float sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = dst_of(v, pixel / image, src, spot_of(tap, v.kernel_h, v.kernel_w));
            for (int64_t o = first; from >= 0 && o < first + outputs; o++)
                sum = fmaf(to_float(grad_dst[from * v.o + o]), to_float(weight[(o * taps + tap) * width + c % width]),
                           sum);
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
    int64_t taps = v.kernel_d * v.kernel_h * v.kernel_w, width = v.c / v.groups, count = v.o * taps * width;
    int64_t image = v.out_d * v.out_h * v.out_w;
    for (int64_t at = blockIdx.x; at < count; at += gridDim.x) {
        int64_t o = at / width / taps, c = o / (v.o / v.groups) * width + at % width;
        spot tap = spot_of(at / width % taps, v.kernel_h, v.kernel_w);
        float sum = 0;
        for (int64_t p = threadIdx.x; p < v.n * image; p += THREADS) {
            int64_t from = src_of(v, p / image, spot_of(p % image, v.out_h, v.out_w), tap);
            if (from >= 0)
                sum = fmaf(to_float(src[from * v.c + c]), to_float(grad_dst[p * v.o + o]), sum);
        }
        sum = block_sum(sum, shared);
        if (threadIdx.x == 0)
            dst[at] = from_float<R>(j.add ? to_float(dst[at]) + sum : sum);
    }
}

/* ---- candidates ---- */

static unsigned blocks_of(const mixt__cuda_device *gpu, int64_t count)
{
    int64_t most = (int64_t)gpu->multiprocessors * 64;
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
    unsigned blocks = blocks_of(mixt__cuda_of(call), mixt__ceil_div(mixt__tensor_count(&call->out[0]), THREADS));
    j.bias = at->bias ? (const float *)call->in[2].data : NULL;
    if (blocks)
        DISPATCH(call->in[0].dtype, T, (forward_kernel<T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(j)));
    return mixt__cuda_launched(call->op->name);
}

static mixt_status grad_src(const mixt__call *call)
{
    job j = job_of(call, MIXT_CONV_GRAD_SRC);
    unsigned blocks = blocks_of(mixt__cuda_of(call), mixt__ceil_div(mixt__tensor_count(&call->out[0]), THREADS));
    if (blocks)
        DISPATCH(call->in[0].dtype, T, (grad_src_kernel<T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(j)));
    return mixt__cuda_launched(call->op->name);
}

static mixt_status grad_weight(const mixt__call *call)
{
    job j = job_of(call, MIXT_CONV_GRAD_WEIGHT);
    unsigned blocks = blocks_of(mixt__cuda_of(call), mixt__tensor_count(&call->out[0]));
    if (blocks && call->out[0].dtype == MIXT_DTYPE_FP32)
        DISPATCH(call->in[0].dtype, T,
                 (grad_weight_kernel<T, float><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(j)));
    else if (blocks)
        DISPATCH(call->in[0].dtype, T,
                 (grad_weight_kernel<T, T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(j)));
    return mixt__cuda_launched(call->op->name);
}

extern "C" const mixt__kernel mixt__cuda_conv_plain = {"plain", NULL, NULL, forward, NULL};
extern "C" const mixt__kernel mixt__cuda_conv_grad_src_plain = {"plain", NULL, NULL, grad_src, NULL};
extern "C" const mixt__kernel mixt__cuda_conv_grad_weight_plain = {"plain", NULL, NULL, grad_weight, NULL};
