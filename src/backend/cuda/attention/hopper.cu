/* The gradient of attention with heads of 64 on Hopper's warpgroup Tensor Core instructions, FP16 and BF16, any length.
 *
 * cuDNN's engine that adds in a fixed order keeps the gradient of all scores in memory (768 MiB for GPT-2 at B 32 ×
 * T 1024, where it takes 0.59 ms) and reads it back for grad_q. Here nothing of size T·S reaches memory, for 0.71 ms:
 * two kernels of one form make the scores twice, 7 products instead of 5, and every sum has one owner. It stands behind
 * cuDNN's, for calls that cuDNN has no engine for.
 *
 * A block is one warpgroup and owns 64 rows: queries in the first kernel (grad_q), keys in the second (grad_k, grad_v).
 * With own = (q, grad_dst) and passing = (k, v), or own = (k, v) and passing = (q, grad_dst), for each tile of 64
 * passing rows:  scores = own₁ · passing₁ᵀ,  grad_p = own₂ · passing₂ᵀ  (operands in shared memory, results in
 * registers),  then  sum₁ += grad_scores · passing₁  and for keys  sum₂ += weights · passing₂  with the weights,
 * rounded to the operands' format, straight from registers. Three or four blocks share a multiprocessor, so that one's
 * exponentials run beside another's products. Tiles arrive by asynchronous copies, one ahead. The first kernel also
 * leaves the row sums of grad_dst · dst for the second.
 */
#include "backend/cuda/attention/tile.cuh"

typedef mixt__attention_problem problem;

enum { TILE = 64, THREADS = 128, STAGES = 2, TILE_BYTES = TILE * MIXT_HEAD_BYTES };

struct alignas(1024) stage {
    char first[TILE_BYTES], second[TILE_BYTES];
};

struct alignas(1024) tiles {
    stage own, passing[STAGES];
    float lse[STAGES][TILE], means[STAGES][TILE]; // of passing queries
};

enum { SHARED_BYTES = sizeof(tiles) + 1024 }; // dynamic shared memory is not aligned to the 1024 of the permutation

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/** A tile as an operand: 128-byte rows with permuted pieces, 1024 bytes from 8 rows to the next 8. */
static __device__ __forceinline__ uint64_t operand(const char *tile)
{
    uint64_t at = (uint64_t)(__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
    return at | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define MIXT_SUM32(d)                                                                                                  \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),        \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),         \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),        \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define MIXT_NAMES32                                                                                                   \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31}"

/** sum = or += a · bᵀ over 16 columns of two tiles. */
template <typename T>
static __device__ __forceinline__ void multiply_tiles(float (&d)[32], uint64_t a, uint64_t b, int add)
{
    if constexpr (__is_same(T, fp16))
        asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " //
                     MIXT_NAMES32 ", %32, %33, p, 1, 1, 0, 0;}"
                     : MIXT_SUM32(d)
                     : "l"(a), "l"(b), "r"(add));
    else
        asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " //
                     MIXT_NAMES32 ", %32, %33, p, 1, 1, 0, 0;}"
                     : MIXT_SUM32(d)
                     : "l"(a), "l"(b), "r"(add));
}

/** sum += a · b: 16 columns of weights from registers, 16 rows of a tile. */
template <typename T>
static __device__ __forceinline__ void multiply_weights(float (&d)[32], const unsigned *a, uint64_t b)
{
    if constexpr (__is_same(T, fp16))
        asm volatile(
            "{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " MIXT_NAMES32
            ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;}"
            : MIXT_SUM32(d)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    else
        asm volatile(
            "{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " MIXT_NAMES32
            ", {%32, %33, %34, %35}, %36, p, 1, 1, 1;}"
            : MIXT_SUM32(d)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/** Keeps the compiler from moving reads or writes of the registers across. */
static __device__ __forceinline__ void hold(float (&d)[32])
{
    asm volatile("" : MIXT_SUM32(d)::"memory");
}

static __device__ __forceinline__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/** Until at most `count` groups of products are under way. */
template <int count> static __device__ __forceinline__ void wait_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(count) : "memory");
}

