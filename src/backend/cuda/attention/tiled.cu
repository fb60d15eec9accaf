/* Attention in FP32 arithmetic for heads of up to 64 elements: for strict FP32, and where cuDNN has no engine.
 *
 * A block of 128 threads owns 64 rows of one head: queries for dst, lse and grad_q, keys for grad_k and grad_v. The
 * other side passes by in tiles of 64 rows, converted to FP32 in shared memory; scores live in registers and, as the
 * left operand of the next product, in shared memory. A thread makes 8 × 4 results of every product, so 12 vector reads
 * of shared memory feed 128 multiply-adds. Rows are 68 floats apart: reads of one column by different rows meet no bank
 * twice. Every sum is made by one thread in a fixed order (row sums of a tile by a butterfly), no atomics.
 * The gradient makes the scores twice, 7 products instead of 5, so that no sum crosses blocks.
 */
#include "backend/cuda/attention/attention.cuh"
#include "base/status.h"

typedef mixt__attention_problem problem;

enum { TILE = 64, PITCH = TILE + 4, THREADS = 128, ROWS = 8, COLUMNS = 4, TILE_BYTES = TILE * PITCH * 4 };

/** Where a thread's results lie: scores at rows own + 8 r and columns across + 16 c, others at columns 4 across + c. */
struct place {
    int own, across;
};

static __device__ __forceinline__ place place_of_thread()
{
    return {(int)threadIdx.x >> 4, (int)threadIdx.x & 15};
}

template <typename T, bool vectors> static __device__ __forceinline__ float4 load4(const T *row, int at, int64_t dim)
{
    if constexpr (vectors) { // dim is a multiple of 4 and the address of 4 elements
        if constexpr (sizeof(T) == 4)
            return *(const float4 *)(row + at);
        union {
            uint2 bits;
            T v[4];
        } u = {*(const uint2 *)(row + at)};
        return {to_float(u.v[0]), to_float(u.v[1]), to_float(u.v[2]), to_float(u.v[3])};
    }
    float4 x = {0, 0, 0, 0};
    if (at < dim)
        x.x = to_float(row[at]);
    if (at + 1 < dim)
        x.y = to_float(row[at + 1]);
    if (at + 2 < dim)
        x.z = to_float(row[at + 2]);
    if (at + 3 < dim)
        x.w = to_float(row[at + 3]);
    return x;
}

/** 64 rows of a head into shared memory, with zeros beyond the last row and column. */
template <typename T>
static __device__ void load_tile(float *tile, const mixt__head_rows &r, const problem &p, int64_t head, int64_t first,
                                 int64_t count, bool vectors)
{
    const T *base = row_of<T>(r, p, head, first);
    for (int n = threadIdx.x; n < TILE * TILE / 4; n += THREADS) {
        int row = n / (TILE / 4), at = n % (TILE / 4) * 4;
        float4 x = {0, 0, 0, 0};
        if (first + row < count && at < p.dim)
            x = vectors ? load4<T, true>(base + row * r.row, at, p.dim)
                        : load4<T, false>(base + row * r.row, at, p.dim);
        *(float4 *)(tile + row * PITCH + at) = x;
    }
}

/** scores += a · bᵀ, both 64 rows of 64. */
static __device__ __forceinline__ void add_scores(float (&sum)[ROWS][COLUMNS], const float *a, const float *b, place at)
{
#pragma unroll 2
    for (int d = 0; d < TILE; d += 4) {
        float4 y[COLUMNS];
        for (int c = 0; c < COLUMNS; c++)
            y[c] = *(const float4 *)(b + (at.across + 16 * c) * PITCH + d);
        for (int r = 0; r < ROWS; r++) {
            float4 x = *(const float4 *)(a + (at.own + 8 * r) * PITCH + d);
            for (int c = 0; c < COLUMNS; c++)
                sum[r][c] = fmaf(x.w, y[c].w, fmaf(x.z, y[c].z, fmaf(x.y, y[c].y, fmaf(x.x, y[c].x, sum[r][c]))));
        }
    }
}

static __device__ __forceinline__ void add_scaled(float (&sum)[COLUMNS], float x, float4 y)
{
    sum[0] = fmaf(x, y.x, sum[0]);
    sum[1] = fmaf(x, y.y, sum[1]);
    sum[2] = fmaf(x, y.z, sum[2]);
    sum[3] = fmaf(x, y.w, sum[3]);
}

