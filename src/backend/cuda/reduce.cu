/* Sums and means over neighbouring dimensions; reduce_plain.cu takes what is left.
 *
 * With the summed dimensions next to each other a tensor is (outer, summed, inner). Column sums (inner > 1: bias
 * gradients, global pooling): a block of 512 threads takes a tile of columns of one chunk of rows; a thread adds up
 * 16 bytes' worth of columns down the rows, four rows in flight, then the threads of a column are added in shared
 * memory. Row sums (inner = 1): a warp or a block a row or piece of a row.
 *
 * Where there are several chunks, their sums go to the workspace and the block that comes last adds them up in order:
 * which block that is changes nothing, so the bits are the same every time. Bytes moved: the input once.
 */
#include "backend/cuda/any_format.cuh"

#include "backend/cuda/reduce.h"
#include "base/alloc.h"
#include "base/status.h"

namespace
{

enum { THREADS = 512, UNROLL = 4, LEAST_LANES = 16, MAX_COUNTERS = 8192 };

/** Blocks that are done, for each set of blocks that share a result. A set's last block leaves 0 behind. */
__device__ unsigned counters[MAX_COUNTERS];

struct job {
    mixt__reduce_layout l;
    mixt__reduce_result result;
    const void *src;
    float *partial; // (outer, chunks, inner)
    int lanes;      // threads across a row; a power of two
    int64_t tiles;  // of lanes · V columns
    int64_t chunks, chunk;
};

__device__ bool comes_last(int64_t set, int64_t blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(&counters[set], static_cast<unsigned>(blocks - 1)) == blocks - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/* ---- column sums ---- */

/** Adds up column c of `rows` rows of `columns` floats for every c, in a fixed order; thread c has the sum of column c,
 *  c + THREADS, … handed to `take`. */
template <typename Get, typename Take>
__device__ void sum_down(Get get, int64_t rows, int columns, float *shared, Take take)
{
    int groups = columns < THREADS ? THREADS / columns : 1;
    for (int c = threadIdx.x; c < columns * groups; c += THREADS) {
        float sum = 0;
#pragma unroll 4
        for (int64_t r = c / columns; r < rows; r += groups)
            sum += get(r, c % columns);
        if (groups == 1)
            take(c, sum);
        else
            shared[c] = sum;
    }
    if (groups == 1)
        return;
    __syncthreads();
    if (threadIdx.x < columns) {
        float sum = 0;
        for (int g = 0; g < groups; g++)
            sum += shared[g * columns + threadIdx.x];
        take(threadIdx.x, sum);
    }
}

template <typename T, int V> __device__ __forceinline__ void add(float *sums, const T *p)
{
    if constexpr (V == 1) {
        sums[0] += to_float(*p);
    } else {
        vec16<T> x = load16(p);
#pragma unroll
        for (int j = 0; j < V; j++)
            sums[j] += to_float(x.v[j]);
    }
}

/** The columns of one thread, down the rows [first, last) in steps of `step`. */
template <typename T, int V>
__device__ __forceinline__ void add_rows(float *sums, const T *src, int64_t first, int64_t last, int64_t step,
                                         int64_t stride)
{
    const T *p = src + first * stride;
    for (; first + (UNROLL - 1) * step < last; first += UNROLL * step, p += UNROLL * step * stride) {
        if constexpr (V == 1) {
            T x[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                x[u] = p[u * step * stride];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[0] += to_float(x[u]);
        } else {
            vec16<T> x[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                x[u] = load16(p + u * step * stride);
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int j = 0; j < V; j++)
                    sums[j] += to_float(x[u].v[j]);
        }
    }
    for (; first < last; first += step, p += step * stride)
        add<T, V>(sums, p);
}

template <int V> __device__ __forceinline__ void put_sums(float *shared, const float *sums)
{
    if constexpr (V == 1) {
        *shared = sums[0];
    } else {
#pragma unroll
        for (int j = 0; j < V; j += 4)
            *reinterpret_cast<float4 *>(shared + j) = make_float4(sums[j], sums[j + 1], sums[j + 2], sums[j + 3]);
    }
}

template <typename T, int V> __global__ void __launch_bounds__(THREADS, 2) reduce_columns(const job a)
{
    __shared__ __align__(16) float shared[THREADS * V];
    int lane = threadIdx.x & (a.lanes - 1), group = threadIdx.x / a.lanes, groups = THREADS / a.lanes;
    int columns = a.lanes * V;
    int64_t tile = blockIdx.x % a.tiles, chunk = blockIdx.x / a.tiles % a.chunks,
            outer = blockIdx.x / a.tiles / a.chunks;
    int64_t first = tile * columns, rows = min(a.chunk, a.l.summed - chunk * a.chunk);
    float sums[V] = {0};
    if (first + lane * V < a.l.inner)
        add_rows<T, V>(
            sums, static_cast<const T *>(a.src) + (outer * a.l.summed + chunk * a.chunk) * a.l.inner + first + lane * V,
            group, rows, groups, a.l.inner);
    put_sums<V>(shared + group * columns + lane * V, sums);
    __syncthreads();
    float *partial = a.partial + (outer * a.chunks + chunk) * a.l.inner + first;
    int wide = static_cast<int>(min(static_cast<int64_t>(columns), a.l.inner - first));
    // The first step of sum_down writes shared[c] while others still read: it works on a copy further on.
    __shared__ float sums_of_groups[THREADS];
    sum_down([&](int64_t r, int c) { return shared[r * columns + c]; }, groups, columns, sums_of_groups,
             [&](int c, float sum) {
                 if (c >= wide)
                     return;
                 if (a.chunks == 1)
                     reduce_store(a.result, outer * a.l.inner + first + c, sum);
                 else
                     __stcg(partial + c, sum);
             });
    if (a.chunks == 1 || !comes_last(outer * a.tiles + tile, a.chunks))
        return;
    const float *all = a.partial + outer * a.chunks * a.l.inner + first;
    sum_down([&](int64_t r, int c) { return c < wide ? __ldcg(all + r * a.l.inner + c) : 0.0f; }, a.chunks, columns,
             sums_of_groups,
             [&](int c, float sum) {
                 if (c < wide)
                     reduce_store(a.result, outer * a.l.inner + first + c, sum);
             });
}

/* ---- row sums ---- */

/** `lanes` threads a row or piece of a row: 32 or all of the block. Pieces start at multiples of V. */
template <typename T, int V> __global__ void __launch_bounds__(THREADS, 2) reduce_rows(const job a)
{
    __shared__ float shared[32];
    int64_t unit = static_cast<int64_t>(blockIdx.x) * (THREADS / a.lanes) + threadIdx.x / a.lanes;
    int64_t row = unit / a.chunks, piece = unit % a.chunks;
    int64_t length = min(a.chunk, a.l.summed - piece * a.chunk);
    const T *src = static_cast<const T *>(a.src) + row * a.l.summed + piece * a.chunk;
    float sums[V] = {0}, sum = 0;
    if (row < a.l.outer) {
        int lane = threadIdx.x % a.lanes;
        add_rows<T, V>(sums, src, lane, length / V, a.lanes, V);
        for (int64_t i = length / V * V + lane; i < length; i += a.lanes)
            sum += to_float(src[i]);
    }
#pragma unroll
    for (int j = 0; j < V; j++)
        sum += sums[j];
    sum = a.lanes == 32 ? warp_sum(sum) : block_sum(sum, shared);
    if (row < a.l.outer && threadIdx.x % a.lanes == 0) {
        if (a.chunks == 1)
            reduce_store(a.result, row, sum);
        else
            __stcg(a.partial + unit, sum);
    }
    if (a.chunks == 1 || !comes_last(row, a.chunks)) // several pieces: the block has one row
        return;
    sum = 0;
    for (int64_t i = threadIdx.x; i < a.chunks; i += THREADS)
        sum += __ldcg(a.partial + row * a.chunks + i);
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
        reduce_store(a.result, row, sum);
}

/* ---- the cut into blocks ---- */

int power_below(int64_t n, int most)
{
    int p = 1;
    while (p < most && 2 * p <= n)
        p *= 2;
    return p;
}

/** Row sums: pieces only where rows alone do not fill the GPU. */
void cut_rows(job *a)
{
    enum { PIECE = 16384, WARP_COLUMNS = 2048 };
    a->lanes = a->l.summed <= WARP_COLUMNS ? 32 : THREADS;
    a->tiles = 1;
    int64_t most = 4 * static_cast<int64_t>(mixt__cuda.multiprocessors) / (a->l.outer > 0 ? a->l.outer : 1);
    a->chunks = min(most, mixt__ceil_div(a->l.summed, PIECE));
    a->chunks = max(a->chunks, static_cast<int64_t>(1));
    a->chunk = max(mixt__ceil_div(mixt__ceil_div(a->l.summed, a->chunks), PIECE) * PIECE, static_cast<int64_t>(1));
    a->chunks = max(mixt__ceil_div(a->l.summed, a->chunk), static_cast<int64_t>(1));
}

/** Column sums: at least four rows a thread, rows of 256 bytes a block if there are so many columns, and as many chunks
 *  as fill the GPU twice over. */
void cut_columns(job *a, int vector)
{
    int64_t vectors = mixt__ceil_div(a->l.inner, vector);
    int groups = power_below(a->l.summed / UNROLL, THREADS / LEAST_LANES);
    a->lanes = THREADS / groups;
    while (a->lanes > 1 && a->lanes / 2 >= vectors)
        a->lanes /= 2;
    groups = THREADS / a->lanes;
    a->tiles = mixt__ceil_div(a->l.inner, static_cast<int64_t>(a->lanes) * vector);
    int64_t wanted = 2 * static_cast<int64_t>(mixt__cuda.multiprocessors) / (a->tiles * a->l.outer);
    a->chunks = max(min(wanted, a->l.summed / (groups * UNROLL)), static_cast<int64_t>(1));
    a->chunk = max(mixt__ceil_div(mixt__ceil_div(a->l.summed, a->chunks), groups) * groups, static_cast<int64_t>(1));
    a->chunks = max(mixt__ceil_div(a->l.summed, a->chunk), static_cast<int64_t>(1));
}

job cut(const mixt__call *call, bool vectors)
{
    job a = {};
    mixt__reduce_find(call, &a.l);
    if (a.l.inner == 1)
        cut_rows(&a);
    else if (a.l.outer * a.l.inner > 0)
        cut_columns(&a, vectors ? 16 / static_cast<int>(mixt_dtype_size(call->in[0].dtype)) : 1);
    return a;
}

size_t partial_bytes(const job &a)
{
    return a.chunks > 1 ? static_cast<size_t>(a.l.outer * a.chunks * a.l.inner) * sizeof(float) : 0;
}

/** Which of the two cuts runs is known only with the pointers. */
mixt_status prepare(mixt__call *call, mixt__arena *)
{
    call->workspace_bytes = max(partial_bytes(cut(call, false)), partial_bytes(cut(call, true)));
    return MIXT_OK;
}

bool supports(const mixt__call *call, const char **reason)
{
    mixt__reduce_layout l;
    *reason = "summed dimensions are not next to each other";
    return mixt__reduce_find(call, &l);
}

template <typename T> void launch(const job &a, bool vectors)
{
    constexpr int V = 16 / sizeof(T);
    bool rows = a.l.inner == 1;
    auto kernel = rows ? (vectors ? reduce_rows<T, V> : reduce_rows<T, 1>)
                       : (vectors ? reduce_columns<T, V> : reduce_columns<T, 1>);
    int64_t blocks = rows ? mixt__ceil_div(a.l.outer * a.chunks, THREADS / a.lanes) : a.tiles * a.chunks * a.l.outer;
    kernel<<<static_cast<unsigned>(blocks), THREADS, 0, mixt__cuda.stream>>>(a);
}

mixt_status run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0];
    mixt__reduce_layout l;
    mixt__reduce_find(call, &l);
    int64_t stride = l.inner > 1 ? l.inner : l.outer > 1 ? l.summed : 0;
    bool vectors = aligned16(src->data) && stride * static_cast<int64_t>(mixt_dtype_size(src->dtype)) % 16 == 0;
    job a = cut(call, vectors);
    a.src = src->data;
    a.result = mixt__reduce_result_of(call, l.summed);
    a.partial = static_cast<float *>(call->workspace);
    if (l.outer * l.inner > 0)
        DISPATCH(src->dtype, T, launch<T>(a, vectors));
    return mixt__cuda_launched("reduce");
}

const mixt__kernel chunked = {.name = "chunked", .supports = supports, .prepare = prepare, .run = run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_reduce_kernels[] = {&chunked, &mixt__cuda_reduce_plain, nullptr};
