/* Products of 16-bit operands in forms that cuBLASLt refuses, such as the few odd columns of a classifier with bias:
 * often too small to fill the GPU, so what counts is the time from launch to the last store.
 *
 * A block of 8 warps makes a 32×32 tile, or 16×32 where there are few. The warps share K out among themselves, in
 * chunks of 32: each loads its own chunks through its own ring of asynchronous copies and multiplies them on the tensor
 * cores (mma m16n8k16, FP32 sums) without waiting for another warp; with K up to 1024 everything a block needs is under
 * way at once. The warps' sums meet in shared memory and are added in the order of the warps, so the same call gives
 * the same bits. Operands stay in shared memory as they lie in memory, 32×32 blocks whose 16-byte units are permuted by
 * row against bank conflicts; ldmatrix turns them where the product wants the other order. Bytes: (32 + 32)·K·2 a
 * block, from L2.
 */
#include "backend/cuda/gemm/epilogue.cuh"

#include "base/status.h"

#include <limits.h>

enum { TILE = 32, CHUNK = 32, BLOCK = TILE * CHUNK, THREADS = 256, SUM_ROW = TILE + 4 };
enum { MOST_BATCH = 65535 };

/** An operand as it is stored: rows of `cols` elements. */
typedef struct stored {
    const void *data;
    int64_t ld, step; // elements from row to row, from product to product
    int rows, cols;
    bool k_rows; // rows run along K
    bool wide;   // every row begins at a multiple of 16 bytes
} stored;

typedef struct tiles_args {
    stored a, b;
    int m, n, k, stages;
    bool vectors; // four neighbours of what joins the result and of the result itself can be moved at once
    epilogue_args out;
} tiles_args;

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

/** The kernel may be started while the one before it ends (see launch): from here on that one's results are there. */
static __device__ __forceinline__ void after_previous()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/** Element offset of a 16-byte unit in a 32×32 block. */
static __device__ __forceinline__ int unit_at(int row, int unit)
{
    return row * CHUNK + ((unit ^ (row >> 1 & 3)) << 3);
}

/** A warp brings the block at (row0, col0) into shared memory, zeros past the edges; the first 8·octets rows of it. */
template <typename T>
static __device__ __forceinline__ void load_block(T *block, const stored &s, const T *data, int row0, int col0,
                                                  int octets, int lane)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = (lane >> 2) + 8 * i, unit = lane & 3, col = col0 + 8 * unit;
        int left = row0 + row < s.rows ? min(max(s.cols - col, 0), 8) : 0;
        const T *src = left ? data + (row0 + row) * s.ld + col : data;
        T *dst = block + unit_at(row, unit);
        if (i >= octets)
            break;
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

/** The tile's sum over one chunk of K. A fragment's four 8×8 parts are found by lane. */
template <typename T, int HEIGHT>
static __device__ __forceinline__ void multiply_chunk(float (&sum)[HEIGHT][4][4], const T *a_block, const T *b_block,
                                                      bool a_turned, bool b_turned, int lane)
{
    int low = lane & 7, second = lane >> 3 & 1, third = lane >> 4;
    uint32_t a_base = (uint32_t)__cvta_generic_to_shared(a_block), b_base = (uint32_t)__cvta_generic_to_shared(b_block);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        uint32_t a[HEIGHT][4], b[2][4];
#pragma unroll
        for (int i = 0; i < HEIGHT; i++) {
            int at = a_turned ? unit_at(16 * k + low + 8 * third, 2 * i + second)
                              : unit_at(16 * i + low + 8 * second, 2 * k + third);
            load_fragment(a[i], a_base + at * (uint32_t)sizeof(T), a_turned);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int at = b_turned ? unit_at(16 * k + low + 8 * second, 2 * i + third)
                              : unit_at(16 * i + low + 8 * third, 2 * k + second);
            load_fragment(b[i], b_base + at * (uint32_t)sizeof(T), b_turned);
        }
#pragma unroll
        for (int i = 0; i < HEIGHT; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                multiply(sum[i][j], a[i], b[j >> 1][2 * (j & 1)], b[j >> 1][2 * (j & 1) + 1], T());
    }
}

