/* Attention in strict FP32 for heads of up to 64 elements, on the ordinary units (thread_tile.cuh).
 *
 * Forward: a block of 128 threads owns 128 queries of a head. Keys and values pass by in tiles of 64, each copied while
 * the other is multiplied; scores and results live in registers, and probabilities cross shared memory.
 *
 * Gradient: two passes over as many heads as fit into a bounded workspace, so that every product is made once.
 *   scores: 128 × 128 probabilities and gradients of scores a block, into the workspace;
 *   sums:   128 keys of grad_v or grad_k, or 128 queries of grad_q a block, from them.
 * Causal heads skip tiles that nobody sees. Every sum is made by one thread in a fixed order, no atomics.
 */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/core/thread_tile.cuh"

#include "base/status.h"

typedef mixt__attention_problem problem;
typedef thread_tile<128, 64> narrow_tile;
typedef thread_tile<128, 128> wide_tile;

enum { DIM = 64, TILE = 128, KEYS = 64, LONG = DIM + 4, MOST_TILES = 16384 };
static const int64_t score_bytes = 1 << 30; // of the gradient's workspace

/* ---- operands ---- */

/** Where rows of a product's operand lie: a head's elements, or one of the kept matrices. */
typedef struct operand {
    const float *data;
    int64_t pitch;
    int rows, columns;
} operand;

static __device__ __forceinline__ operand rows_of(const mixt__head_rows &r, const problem &p, int64_t head,
                                                  int64_t rows)
{
    return {row_of<float>(r, p, head, 0), r.row, (int)rows, (int)p.dim};
}

/** Where row n of a wide tile's right operand goes, so that a thread's columns, every 16th there, are two runs of four.
 */
static __device__ __forceinline__ int dealt(int n)
{
    return n % 64 / 4 + 16 * (n % 4 + n / 64 * 4);
}

/** HEIGHT rows by WIDTH columns of a matrix into shared memory, with zeros beyond its edges. */
template <int HEIGHT, int WIDTH, int PITCHED, int THREADS, bool DEALT = false>
static __device__ __forceinline__ void copy_block(float *tile, const operand &m, int row, int column)
{
#pragma unroll
    for (int i = 0; i < HEIGHT * WIDTH / 4 / THREADS; i++) {
        int n = (int)threadIdx.x + i * THREADS, y = n / (WIDTH / 4), x = n % (WIDTH / 4) * 4;
        bool inside = row + y < m.rows && column + x < m.columns;
        copy16_async(tile + (DEALT ? dealt(y) : y) * PITCHED + x,
                     m.data + (inside ? (row + y) * m.pitch + column + x : 0), inside);
    }
}

/* ---- forward ---- */

/** What the 8 threads that share a row know of it. */
typedef struct row_state {
    float most, total;
} row_state;

/** Turns a row of scores into weights for what was seen so far, and shrinks what was summed before. */
static __device__ __forceinline__ void weigh(float (&s)[8], float (&sum)[8], row_state *row, const problem &p,
                                             int64_t i, int64_t j0)
{
    float larger = row->most, added = 0;
#pragma unroll
    for (int c = 0; c < 8; c++) {
        int64_t j = j0 + narrow_tile::across() + KEYS / 8 * c;
        s[c] = j < p.keys && (!p.causal || j <= i) ? s[c] * p.scale : -INFINITY;
        larger = fmaxf(larger, s[c]);
    }
    larger = warp_max<8>(larger);
    float base = larger == -INFINITY ? 0.0f : larger; // nothing seen yet: all weights are 0
#pragma unroll
    for (int c = 0; c < 8; c++) {
        s[c] = expf(s[c] - base);
        added += s[c];
    }
    float shrink = expf(row->most - base);
    row->total = row->total * shrink + warp_sum<8>(added);
    row->most = larger;
#pragma unroll
    for (int c = 0; c < 8; c++)
        sum[c] *= shrink;
}

