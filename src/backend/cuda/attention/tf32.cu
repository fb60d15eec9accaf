/* Attention of FP32 tensors in TF32 on the Tensor Cores of compute capability 8.0 and later, heads of 32, 64 and 128
 * elements, any length. Scores, softmax and all sums are in FP32; nothing of size T·S reaches memory.
 *
 * A block of four warps owns 128 rows of a head (64 with heads of 128), 32 (16) a warp, and the other side passes by in
 * tiles of 32 (16) rows through shared memory, each copied while the one before is multiplied:
 *   forward   owns q (registers), k and v pass by: dst, lse;
 *   queries   owns q (registers) and grad_dst (shared memory), k and v pass by: grad_q;
 *   keys      owns k and v (shared memory), q and grad_dst pass by: grad_k, grad_v.
 * With own₁, own₂ and passing₁, passing₂ in this order, a gradient kernel makes scores = own₁ · passing₁ᵀ and
 * grad_weights = own₂ · passing₂ᵀ, and from the registers sum₂ += weights · passing₂ (keys only) and
 * sum₁ += grad_scores · passing₁. The scores are made twice, 7 products instead of 5, so that every sum has one owner
 * and a fixed order; keeping them instead would move 8 bytes a score, longer than the two products take. Causal heads
 * skip tiles, and warps their part of a tile, that nobody sees.
 *
 * A product of 16 × 8 × 8 takes 256 bytes of a passing tile; 32 rows a warp use each twice, so that shared memory (128
 * bytes a clock) keeps up with the Tensor Cores' one product a clock: 1.0 clocks of it a product in the forward kernel,
 * 1.3 and 1.5 in the gradients', whose own rows are read again for each tile. GPT-2 at B 32 × T 1024, 12 layers of 12
 * causal heads of 64: 309 GFLOP a product, 0.6 TFLOP forward and 2.2 backward; at 200 to 230 TFLOP/s about 3 + 12 ms a
 * step. Memory: q, k, v, dst and their gradients once each, 100 MB a tensor and layer; passing tiles come from the L2
 * cache, since neighbouring blocks work on the same head.
 */
#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/core/tf32_tile.cuh"

#include "base/status.h"

typedef mixt__attention_problem problem;

enum { WARPS = 4, THREADS = 32 * WARPS, STAGES = 2 };

