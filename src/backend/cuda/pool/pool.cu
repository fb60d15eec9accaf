/* Max and average pooling over (N, H, W, C), and the gradient.
 *
 * A block takes one row of pixels, its threads the row's pixels and channels, 16 bytes of channels at a time. The
 * gradient gathers: each source element adds what the windows over it give, in order, so nothing is cleared and no
 * window waits for another. For maxima a first pass keeps where in its window each first maximum lies, one byte each.
 * Bytes: forward src and dst once, gradient of maxima src, twice the places, grad_dst and grad_src.
 */
#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

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

/* ---- maxima of V channels at a time; 16-bit formats stay packed two a word ---- */

static __device__ __forceinline__ unsigned max_two(unsigned a, unsigned b, bf16)
{
    __nv_bfloat162 r = __hmax2_nan(*reinterpret_cast<__nv_bfloat162 *>(&a), *reinterpret_cast<__nv_bfloat162 *>(&b));
    return *reinterpret_cast<unsigned *>(&r);
}
static __device__ __forceinline__ unsigned max_two(unsigned a, unsigned b, fp16)
{
    __half2 r = __hmax2_nan(*reinterpret_cast<__half2 *>(&a), *reinterpret_cast<__half2 *>(&b));
    return *reinterpret_cast<unsigned *>(&r);
}

/** All ones in each half where the two are equal; NaN equals nothing. */
static __device__ __forceinline__ unsigned equal_two(unsigned a, unsigned b, bf16)
{
    return __heq2_mask(*reinterpret_cast<__nv_bfloat162 *>(&a), *reinterpret_cast<__nv_bfloat162 *>(&b));
}
static __device__ __forceinline__ unsigned equal_two(unsigned a, unsigned b, fp16)
{
    return __heq2_mask(*reinterpret_cast<__half2 *>(&a), *reinterpret_cast<__half2 *>(&b));
}

template <typename T, int V> static __device__ __forceinline__ void max_of(pack<T, V> &best, const pack<T, V> &x)
{
    if constexpr (V == 8) {
        best.raw.x = max_two(best.raw.x, x.raw.x, T());
        best.raw.y = max_two(best.raw.y, x.raw.y, T());
        best.raw.z = max_two(best.raw.z, x.raw.z, T());
        best.raw.w = max_two(best.raw.w, x.raw.w, T());
    } else {
        float b[V], v[V];
        unpack(b, best);
        unpack(v, x);
        for (int k = 0; k < V; k++)
            b[k] = beats(v[k], b[k]) ? v[k] : b[k];
        if constexpr (V == 1)
            best.raw = from_float<T>(b[0]);
        else
            best.raw = *reinterpret_cast<const uint4 *>(b);
    }
}

/** The elements of one window, found once. */
struct window {
    range y, x;
    int64_t row;   // element of the window's first source row, with the channel
    int64_t pitch; // elements of a source row
    int first;     // place of the first real element, counted row by row with the padding
};

static __device__ __forceinline__ window window_of(const job &j, int n, int oy, int ox, int col)
{
    range y = clipped(j, oy, j.h), x = clipped(j, ox, j.w);
    int64_t pitch = (int64_t)j.w * j.c, row = ((int64_t)n * j.h + y.begin) * pitch + (int64_t)x.begin * j.c + col;
    return {y, x, row, pitch, (y.begin - oy * j.stride + j.pad) * j.size + x.begin - ox * j.stride + j.pad};
}

template <typename T, int V> static __device__ __forceinline__ pack<T, V> maximum(const job &j, const window &w)
{
    pack<T, V> best = load<T, V>(j.src, w.row);
    int height = w.y.end - w.y.begin, width = w.x.end - w.x.begin;
    if (j.size == 3 && height == 3 && width == 3) { // all loads at once
        pack<T, V> all[8];
#pragma unroll
        for (int k = 1; k < 9; k++)
            all[k - 1] = load<T, V>(j.src, w.row + k / 3 * w.pitch + k % 3 * j.c);
#pragma unroll
        for (int k = 1; k < 9; k++)
            max_of(best, all[k - 1]);
        return best;
    }
    for (int dy = 0; dy < height; dy++)
        for (int dx = 0; dx < width; dx++)
            max_of(best, load<T, V>(j.src, w.row + dy * w.pitch + (int64_t)dx * j.c));
    return best;
}