enum { FORWARD_SHARED = (2 * TILE * LONG + KEYS * LONG + KEYS * DIM) * 4 };

/** grid: heads; tiles of queries, those with most work first. */
static __global__ void __launch_bounds__(narrow_tile::threads, 2) forward_kernel(const problem p)
{
    extern __shared__ float4 memory[];
    float *q = reinterpret_cast<float *>(memory), *weights = q + TILE * LONG, *k = weights + TILE * LONG,
          *v = k + KEYS * LONG;
    int64_t head = blockIdx.x, i0 = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE;
    int64_t end = p.causal && i0 + TILE < p.keys ? i0 + TILE : p.keys;
    operand keys = rows_of(p.k, p, head, p.keys), values = rows_of(p.v, p, head, p.keys);
    constexpr int threads = narrow_tile::threads;
    narrow_tile dst = {};
    row_state rows[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        rows[i] = {-INFINITY, 0};
    copy_block<TILE, DIM, LONG, threads>(q, rows_of(p.q, p, head, p.queries), (int)i0, 0);
    copy_block<KEYS, DIM, LONG, threads>(k, keys, 0, 0);
    copies_commit();
    copy_block<KEYS, DIM, DIM, threads>(v, values, 0, 0);
    copies_commit();
    for (int j0 = 0; j0 < end; j0 += KEYS) {
        narrow_tile scores = {};
        copies_wait<1>();
        __syncthreads(); // keys are there
        scores.multiply_turned<DIM, LONG>(q, k);
        __syncthreads(); // all have read them
        copy_block<KEYS, DIM, LONG, threads>(k, keys, j0 + KEYS, 0);
        copies_commit();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = narrow_tile::group() + TILE / 8 * i;
            weigh(scores.sum[i], dst.sum[i], &rows[i], p, i0 + row, j0);
#pragma unroll
            for (int c = 0; c < 8; c++)
                weights[row * LONG + narrow_tile::across() + KEYS / 8 * c] = scores.sum[i][c];
        }
        copies_wait<1>();
        __syncthreads(); // values and weights are there
        dst.multiply_rows<KEYS, LONG>(weights, v);
        __syncthreads();
        copy_block<KEYS, DIM, DIM, threads>(v, values, j0 + KEYS, 0);
        copies_commit();
    }
    copies_wait<0>();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int64_t row = i0 + narrow_tile::group() + TILE / 8 * i;
        if (row >= p.queries)
            continue;
#pragma unroll
        for (int c = 0; c < 8; c++)
            dst.sum[i][c] /= rows[i].total;
        dst.store(i, row_of<float>(p.dst, p, head, row), 0, (int)p.dim, NULL);
        if (narrow_tile::across() == 0)
            p.lse[head * p.queries + row] = rows[i].most + logf(rows[i].total);
    }
}

/* ---- gradient ---- */

/** Probabilities and gradients of scores of some heads: each (heads, queries, pitch). */
typedef struct kept {
    float *weights, *grads;
    int64_t pitch, first; // the first head
} kept;

static __device__ __forceinline__ operand scores_of(const float *data, const kept &w, const problem &p)
{
    return {data + (int64_t)blockIdx.x * p.queries * w.pitch, w.pitch, (int)p.queries, (int)w.pitch};
}

enum { PAIR = 2 * TILE * PITCH, SCORES_SHARED = SLOTS * PAIR * 4 };

/** Stores a tile of probabilities, or of the gradients of scores, which are made from them; the sums begin anew. Four
 * rows are loaded together, unconditionally, so that they do not wait for one another. */