/** How heads of DIM elements are cut. */
template <int DIM> struct cut {
    static constexpr int tall = DIM <= 64 ? 2 : 1;      // 16 rows each, of a warp
    static constexpr int own = 16 * tall * WARPS;       // rows of a block
    static constexpr int passing = DIM <= 64 ? 32 : 16; // rows of a passing tile
    static constexpr int slot = 2 * passing * DIM;      // floats of a pair of passing tiles
    static constexpr int forward_shared = STAGES * slot * 4;
    static constexpr int queries_shared = own * DIM * 4 + forward_shared;
    static constexpr int keys_shared = 2 * own * DIM * 4 + forward_shared + STAGES * 2 * passing * 4;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/* ---- what the kernels share ---- */

/** The block's head and own rows. */
struct owned {
    unsigned batch, head; // head: of batch · heads
    unsigned number;      // of the head in its batch entry
    int dim, first, warp; // elements of a head; the first row of the block and of the warp
};

/** Those with most work come first: the last rows of a causal head's queries. */
template <int DIM>
static __device__ __forceinline__ owned owned_by_block(const problem &p, int64_t rows, bool last_first)
{
    unsigned tiles = (unsigned)((int)rows + cut<DIM>::own - 1) / cut<DIM>::own, tile = blockIdx.x % tiles;
    unsigned head = blockIdx.x / tiles, batch = head / (unsigned)p.heads;
    int first = (int)(last_first ? tiles - 1 - tile : tile) * cut<DIM>::own;
    return {batch, head,  head - batch * (unsigned)p.heads,
            DIM,   first, first + 16 * cut<DIM>::tall * (int)(threadIdx.x >> 5)};
}

static __device__ __forceinline__ float *head_of(const mixt__head_rows &r, const owned &at)
{
    return static_cast<float *>(r.data) + at.batch * r.batch + at.number / r.group * at.dim;
}

/** The two tensors whose rows pass by, and where their tiles lie. */
template <int DIM> struct passing_rows {
    tf32_rows<DIM, THREADS> first, second;
    float *slots;
    int end;

    __device__ __forceinline__ passing_rows(const mixt__head_rows &r1, const mixt__head_rows &r2, const owned &at,
                                            float *slots, int64_t end)
        : first(head_of(r1, at), r1.row), second(head_of(r2, at), r2.row), slots(slots), end((int)end)
    {
    }
    __device__ __forceinline__ float *first_tile(int slot) const
    {
        return slots + slot * cut<DIM>::slot;
    }
    __device__ __forceinline__ float *second_tile(int slot) const
    {
        return slots + slot * cut<DIM>::slot + cut<DIM>::passing * DIM;
    }
    __device__ __forceinline__ void operator()(int row, int slot) const
    {
        first.template copy<cut<DIM>::passing>(first_tile(slot), row, end);
        second.template copy<cut<DIM>::passing>(second_tile(slot), row, end);
    }
};

/** Where the keys that the block's queries see end. */
template <int DIM> static __device__ __forceinline__ int seen_end(const problem &p, const owned &at)
{
    int own_end = at.first + cut<DIM>::own;
    return p.causal && own_end < p.keys ? own_end : (int)p.keys;
}

/** Row i of the 2 · tall rows of the warp that this lane has results of. */
static __device__ __forceinline__ int lane_row(const owned &at, int i)
{
    return at.warp + 8 * i + (int)(threadIdx.x >> 2 & 7);
}

/** Left operands of the warp's rows, straight from memory to put(m, step, left); zeros beyond the last row. */
template <int DIM, typename put_fn>
static __device__ __forceinline__ void each_left(const mixt__head_rows &r, const owned &at, int64_t end, put_fn put)
{
    const float *head = head_of(r, at) + 4 * (threadIdx.x & 3);
    auto load = [&](int i, int step) {
        int row = lane_row(at, i);
        return row < end ? *(const float4 *)(head + row * r.row + 16 * step) : make_float4(0, 0, 0, 0);
    };
#pragma unroll
    for (int m = 0; m < cut<DIM>::tall; m++)
#pragma unroll
        for (int step = 0; step < DIM / 16; step++)
            put(m, step, tf32_left(load(2 * m, step), load(2 * m + 1, step)));
}

/** Left operands that a lane keeps in shared memory, for itself alone, where registers do not suffice. */
template <int DIM> struct kept_left {
    uint4 *memory;

    __device__ __forceinline__ kept_left(float *shared, const mixt__head_rows &r, const owned &at, int64_t end)
        : memory(reinterpret_cast<uint4 *>(shared) + threadIdx.x)
    {
        each_left<DIM>(r, at, end, [&](int m, int step, tf32_left left) {
            memory[place(m, step)] = left.first;
            memory[place(m, step) + THREADS] = left.second;
        });
    }
    static __device__ __forceinline__ int place(int m, int step)
    {
        return 2 * (m * (DIM / 16) + step) * THREADS;
    }
    __device__ __forceinline__ tf32_left operator()(int m, int step) const
    {
        tf32_left left;
        left.first = memory[place(m, step)];
        left.second = memory[place(m, step) + THREADS];
        return left;
    }
};

/** The warp's rows of a result, each times factor(i). */
template <int DIM, typename factor_fn>
static __device__ __forceinline__ void put_rows(const mixt__head_rows &r, const owned &at, int64_t end,
                                                const float (&sum)[cut<DIM>::tall][DIM / 8][4], factor_fn factor)
{
    float *head = head_of(r, at);
#pragma unroll
    for (int i = 0; i < 2 * cut<DIM>::tall; i++) {
        int row = lane_row(at, i);
        if (row < end)
            tf32_put<DIM>(head + row * r.row, sum[i / 2], i % 2, factor(i));
    }
}

/** Scores, or weights, of what a query does not see become `nothing`. The warp's own rows begin at `own`, those of the
 * tile, its columns, at `passing`; keys: own rows are keys. */
template <bool keys, int M, int N>
static __device__ __forceinline__ void mask(float (&scores)[M][N][4], const problem &p, int own, int passing,
                                            float nothing)
{
    int lane = threadIdx.x & 31, column = passing + 2 * (lane & 3), last = (int)p.keys - 1;
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        int row = own + 8 * i + (lane >> 2), limit = p.causal && row < last ? row : last;
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                bool seen = keys ? 8 * n + e >= row - column : 8 * n + e <= limit - column;
                float &x = scores[i / 2][n][2 * (i % 2) + e];
                x = seen ? x : nothing;
            }
    }
}

