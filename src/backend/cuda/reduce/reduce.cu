/* Sums and means over neighbouring dimensions; reduce_plain.cu takes what is left.
 *
 * With the summed dimensions next to each other a tensor is (outer, summed, inner). Column sums (inner > 1: bias
 * gradients, global pooling): a block takes a tile of columns of one chunk of rows; a thread adds up 16 bytes' worth of
 * columns down the rows, eight rows in flight, then the threads of a column are added by shuffles and in shared memory.
 * Row sums (inner = 1): a warp or a block a row or piece of a row.
 *
 * Where there are several chunks, their sums go to the workspace and the block that comes last adds them up in order:
 * which block that is changes nothing, so the bits are the same every time. Bytes moved: the input once.
 */
#include "backend/cuda/core/any_format.cuh"

#include "backend/cuda/reduce/reduce.h"

namespace
{

enum { THREADS = 256, BLOCKS = 4, UNROLL = 8, LEAST_LANES = 8, LEAST_ROWS = 4 };

struct job {
    mixt__reduce_layout l;
    mixt__reduce_result result;
    const void *src;
    float *partial;  // (outer, chunks, inner)
    int lane_bits;   // 2^lane_bits threads across a row
    unsigned tiles;  // of that many times V columns
    unsigned chunks; // of `chunk` rows, or elements of a row
    int64_t chunk;
    unsigned *counters; // blocks that are done, for each set that shares a result; its last block leaves 0 behind
};

/** Whether this block is the last of its set; then it sees what the others have written before. */
__device__ bool comes_last(unsigned *counter, unsigned blocks)
{
    __shared__ unsigned before;
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                     : "=r"(before)
                     : "l"(counter), "r"(blocks - 1)
                     : "memory");
    __syncthreads();
    return before == blocks - 1;
}

/** Adds V columns (or elements) at p, p + stride, … for the rows first, first + step, … below last. */
template <typename T, int V>
__device__ __forceinline__ void add_rows(float *sums, const T *p, int64_t first, int64_t last, int step, int64_t stride)
{
    p += first * stride;
    stride *= step;
    for (; first < last; first += UNROLL * step, p += UNROLL * stride) {
        bool whole = first + (UNROLL - 1) * step < last;
        if constexpr (V == 1) {
            float x[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                x[u] = whole || first + u * step < last ? to_float(p[u * stride]) : 0.0f;
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                sums[0] += x[u];
        } else {
            uint4 x[UNROLL]; // as raw words: halves in registers of their own would spill
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                x[u] = whole || first + u * step < last ? *reinterpret_cast<const uint4 *>(p + u * stride) : uint4{};
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int j = 0; j < V; j++)
                    sums[j] += to_float(reinterpret_cast<const T *>(&x[u])[j]);
        }
    }
}

/* ---- column sums ---- */

/** One float, or four that move together. */
template <int W> struct alignas(4 * W) sums_of {
    float v[W];
};

/** Column c of `rows` rows of `columns` floats. */
__device__ __forceinline__ float sum_column(const float *shared, unsigned rows, unsigned columns, unsigned c)
{
    float sum = 0;
#pragma unroll 8
    for (unsigned r = 0; r < rows; r++)
        sum += shared[r * columns + c];
    return sum;
}

/** The sums of a warp's threads that share columns end up in its first ones. */
template <int V> __device__ __forceinline__ void sum_in_warp(float *sums, int lanes)
{
    for (int other = 16; other >= lanes; other >>= 1)
#pragma unroll
        for (int j = 0; j < V; j++)
            sums[j] += __shfl_xor_sync(0xffffffffu, sums[j], other);
}

/** Adds up the chunks' sums of `columns` columns in order of a fixed tree; `left` of them are there. Thread c below
 *  `columns` returns the sum of column c. */
template <int W>
__device__ float sum_chunks(const job &a, const float *partial, unsigned column_bits, int64_t left, float *shared)
{
    unsigned bits = column_bits - (W == 1 ? 0 : 2), lane = threadIdx.x & ((1u << bits) - 1),
             group = threadIdx.x >> bits;
    unsigned groups = THREADS >> bits, columns = 1u << column_bits;
    sums_of<W> sum = {};
#pragma unroll 4
    for (unsigned r = lane * W < left ? group : a.chunks; r < a.chunks; r += groups) {
        sums_of<W> x = *reinterpret_cast<const sums_of<W> *>(partial + r * a.l.inner + lane * W);
#pragma unroll
        for (int j = 0; j < W; j++)
            sum.v[j] += x.v[j];
    }
    *reinterpret_cast<sums_of<W> *>(shared + group * columns + lane * W) = sum;
    __syncthreads();
    return threadIdx.x < columns ? sum_column(shared, groups, columns, threadIdx.x) : 0.0f;
}