template <bool GRADS>
static __device__ __forceinline__ void store_scores(wide_tile &r, const problem &p, const kept &w, int64_t head, int i0,
                                                    int j0)
{
    const float *of_rows = (GRADS ? p.sums : p.lse) + head * p.queries;
    int last_row = (int)p.queries - 1, last_column = (int)w.pitch - 4;
    int first_row = i0 + wide_tile::group(), first_column = j0 + 4 * wide_tile::across();
    int64_t first = (int64_t)blockIdx.x * p.queries * w.pitch;
#pragma unroll
    for (int four = 0; four < 8; four += 4) {
        float of_row[4];
        float4 weight[4][2] = {};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = min(first_row + TILE / 8 * (four + i), last_row);
            of_row[i] = of_rows[row];
#pragma unroll
            for (int half = 0; GRADS && half < 2; half++)
                weight[i][half] = *(const float4 *)(w.weights + first + row * w.pitch +
                                                    min(first_column + half * (TILE / 2), last_column));
        }
#pragma unroll
        for (int n = 0; n < 8; n++) {
            int i = n >> 1, half = n & 1;
            int row = first_row + TILE / 8 * (four + i), column = first_column + half * (TILE / 2);
            const float *sum = r.sum[four + i] + 4 * half;
            alignas(16) float x[4] = {weight[i][half].x, weight[i][half].y, weight[i][half].z, weight[i][half].w};
#pragma unroll
            for (int c = 0; c < 4; c++) {
                bool seen = column + c < p.keys && (!p.causal || column + c <= row);
                x[c] = GRADS ? x[c] * (sum[c] - of_row[i]) * p.scale : expf(fmaf(sum[c], p.scale, -of_row[i]));
                x[c] = seen ? x[c] : 0.0f;
            }
            if (row <= last_row && column <= last_column)
                *(float4 *)((GRADS ? w.grads : w.weights) + first + row * w.pitch + column) = *(const float4 *)x;
        }
    }
    r = {};
}

/** grid: heads; pairs of tiles. */
static __global__ void __launch_bounds__(wide_tile::threads, 2) scores_kernel(const problem p, const kept w)
{
    int across = (int)(w.pitch + TILE - 1) / TILE, i0 = (int)blockIdx.y / across * TILE,
        j0 = (int)blockIdx.y % across * TILE, slices = (int)(p.dim + DEPTH - 1) / DEPTH;
    int64_t head = w.first + blockIdx.x;
    if (p.causal && j0 > i0)
        return;
    operand left = rows_of(p.q, p, head, p.queries), right = rows_of(p.k, p, head, p.keys);
    wide_tile r = {};
    auto copy = [&](int s, float *slot) { // of the first product, then of the second
        int at = (s < slices ? s : s - slices) * DEPTH;
        if (s == slices) {
            left = rows_of(p.grad_dst, p, head, p.queries);
            right = rows_of(p.v, p, head, p.keys);
        }
        copy_block<TILE, DEPTH, PITCH, wide_tile::threads>(slot, left, i0, at);
        copy_block<TILE, DEPTH, PITCH, wide_tile::threads, true>(slot + TILE * PITCH, right, j0, at);
    };
    over_slices<PAIR>(2 * slices, copy, [&](int s, const float *slot) {
        r.multiply_turned<DEPTH, PITCH>(slot, slot + TILE * PITCH);
        if (s + 1 == slices)
            store_scores<false>(r, p, w, head, i0, j0);
    });
    store_scores<true>(r, p, w, head, i0, j0);
}

enum {
    KEYS_SLOT = DEPTH * (TILE + DIM),
    QUERIES_SLOT = TILE * PITCH + DEPTH * DIM, // the larger
    SUMS_SHARED = SLOTS * QUERIES_SLOT * 4,
};