/* ---- forward ---- */

template <typename T, int V> static __global__ void __launch_bounds__(THREADS) pool_kernel(const job j)
{
    int vectors = j.c / V, n = blockIdx.x / j.out_h, oy = blockIdx.x % j.out_h;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        int64_t to = ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col;
        window w = window_of(j, n, oy, ox, col);
        float sum[V], value[V];
        if (j.max) {
            unpack(sum, maximum<T, V>(j, w));
        } else {
            for (int k = 0; k < V; k++)
                sum[k] = 0;
            for (int dy = 0; dy < w.y.end - w.y.begin; dy++)
                for (int dx = 0; dx < w.x.end - w.x.begin; dx++) {
                    unpack(value, load<T, V>(j.src, w.row + dy * w.pitch + (int64_t)dx * j.c));
                    for (int k = 0; k < V; k++)
                        sum[k] += value[k];
                }
            for (int k = 0; k < V; k++)
                sum[k] /= (float)((w.y.end - w.y.begin) * (w.x.end - w.x.begin));
        }
        store<T, V>(j.dst, to, sum);
    }
}

/* ---- gradient: places ---- */

/** Where each first maximum lies; slowly, for any values. */
template <typename T, int V, typename I> static __device__ void find_places(const job &j, const window &w, I *place)
{
    float best[V], value[V];
    unpack(best, load<T, V>(j.src, w.row));
    for (int k = 0; k < V; k++)
        place[k] = (I)w.first;
    for (int dy = 0; dy < w.y.end - w.y.begin; dy++)
        for (int dx = 0; dx < w.x.end - w.x.begin; dx++) {
            unpack(value, load<T, V>(j.src, w.row + dy * w.pitch + (int64_t)dx * j.c));
            for (int k = 0; k < V; k++)
                if (beats(value[k], best[k])) {
                    best[k] = value[k];
                    place[k] = (I)(w.first + dy * j.size + dx);
                }
        }
}

/** The same for a whole 3 x 3 window of 16-bit elements without NaN: the last place first, so that the first stays. */
template <typename T>
static __device__ __forceinline__ bool find_places_packed(const job &j, const window &w, uint8_t *place)
{
    if (j.size != 3 || w.y.end - w.y.begin != 3 || w.x.end - w.x.begin != 3)
        return false;
    uint4 all[9];
    unsigned found[4] = {0, 0, 0, 0}, numbers = ~0u;
#pragma unroll
    for (int k = 0; k < 9; k++)
        all[k] = load<T, 8>(j.src, w.row + k / 3 * w.pitch + k % 3 * j.c).raw;
    pack<T, 8> best = {all[0]};
#pragma unroll
    for (int k = 1; k < 9; k++)
        max_of(best, pack<T, 8>{all[k]});
    const unsigned *top = &best.raw.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        numbers &= equal_two(top[i], top[i], T());
#pragma unroll
        for (int k = 8; k >= 0; k--) {
            unsigned mask = equal_two((&all[k].x)[i], top[i], T());
            found[i] = (mask & (unsigned)(k * 0x10001)) | (~mask & found[i]);
        }
    }
    for (int i = 0; i < 8; i++)
        place[i] = (uint8_t)(found[i / 2] >> 16 * (i % 2));
    return numbers == ~0u;
}

template <typename T, int V, typename I> static __global__ void __launch_bounds__(THREADS) places_kernel(const job j)
{
    int vectors = j.c / V, n = blockIdx.x / j.out_h, oy = blockIdx.x % j.out_h;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        window w = window_of(j, n, oy, ox, col);
        alignas(8) I place[V];
        bool found = false;
        if constexpr (V == 8)
            found = find_places_packed<T>(j, w, place);
        if (!found)
            find_places<T, V, I>(j, w, place);
        I *to = static_cast<I *>(j.places) + ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col;
        if constexpr (V == 8)
            *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(place);
        else if constexpr (V == 4)
            *reinterpret_cast<unsigned *>(to) = *reinterpret_cast<unsigned *>(place);
        else
            *to = place[0];
    }
}

/* ---- gradient: gathering ---- */

/** V places as loaded: bytes in words, or one number. */
template <int V> struct places {
    unsigned word[V == 8 ? 2 : 1];
};

