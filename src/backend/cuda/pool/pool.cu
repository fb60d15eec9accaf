/* Max and average pooling over (N, H, W, C) or (N, D, H, W, C), and the gradient.
 *
 * A block takes one row of pixels, its threads the row's pixels and channels, 16 bytes of channels at a time. The
 * gradient gathers: each source element adds what the windows over it give, in order, so nothing is cleared and no
 * window waits for another. For maxima a first pass keeps where in its window each first maximum lies, one byte each.
 * Where windows cover every pixel exactly once, each writes what belongs to its own pixels and no place is kept.
 * Bytes: forward src and dst once, gradient of maxima src, twice the places (or none), grad_dst and grad_src.
 */
#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

enum { THREADS = 256, BYTE_WINDOW = 256 }; // places of the largest window that a byte can tell apart

typedef struct job {
    const void *src, *grad_dst;
    void *dst, *places;
    int n, d, h, w, c, out_d, out_h, out_w; // planes: d and out_d are 1
    int size, stride, pad;                  // of height and width
    int size_d, stride_d, pad_d;
    bool max;
} job;

/** The part of a window that lies in the source, along one dimension. */
struct range {
    int begin, end;
};

static __device__ __forceinline__ range clip(int begin, int window, int size)
{
    int end = begin + window;
    return {begin > 0 ? begin : 0, end < size ? end : size};
}

static __device__ __forceinline__ range clipped(const job &j, int o, int size)
{
    return clip(o * j.stride - j.pad, j.size, size);
}

static __device__ __forceinline__ range clipped_depth(const job &j, int o)
{
    return clip(o * j.stride_d - j.pad_d, j.size_d, j.d);
}

/** Windows over position p of the source. */
static __device__ __forceinline__ range windows_over(int p, int size, int stride, int pad, int count)
{
    int begin = p + pad - size + 1, end = (p + pad) / stride + 1;
    begin = begin > 0 ? (begin + stride - 1) / stride : 0;
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
    int depth, height, width; // of what lies in the source
    int64_t row;              // element of the window's first source row, with the channel
    int64_t pitch, plane;     // elements of a source row, and of a plane
    int first;                // place of the first real element, counted row by row with the padding
};

/** Of output pixel ox in row `line` of all output rows. */
static __device__ __forceinline__ window window_of(const job &j, int line, int ox, int col)
{
    int oy = line % j.out_h, oz = line / j.out_h % j.out_d, n = line / j.out_h / j.out_d;
    range z = clipped_depth(j, oz), y = clipped(j, oy, j.h), x = clipped(j, ox, j.w);
    int64_t pitch = (int64_t)j.w * j.c, plane = pitch * j.h;
    int64_t row = ((int64_t)n * j.d + z.begin) * plane + y.begin * pitch + (int64_t)x.begin * j.c + col;
    int first = ((z.begin - oz * j.stride_d + j.pad_d) * j.size + y.begin - oy * j.stride + j.pad) * j.size + x.begin -
                ox * j.stride + j.pad;
    return {z.end - z.begin, y.end - y.begin, x.end - x.begin, row, pitch, plane, first};
}

static __device__ __forceinline__ int64_t element(const job &j, const window &w, int dz, int dy, int dx)
{
    return w.row + dz * w.plane + dy * w.pitch + (int64_t)dx * j.c;
}

static __device__ __forceinline__ bool is_whole_nine(const job &j, const window &w)
{
    return j.size == 3 && j.size_d == 1 && w.height == 3 && w.width == 3;
}

template <typename T, int V> static __device__ __forceinline__ pack<T, V> maximum(const job &j, const window &w)
{
    pack<T, V> best = load<T, V>(j.src, w.row);
    if (is_whole_nine(j, w)) { // all loads at once
        pack<T, V> all[8];
#pragma unroll
        for (int k = 1; k < 9; k++)
            all[k - 1] = load<T, V>(j.src, w.row + k / 3 * w.pitch + k % 3 * j.c);
#pragma unroll
        for (int k = 1; k < 9; k++)
            max_of(best, all[k - 1]);
        return best;
    }
    for (int dz = 0; dz < w.depth; dz++)
        for (int dy = 0; dy < w.height; dy++)
            for (int dx = 0; dx < w.width; dx++)
                max_of(best, load<T, V>(j.src, element(j, w, dz, dy, dx)));
    return best;
}