/* ---- forward ---- */

/** What is known of the lane's rows: the base that their scores are measured against and the sum of its weights. */
template <int M> struct row_state {
    float base[2 * M], total[2 * M];
};

/** Raises the bases, and shrinks sums made before, once a score is 8 over its base: smaller steps are left for later,
 * since weights up to 2^8 lose nothing in FP32. */
template <int M, int N, int WIDE>
static __device__ __forceinline__ void raise_bases(row_state<M> &rows, const float (&scores)[M][N][4],
                                                   float (&dst)[M][WIDE][4])
{
    float most[2 * M];
    bool raise = false;
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        most[i] = -INFINITY;
#pragma unroll
        for (int n = 0; n < N; n++)
            most[i] = fmaxf(most[i], fmaxf(scores[i / 2][n][2 * (i % 2)], scores[i / 2][n][2 * (i % 2) + 1]));
        most[i] = warp_max<4>(most[i]);
        raise |= most[i] > rows.base[i] + 8;
    }
    if (!__any_sync(0xffffffffu, raise))
        return;
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        float higher = fmaxf(rows.base[i], most[i]), shrink = power_of_2(rows.base[i] - higher);
        shrink = higher == -INFINITY ? 0.0f : shrink; // nothing seen yet
        rows.base[i] = higher;
        rows.total[i] *= shrink;
#pragma unroll
        for (int n = 0; n < 2 * WIDE; n++)
            dst[i / 2][n / 2][2 * (i % 2) + n % 2] *= shrink;
    }
}

/** Scores become weights against the bases, and are counted. */
template <int M, int N> static __device__ __forceinline__ void weigh_seen(float (&scores)[M][N][4], row_state<M> &rows)
{
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        float base = rows.base[i] == -INFINITY ? 0.0f : rows.base[i]; // nothing seen yet: all weights are 0
#pragma unroll
        for (int n = 0; n < 2 * N; n++) {
            float &x = scores[i / 2][n / 2][2 * (i % 2) + n % 2];
            x = power_of_2(x - base);
            rows.total[i] += x;
        }
    }
}

template <int M, int N> static __device__ __forceinline__ void scale_scores(float (&scores)[M][N][4], float factor)
{
#pragma unroll
    for (int i = 0; i < M * N * 4; i++)
        scores[i / 4 / N][i / 4 % N][i % 4] *= factor;
}