template <typename T> static __device__ __forceinline__ void tile_product(float (&d)[32], const char *a, const char *b)
{
    for (int k = 0; k < 4; k++) // 16 columns are 32 bytes
        multiply_tiles<T>(d, operand(a) + 2 * k, operand(b) + 2 * k, k > 0);
}

template <typename T>
static __device__ __forceinline__ void weighted_rows(float (&d)[32], const unsigned (&weights)[16], const char *b)
{
    for (int k = 0; k < 4; k++) // 16 rows are 2048 bytes
        multiply_weights<T>(d, weights + 4 * k, operand(b) + 128 * k);
}

/** Begins to bring 64 passing rows. Beyond the last, zeros: they add nothing. */
template <typename T, bool keys>
static __device__ __forceinline__ void load_passing(tiles &s, const problem &p, int64_t head, int64_t row, int64_t end,
                                                    int at)
{
    const mixt__head_rows &first = keys ? p.q : p.k, &second = keys ? p.grad_dst : p.v;
    load_tile<T, TILE, THREADS>(s.passing[at].first, row_of<T>(first, p, head, row), first.row, end - row);
    load_tile<T, TILE, THREADS>(s.passing[at].second, row_of<T>(second, p, head, row), second.row, end - row);
    if constexpr (keys) {
        int i = threadIdx.x & (TILE - 1);
        bool there = row + i < end;
        const float *rows = (threadIdx.x < TILE ? p.lse : p.sums) + head * p.queries + row + (there ? i : 0);
        copy4_async(threadIdx.x < TILE ? &s.lse[at][i] : &s.means[at][i], rows, there);
    }
}

/** What scores are measured against: of own rows once, of passing columns from shared memory. */
struct row_stats {
    float lse[2], mean[2]; // of rows g and g + 8 of the thread; lse in powers of 2
};

/** Scores become weights. */
template <typename T, bool keys>
static __device__ __forceinline__ void weigh(float (&scores)[32], const problem &p, const row_stats &rows,
                                             const float *lse, bool edge, int64_t own, int64_t passing)
{
    int lane = threadIdx.x & 31;
    float factor = p.scale * MIXT_LOG2_E;
    for (int n = 0; n < 8; n++) {
        float2 columns = {0, 0};
        if constexpr (keys)
            columns = *(const float2 *)(lse + 8 * n + 2 * (lane & 3));
        for (int e = 0; e < 4; e++) {
            float base = keys ? (e & 1 ? columns.y : columns.x) * MIXT_LOG2_E : rows.lse[e >> 1];
            float x = power_of_2(fmaf(scores[4 * n + e], factor, -base));
            if (edge) {
                int64_t o = own + (lane >> 2) + 8 * (e >> 1), a = passing + 8 * n + 2 * (lane & 3) + (e & 1);
                int64_t i = keys ? a : o, j = keys ? o : a;
                x = j < p.keys && (!p.causal || j <= i) ? x : 0.0f;
            }
            scores[4 * n + e] = x;
        }
    }
}

/** Weights and gradients of the scores, rounded: packed only here, where each value frees two registers. */
template <typename T, bool keys>
static __device__ __forceinline__ void grade(const float (&weights)[32], const float (&grad_p)[32],
                                             unsigned (&packed_weights)[16], unsigned (&packed)[16], const problem &p,
                                             const row_stats &rows, const float *means)
{
    int lane = threadIdx.x & 31;
    for (int n = 0; n < 8; n++) {
        float2 columns = {0, 0};
        float x[4];
        if constexpr (keys)
            columns = *(const float2 *)(means + 8 * n + 2 * (lane & 3));
        for (int e = 0; e < 4; e++) {
            float mean = keys ? (e & 1 ? columns.y : columns.x) : rows.mean[e >> 1];
            x[e] = weights[4 * n + e] * p.scale * (grad_p[4 * n + e] - mean);
        }
        packed[2 * n] = pack_pair<T>(x[0], x[1]);
        packed[2 * n + 1] = pack_pair<T>(x[2], x[3]);
        if constexpr (keys) {
            packed_weights[2 * n] = pack_pair<T>(weights[4 * n], weights[4 * n + 1]);
            packed_weights[2 * n + 1] = pack_pair<T>(weights[4 * n + 2], weights[4 * n + 3]);
        }
    }
}

