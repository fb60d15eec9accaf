/* Products of 16-bit operands too small to fill the GPU: what counts is the time from launch to the last store.
 *
 * A block makes a 32×32 tile. Its warps (up to 8) share K out among themselves, in chunks of 32: each loads its own
 * chunks through its own ring of asynchronous copies and multiplies them on the tensor cores (mma m16n8k16, FP32 sums)
 * without waiting for another warp; with K up to 1024 everything a block needs is under way at once. The warps' sums
 * meet in shared memory and are added in the order of the warps, so the same call gives the same bits.
 * Operands stay in shared memory as they lie in memory, 32×32 blocks whose 16-byte units are permuted by row against
 * bank conflicts; ldmatrix turns them where the product wants the other order. Bytes: (32 + 32)·K·2 a block, from L2.
 */
#include "backend/cuda/matmul_epilogue.cuh"

#include "base/status.h"

enum { TILE = 32, CHUNK = 32, BLOCK = TILE * CHUNK, MOST_WARPS = 8, SUM_ROW = TILE + 4 };
enum { MOST_TILES = 512, MOST_K = 2048, MOST_BATCH = 65535 };

/** An operand as it is stored: rows of `cols` elements. */
typedef struct stored {
    const void *data;
    int64_t ld, step; // elements from row to row, from product to product
    int rows, cols;
    bool k_rows; // rows run along K
    bool wide;   // every row begins at a multiple of 16 bytes
} stored;

typedef struct small_args {
    stored a, b;
    int m, n, k, stages;
    epilogue_args out;
} small_args;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

static __device__ __forceinline__ void copy_async16(uint32_t dst, const void *src, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes));
}

static __device__ __forceinline__ void load_fragment(uint32_t (&r)[4], uint32_t address, bool turned)
{
    if (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
}

static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, bf16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, fp16)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/** Element offset of a 16-byte unit in a 32×32 block. */
static __device__ __forceinline__ int unit_at(int row, int unit)
{
    return row * CHUNK + ((unit ^ (row >> 1 & 3)) << 3);
}

/** A warp brings the block at (row0, col0) into shared memory, zeros past the edges. */
template <typename T>
static __device__ __forceinline__ void load_block(T *block, const stored &s, const T *data, int row0, int col0,
                                                  int lane)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = (lane >> 2) + 8 * i, unit = lane & 3, col = col0 + 8 * unit;
        int left = row0 + row < s.rows ? min(max(s.cols - col, 0), 8) : 0;
        const T *src = left ? data + (row0 + row) * s.ld + col : data;
        T *dst = block + unit_at(row, unit);
        if (s.wide) {
            copy_async16((uint32_t)__cvta_generic_to_shared(dst), src, left * (int)sizeof(T));
        } else {
            vec16<T> v;
#pragma unroll
            for (int j = 0; j < 8; j++)
                v.v[j] = j < left ? src[j] : from_float<T>(0.0f);
            store16(dst, v);
        }
    }
}

/** The tile's sum over one chunk of K. A fragment's four 8×8 parts are found by lane: `along` steps along K or across
 *  it, depending on how the operand lies. */
template <typename T>
static __device__ __forceinline__ void multiply_chunk(float (&sum)[2][4][4], const T *a_block, const T *b_block,
                                                      bool a_turned, bool b_turned, int lane)
{
    int low = lane & 7, second = lane >> 3 & 1, third = lane >> 4;
    uint32_t a_base = (uint32_t)__cvta_generic_to_shared(a_block), b_base = (uint32_t)__cvta_generic_to_shared(b_block);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int a_at = a_turned ? unit_at(16 * k + low + 8 * third, 2 * i + second)
                                : unit_at(16 * i + low + 8 * second, 2 * k + third);
            int b_at = b_turned ? unit_at(16 * k + low + 8 * second, 2 * i + third)
                                : unit_at(16 * i + low + 8 * third, 2 * k + second);
            load_fragment(a[i], a_base + a_at * (uint32_t)sizeof(T), a_turned);
            load_fragment(b[i], b_base + b_at * (uint32_t)sizeof(T), b_turned);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                multiply(sum[i][j], a[i], b[j >> 1][2 * (j & 1)], b[j >> 1][2 * (j & 1) + 1], T());
    }
}