template <typename I, int V> static __device__ __forceinline__ places<V> load_places(const void *base, int64_t at)
{
    const I *from = static_cast<const I *>(base) + at;
    if constexpr (V == 8) {
        uint2 two = *reinterpret_cast<const uint2 *>(from);
        return {{two.x, two.y}};
    } else if constexpr (V == 4) {
        return {{*reinterpret_cast<const unsigned *>(from)}};
    } else {
        return {{(unsigned)*from}};
    }
}

/** Adds g where the maximum lies at `here`. */
template <typename T, int V>
static __device__ __forceinline__ void add_chosen(float *sum, const pack<T, V> &g, const places<V> &p, int here)
{
    if constexpr (V == 1) {
        sum[0] += p.word[0] == (unsigned)here ? to_float(g.raw) : 0.0f;
    } else {
        const unsigned *words = &g.raw.x;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unsigned equal = __vcmpeq4(p.word[V == 8 ? i / 2 : 0], (unsigned)here * 0x01010101u);
            unsigned mask = __byte_perm(equal, 0, V == 4 ? i * 0x1111 : i % 2 ? 0x3322 : 0x1100);
            if constexpr (V == 8) {
                float two[2];
                widen(two, words[i] & mask, T());
                sum[2 * i] += two[0];
                sum[2 * i + 1] += two[1];
            } else {
                sum[i] += __uint_as_float(words[i] & mask);
            }
        }
    }
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
                pack<T, V> g = load<T, V>(j.grad_dst, at);
                if (j.max) {
                    int here = (y - oy * j.stride + j.pad) * j.size + x - ox * j.stride + j.pad;
                    add_chosen<T, V>(sum, g, load_places<I, V>(j.places, at), here);
                } else {
                    range wy = clipped(j, oy, j.h), wx = clipped(j, ox, j.w);
                    unpack(value, g);
                    for (int k = 0; k < V; k++)
                        sum[k] += value[k] / (float)((wy.end - wy.begin) * (wx.end - wx.begin));
                }
            }
        store<T, V>(j.dst, ((int64_t)blockIdx.x * j.w + x) * j.c + col, sum);
    }
}

/** Maxima of 3 x 3 windows with stride 2 and pad 1: a thread takes the 2 x 2 source pixels that the same four windows
 *  cover, so that each window is read four times instead of nine. */
template <typename T, int V> static __global__ void __launch_bounds__(THREADS) gather_quads_kernel(const job j)
{
    int vectors = j.c / V, quads = (j.h + 1) / 2, n = blockIdx.x / quads, oy = blockIdx.x % quads;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < (j.w + 1) / 2 * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        float sum[4][V];
        for (int k = 0; k < 4 * V; k++)
            sum[k / V][k % V] = 0;
#pragma unroll
        for (int w = 0; w < 4; w++) {   // window (oy + dy, ox + dx) has source pixel (2 oy + a, 2 ox + b) at its
            int dy = w / 2, dx = w % 2; // row a + 1 - 2 dy and column b + 1 - 2 dx
            if (oy + dy >= j.out_h || ox + dx >= j.out_w)
                continue;
            int64_t at = (((int64_t)n * j.out_h + oy + dy) * j.out_w + ox + dx) * j.c + col;
            pack<T, V> g = load<T, V>(j.grad_dst, at);
            places<V> p = load_places<uint8_t, V>(j.places, at);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (k / 2 >= dy && k % 2 >= dx)
                    add_chosen<T, V>(sum[k], g, p, (k / 2 + 1 - 2 * dy) * 3 + k % 2 + 1 - 2 * dx);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int y = oy * 2 + k / 2, x = ox * 2 + k % 2;
            if (y < j.h && x < j.w)
                store<T, V>(j.dst, (((int64_t)n * j.h + y) * j.w + x) * j.c + col, sum[k]);
        }
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
    if constexpr (V > 1)
        if (j->max && j->size == 3 && j->stride == 2 && j->pad == 1) {
            dim3 grid = grid_of((int64_t)j->n * ((j->h + 1) / 2), (j->w + 1) / 2, j->c / V);
            gather_quads_kernel<T, V><<<grid, THREADS, 0, mixt__cuda.stream>>>(*j);
            return;
        }
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