/** The first kernel's row sums, kept for the second, and the thread's two rows. */
template <typename T>
static __device__ __forceinline__ row_stats own_stats(tiles &s, const problem &p, int64_t head, int64_t own)
{
    int64_t left = p.queries - own;
    float *sums = p.sums + head * p.queries + own;
    row_products<T, TILE, THREADS>(s.own.second, row_of<T>(p.dst, p, head, own), p.dst.row, left,
                                   [&](int i, float sum) {
                                       s.means[0][i] = sum;
                                       if (i < left)
                                           sums[i] = sum;
                                   });
    __syncthreads();
    row_stats rows;
    for (int half = 0; half < 2; half++) {
        int i = 16 * (threadIdx.x >> 5) + (threadIdx.x >> 2 & 7) + 8 * half;
        rows.mean[half] = s.means[0][i];
        rows.lse[half] = i < left ? p.lse[head * p.queries + own + i] * MIXT_LOG2_E : 0.0f;
    }
    return rows;
}

/** Results of a product as rows of 8 columns. */
template <typename T>
static __device__ __forceinline__ void put_rows(char *tile, const float (&sum)[32], const mixt__head_rows &r,
                                                const problem &p, int64_t head, int64_t own, int64_t end)
{
    float rows[8][4];
    for (int n = 0; n < 32; n++)
        rows[n / 4][n % 4] = sum[n];
    put<T, 8>(tile, 16 * (threadIdx.x >> 5), 0, rows, row_of<T>(r, p, head, own), r.row, end - own);
}

template <typename T, bool keys> static __device__ __forceinline__ void own_rows(tiles &s, const problem &p)
{
    int64_t count = keys ? p.keys : p.queries, end = keys ? p.queries : p.keys, per_head = (count + TILE - 1) / TILE;
    int64_t head = blockIdx.x / per_head, tile = blockIdx.x % per_head;
    int64_t own = (keys || !p.causal ? tile : per_head - 1 - tile) * TILE; // those with most work first
    int64_t passing = keys && p.causal ? own : 0;
    if (!keys && p.causal && own + TILE < end)
        end = own + TILE;
    const mixt__head_rows &first = keys ? p.k : p.q, &second = keys ? p.v : p.grad_dst;
    load_tile<T, TILE, THREADS>(s.own.first, row_of<T>(first, p, head, own), first.row, count - own);
    load_tile<T, TILE, THREADS>(s.own.second, row_of<T>(second, p, head, own), second.row, count - own);
    row_stats rows = {};
    if constexpr (!keys) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        rows = own_stats<T>(s, p, head, own);
    }
    if (passing < end)
        load_passing<T, keys>(s, p, head, passing, end, 0);
    float scores[32], grad_p[32], sum1[32] = {}, sum2[32] = {};
    unsigned weights[16], grads[16];
    for (int at = 0; passing < end; passing += TILE, at ^= 1) {
        // what this thread copied is seen by the Tensor Cores after the fence, what the others copied after the barrier
        asm volatile("cp.async.wait_all;\n\tfence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (passing + TILE < end)
            load_passing<T, keys>(s, p, head, passing + TILE, end, at ^ 1);
        const stage &now = s.passing[at];
        begin_products();
        tile_product<T>(scores, s.own.first, now.first);
        end_products();
        tile_product<T>(grad_p, s.own.second, now.second);
        end_products();
        wait_products<1>();
        hold(scores);
        bool edge = passing + TILE > end || (p.causal && passing < own + TILE && own < passing + TILE);
        int64_t warp_row = own + 16 * (threadIdx.x >> 5);
        weigh<T, keys>(scores, p, rows, s.lse[at], edge, warp_row, passing);
        wait_products<0>();
        hold(grad_p);
        grade<T, keys>(scores, grad_p, weights, grads, p, rows, s.means[at]);
        begin_products();
        if constexpr (keys)
            weighted_rows<T>(sum2, weights, now.second);
        weighted_rows<T>(sum1, grads, now.first);
        end_products();
        wait_products<0>();
        hold(sum1);
        hold(sum2);
    }
    __syncthreads(); // own tiles have served: results pass through them
    put_rows<T>(s.own.first, sum1, keys ? p.grad_k : p.grad_q, p, head, own, count);
    if constexpr (keys)
        put_rows<T>(s.own.second, sum2, p.grad_v, p, head, own, count);
}

