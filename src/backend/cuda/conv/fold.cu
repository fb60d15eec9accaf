/* Folding for convolutions of few channels (see conv2d.h), and adding to a gradient.
 *
 * A thread makes 16 bytes of a folded pixel or tap, or one element where a weight is unfolded. Bytes: the source once,
 * the folded source once.
 */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/core/tf32_tile.cuh"

enum { THREADS = 256, CHANNELS = 8 }; // folded channels are a multiple of these

extern "C" mixt__cuda_fold mixt__cuda_fold_of(const mixt__cuda_conv *v)
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
    f.to.c = mixt__ceil_div(v->kernel_d * s * s * v->c, CHANNELS) * CHANNELS;
    f.to.stride = f.to.stride_w = f.to.stride_d = 1;
    f.to.pad = f.to.pad_w = f.to.pad_d = 0;
    f.to.n = v->n * v->out_d;
    f.to.d = f.to.out_d = f.to.kernel_d = 1;
    f.to.volume = false;
    return f;
}

/** What is folded: images of `depth` planes of h x w pixels, or kernels of as many taps. Each becomes `planes` folded
 *  ones with rows of to_w; of plane z the channels are those of planes z · stride_d - front_d and `reach` on. */
typedef struct folding {
    int depth, h, w, c;
    int planes, to_w, to_c;
    int reach, stride_d, front_d, stride, front;
} folding;

/** Block (folded plane, folded row). The source rows of a folded one go through shared memory with zeros around, where
 * a folded pixel's elements are runs. tf32: rounded here, once, not by those who read it. */
template <typename T, bool tf32>
static __global__ void __launch_bounds__(THREADS) fold_kernel(const T *from, T *to, const folding f)
{
    constexpr int V = vec16<T>::size;
    extern __shared__ __align__(16) unsigned char shared[];
    T *rows = reinterpret_cast<T *>(shared);
    int parts = f.to_c / V, y = blockIdx.y, run = f.stride * f.c, length = f.to_w * run, count = f.reach * f.stride;
    const T *image = from + (int64_t)(blockIdx.x / f.planes) * f.depth * f.h * f.w * f.c;
    T *row = to + ((int64_t)blockIdx.x * gridDim.y + y) * f.to_w * f.to_c;
    int first_plane = (int)(blockIdx.x % f.planes) * f.stride_d - f.front_d;
    for (int r = 0; r < count; r++) {
        int sz = first_plane + r / f.stride, sy = y * f.stride + r % f.stride - f.front;
        bool there = sz >= 0 && sz < f.depth && sy >= 0 && sy < f.h;
        for (int i = threadIdx.x; i < length; i += THREADS) {
            int at = i - f.front * f.c;
            bool inside = there && at >= 0 && at < f.w * f.c;
            rows[r * length + i] = inside ? image[((int64_t)sz * f.h + sy) * f.w * f.c + at] : from_float<T>(0.0f);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < f.to_w * parts; i += THREADS) {
        int x = i / parts, first = i % parts * V, r = first / run, k = first - r * run;
        vec16<T> packed;
#pragma unroll
        for (int v = 0; v < V; v++) {
            packed.v[v] = r < count ? rows[r * length + x * run + k] : from_float<T>(0.0f);
            if constexpr (tf32)
                packed.v[v] = __uint_as_float(tf32_nearest(packed.v[v]));
            if (++k == run) {
                k = 0;
                r++;
            }
        }
        store16(row + (int64_t)x * f.to_c + first, packed);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    unfold_weight_kernel(const mixt__cuda_fold f, const float *folded, T *grad, bool add)
{
    const mixt__cuda_conv &v = f.from;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= v.o * v.kernel_d * v.kernel_h * v.kernel_w * v.c)
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
extern "C" size_t mixt__cuda_fold_shared(const mixt__cuda_fold *f, mixt_dtype dtype)
{
    return (size_t)(f->to.w * f->from.kernel_d * f->from.stride * f->from.stride * f->from.c) * mixt_dtype_size(dtype);
}

static void launch_fold(const mixt__cuda_device *gpu, const mixt__cuda_fold *f, mixt_dtype dtype, const void *from,
                        void *to, dim3 grid, const folding *what)
{
    size_t bytes = mixt__cuda_fold_shared(f, dtype);
    if (dtype == MIXT_DTYPE_TF32)
        fold_kernel<float, true><<<grid, THREADS, bytes, gpu->stream>>>((const float *)from, (float *)to, *what);
    else
        DISPATCH(dtype, T,
                 (fold_kernel<T, false><<<grid, THREADS, bytes, gpu->stream>>>((const T *)from, (T *)to, *what)));
}

extern "C" mixt_status mixt__cuda_fold_src(const mixt__cuda_device *gpu, const mixt__cuda_fold *f, mixt_dtype dtype,
                                           const void *src, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    folding what = {.depth = (int)v->d,
                    .h = (int)v->h,
                    .w = (int)v->w,
                    .c = (int)v->c,
                    .planes = (int)v->out_d,
                    .to_w = (int)f->to.w,
                    .to_c = (int)f->to.c,
                    .reach = (int)v->kernel_d,
                    .stride_d = (int)v->stride_d,
                    .front_d = (int)v->pad_d,
                    .stride = (int)v->stride,
                    .front = (int)f->front};
    launch_fold(gpu, f, dtype, src, folded, dim3((unsigned)f->to.n, (unsigned)f->to.h), &what);
    return mixt__cuda_launched("folding a source");
}

extern "C" mixt_status mixt__cuda_fold_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *f, mixt_dtype dtype,
                                              const void *weight, void *folded)
{
    const mixt__cuda_conv *v = &f->from;
    folding what = {.depth = (int)v->kernel_d,
                    .h = (int)v->kernel_h,
                    .w = (int)v->kernel_w,
                    .c = (int)v->c,
                    .planes = 1,
                    .to_w = (int)f->to.kernel_w,
                    .to_c = (int)f->to.c,
                    .reach = (int)v->kernel_d,
                    .stride_d = 1,
                    .stride = (int)v->stride,
                    .front = (int)f->lead};
    launch_fold(gpu, f, dtype, weight, folded, dim3((unsigned)v->o, (unsigned)f->to.kernel_h), &what);
    return mixt__cuda_launched("folding a weight");
}

extern "C" mixt_status mixt__cuda_unfold_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *f,
                                                mixt_dtype dtype, const float *folded, void *grad, bool add)
{
    const mixt__cuda_conv *v = &f->from;
    unsigned blocks = (unsigned)mixt__ceil_div(v->o * v->kernel_d * v->kernel_h * v->kernel_w * v->c, THREADS);
    DISPATCH(dtype, T, (unfold_weight_kernel<T><<<blocks, THREADS, 0, gpu->stream>>>(*f, folded, (T *)grad, add)));
    return mixt__cuda_launched("unfolding a gradient");
}

extern "C" mixt_status mixt__cuda_conv_add(const mixt__cuda_device *gpu, float *grad, const float *extra, int64_t count)
{
    int64_t blocks = mixt__ceil_div(count, THREADS), most = (int64_t)gpu->multiprocessors * 16;
    add_kernel<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, gpu->stream>>>(grad, extra, count);
    return mixt__cuda_launched("adding to a gradient");
}