/** sum += weights · b: rows of the thread, all 64 columns of weights. */
static __device__ __forceinline__ void add_product(float (&sum)[ROWS][COLUMNS], const float *weights, const float *b,
                                                   place at)
{
#pragma unroll 2
    for (int k = 0; k < TILE; k += 4) {
        float4 y[4];
        for (int i = 0; i < 4; i++)
            y[i] = *(const float4 *)(b + (k + i) * PITCH + 4 * at.across);
        for (int r = 0; r < ROWS; r++) {
            float4 x = *(const float4 *)(weights + (at.own + 8 * r) * PITCH + k);
            add_scaled(sum[r], x.x, y[0]);
            add_scaled(sum[r], x.y, y[1]);
            add_scaled(sum[r], x.z, y[2]);
            add_scaled(sum[r], x.w, y[3]);
        }
    }
}

/** sum += weightsᵀ · b: here the thread's rows are 8 own + r, columns of weights. */
static __device__ __forceinline__ void add_turned_product(float (&sum)[ROWS][COLUMNS], const float *weights,
                                                          const float *b, place at)
{
#pragma unroll 2
    for (int k = 0; k < TILE; k++) {
        float4 y = *(const float4 *)(b + k * PITCH + 4 * at.across);
        float4 x = *(const float4 *)(weights + k * PITCH + 8 * at.own);
        float4 z = *(const float4 *)(weights + k * PITCH + 8 * at.own + 4);
        add_scaled(sum[0], x.x, y);
        add_scaled(sum[1], x.y, y);
        add_scaled(sum[2], x.z, y);
        add_scaled(sum[3], x.w, y);
        add_scaled(sum[4], z.x, y);
        add_scaled(sum[5], z.y, y);
        add_scaled(sum[6], z.z, y);
        add_scaled(sum[7], z.w, y);
    }
}

static __device__ __forceinline__ void put_scores(float *tile, const float (&x)[ROWS][COLUMNS], place at)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            tile[(at.own + 8 * r) * PITCH + at.across + 16 * c] = x[r][c];
}

template <typename T>
static __device__ __forceinline__ void put_row(T *row, const float (&x)[COLUMNS], float factor, place at, int64_t dim)
{
    for (int c = 0; c < COLUMNS; c++)
        if (4 * at.across + c < dim)
            row[4 * at.across + c] = from_float<T>(x[c] * factor);
}

/** The block's head and the first of its 64 rows; the tiles with most work of a causal head come first. */
static __device__ __forceinline__ void own_tile(int64_t rows, bool last_first, int64_t *head, int64_t *first)
{
    int64_t tiles = (rows + TILE - 1) / TILE, tile = blockIdx.x % tiles;
    *head = blockIdx.x / tiles;
    *first = (last_first ? tiles - 1 - tile : tile) * TILE;
}

template <typename T> __global__ void __launch_bounds__(THREADS, 3) attention_tiled(problem p, bool vectors)
{
    extern __shared__ float4 shared[];
    float *q = (float *)shared, *k = q + TILE * PITCH, *v = k + TILE * PITCH; // probabilities take the place of k
    int64_t head, i0;
    own_tile(p.queries, p.causal, &head, &i0);
    place at = place_of_thread();
    float sum[ROWS][COLUMNS] = {}, most[ROWS], total[ROWS] = {};
    for (int r = 0; r < ROWS; r++)
        most[r] = -INFINITY;
    load_tile<T>(q, p.q, p, head, i0, p.queries, vectors);
    int64_t keys = keys_of(p, head), end = p.causal && i0 + TILE < keys ? i0 + TILE : keys;
    for (int64_t j0 = 0; j0 < end; j0 += TILE) {
        __syncthreads();
        load_tile<T>(k, p.k, p, head, j0, keys, vectors);
        load_tile<T>(v, p.v, p, head, j0, keys, vectors);
        __syncthreads();
        float s[ROWS][COLUMNS] = {};
        add_scores(s, q, k, at);
        for (int r = 0; r < ROWS; r++) {
            float larger = most[r], added = 0;
            for (int c = 0; c < COLUMNS; c++) {
                int64_t j = j0 + at.across + 16 * c;
                bool seen = j < keys && (!p.causal || j <= i0 + at.own + 8 * r);
                s[r][c] = seen ? s[r][c] * p.scale : -INFINITY;
                larger = fmaxf(larger, s[r][c]);
            }
            larger = warp_max<16>(larger);
            float base = larger == -INFINITY ? 0.0f : larger; // nothing seen yet: all weights are 0
            for (int c = 0; c < COLUMNS; c++) {
                s[r][c] = expf(s[r][c] - base);
                added += s[r][c];
            }
            float shrink = expf(most[r] - base);
            total[r] = total[r] * shrink + warp_sum<16>(added);
            most[r] = larger;
            for (int c = 0; c < COLUMNS; c++)
                sum[r][c] *= shrink;
        }
        __syncthreads();
        put_scores(k, s, at);
        __syncthreads();
        add_product(sum, k, v, at);
    }
    for (int r = 0; r < ROWS; r++) {
        int64_t i = i0 + at.own + 8 * r;
        if (i >= p.queries)
            continue;
        put_row(row_of<T>(p.dst, p, head, i), sum[r], keys ? 1.0f / total[r] : 0.0f, at, p.dim);
        if (at.across == 0)
            p.lse[head * p.queries + i] = most[r] + logf(total[r]);
    }
}