#endif

template <typename T, bool keys>
__global__ void __launch_bounds__(THREADS, keys ? 3 : 4) attention_grad_hopper(problem p)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char shared[];
    own_rows<T, keys>(*(tiles *)(((uintptr_t)shared + 1023) / 1024 * 1024), p);
#endif
}

/* ---- candidate ---- */

/** Whether the kernels were built for this very GPU: elsewhere they are empty and need next to no registers. */
static bool built(void)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)attention_grad_hopper<bf16, true>);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error == cudaSuccess && attributes.numRegs > 64;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__heads s = mixt__heads_of(call);
    *reason = mixt__attention_special(call)               ? mixt__attention_special(call)
              : mixt__attention_lengths(call)             ? MIXT_ATTENTION_ALL_KEYS
              : call->in[0].dtype == MIXT_DTYPE_FP32      ? "only FP16 and BF16"
              : mixt__cuda_of(call)->sm != 90 || !built() ? "needs compute capability 9.0"
              : s.dim != TILE                             ? "only heads of 64"
                                                          : NULL;
    if (!*reason && !mixt__attention_strides_fit(call))
        *reason = "strides not multiples of 16 bytes";
    return !*reason;
}

template <typename T, bool keys> static mixt_status launch(const mixt__cuda_device *gpu, const problem &p)
{
    int64_t blocks = p.batch_heads * mixt__ceil_div(keys ? p.keys : p.queries, TILE);
    if (!blocks)
        return MIXT_OK;
    cudaError_t error = cudaFuncSetAttribute((const void *)attention_grad_hopper<T, keys>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess)
        return mixt__cuda_check(error, "attention_grad");
    attention_grad_hopper<T, keys><<<(unsigned)blocks, THREADS, SHARED_BYTES, gpu->stream>>>(p);
    return mixt__cuda_launched("attention_grad");
}

template <typename T> static mixt_status launch_both(const mixt__cuda_device *gpu, const problem &p)
{
    mixt_status status = launch<T, false>(gpu, p); // leaves the row sums
    return status == MIXT_OK ? launch<T, true>(gpu, p) : status;
}

static mixt_status run_heads(const mixt__call *call)
{
    problem p = mixt__attention_problem_of(call, true);
    if (!mixt__attention_aligned(call))
        return mixt__attention_grad_plain.run(call);
    return call->in[0].dtype == MIXT_DTYPE_BF16 ? launch_both<bf16>(mixt__cuda_of(call), p)
                                                : launch_both<fp16>(mixt__cuda_of(call), p);
}

static mixt_status run(const mixt__call *call)
{
    return mixt__attention_grouped(call, run_heads);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    call->tensor_cores = mixt__cuda_tensor_format(call);
    return mixt__attention_grad_plain.prepare(call, arena); // the row sums
}

extern "C" const mixt__kernel mixt__attention_grad_hopper = {
    .name = "hopper", .supports = supports, .prepare = prepare, .run = run};
