/* Max and average pooling over (N, H, W, C), and the gradient.
 *
 * A block takes one row of pixels, its threads the row's pixels and channels, 16 bytes of channels at a time. The
 * gradient gathers: each source element adds what the windows over it give, in order, so nothing is cleared and no
 * window waits for another. For maxima a first pass keeps where in its window each first maximum lies, one byte each.
 * Bytes: forward src and dst once, gradient of maxima src, twice the places, grad_dst and grad_src.
 */
#include "backend/cuda/kernels.h"
#include "backend/cuda/pack.cuh"

enum { THREADS = 256, BYTE_WINDOW = 16 }; // largest window whose places fit a byte

typedef struct job {
    const void *src, *grad_dst;
    void *dst, *places;
    int n, h, w, c, out_h, out_w;
    int size, stride, pad;
    bool max;
} job;

/** The part of a window that lies in the source, along one dimension. */
struct range {
    int begin, end;
};

static __device__ __forceinline__ range clipped(const job &j, int o, int size)
{
    int begin = o * j.stride - j.pad, end = begin + j.size;
    return {begin > 0 ? begin : 0, end < size ? end : size};
}

/** Windows over position p of the source. */
static __device__ __forceinline__ range windows_over(const job &j, int p, int count)
{
    int begin = p + j.pad - j.size + 1, end = (p + j.pad) / j.stride + 1;
    begin = begin > 0 ? (begin + j.stride - 1) / j.stride : 0;
    return {begin, end < count ? end : count};
}

/** Whether v takes the place of the best so far: larger, or the first NaN. */
static __device__ __forceinline__ bool beats(float v, float best)
{
    return v > best || (v != v && best == best);
}

/* ---- forward ---- */

template <typename T, int V> static __global__ void __launch_bounds__(THREADS) pool_kernel(const job j)
{
    int vectors = j.c / V, n = blockIdx.x / j.out_h, oy = blockIdx.x % j.out_h;
    range y = clipped(j, oy, j.h);
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        range x = clipped(j, ox, j.w);
        float best[V], sum[V], value[V];
        for (int k = 0; k < V; k++) {
            best[k] = -INFINITY;
            sum[k] = 0;
        }
        for (int sy = y.begin; sy < y.end; sy++)
#pragma unroll 3
            for (int sx = x.begin; sx < x.end; sx++) {
                unpack(value, load<T, V>(j.src, (((int64_t)n * j.h + sy) * j.w + sx) * j.c + col));
                for (int k = 0; k < V; k++) {
                    best[k] = beats(value[k], best[k]) ? value[k] : best[k];
                    sum[k] += value[k];
                }
            }
        float count = (float)((y.end - y.begin) * (x.end - x.begin));
        for (int k = 0; k < V; k++)
            best[k] = j.max ? best[k] : sum[k] / count;
        store<T, V>(j.dst, ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col, best);
    }
}

/* ---- gradient ---- */

template <typename I, int V> struct places {
    I v[V];
};

/** Where in its window, counted row by row with the padding, each first maximum lies. */
template <typename T, int V, typename I> static __global__ void __launch_bounds__(THREADS) places_kernel(const job j)
{
    int vectors = j.c / V, n = blockIdx.x / j.out_h, oy = blockIdx.x % j.out_h;
    range y = clipped(j, oy, j.h);
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        range x = clipped(j, ox, j.w);
        int first = ((y.begin - oy * j.stride + j.pad) * j.size + x.begin - ox * j.stride + j.pad);
        float best[V], value[V];
        int place[V];
        unpack(best, load<T, V>(j.src, (((int64_t)n * j.h + y.begin) * j.w + x.begin) * j.c + col));
        for (int k = 0; k < V; k++)
            place[k] = first;
        for (int sy = y.begin; sy < y.end; sy++)
#pragma unroll 3
            for (int sx = x.begin; sx < x.end; sx++) {
                int here = first + ((sy - y.begin) * j.size + sx - x.begin);
                unpack(value, load<T, V>(j.src, (((int64_t)n * j.h + sy) * j.w + sx) * j.c + col));
                for (int k = 0; k < V; k++)
                    if (beats(value[k], best[k])) {
                        best[k] = value[k];
                        place[k] = here;
                    }
            }
        alignas(V * sizeof(I)) places<I, V> packed;
        for (int k = 0; k < V; k++)
            packed.v[k] = (I)place[k];
        I *to = static_cast<I *>(j.places) + ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col;
        if constexpr (V == 8)
            *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(&packed);
        else if constexpr (V == 4)
            *reinterpret_cast<unsigned *>(to) = *reinterpret_cast<unsigned *>(&packed);
        else
            *to = packed.v[0];
    }
}

/** Which of V elements have their maximum at `here`. */
template <typename I, int V> static __device__ __forceinline__ unsigned chosen(const void *base, int64_t at, int here)
{
    const I *from = static_cast<const I *>(base) + at;
    unsigned mask = 0;
    if constexpr (V == 1) {
        mask = *from == (I)here;
    } else {
        unsigned words[2] = {0, 0};
        if constexpr (V == 8)
            *reinterpret_cast<uint2 *>(words) = *reinterpret_cast<const uint2 *>(from);
        else
            words[0] = *reinterpret_cast<const unsigned *>(from);
        for (int k = 0; k < V; k++)
            mask |= (unsigned)((words[k / 4] >> 8 * (k % 4) & 255u) == (unsigned)here) << k;
    }
    return mask;
}