/** Blocks along x: tiles, times outer; along y: chunks. */
template <typename T, int V> __global__ void __launch_bounds__(THREADS, BLOCKS) reduce_columns(const job a)
{
    constexpr int W = V == 1 ? 1 : 4, V_BITS = V == 1 ? 0 : V == 4 ? 2 : 3;
    __shared__ __align__(16) float shared[THREADS * V];
    unsigned tile = blockIdx.x, outer = 0, chunk = blockIdx.y, columns = V << a.lane_bits;
    if (a.l.outer > 1) {
        tile = blockIdx.x % a.tiles;
        outer = blockIdx.x / a.tiles;
    }
    int lanes = 1 << a.lane_bits, lane = threadIdx.x & (lanes - 1), group = threadIdx.x >> a.lane_bits;
    int groups = THREADS >> a.lane_bits;
    int64_t first = static_cast<int64_t>(tile) * columns, begin = chunk * a.chunk, left = a.l.inner - first;
    // What a result is added to comes while the rows come.
    int64_t own = outer * a.l.inner + first + threadIdx.x;
    bool owner = threadIdx.x < columns && threadIdx.x < left;
    float old = owner ? reduce_old(a.result, own) : 0.0f;
    alignas(16) float sums[V] = {0};
    if (lane * V < left)
        add_rows<T, V>(sums,
                       static_cast<const T *>(a.src) + (outer * a.l.summed + begin) * a.l.inner + first + lane * V,
                       group, min(a.chunk, a.l.summed - begin), groups, a.l.inner);
    if (lanes < 32) {
        sum_in_warp<V>(sums, lanes);
        group = threadIdx.x / 32;
        groups = THREADS / 32;
    }
    if ((threadIdx.x & 31) < lanes)
#pragma unroll
        for (int j = 0; j < V; j += W)
            *reinterpret_cast<sums_of<W> *>(shared + group * columns + lane * V + j) =
                *reinterpret_cast<sums_of<W> *>(sums + j);
    __syncthreads();
    for (int64_t c = threadIdx.x + THREADS; c < columns && c < left; c += THREADS) // then there is one chunk
        reduce_store(a.result, own - threadIdx.x + c, sum_column(shared, groups, columns, c),
                     reduce_old(a.result, own - threadIdx.x + c));
    float sum = owner ? sum_column(shared, groups, columns, threadIdx.x) : 0.0f;
    if (a.chunks > 1) {
        float *partial = a.partial + outer * a.chunks * a.l.inner + first;
        if (owner)
            partial[chunk * a.l.inner + threadIdx.x] = sum;
        if (!comes_last(&a.counters[blockIdx.x], a.chunks))
            return;
        sum = sum_chunks<W>(a, partial, a.lane_bits + V_BITS, left, shared);
    }
    if (owner)
        reduce_store(a.result, own, sum, old);
}

/* ---- row sums ---- */

/** 2^lane_bits threads a row or piece of a row: a warp or all of the block. Pieces start at multiples of V. */
template <typename T, int V> __global__ void __launch_bounds__(THREADS, BLOCKS) reduce_rows(const job a)
{
    __shared__ float shared[32];
    int lanes = 1 << a.lane_bits, lane = threadIdx.x & (lanes - 1);
    unsigned unit = blockIdx.x * (THREADS >> a.lane_bits) + (threadIdx.x >> a.lane_bits);
    unsigned piece = a.chunks > 1 ? unit % a.chunks : 0;
    int64_t row = a.chunks > 1 ? unit / a.chunks : unit;
    int64_t length = min(a.chunk, a.l.summed - piece * a.chunk);
    const T *src = static_cast<const T *>(a.src) + row * a.l.summed + piece * a.chunk;
    float sums[V] = {0}, sum = 0, old = row < a.l.outer ? reduce_old(a.result, row) : 0.0f;
    if (row < a.l.outer) {
        add_rows<T, V>(sums, src, lane, length / V, lanes, V);
        for (int64_t i = length / V * V + lane; i < length; i += lanes)
            sum += to_float(src[i]);
    }
#pragma unroll
    for (int j = 0; j < V; j++)
        sum += sums[j];
    sum = lanes == 32 ? warp_sum(sum) : block_sum(sum, shared);
    if (a.chunks > 1) { // the block has a piece of one row
        if (threadIdx.x == 0)
            a.partial[unit] = sum;
        if (!comes_last(&a.counters[row], a.chunks))
            return;
        sum = 0;
        for (unsigned i = threadIdx.x; i < a.chunks; i += THREADS)
            sum += a.partial[row * a.chunks + i];
        sum = block_sum(sum, shared);
    }
    if (row < a.l.outer && lane == 0)
        reduce_store(a.result, row, sum, old);
}