/** A warp's share of K, every `warps`-th chunk, and its ring of slots. */
template <typename T, int HEIGHT> struct share {
    const T *a, *b;
    T *ring;
    int row0, col0, first, warps, count, lane;

    __device__ __forceinline__ void load(const tiles_args &p, int i) const
    {
        int k0 = (first + i * warps) * CHUNK;
        T *slot = ring + i % p.stages * 2 * BLOCK;
        if (i < count) {
            load_block(slot, p.a, a, p.a.k_rows ? k0 : row0, p.a.k_rows ? row0 : k0, p.a.k_rows ? 4 : 2 * HEIGHT, lane);
            load_block(slot + BLOCK, p.b, b, p.b.k_rows ? k0 : col0, p.b.k_rows ? col0 : k0, 4, lane);
        }
        asm volatile("cp.async.commit_group;");
    }

    __device__ __forceinline__ void multiply_all(const tiles_args &p, float (&sum)[HEIGHT][4][4]) const
    {
        for (int i = 0; i < count; i++) {
            if (p.stages == 4)
                asm volatile("cp.async.wait_group 3;" ::: "memory");
            else
                asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncwarp();
            const T *slot = ring + i % p.stages * 2 * BLOCK;
            multiply_chunk<T, HEIGHT>(sum, slot, slot + BLOCK, p.a.k_rows, p.b.k_rows, lane);
            __syncwarp(); // all lanes have read the slot before it is filled again
            load(p, i + p.stages);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
    }
};

/** The warp's sums to shared memory, where its ring was. */
template <int HEIGHT>
static __device__ __forceinline__ void spill(float *to, const float (&sum)[HEIGHT][4][4], int lane)
{
#pragma unroll
    for (int i = 0; i < HEIGHT; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int at = (16 * i + (lane >> 2)) * SUM_ROW + 8 * j + 2 * (lane & 3);
            *reinterpret_cast<float2 *>(&to[at]) = make_float2(sum[i][j][0], sum[i][j][1]);
            *reinterpret_cast<float2 *>(&to[at + 8 * SUM_ROW]) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
}

/** Four neighbouring results a thread: what joins them is read while the operands are still on their way. */
template <typename T, int HEIGHT>
static __global__ void __launch_bounds__(THREADS, 3) matmul_tiles(const __grid_constant__ tiles_args p)
{
    extern __shared__ __align__(128) unsigned char memory[];
    int warp = threadIdx.x >> 5, bytes = p.stages * 2 * BLOCK * (int)sizeof(T);
    int chunks = (p.k + CHUNK - 1) / CHUNK, warps = min(chunks, THREADS / 32);
    float sum[HEIGHT][4][4] = {};
    share<T, HEIGHT> mine = {.a = static_cast<const T *>(p.a.data) + blockIdx.z * p.a.step,
                             .b = static_cast<const T *>(p.b.data) + blockIdx.z * p.b.step,
                             .ring = reinterpret_cast<T *>(memory + warp * bytes),
                             .row0 = (int)blockIdx.y * 16 * HEIGHT,
                             .col0 = (int)blockIdx.x * TILE,
                             .first = warp,
                             .warps = warps,
                             .count = warp < warps ? (chunks - warp + warps - 1) / warps : 0,
                             .lane = (int)threadIdx.x & 31};
    after_previous();
    for (int i = 0; i < p.stages; i++)
        mine.load(p, i);
    int row = threadIdx.x / 8, col = threadIdx.x % 8 * 4;
    int64_t at = (blockIdx.z * (int64_t)p.m + mine.row0 + row) * p.n + mine.col0 + col;
    int count = row < 16 * HEIGHT && mine.row0 + row < p.m ? min(max(p.n - mine.col0 - col, 0), 4) : 0;
    joining4 join = joining_load(p.out, at, mine.col0 + col, count, p.vectors);
    mine.multiply_all(p, sum);
    if (warp < warps)
        spill<HEIGHT>(reinterpret_cast<float *>(mine.ring), sum, mine.lane);
    __syncthreads();
    float total[4] = {};
    for (int w = 0; w < warps && count; w++) {
        float4 part = *reinterpret_cast<const float4 *>(memory + w * bytes + (row * SUM_ROW + col) * sizeof(float));
        total[0] += part.x;
        total[1] += part.y;
        total[2] += part.z;
        total[3] += part.w;
    }
    finish4(p.out, join, at, count, p.vectors, total);
}

#else

template <typename T, int HEIGHT> static __global__ void matmul_tiles(const tiles_args) // never chosen: see supports
{
}

#endif

static int64_t tiles_of(const mixt__cuda_product *p)
{
    return p->batch * mixt__ceil_div(p->m, TILE) * mixt__ceil_div(p->n, TILE);
}

/** Slots a warp's ring may have: blocks of older GPUs get less shared memory. */
static int deepest(const mixt__cuda_device *gpu)
{
    return THREADS / 32 * 4 * 2 * BLOCK * 2 <= gpu->shared_limit ? 4 : 2;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__cuda_product p = mixt__cuda_product_of(call);
    mixt_dtype dtype = call->in[0].dtype;
    *reason = mixt__cuda_product_refused(call);
    if (*reason)
        return false;
    if (mixt__cuda_of(call)->sm < 80)
        *reason = "this GPU has no asynchronous copies";
    else if (dtype != MIXT_DTYPE_BF16 && dtype != MIXT_DTYPE_FP16)
        *reason = "only for 16-bit operands";
    else if (!(p.batch && p.m && p.n && p.k))
        *reason = "there is nothing to multiply";
    else if (!p.regular)
        *reason = "an operand is a view whose leading dimensions have no common stride";
    else if (p.batch > MOST_BATCH || mixt__ceil_div(p.m, 16) > MOST_BATCH || p.n > INT_MAX - TILE ||
             p.k > INT_MAX - CHUNK)
        *reason = "more tiles than one launch has";
    return !*reason;
}

static stored operand(const mixt__tensor *t, int64_t rows, int64_t cols, int64_t ld, int64_t step, bool k_rows)
{
    stored s = {.data = t->data, .ld = ld, .step = step, .rows = (int)rows, .cols = (int)cols, .k_rows = k_rows};
    s.wide = aligned16(t->data) && (ld % 8 == 0 || rows == 1) && step % 8 == 0;
    return s;
}

static int ring_bytes(int warps, int stages)
{
    return warps * stages * 2 * BLOCK * 2;
}

template <typename T, int HEIGHT>
static mixt_status launch(const mixt__cuda_device *gpu, const tiles_args &p, int64_t batch)
{
    int chunks = (p.k + CHUNK - 1) / CHUNK, warps = chunks < THREADS / 32 ? chunks : THREADS / 32;
    MIXT_TRY(mixt__cuda_check(cudaFuncSetAttribute(matmul_tiles<T, HEIGHT>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   ring_bytes(THREADS / 32, deepest(gpu))),
                              "asking for shared memory"));
    cudaLaunchAttribute overlap = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {.gridDim = dim3((unsigned)mixt__ceil_div(p.n, TILE),
                                                 (unsigned)mixt__ceil_div(p.m, 16 * HEIGHT), (unsigned)batch),
                                 .blockDim = dim3(THREADS),
                                 .dynamicSmemBytes = (size_t)ring_bytes(warps, p.stages),
                                 .stream = gpu->stream,
                                 .attrs = &overlap,
                                 .numAttrs = gpu->sm >= 90 ? 1u : 0u};
    return mixt__cuda_check(cudaLaunchKernelEx(&config, matmul_tiles<T, HEIGHT>, p), "matmul_tiles");
}

static bool aligned_all(const epilogue_args *e)
{
    return aligned16(e->bias) && aligned16(e->addend) && aligned16(e->pre) && aligned16(e->dst) && aligned16(e->aux);
}

static mixt_status run(const mixt__call *call)
{
    const mixt__matmul_attrs *at = static_cast<const mixt__matmul_attrs *>(call->attrs);
    mixt__cuda_product c = mixt__cuda_product_of(call);
    bool low =
        tiles_of(&c) <= mixt__cuda_of(call)->multiprocessors / 2; // half tiles reach twice as many multiprocessors
    tiles_args p = {.m = (int)c.m, .n = (int)c.n, .k = (int)c.k};
    p.a = operand(&call->in[0], at->trans_a ? c.k : c.m, at->trans_a ? c.m : c.k, c.a_ld, c.a_step, at->trans_a);
    p.b = operand(&call->in[1], at->trans_b ? c.n : c.k, at->trans_b ? c.k : c.n, c.b_ld, c.b_step, !at->trans_b);
    p.out = epilogue_of(call);
    p.vectors = c.n % 4 == 0 && aligned_all(&p.out);
    p.stages = c.k > 2 * (THREADS / 32) * CHUNK ? deepest(mixt__cuda_of(call)) : 2;
    if (call->in[0].dtype == MIXT_DTYPE_BF16)
        return low ? launch<bf16, 1>(mixt__cuda_of(call), p, c.batch)
                   : launch<bf16, 2>(mixt__cuda_of(call), p, c.batch);
    return low ? launch<fp16, 1>(mixt__cuda_of(call), p, c.batch) : launch<fp16, 2>(mixt__cuda_of(call), p, c.batch);
}

extern "C" const mixt__kernel mixt__cuda_matmul_tiles = {
    .name = "tiles", .supports = supports, .prepare = mixt__cuda_prepare_tensor, .run = run};