/** Scores are measured in powers of 2. */
template <int DIM> static __device__ __forceinline__ void forward_rows(float *shared, const problem &p)
{
    constexpr int M = cut<DIM>::tall, PASSING = cut<DIM>::passing;
    owned at = owned_by_block<DIM>(p, p.queries, p.causal);
    passing_rows<DIM> passing(p.k, p.v, at, shared, p.keys);
    tf32_left q[M][DIM / 16];
    each_left<DIM>(p.q, at, p.queries, [&](int m, int step, tf32_left left) { q[m][step] = left; });
    float dst[M][DIM / 8][4] = {};
    row_state<M> rows = {};
#pragma unroll
    for (int i = 0; i < 2 * M; i++)
        rows.base[i] = -INFINITY;
    over_tiles(0, seen_end<DIM>(p, at), PASSING, passing, [&](int key, int slot) {
        if (p.causal && key > at.warp + 16 * M - 1)
            return;
        float scores[M][PASSING / 8][4] = {};
        tf32_add_turned<DIM>(
            scores, [&](int m, int step) { return q[m][step]; }, passing.first_tile(slot));
        scale_scores(scores, p.scale * MIXT_LOG2_E);
        if (key + PASSING > p.keys || (p.causal && key + PASSING - 1 > at.warp))
            mask<false>(scores, p, at.warp, key, -INFINITY);
        raise_bases(rows, scores, dst);
        weigh_seen(scores, rows);
        tf32_add_weighted<DIM>(dst, scores, passing.second_tile(slot));
    });
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        rows.total[i] = warp_sum<4>(rows.total[i]);
        if (lane_row(at, i) < p.queries && (threadIdx.x & 3) == 0)
            p.lse[at.head * p.queries + lane_row(at, i)] = rows.base[i] * MIXT_LN_2 + logf(rows.total[i]);
    }
    put_rows<DIM>(p.dst, at, p.queries, dst, [&](int i) { return 1 / rows.total[i]; });
}

/* ---- gradient ---- */

/** Scores become weights: exp(scale · score - lse), with lse(row of the lane, n, element) in powers of 2. */
template <int M, int N, typename lse_fn>
static __device__ __forceinline__ void weigh(float (&scores)[M][N][4], float factor, lse_fn lse)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                scores[m][n][e] = power_of_2(fmaf(scores[m][n][e], factor, -lse(2 * m + (e >> 1), n, e & 1)));
}

/** Weights become gradients of scores, still to be scaled. */
template <int M, int N, typename mean_fn>
static __device__ __forceinline__ void grade(float (&weights)[M][N][4], const float (&grad_weights)[M][N][4],
                                             mean_fn mean)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                weights[m][n][e] *= grad_weights[m][n][e] - mean(2 * m + (e >> 1), n, e & 1);
}

template <int DIM> static __device__ __forceinline__ void query_rows(float *shared, const problem &p)
{
    constexpr int M = cut<DIM>::tall, OWN = cut<DIM>::own, PASSING = cut<DIM>::passing;
    owned at = owned_by_block<DIM>(p, p.queries, p.causal);
    passing_rows<DIM> passing(p.k, p.v, at, shared + OWN * DIM, p.keys);
    kept_left<DIM> grad_dst(shared, p.grad_dst, at, p.queries);
    tf32_left q[M][DIM / 16];
    each_left<DIM>(p.q, at, p.queries, [&](int m, int step, tf32_left left) { q[m][step] = left; });
    float sum[M][DIM / 8][4] = {}, lse[2 * M], mean[2 * M];
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        int row = lane_row(at, i);
        lse[i] = row < p.queries ? p.lse[at.head * p.queries + row] * MIXT_LOG2_E : 0.0f;
        mean[i] = row < p.queries ? p.sums[at.head * p.queries + row] : 0.0f;
    }
    over_tiles(0, seen_end<DIM>(p, at), PASSING, passing, [&](int key, int slot) {
        if (p.causal && key > at.warp + 16 * M - 1)
            return;
        const float *k = passing.first_tile(slot);
        float scores[M][PASSING / 8][4] = {}, grad_weights[M][PASSING / 8][4] = {};
        tf32_add_turned<DIM>(
            scores, [&](int m, int step) { return q[m][step]; }, k);
        weigh(scores, p.scale * MIXT_LOG2_E, [&](int i, int, int) { return lse[i]; });
        if (key + PASSING > p.keys || (p.causal && key + PASSING - 1 > at.warp))
            mask<false>(scores, p, at.warp, key, 0);
        tf32_add_turned<DIM>(grad_weights, grad_dst, passing.second_tile(slot));
        grade(scores, grad_weights, [&](int i, int, int) { return mean[i]; });
        tf32_add_weighted<DIM>(sum, scores, k);
    });
    put_rows<DIM>(p.grad_q, at, p.queries, sum, [&](int) { return p.scale; });
}