/* ---- forward ---- */

template <typename T, int V> static __global__ void __launch_bounds__(THREADS) pool_kernel(const job j)
{
    int vectors = j.c / V;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        int64_t to = ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col;
        window w = window_of(j, blockIdx.x, ox, col);
        float sum[V], value[V];
        if (j.max) {
            unpack(sum, maximum<T, V>(j, w));
        } else {
            for (int k = 0; k < V; k++)
                sum[k] = 0;
            for (int dz = 0; dz < w.depth; dz++)
                for (int dy = 0; dy < w.height; dy++)
                    for (int dx = 0; dx < w.width; dx++) {
                        unpack(value, load<T, V>(j.src, element(j, w, dz, dy, dx)));
                        for (int k = 0; k < V; k++)
                            sum[k] += value[k];
                    }
            for (int k = 0; k < V; k++)
                sum[k] /= (float)(w.depth * w.height * w.width);
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
    for (int dz = 0; dz < w.depth; dz++)
        for (int dy = 0; dy < w.height; dy++)
            for (int dx = 0; dx < w.width; dx++) {
                unpack(value, load<T, V>(j.src, element(j, w, dz, dy, dx)));
                for (int k = 0; k < V; k++)
                    if (beats(value[k], best[k])) {
                        best[k] = value[k];
                        place[k] = (I)(w.first + (dz * j.size + dy) * j.size + dx);
                    }
            }
}

/** The same for a whole 3 x 3 window of 16-bit elements without NaN: the last place first, so that the first stays. */
template <typename T>
static __device__ __forceinline__ bool find_places_packed(const job &j, const window &w, uint8_t *place)
{
    if (!is_whole_nine(j, w))
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
    int vectors = j.c / V;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        window w = window_of(j, blockIdx.x, ox, col);
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
    int vectors = j.c / V, y = blockIdx.x % j.h, z = blockIdx.x / j.h % j.d, n = blockIdx.x / j.h / j.d;
    range planes = windows_over(z, j.size_d, j.stride_d, j.pad_d, j.out_d);
    range rows = windows_over(y, j.size, j.stride, j.pad, j.out_h);
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.w * vectors; i += gridDim.y * THREADS) {
        int x = i / vectors, col = (i - x * vectors) * V;
        range cols = windows_over(x, j.size, j.stride, j.pad, j.out_w);
        float sum[V], value[V];
        for (int k = 0; k < V; k++)
            sum[k] = 0;
        for (int oz = planes.begin; oz < planes.end; oz++)
            for (int oy = rows.begin; oy < rows.end; oy++)
                for (int ox = cols.begin; ox < cols.end; ox++) {
                    int64_t at = ((((int64_t)n * j.out_d + oz) * j.out_h + oy) * j.out_w + ox) * j.c + col;
                    pack<T, V> g = load<T, V>(j.grad_dst, at);
                    if (j.max) {
                        int here = ((z - oz * j.stride_d + j.pad_d) * j.size + y - oy * j.stride + j.pad) * j.size + x -
                                   ox * j.stride + j.pad;
                        add_chosen<T, V>(sum, g, load_places<I, V>(j.places, at), here);
                    } else {
                        range wz = clipped_depth(j, oz), wy = clipped(j, oy, j.h), wx = clipped(j, ox, j.w);
                        int count = (wz.end - wz.begin) * (wy.end - wy.begin) * (wx.end - wx.begin);
                        unpack(value, g);
                        for (int k = 0; k < V; k++)
                            sum[k] += value[k] / (float)count;
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

/** Windows that cover every pixel once: each writes what its own pixels get. */
template <typename T, int V> static __global__ void __launch_bounds__(THREADS) tiles_kernel(const job j)
{
    int vectors = j.c / V;
    for (unsigned i = blockIdx.y * THREADS + threadIdx.x; i < j.out_w * vectors; i += gridDim.y * THREADS) {
        int ox = i / vectors, col = (i - ox * vectors) * V;
        window w = window_of(j, blockIdx.x, ox, col);
        int place[V], here = 0;
        float g[V], value[V], count = (float)(w.depth * w.height * w.width);
        unpack(g, load<T, V>(j.grad_dst, ((int64_t)blockIdx.x * j.out_w + ox) * j.c + col));
        if (j.max)
            find_places<T, V, int>(j, w, place);
        for (int dz = 0; dz < w.depth; dz++)
            for (int dy = 0; dy < w.height; dy++)
                for (int dx = 0; dx < w.width; dx++, here++) {
                    for (int k = 0; k < V; k++) // a sum of one: -0 becomes 0, as where windows overlap
                        value[k] = !j.max ? 0.0f + g[k] / count : place[k] == here ? 0.0f + g[k] : 0.0f;
                    store<T, V>(j.dst, element(j, w, dz, dy, dx), value);
                }
    }
}

/* ---- launches ---- */

/** Whether every source pixel lies in exactly one window. */
static bool windows_tile(const job *j)
{
    return !j->pad && !j->pad_d && j->stride == j->size && j->stride_d == j->size_d && j->out_h * j->size == j->h &&
           j->out_w * j->size == j->w && j->out_d * j->size_d == j->d;
}

static int64_t result_rows(const job *j)
{
    return (int64_t)j->n * j->out_d * j->out_h;
}

/** A block, or some where a row is long, for each of `rows` rows of `width` pixels. */
static dim3 grid_of(int64_t rows, int64_t width, int64_t vectors)
{
    int64_t across = mixt__ceil_div(width * vectors, THREADS);
    return dim3((unsigned)rows, (unsigned)(across < 65535 ? across : 65535));
}

template <typename T, int V> static void launch_pool(const mixt__cuda_device *gpu, const job *j)
{
    pool_kernel<T, V><<<grid_of(result_rows(j), j->out_w, j->c / V), THREADS, 0, gpu->stream>>>(*j);
}

template <typename T, int V, typename I> static void launch_grad(const mixt__cuda_device *gpu, const job *j)
{
    dim3 results = grid_of(result_rows(j), j->out_w, j->c / V);
    if (windows_tile(j)) {
        tiles_kernel<T, V><<<results, THREADS, 0, gpu->stream>>>(*j);
        return;
    }
    if (j->max)
        places_kernel<T, V, I><<<results, THREADS, 0, gpu->stream>>>(*j);
    if constexpr (V > 1)
        if (j->max && j->size == 3 && j->stride == 2 && j->pad == 1 && j->d == 1 && j->size_d == 1) {
            dim3 grid = grid_of((int64_t)j->n * ((j->h + 1) / 2), (j->w + 1) / 2, j->c / V);
            gather_quads_kernel<T, V><<<grid, THREADS, 0, gpu->stream>>>(*j);
            return;
        }
    dim3 sources = grid_of((int64_t)j->n * j->d * j->h, j->w, j->c / V);
    gather_kernel<T, V, I><<<sources, THREADS, 0, gpu->stream>>>(*j);
}

template <typename T> static void launch(const mixt__cuda_device *gpu, const job *j, bool grad)
{
    constexpr int V = vec16<T>::size;
    bool wide = j->c % V == 0 && aligned16(j->src) && aligned16(j->dst) && aligned16(j->grad_dst);
    if (!grad && wide)
        launch_pool<T, V>(gpu, j);
    else if (!grad)
        launch_pool<T, 1>(gpu, j);
    else if (j->size_d * j->size * j->size > BYTE_WINDOW)
        launch_grad<T, 1, int32_t>(gpu, j);
    else if (wide)
        launch_grad<T, V, uint8_t>(gpu, j);
    else
        launch_grad<T, 1, uint8_t>(gpu, j);
}

/* ---- candidates ---- */

static job job_of(const mixt__call *call, const mixt__tensor *src, const mixt__tensor *dst)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    const int64_t *s = src->shape.dims + src->shape.rank - 3, *t = dst->shape.dims + dst->shape.rank - 3;
    bool deep = src->shape.rank == 5;
    job j = {};
    j.n = (int)src->shape.dims[0];
    j.d = deep ? (int)src->shape.dims[1] : 1;
    j.h = (int)s[0];
    j.w = (int)s[1];
    j.c = (int)s[2];
    j.out_d = deep ? (int)dst->shape.dims[1] : 1;
    j.out_h = (int)t[0];
    j.out_w = (int)t[1];
    j.size_d = deep ? (int)at->d.size : 1;
    j.stride_d = deep ? (int)at->d.stride : 1;
    j.pad_d = deep ? (int)at->d.pad : 0;
    j.size = (int)at->h.size;
    j.stride = (int)at->h.stride;
    j.pad = (int)at->h.pad;
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
    DISPATCH(call->in[0].dtype, T, launch<T>(mixt__cuda_of(call), &j, false));
    return mixt__cuda_launched("pool");
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    job j = job_of(call, &call->in[0], &call->in[2]);
    int64_t window = (int64_t)j.size_d * j.size * j.size;
    size_t each = at->kind != MIXT_POOL_MAX || windows_tile(&j) ? 0 : window > BYTE_WINDOW ? sizeof(int32_t) : 1;
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
    DISPATCH(call->in[0].dtype, T, launch<T>(mixt__cuda_of(call), &j, true));
    return mixt__cuda_launched("pool_grad");
}

/** One size, stride and padding of height and width and of both their sides, each element of a window next to the
 *  other: what the kernels know. A window beyond the padding is one that ends sooner. */
static bool is_even(const mixt__pool_attrs *at)
{
    return at->h.size == at->w.size && at->h.stride == at->w.stride && at->h.pad == at->w.pad &&
           at->h.pad == at->h.pad_end && at->w.pad == at->w.pad_end && at->d.pad == at->d.pad_end &&
           at->h.dilation <= 1 && at->w.dilation <= 1 && at->d.dilation <= 1 &&
           !(at->count_pad && at->kind == MIXT_POOL_AVG);
}

/** Rows are blocks, and a row's pixels and channels are counted in 32 bits. */
static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__pool_attrs *at = (const mixt__pool_attrs *)call->attrs;
    const mixt__shape *src = &call->in[0].shape;
    const int64_t *plane = src->dims + src->rank - 3;
    int64_t h = plane[0] + 2 * at->h.pad, w = plane[1] + 2 * at->h.pad;
    int64_t d = src->rank == 5 ? src->dims[1] + 2 * at->d.pad : 1;
    *reason = "only one size, stride and padding on all sides, no dilation, no padding that counts";
    if (!is_even(at))
        return false;
    *reason = "rows of 2^31 elements or more, as many rows, or windows of as many";
    return src->dims[0] < INT32_MAX && d < INT32_MAX && h < INT32_MAX && src->dims[0] * d < INT32_MAX &&
           src->dims[0] * d * h < INT32_MAX && w * plane[2] < INT32_MAX && at->h.size <= 32768 && at->d.size <= 65536 &&
           at->h.size * at->h.size * (at->d.size ? at->d.size : 1) < INT32_MAX && at->h.stride < INT32_MAX / 2 &&
           at->d.stride < INT32_MAX / 2;
}

static const mixt__kernel forward = {"gather", supports, NULL, run, NULL};
static const mixt__kernel grad = {"gather", supports, grad_prepare, grad_run, NULL};

extern "C" {
const mixt__kernel *const mixt__cuda_pool_kernels[] = {&forward, NULL};
const mixt__kernel *const mixt__cuda_pool_grad_kernels[] = {&grad, NULL};
}