template <typename T, int V, typename I> static __global__ void __launch_bounds__(THREADS) gather_kernel(const job j)
{
    int vectors = j.c / V, n = blockIdx.x / j.h, y = blockIdx.x % j.h;
    range rows = windows_over(j, y, j.out_h);
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.w * vectors; i += gridDim.y * THREADS) {
        int x = i / vectors, col = (i - x * vectors) * V;
        range cols = windows_over(j, x, j.out_w);
        float sum[V], value[V];
        for (int k = 0; k < V; k++)
            sum[k] = 0;
        for (int oy = rows.begin; oy < rows.end; oy++)
            for (int ox = cols.begin; ox < cols.end; ox++) {
                int64_t at = (((int64_t)n * j.out_h + oy) * j.out_w + ox) * j.c + col;
                int here = ((y - oy * j.stride + j.pad) * j.size + x - ox * j.stride + j.pad);
                range wy = clipped(j, oy, j.h), wx = clipped(j, ox, j.w);
                unsigned mask = j.max ? chosen<I, V>(j.places, at, here) : ~0u;
                float count = j.max ? 1.0f : (float)((wy.end - wy.begin) * (wx.end - wx.begin));
                unpack(value, load<T, V>(j.grad_dst, at));
                for (int k = 0; k < V; k++)
                    sum[k] += mask >> k & 1 ? j.max ? value[k] : value[k] / count : 0.0f;
            }
        store<T, V>(j.dst, ((int64_t)blockIdx.x * j.w + x) * j.c + col, sum);
    }
}

/* ---- launches ---- */

/** A block, or some where a row is long, for each of `rows` rows of `width` pixels. */
static dim3 grid_of(int64_t rows, int64_t width, int64_t vectors)
{
    int64_t across = mixt__ceil_div(width * vectors, THREADS);
    return dim3((unsigned)rows, (unsigned)(across < 65535 ? across : 65535));
}

template <typename T, int V> static void launch_pool(const job *j)
{
    pool_kernel<T, V><<<grid_of((int64_t)j->n * j->out_h, j->out_w, j->c / V), THREADS, 0, mixt__cuda.stream>>>(*j);
}

template <typename T, int V, typename I> static void launch_grad(const job *j)
{
    if (j->max)
        places_kernel<T, V, I>
            <<<grid_of((int64_t)j->n * j->out_h, j->out_w, j->c / V), THREADS, 0, mixt__cuda.stream>>>(*j);
    gather_kernel<T, V, I><<<grid_of((int64_t)j->n * j->h, j->w, j->c / V), THREADS, 0, mixt__cuda.stream>>>(*j);
}

template <typename T> static void launch(const job *j, bool grad)
{
    constexpr int V = vec16<T>::size;
    bool wide = j->c % V == 0 && aligned16(j->src) && aligned16(j->dst) && aligned16(j->grad_dst);
    if (!grad && wide)
        launch_pool<T, V>(j);
    else if (!grad)
        launch_pool<T, 1>(j);
    else if (j->size > BYTE_WINDOW)
        launch_grad<T, 1, int32_t>(j);
    else if (wide)
        launch_grad<T, V, uint8_t>(j);
    else
        launch_grad<T, 1, uint8_t>(j);
}

/* ---- candidates ---- */

static job job_of(const mixt__call *call, const mixt__tensor *src, const mixt__tensor *dst)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    job j = {};
    j.n = (int)src->shape.dims[0];
    j.h = (int)src->shape.dims[1];
    j.w = (int)src->shape.dims[2];
    j.c = (int)src->shape.dims[3];
    j.out_h = (int)dst->shape.dims[1];
    j.out_w = (int)dst->shape.dims[2];
    j.size = (int)at->size;
    j.stride = (int)at->stride;
    j.pad = (int)at->pad;
    j.max = at->kind == MIXT_POOL_MAX;
    j.src = call->in[0].data;
    j.dst = call->out[0].data;
    j.places = call->workspace;
    return j;
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call, &call->in[0], &call->out[0]);
    if (!mixt__tensor_count(&call->out[0]))
        return MIXT_OK;
    DISPATCH(call->in[0].dtype, T, launch<T>(&j, false));
    return mixt__cuda_launched("pool");
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    size_t each = at->kind != MIXT_POOL_MAX ? 0 : at->size > BYTE_WINDOW ? sizeof(int32_t) : 1;
    (void)arena;
    call->workspace_bytes = (size_t)mixt__tensor_count(&call->in[2]) * each;
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    job j = job_of(call, &call->in[0], &call->in[2]);
    j.grad_dst = call->in[2].data;
    if (!mixt__tensor_count(&call->out[0]))
        return MIXT_OK;
    DISPATCH(call->in[0].dtype, T, launch<T>(&j, true));
    return mixt__cuda_launched("pool_grad");
}

/** Rows are blocks, and a row's pixels and channels are counted in 32 bits. */
static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    const int64_t *d = call->in[0].shape.dims;
    int64_t h = d[1] + 2 * at->pad, w = d[2] + 2 * at->pad;
    *reason = "rows of 2^31 elements or more, or as many rows";
    return d[0] * h < INT32_MAX && w * d[3] < INT32_MAX && at->size <= 32768 && at->stride < INT32_MAX / 2;
}

static const mixt__kernel forward = {"gather", supports, NULL, run, NULL};
static const mixt__kernel grad = {"gather", supports, grad_prepare, grad_run, NULL};

extern "C" {
const mixt__kernel *const mixt__cuda_pool_kernels[] = {&forward, NULL};
const mixt__kernel *const mixt__cuda_pool_grad_kernels[] = {&grad, NULL};
}
