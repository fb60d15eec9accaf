/* Folding for convolutions of few channels (see conv2d.h), and adding to a gradient.
 *
 * A thread makes 16 bytes of a folded pixel or tap, or one element where a weight is unfolded. Bytes: the source once,
 * the folded source once.
 */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/core/tf32_tile.cuh"

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

/** Images of h x w pixels, or kernels of as many taps, to folded rows of to_w: block (image, folded row). The source
 *  rows of a folded one go through shared memory with zeros around, where a folded pixel's elements are runs. tf32:
 *  rounded here, once, not by those who read it. */
template <typename T, bool tf32>
static __global__ void __launch_bounds__(THREADS)
    fold_kernel(const T *from, T *to, int h, int w, int c, int to_w, int to_c, int stride, int front)
{
    constexpr int V = vec16<T>::size;
    extern __shared__ __align__(16) unsigned char shared[];
    T *rows = reinterpret_cast<T *>(shared);
    int parts = to_c / V, y = blockIdx.y, run = stride * c, length = to_w * run;
    const T *image = from + (int64_t)blockIdx.x * h * w * c;
    T *row = to + ((int64_t)blockIdx.x * gridDim.y + y) * to_w * to_c;
    for (int dy = 0; dy < stride; dy++) {
        int sy = y * stride + dy - front;
        for (int i = threadIdx.x; i < length; i += THREADS) {
            int at = i - front * c;
            bool inside = sy >= 0 && sy < h && at >= 0 && at < w * c;
            rows[dy * length + i] = inside ? image[(int64_t)sy * w * c + at] : from_float<T>(0.0f);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < to_w * parts; i += THREADS) {
        int x = i / parts, first = i % parts * V, dy = first / run, k = first - dy * run;
        vec16<T> packed;
#pragma unroll
        for (int v = 0; v < V; v++) {
            packed.v[v] = dy < stride ? rows[dy * length + x * run + k] : from_float<T>(0.0f);
            if constexpr (tf32)
                packed.v[v] = __uint_as_float(tf32_nearest(packed.v[v]));
            if (++k == run) {
                k = 0;
                dy++;
            }
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
    float value = folded[mixt__cuda_fold_place(&f, at)];
    grad[at] = from_float<T>(add ? to_float(grad[at]) + value : value);
}

static __global__ void __launch_bounds__(THREADS) add_kernel(float *grad, const float *extra, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (int64_t)gridDim.x * THREADS)
        grad[i] += extra[i];
}

/** Bytes of shared memory that folding takes; the source's rows are the longest. */
size_t mixt__cuda_fold_shared(const mixt__cuda_fold *f, mixt_dtype dtype)
{
    return (size_t)(f->to.w * f->from.stride * f->from.stride * f->from.c) * mixt_dtype_size(dtype);
}

/** Folds an image, or a kernel, of v's channels for each of grid.x. */
static void launch_fold(const mixt__cuda_fold *f, mixt_dtype dtype, const void *from, void *to, dim3 grid, int h, int w,
                        int to_w, int front)
{
    size_t bytes = mixt__cuda_fold_shared(f, dtype);
    int c = (int)f->from.c, to_c = (int)f->to.c, stride = (int)f->from.stride;
    if (dtype == MIXT_DTYPE_TF32)
        fold_kernel<float, true><<<grid, THREADS, bytes, mixt__cuda.stream>>>((const float *)from, (float *)to, h, w, c,
                                                                              to_w, to_c, stride, front);
    else
        DISPATCH(dtype, T,
                 (fold_kernel<T, false><<<grid, THREADS, bytes, mixt__cuda.stream>>>((const T *)from, (T *)to, h, w, c,
                                                                                     to_w, to_c, stride, front)));
}

mixt_status mixt__cuda_fold_src(const mixt__cuda_fold *f, mixt_dtype dtype, const void *src, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    dim3 grid((unsigned)v->n, (unsigned)f->to.h);
    launch_fold(f, dtype, src, folded, grid, (int)v->h, (int)v->w, (int)f->to.w, (int)f->front);
    return mixt__cuda_launched("folding a source");
}

mixt_status mixt__cuda_fold_weight(const mixt__cuda_fold *f, mixt_dtype dtype, const void *weight, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    dim3 grid((unsigned)v->o, (unsigned)f->to.kernel_h);
    launch_fold(f, dtype, weight, folded, grid, (int)v->kernel_h, (int)v->kernel_w, (int)f->to.kernel_w, (int)f->lead);
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