/* ---- the cut into blocks ---- */

/** At most `most`, at least 1. */
int64_t limited(int64_t n, int64_t most)
{
    n = n < most ? n : most;
    return n > 1 ? n : 1;
}

/** Chunks of whole steps, about `wanted` of them. */
void cut_chunks(job *a, int64_t wanted, int64_t step)
{
    a->chunk = mixt__ceil_div(mixt__ceil_div(a->l.summed, wanted), step) * step;
    a->chunk = a->chunk > 0 ? a->chunk : 1;
    a->chunks = static_cast<unsigned>(mixt__ceil_div(a->l.summed, a->chunk));
    a->chunks = a->chunks > 0 ? a->chunks : 1;
}

/** The smallest power of two, as its logarithm, that is at least n or THREADS. */
int bits_for(int64_t n)
{
    int bits = 0;
    while (1 << bits < n && 1 << bits < THREADS)
        bits++;
    return bits;
}

/** Row sums: pieces only where rows alone do not fill the GPU. */
void cut_rows(const mixt__cuda_device *gpu, job *a)
{
    enum { PIECE = 8192, WARP_COLUMNS = 2048 };
    int64_t blocks = BLOCKS * static_cast<int64_t>(gpu->multiprocessors);
    a->lane_bits = bits_for(a->l.summed <= WARP_COLUMNS ? 32 : THREADS);
    a->tiles = 1;
    cut_chunks(a, limited(blocks / limited(a->l.outer, blocks), a->l.summed / PIECE), PIECE);
}

/** Column sums: as many threads as keep the GPU's memory busy, first side by side, then down the rows of a block, which
 *  reads at least 128 bytes of a row if there are so many, then in chunks. */
void cut_columns(const mixt__cuda_device *gpu, job *a, int vector)
{
    int64_t vectors = mixt__ceil_div(a->l.inner, vector);
    int64_t blocks = BLOCKS * static_cast<int64_t>(gpu->multiprocessors);
    int64_t shares = limited(blocks * THREADS / (a->l.outer * vectors), a->l.summed / LEAST_ROWS);
    int64_t lanes = THREADS / shares;
    a->lane_bits = bits_for(lanes > LEAST_LANES ? lanes : LEAST_LANES);
    a->lane_bits = bits_for(vectors) < a->lane_bits ? bits_for(vectors) : a->lane_bits;
    int64_t columns = static_cast<int64_t>(vector) << a->lane_bits, groups = THREADS >> a->lane_bits;
    a->tiles = static_cast<unsigned>(mixt__ceil_div(a->l.inner, columns));
    int64_t wanted = columns <= THREADS ? blocks / (a->tiles * a->l.outer) : 1;
    cut_chunks(a, limited(wanted, a->l.summed / (groups * LEAST_ROWS)), groups);
}

job cut(const mixt__call *call, bool vectors)
{
    job a = {};
    mixt__reduce_find(call, &a.l);
    if (a.l.inner == 1)
        cut_rows(mixt__cuda_of(call), &a);
    else if (a.l.outer * a.l.inner > 0)
        cut_columns(mixt__cuda_of(call), &a, vectors ? 16 / static_cast<int>(mixt_dtype_size(call->in[0].dtype)) : 1);
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

template <typename T> void launch(const mixt__cuda_device *gpu, const job &a, bool vectors)
{
    constexpr int V = 16 / sizeof(T);
    bool rows = a.l.inner == 1;
    auto kernel = rows ? (vectors ? reduce_rows<T, V> : reduce_rows<T, 1>)
                       : (vectors ? reduce_columns<T, V> : reduce_columns<T, 1>);
    int64_t units = mixt__ceil_div(a.l.outer * a.chunks, THREADS >> a.lane_bits);
    dim3 grid = rows ? dim3(static_cast<unsigned>(units)) : dim3(static_cast<unsigned>(a.l.outer * a.tiles), a.chunks);
    kernel<<<grid, THREADS, 0, gpu->stream>>>(a);
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
    a.counters = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_REDUCE);
    if (l.outer * l.inner > 0)
        DISPATCH(src->dtype, T, launch<T>(mixt__cuda_of(call), a, vectors));
    return mixt__cuda_launched("reduce");
}

const mixt__kernel chunked = {.name = "chunked", .supports = supports, .prepare = prepare, .run = run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_reduce_kernels[] = {&chunked, &mixt__cuda_reduce_plain, nullptr};