/** A number each of passing rows, which are columns of scores here: the lane's two of eight. */
static __device__ __forceinline__ float of_column(const float *numbers, int n, int odd)
{
    return numbers[8 * n + 2 * (threadIdx.x & 3) + odd];
}

template <int DIM> static __device__ __forceinline__ void key_rows(float *shared, const problem &p)
{
    constexpr int M = cut<DIM>::tall, OWN = cut<DIM>::own, PASSING = cut<DIM>::passing;
    owned at = owned_by_block<DIM>(p, p.keys, false);
    passing_rows<DIM> passing(p.q, p.grad_dst, at, shared + 2 * OWN * DIM, p.queries);
    float *numbers = passing.first_tile(STAGES);
    kept_left<DIM> k(shared, p.k, at, p.keys), v(shared + OWN * DIM, p.v, at, p.keys);
    const float *numbers_in = (threadIdx.x < PASSING ? p.lse : p.sums) + at.head * p.queries + threadIdx.x % PASSING;
    auto copy = [&](int query, int slot) {
        passing(query, slot);
        if (threadIdx.x < 2 * PASSING) {
            bool there = query + (int)threadIdx.x % PASSING < passing.end;
            copy4_async(numbers + slot * 2 * PASSING + threadIdx.x, there ? numbers_in + query : p.lse, there);
        }
    };
    float sum_k[M][DIM / 8][4] = {}, sum_v[M][DIM / 8][4] = {};
    over_tiles(p.causal ? at.first : 0, passing.end, PASSING, copy, [&](int query, int slot) {
        if (p.causal && query + PASSING - 1 < at.warp)
            return;
        const float *q = passing.first_tile(slot), *grad_dst = passing.second_tile(slot);
        const float *lse = numbers + slot * 2 * PASSING;
        float scores[M][PASSING / 8][4] = {}, grad_weights[M][PASSING / 8][4] = {};
        tf32_add_turned<DIM>(scores, k, q);
        weigh(scores, p.scale * MIXT_LOG2_E, [&](int, int n, int odd) { return of_column(lse, n, odd) * MIXT_LOG2_E; });
        if (p.causal && query < at.warp + 16 * M - 1)
            mask<true>(scores, p, at.warp, query, 0);
        tf32_add_weighted<DIM>(sum_v, scores, grad_dst);
        tf32_add_turned<DIM>(grad_weights, v, grad_dst);
        grade(scores, grad_weights, [&](int, int n, int odd) { return of_column(lse + PASSING, n, odd); });
        tf32_add_weighted<DIM>(sum_k, scores, q);
    });
    put_rows<DIM>(p.grad_k, at, p.keys, sum_k, [&](int) { return p.scale; });
    put_rows<DIM>(p.grad_v, at, p.keys, sum_v, [&](int) { return 1.0f; });
}

#endif

enum which { FORWARD, QUERY_ROWS, KEY_ROWS };

template <int DIM, which kernel> __global__ void __launch_bounds__(THREADS, 2) attention_tf32(const problem p)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float4 memory[];
    float *shared = reinterpret_cast<float *>(memory);
    if constexpr (kernel == FORWARD)
        forward_rows<DIM>(shared, p);
    else if constexpr (kernel == QUERY_ROWS)
        query_rows<DIM>(shared, p);
    else
        key_rows<DIM>(shared, p);
#endif
}