/** The warp's share of K, every `warps`-th chunk, through its ring. */
template <typename T>
static __device__ __forceinline__ void multiply_share(float (&sum)[2][4][4], const small_args &p, T *ring, int row0,
                                                      int col0, int first, int warps, int lane)
{
    const T *a = static_cast<const T *>(p.a.data) + blockIdx.z * p.a.step;
    const T *b = static_cast<const T *>(p.b.data) + blockIdx.z * p.b.step;
    int chunks = (p.k + CHUNK - 1) / CHUNK, mine = first < chunks ? (chunks - first + warps - 1) / warps : 0;
    auto load = [&](int i) {
        int k0 = (first + i * warps) * CHUNK;
        T *slot = ring + i % p.stages * 2 * BLOCK;
        if (i < mine) {
            load_block(slot, p.a, a, p.a.k_rows ? k0 : row0, p.a.k_rows ? row0 : k0, lane);
            load_block(slot + BLOCK, p.b, b, p.b.k_rows ? k0 : col0, p.b.k_rows ? col0 : k0, lane);
        }
        asm volatile("cp.async.commit_group;");
    };
    for (int i = 0; i < p.stages; i++)
        load(i);
    for (int i = 0; i < mine; i++) {
        if (p.stages == 4)
            asm volatile("cp.async.wait_group 3;" ::: "memory");
        else
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncwarp();
        const T *slot = ring + i % p.stages * 2 * BLOCK;
        multiply_chunk(sum, slot, slot + BLOCK, p.a.k_rows, p.b.k_rows, lane);
        __syncwarp(); // all lanes have read the slot before it is filled again
        load(i + p.stages);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

template <typename T> static __global__ void __launch_bounds__(32 * MOST_WARPS) matmul_small(const small_args p)
{
    extern __shared__ __align__(128) unsigned char memory[];
    int warps = blockDim.x >> 5, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE, share = p.stages * 2 * BLOCK * (int)sizeof(T);
    float sum[2][4][4] = {};
    T *ring = reinterpret_cast<T *>(memory + warp * share);
    multiply_share(sum, p, ring, row0, col0, warp, warps, lane);
    float *mine = reinterpret_cast<float *>(ring); // its ring has been read: the sums take its place
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int at = (16 * i + (lane >> 2)) * SUM_ROW + 8 * j + 2 * (lane & 3);
            *reinterpret_cast<float2 *>(&mine[at]) = make_float2(sum[i][j][0], sum[i][j][1]);
            *reinterpret_cast<float2 *>(&mine[at + 8 * SUM_ROW]) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) {
        int row = row0 + i / TILE, col = col0 + i % TILE;
        float total = 0.0f;
        for (int w = 0; w < warps; w++)
            total += reinterpret_cast<const float *>(memory + w * share)[i / TILE * SUM_ROW + i % TILE];
        if (row < p.m && col < p.n)
            finish(p.out, (blockIdx.z * (int64_t)p.m + row) * p.n + col, col, total);
    }
}

#else

template <typename T> static __global__ void matmul_small(const small_args) // never chosen there: see supports
{
}

#endif

static int64_t tiles_of(const mixt__cuda_product *p)
{
    return p->batch * mixt__ceil_div(p->m, TILE) * mixt__ceil_div(p->n, TILE);
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__cuda_product p = mixt__cuda_product_of(call);
    mixt_dtype dtype = call->in[0].dtype;
    *reason = NULL;
    if (mixt__cuda.sm < 80)
        *reason = "this GPU has no asynchronous copies";
    else if (dtype != MIXT_DTYPE_BF16 && dtype != MIXT_DTYPE_FP16)
        *reason = "only for 16-bit operands";
    else if (!(p.batch && p.m && p.n && p.k))
        *reason = "there is nothing to multiply";
    else if (!p.regular)
        *reason = "an operand is a view whose leading dimensions have no common stride";
    else if (p.k > MOST_K || tiles_of(&p) > MOST_TILES || p.batch > MOST_BATCH)
        *reason = "large enough to fill the GPU";
    return !*reason;
}

static stored operand(const mixt__tensor *t, int64_t rows, int64_t cols, int64_t ld, int64_t step, bool k_rows)
{
    stored s = {.data = t->data, .ld = ld, .step = step, .rows = (int)rows, .cols = (int)cols, .k_rows = k_rows};
    s.wide = aligned16(t->data) && (ld % 8 == 0 || rows == 1) && step % 8 == 0;
    return s;
}

template <typename T> static mixt_status launch(const small_args &p, const mixt__cuda_product *c)
{
    static bool allowed; // set again by another thread, it would become the same
    int chunks = (p.k + CHUNK - 1) / CHUNK, warps = chunks < MOST_WARPS ? chunks : MOST_WARPS;
    int shared = warps * p.stages * 2 * BLOCK * (int)sizeof(T);
    if (!allowed)
        MIXT_TRY(
            mixt__cuda_check(cudaFuncSetAttribute(matmul_small<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  MOST_WARPS * 4 * 2 * BLOCK * (int)sizeof(T) <= mixt__cuda.shared_limit
                                                      ? MOST_WARPS * 4 * 2 * BLOCK * (int)sizeof(T)
                                                      : MOST_WARPS * 2 * 2 * BLOCK * (int)sizeof(T)),
                             "asking for shared memory"));
    allowed = true;
    dim3 grid((unsigned)mixt__ceil_div(p.n, TILE), (unsigned)mixt__ceil_div(p.m, TILE), (unsigned)c->batch);
    matmul_small<T><<<grid, 32 * warps, (size_t)shared, mixt__cuda.stream>>>(p);
    return mixt__cuda_launched("matmul_small");
}

static mixt_status run(const mixt__call *call)
{
    const mixt__matmul_attrs *at = static_cast<const mixt__matmul_attrs *>(call->attrs);
    mixt__cuda_product c = mixt__cuda_product_of(call);
    small_args p = {.m = (int)c.m, .n = (int)c.n, .k = (int)c.k};
    p.a = operand(&call->in[0], at->trans_a ? c.k : c.m, at->trans_a ? c.m : c.k, c.a_ld, c.a_step, at->trans_a);
    p.b = operand(&call->in[1], at->trans_b ? c.n : c.k, at->trans_b ? c.k : c.n, c.b_ld, c.b_step, !at->trans_b);
    p.out = epilogue_of(call);
    int deepest = MOST_WARPS * 4 * 2 * BLOCK * 2 <= mixt__cuda.shared_limit ? 4 : 2;
    p.stages = c.k > 2 * MOST_WARPS * CHUNK ? deepest : 2;
    return call->in[0].dtype == MIXT_DTYPE_BF16 ? launch<bf16>(p, &c) : launch<fp16>(p, &c);
}

const mixt__kernel mixt__cuda_matmul_small = {.name = "small", .supports = supports, .run = run};
