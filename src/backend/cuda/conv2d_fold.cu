/* Folding for convolutions of few channels (see conv2d.h), and adding to a gradient.
 *
 * A thread makes 16 bytes of a folded pixel or tap, or one element where a weight is unfolded. Bytes: the source once,
 * the folded source once.
 */
#include "backend/cuda/conv2d.h"

#include "backend/cuda/device.cuh"

enum { THREADS = 256, CHANNELS = 8 }; // folded channels are a multiple of these

mixt__cuda_fold mixt__cuda_fold_of(const mixt__cuda_conv *v)
{
    mixt__cuda_fold f = {};
    int64_t s = v->stride;
    f.from = f.to = *v;
    f.front = mixt__ceil_div(v->pad, s) * s;
    f.lead = f.front - v->pad;
    f.to.kernel_h = mixt__ceil_div(v->kernel_h + f.lead, s);
    f.to.kernel_w = mixt__ceil_div(v->kernel_w + f.lead, s);
    f.to.h = v->out_h + f.to.kernel_h - 1;
    f.to.w = v->out_w + f.to.kernel_w - 1;
    f.to.c = mixt__ceil_div(s * s * v->c, CHANNELS) * CHANNELS;
    f.to.stride = 1;
    f.to.pad = 0;
    return f;
}

/** One element of an image of h x w pixels with c channels; 0 outside. */
template <typename T>
static __device__ __forceinline__ T element(const T *image, int h, int w, int c, int y, int x, int channel)
{
    bool inside = y >= 0 && y < h && x >= 0 && x < w;
    return inside ? image[((int64_t)y * w + x) * c + channel] : from_float<T>(0.0f);
}

/** Images of from.h x from.w pixels, or kernels of as many taps, to folded ones of to.h x to.w: block (y, image). */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    fold_kernel(const T *from, T *to, int h, int w, int c, int to_w, int to_c, int stride, int front)
{
    constexpr int V = vec16<T>::size;
    int parts = to_c / V, y = blockIdx.y;
    const T *image = from + (int64_t)blockIdx.x * h * w * c;
    T *row = to + ((int64_t)blockIdx.x * gridDim.y + y) * to_w * to_c;
    for (int i = threadIdx.x; i < to_w * parts; i += THREADS) {
        int x = i / parts, first = i % parts * V;
        vec16<T> packed;
#pragma unroll
        for (int k = 0; k < V; k++) {
            int block = (first + k) / c, channel = (first + k) % c, dy = block / stride, dx = block % stride;
            bool real = dy < stride;
            packed.v[k] = real ? element(image, h, w, c, y * stride + dy - front, x * stride + dx - front, channel)
                               : from_float<T>(0.0f);
        }
        store16(row + (int64_t)x * to_c + first, packed);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    unfold_weight_kernel(const mixt__cuda_fold f, const float *folded, T *grad, bool add)
{
    const mixt__cuda_conv &v = f.from;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= v.o * v.kernel_h * v.kernel_w * v.c)
        return;
    int64_t c = at % v.c, x = at / v.c % v.kernel_w + f.lead, y = at / v.c / v.kernel_w % v.kernel_h + f.lead;
    int64_t o = at / v.c / v.kernel_w / v.kernel_h;
    int64_t channel = (y % v.stride * v.stride + x % v.stride) * v.c + c;
    float value = folded[((o * f.to.kernel_h + y / v.stride) * f.to.kernel_w + x / v.stride) * f.to.c + channel];
    grad[at] = from_float<T>(add ? to_float(grad[at]) + value : value);
}

static __global__ void __launch_bounds__(THREADS) add_kernel(float *grad, const float *extra, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (int64_t)gridDim.x * THREADS)
        grad[i] += extra[i];
}

mixt_status mixt__cuda_fold_src(const mixt__cuda_fold *f, mixt_dtype dtype, const void *src, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    dim3 grid((unsigned)v->n, (unsigned)f->to.h);
    DISPATCH(dtype, T,
             (fold_kernel<T><<<grid, THREADS, 0, mixt__cuda.stream>>>((const T *)src, (T *)folded, (int)v->h, (int)v->w,
                                                                      (int)v->c, (int)f->to.w, (int)f->to.c,
                                                                      (int)v->stride, (int)f->front)));
    return mixt__cuda_launched("folding a source");
}

mixt_status mixt__cuda_fold_weight(const mixt__cuda_fold *f, mixt_dtype dtype, const void *weight, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    dim3 grid((unsigned)v->o, (unsigned)f->to.kernel_h);
    DISPATCH(dtype, T,
             (fold_kernel<T><<<grid, THREADS, 0, mixt__cuda.stream>>>((const T *)weight, (T *)folded, (int)v->kernel_h,
                                                                      (int)v->kernel_w, (int)v->c, (int)f->to.kernel_w,
                                                                      (int)f->to.c, (int)v->stride, (int)f->lead)));
    return mixt__cuda_launched("folding a weight");
}

mixt_status mixt__cuda_unfold_weight(const mixt__cuda_fold *f, mixt_dtype dtype, const float *folded, void *grad,
                                     bool add)
{
    const mixt__cuda_conv *v = &f->from;
    unsigned blocks = (unsigned)mixt__ceil_div(v->o * v->kernel_h * v->kernel_w * v->c, THREADS);
    DISPATCH(dtype, T,
             (unfold_weight_kernel<T><<<blocks, THREADS, 0, mixt__cuda.stream>>>(*f, folded, (T *)grad, add)));
    return mixt__cuda_launched("unfolding a gradient");
}

mixt_status mixt__cuda_conv_add(float *grad, const float *extra, int64_t count)
{
    int64_t blocks = mixt__ceil_div(count, THREADS), most = (int64_t)mixt__cuda.multiprocessors * 16;
    add_kernel<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, mixt__cuda.stream>>>(grad, extra, count);
    return mixt__cuda_launched("adding to a gradient");
}