/** Probabilities from scores, and 0 where nothing is seen; scores become them. */
static __device__ __forceinline__ void weigh(float (&s)[ROWS][COLUMNS], const float (&lse)[ROWS], const problem &p,
                                             int64_t keys, int64_t i0, int64_t j0, place at)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            int64_t i = i0 + at.own + 8 * r, j = j0 + at.across + 16 * c;
            bool seen = i < p.queries && j < keys && (!p.causal || j <= i);
            s[r][c] = seen ? expf(s[r][c] * p.scale - lse[r]) : 0.0f;
        }
}

static __device__ __forceinline__ void load_rows(float (&x)[ROWS], const float *rows, const problem &p, int64_t head,
                                                 int64_t i0, place at)
{
    for (int r = 0; r < ROWS; r++) {
        int64_t i = i0 + at.own + 8 * r;
        x[r] = i < p.queries ? rows[head * p.queries + i] : 0.0f;
    }
}

template <typename T> __global__ void __launch_bounds__(THREADS, 3) attention_tiled_grad_q(problem p, bool vectors)
{
    extern __shared__ float4 shared[];
    float *q = (float *)shared, *grad = q + TILE * PITCH, *k = grad + TILE * PITCH, *v = k + TILE * PITCH;
    int64_t head, i0;
    own_tile(p.queries, p.causal, &head, &i0);
    place at = place_of_thread();
    float sum[ROWS][COLUMNS] = {}, lse[ROWS], means[ROWS];
    load_tile<T>(q, p.q, p, head, i0, p.queries, vectors);
    load_tile<T>(grad, p.grad_dst, p, head, i0, p.queries, vectors);
    load_rows(lse, p.lse, p, head, i0, at);
    load_rows(means, p.sums, p, head, i0, at);
    int64_t keys = keys_of(p, head), end = p.causal && i0 + TILE < keys ? i0 + TILE : keys;
    for (int64_t j0 = 0; j0 < end; j0 += TILE) {
        __syncthreads();
        load_tile<T>(k, p.k, p, head, j0, keys, vectors);
        load_tile<T>(v, p.v, p, head, j0, keys, vectors);
        __syncthreads();
        float s[ROWS][COLUMNS] = {}, grad_p[ROWS][COLUMNS] = {};
        add_scores(s, q, k, at);
        weigh(s, lse, p, keys, i0, j0, at);
        add_scores(grad_p, grad, v, at);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                s[r][c] *= (grad_p[r][c] - means[r]) * p.scale;
        __syncthreads();
        put_scores(v, s, at);
        __syncthreads();
        add_product(sum, v, k, at);
    }
    for (int r = 0; r < ROWS; r++)
        if (i0 + at.own + 8 * r < p.queries)
            put_row(row_of<T>(p.grad_q, p, head, i0 + at.own + 8 * r), sum[r], 1, at, p.dim);
}