/** 128 rows of matrixᵀ · right (TURNED) or matrix · right, over the depth from `first` to `end`. */
template <bool TURNED>
static __device__ __forceinline__ narrow_tile sum_over(const operand &matrix, const operand &right, int row, int first,
                                                       int end)
{
    constexpr int SLOT = TURNED ? KEYS_SLOT : QUERIES_SLOT, LEFT = TURNED ? DEPTH * TILE : TILE * PITCH;
    constexpr int threads = narrow_tile::threads;
    narrow_tile r = {};
    auto copy = [&](int s, float *slot) {
        int at = first + s * DEPTH;
        if constexpr (TURNED)
            copy_block<DEPTH, TILE, TILE, threads>(slot, matrix, at, row);
        else
            copy_block<TILE, DEPTH, PITCH, threads>(slot, matrix, row, at);
        copy_block<DEPTH, DIM, DIM, threads>(slot + LEFT, right, at, 0);
    };
    over_slices<SLOT>((end - first + DEPTH - 1) / DEPTH, copy, [&](int, const float *slot) {
        if constexpr (TURNED)
            r.multiply_columns<DEPTH>(slot, slot + LEFT);
        else
            r.multiply_rows<DEPTH, PITCH>(slot, slot + LEFT);
    });
    return r;
}

/** 128 rows of grad_v, or of grad_k. */
static __device__ __forceinline__ void make_keys(const problem &p, const kept &w, int64_t head, int j0, bool grad_k)
{
    if (j0 >= p.keys)
        return;
    narrow_tile r =
        sum_over<true>(scores_of(grad_k ? w.grads : w.weights, w, p),
                       rows_of(grad_k ? p.q : p.grad_dst, p, head, p.queries), j0, p.causal ? j0 : 0, (int)p.queries);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = j0 + 4 * narrow_tile::group() + (i & 3) + (i >> 2) * (TILE / 2);
        if (row < p.keys)
            r.store(i, row_of<float>(grad_k ? p.grad_k : p.grad_v, p, head, row), 0, (int)p.dim, NULL);
    }
}

/** 128 rows of grad_q. */
static __device__ __forceinline__ void make_queries(const problem &p, const kept &w, int64_t head, int i0)
{
    if (i0 >= p.queries)
        return;
    int end = p.causal && i0 + TILE < p.keys ? i0 + TILE : (int)p.keys;
    narrow_tile r = sum_over<false>(scores_of(w.grads, w, p), rows_of(p.k, p, head, p.keys), i0, 0, end);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = i0 + narrow_tile::group() + TILE / 8 * i;
        if (row < p.queries)
            r.store(i, row_of<float>(p.grad_q, p, head, row), 0, (int)p.dim, NULL);
    }
}

/** grid: heads; tiles × the three gradients, those with most work first. */
static __global__ void __launch_bounds__(narrow_tile::threads, 4) sums_kernel(const problem p, const kept w)
{
    int tiles = (int)gridDim.y / 3, tile = (int)blockIdx.y / 3, which = (int)blockIdx.y % 3;
    int64_t head = w.first + blockIdx.x;
    if (which == 2)
        make_queries(p, w, head, (tiles - 1 - tile) * TILE);
    else
        make_keys(p, w, head, tile * TILE, which);
}

/* ---- candidates ---- */

static int64_t pitch_of(int64_t keys)
{
    return (keys + 3) / 4 * 4;
}

/** Bytes of the gradient's two matrices of one head. */
static int64_t head_bytes(const mixt__heads &s)
{
    return 2 * s.queries * pitch_of(s.keys) * (int64_t)sizeof(float);
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__heads s = mixt__heads_of(call);
    int64_t most = s.queries > s.keys ? s.queries : s.keys;
    bool gradient = mixt__attention_is_gradient(call);
    *reason = mixt__attention_special(call)                                          ? mixt__attention_special(call)
              : mixt__attention_lengths(call)                                        ? MIXT_ATTENTION_ALL_KEYS
              : call->in[0].dtype != MIXT_DTYPE_FP32 || mixt__cuda_of(call)->sm < 80 ? "only strict FP32 from Ampere on"
              : s.dim > DIM || s.dim % 4                ? "head size over 64, or no multiple of 4"
              : !mixt__attention_strides_fit(call)      ? "rows that are no multiple of 16 bytes"
              : gradient && head_bytes(s) > score_bytes ? "one head's scores would take over 1 GiB"
              : !s.batch || !s.queries || !s.keys || most > (int64_t)MOST_TILES * TILE ||
                      FORWARD_SHARED > mixt__cuda_of(call)->shared_limit
                  ? "too small or too large"
                  : NULL;
    return !*reason;
}