/* ---- candidates ---- */

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__heads s = mixt__heads_of(call);
    int64_t most = s.queries > s.keys ? s.queries : s.keys;
    *reason = mixt__attention_special(call)                              ? mixt__attention_special(call)
              : mixt__attention_lengths(call)                            ? MIXT_ATTENTION_ALL_KEYS
              : call->in[0].dtype != MIXT_DTYPE_FP32                     ? "only FP32 tensors"
              : call->arithmetic != MIXT_DTYPE_TF32                      ? "TF32 is not allowed here"
              : mixt__cuda_of(call)->sm < 80                             ? "needs compute capability 8.0"
              : s.dim != 32 && s.dim != 64 && s.dim != 128               ? "only heads of 32, 64 and 128"
              : !mixt__attention_strides_fit(call)                       ? "strides not multiples of 16 bytes"
              : !s.batch || !s.queries || !s.keys || most > 1 << 30      ? "too small or too large"
              : cut<64>::keys_shared > mixt__cuda_of(call)->shared_limit ? "too little shared memory"
                                                                         : NULL;
    return !*reason;
}

template <int DIM, which kernel>
static mixt_status launch(const mixt__cuda_device *gpu, const problem &p, int64_t rows, int shared)
{
    const void *function = reinterpret_cast<const void *>(attention_tf32<DIM, kernel>);
    int64_t blocks = p.batch_heads * mixt__ceil_div(rows, cut<DIM>::own);
    MIXT_TRY(mixt__cuda_check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                              "attention"));
    attention_tf32<DIM, kernel><<<(unsigned)blocks, THREADS, shared, gpu->stream>>>(p);
    return mixt__cuda_launched("attention");
}

template <int DIM> static mixt_status launch_forward(const mixt__cuda_device *gpu, const problem &p)
{
    return launch<DIM, FORWARD>(gpu, p, p.queries, cut<DIM>::forward_shared);
}

template <int DIM> static mixt_status launch_grad(const mixt__cuda_device *gpu, const problem &p)
{
    MIXT_TRY((launch<DIM, KEY_ROWS>(gpu, p, p.keys, cut<DIM>::keys_shared)));
    return launch<DIM, QUERY_ROWS>(gpu, p, p.queries, cut<DIM>::queries_shared);
}

static mixt_status run(const mixt__call *call)
{
    if (!mixt__attention_aligned(call))
        return mixt__attention_plain.run(call);
    problem p = mixt__attention_problem_of(call, false);
    return p.dim == 32   ? launch_forward<32>(mixt__cuda_of(call), p)
           : p.dim == 64 ? launch_forward<64>(mixt__cuda_of(call), p)
                         : launch_forward<128>(mixt__cuda_of(call), p);
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    call->tensor_cores = mixt__cuda_tensor_format(call);
    return mixt__attention_grad_plain.prepare(call, arena); // the row sums
}

static mixt_status grad_heads(const mixt__call *call)
{
    if (!mixt__attention_aligned(call))
        return mixt__attention_grad_plain.run(call);
    problem p = mixt__attention_problem_of(call, true);
    mixt__attention_row_sums(mixt__cuda_of(call), p, MIXT_DTYPE_FP32);
    return p.dim == 32   ? launch_grad<32>(mixt__cuda_of(call), p)
           : p.dim == 64 ? launch_grad<64>(mixt__cuda_of(call), p)
                         : launch_grad<128>(mixt__cuda_of(call), p);
}

static mixt_status grad_run(const mixt__call *call)
{
    return mixt__attention_grouped(call, grad_heads);
}

extern "C" const mixt__kernel mixt__attention_tf32 = {
    .name = "tf32", .supports = supports, .prepare = mixt__cuda_prepare_tensor, .run = run};
extern "C" const mixt__kernel mixt__attention_grad_tf32 = {
    .name = "tf32", .supports = supports, .prepare = grad_prepare, .run = grad_run};