template <typename T> __global__ void __launch_bounds__(THREADS, 2) attention_tiled_grad_kv(problem p, bool vectors)
{
    extern __shared__ float4 shared[];
    float *k = (float *)shared, *v = k + TILE * PITCH, *q = v + TILE * PITCH, *grad = q + TILE * PITCH;
    float *weights = grad + TILE * PITCH;
    int64_t head, j0;
    own_tile(p.keys, false, &head, &j0);
    place at = place_of_thread();
    float sum_k[ROWS][COLUMNS] = {}, sum_v[ROWS][COLUMNS] = {};
    int64_t keys = keys_of(p, head), queries = j0 < keys ? p.queries : 0; // that see some of them
    load_tile<T>(k, p.k, p, head, j0, keys, vectors);
    load_tile<T>(v, p.v, p, head, j0, keys, vectors);
    for (int64_t i0 = p.causal ? j0 : 0; i0 < queries; i0 += TILE) {
        __syncthreads();
        load_tile<T>(q, p.q, p, head, i0, p.queries, vectors);
        load_tile<T>(grad, p.grad_dst, p, head, i0, p.queries, vectors);
        float s[ROWS][COLUMNS] = {}, grad_p[ROWS][COLUMNS] = {}, rows[ROWS];
        load_rows(rows, p.lse, p, head, i0, at);
        __syncthreads();
        add_scores(s, q, k, at);
        weigh(s, rows, p, keys, i0, j0, at);
        put_scores(weights, s, at);
        load_rows(rows, p.sums, p, head, i0, at);
        __syncthreads();
        add_turned_product(sum_v, weights, grad, at);
        add_scores(grad_p, grad, v, at);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                s[r][c] *= (grad_p[r][c] - rows[r]) * p.scale;
        __syncthreads();
        put_scores(weights, s, at);
        __syncthreads();
        add_turned_product(sum_k, weights, q, at);
    }
    for (int r = 0; r < ROWS; r++) {
        int64_t j = j0 + 8 * at.own + r;
        if (j >= p.keys)
            continue;
        put_row(row_of<T>(p.grad_k, p, head, j), sum_k[r], 1, at, p.dim);
        put_row(row_of<T>(p.grad_v, p, head, j), sum_v[r], 1, at, p.dim);
    }
}

/* ---- candidates ---- */

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__heads s = mixt__heads_of(call);
    *reason = mixt__attention_special(call) ? mixt__attention_special(call)
              : s.dim > TILE                ? "head size over 64"
              : 5 * TILE_BYTES > mixt__cuda_of(call)->shared_limit && mixt__attention_is_gradient(call)
                  ? "too little shared memory"
                  : NULL;
    return !*reason;
}

/** Whether rows can be read four elements at a time. */
static bool vectors_fit(const mixt__call *call)
{
    uintptr_t bits = 0;
    size_t size = call->in[0].dtype == MIXT_DTYPE_FP32 ? 4 : 2;
    for (int i = 0; i < (mixt__attention_is_gradient(call) ? 6 : 3); i++)
        if (i != 4)
            bits |= (uintptr_t)call->in[i].data | (uintptr_t)(call->in[i].strides[0] | call->in[i].strides[1]) * size;
    return bits % (4 * size) == 0 && mixt__heads_of(call).dim % 4 == 0;
}

template <typename T>
static mixt_status launch(const mixt__cuda_device *gpu, void (*kernel)(problem, bool), int tiles, int64_t rows,
                          const problem &p, bool vectors)
{
    int64_t blocks = p.batch_heads * mixt__ceil_div(rows, TILE);
    if (!blocks)
        return MIXT_OK;
    MIXT_TRY(mixt__cuda_check(
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, tiles * TILE_BYTES),
        "attention"));
    kernel<<<(unsigned)blocks, THREADS, tiles * TILE_BYTES, gpu->stream>>>(p, vectors);
    return mixt__cuda_launched("attention");
}

static mixt_status run(const mixt__call *call)
{
    problem p = mixt__attention_problem_of(call, false);
    bool vectors = vectors_fit(call);
    DISPATCH(call->in[0].dtype, T, return launch<T>(mixt__cuda_of(call), attention_tiled<T>, 3, p.queries, p, vectors));
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *)
{
    call->workspace_bytes = (size_t)mixt__tensor_count(&call->in[4]) * sizeof(float);
    mixt__attention_grouped_room(call);
    return MIXT_OK;
}

template <typename T> static mixt_status launch_grad(const mixt__cuda_device *gpu, const problem &p, bool vectors)
{
    MIXT_TRY(launch<T>(gpu, attention_tiled_grad_kv<T>, 5, p.keys, p, vectors));
    return launch<T>(gpu, attention_tiled_grad_q<T>, 4, p.queries, p, vectors);
}

static mixt_status grad_heads(const mixt__call *call)
{
    problem p = mixt__attention_problem_of(call, true);
    bool vectors = vectors_fit(call);
    mixt__attention_row_sums(mixt__cuda_of(call), p, call->in[0].dtype);
    DISPATCH(call->in[0].dtype, T, return launch_grad<T>(mixt__cuda_of(call), p, vectors));
}

static mixt_status grad_run(const mixt__call *call)
{
    return mixt__attention_grouped(call, grad_heads);
}

extern "C" const mixt__kernel mixt__attention_tiled = {.name = "tiled", .supports = supports, .run = run};
extern "C" const mixt__kernel mixt__attention_grad_tiled = {
    .name = "tiled", .supports = supports, .prepare = grad_prepare, .run = grad_run};