static mixt_status allow(const void *kernel, int shared)
{
    return mixt__cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                            "asking for shared memory");
}

static mixt_status run(const mixt__call *call)
{
    if (!mixt__attention_aligned(call))
        return mixt__attention_plain.run(call);
    problem p = mixt__attention_problem_of(call, false);
    dim3 grid((unsigned)p.batch_heads, (unsigned)mixt__ceil_div(p.queries, TILE));
    MIXT_TRY(allow(reinterpret_cast<const void *>(forward_kernel), FORWARD_SHARED));
    forward_kernel<<<grid, narrow_tile::threads, FORWARD_SHARED, mixt__cuda_of(call)->stream>>>(p);
    return mixt__cuda_launched("attention");
}

/** Heads that go through the gradient's passes together. */
static int64_t heads_at_once(const mixt__heads &s)
{
    int64_t all = s.batch * s.count, most = score_bytes / head_bytes(s);
    return most < all ? most : all;
}

/** Bytes of the sums of rows, which begin the workspace. */
static size_t sums_bytes(const mixt__call *call)
{
    return ((size_t)mixt__tensor_count(&call->in[4]) * sizeof(float) + 255) / 256 * 256;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *)
{
    mixt__heads s = mixt__heads_of(call);
    call->workspace_bytes = sums_bytes(call) + (size_t)(heads_at_once(s) * head_bytes(s));
    mixt__attention_grouped_room(call);
    return MIXT_OK;
}

static mixt_status grad_heads(const mixt__call *call)
{
    if (!mixt__attention_aligned(call))
        return mixt__attention_grad_plain.run(call);
    problem p = mixt__attention_problem_of(call, true);
    mixt__heads s = mixt__heads_of(call);
    int64_t at_once = heads_at_once(s), tiles = mixt__ceil_div(p.queries, TILE),
            key_tiles = mixt__ceil_div(p.keys, TILE);
    kept w = {};
    w.pitch = pitch_of(p.keys);
    w.weights = reinterpret_cast<float *>(static_cast<char *>(call->workspace) + sums_bytes(call));
    w.grads = w.weights + at_once * p.queries * w.pitch;
    mixt__attention_row_sums(mixt__cuda_of(call), p, MIXT_DTYPE_FP32);
    MIXT_TRY(allow(reinterpret_cast<const void *>(scores_kernel), SCORES_SHARED));
    for (w.first = 0; w.first < p.batch_heads; w.first += at_once) {
        unsigned heads = (unsigned)(p.batch_heads - w.first < at_once ? p.batch_heads - w.first : at_once);
        scores_kernel<<<dim3(heads, (unsigned)(tiles * key_tiles)), wide_tile::threads, SCORES_SHARED,
                        mixt__cuda_of(call)->stream>>>(p, w);
        sums_kernel<<<dim3(heads, (unsigned)(3 * (tiles > key_tiles ? tiles : key_tiles))), narrow_tile::threads,
                      SUMS_SHARED, mixt__cuda_of(call)->stream>>>(p, w);
    }
    return mixt__cuda_launched("attention_grad");
}

static mixt_status grad_run(const mixt__call *call)
{
    return mixt__attention_grouped(call, grad_heads);
}

extern "C" const mixt__kernel mixt__attention_strict = {.name = "strict", .supports = supports, .run = run};
extern "C" const mixt__kernel mixt__attention_grad_strict = {
    .name = "strict", .supports = supports, .prepare = grad_prepare, .run = grad_run};
