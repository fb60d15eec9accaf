/* The recurrences in FP16 and BF16 by a whole grid that stays: for GPUs without clusters, and for more weights than one
 * cluster holds.
 *
 * Each block keeps its share of weight_hh in shared memory, in the order in which lanes of m16n8k16 products take it,
 * and all blocks wait for each other after every step: a cooperative launch, so that all of them run at once. Forward:
 * a block has 8 slots with their four sums (two tiles; a GRU's fourth rows are zeros), a warp 8 sequences at a time;
 * the states of the step before come from L2, B H elements a block. Backward: a block has 16 units of the state's
 * gradient, the sum runs over all rows of the step after, B rows elements a block. Carries and their gradients stay
 * with one lane, in memory.
 */
#include "backend/cuda/recurrent/mma.cuh"

#include <cooperative_groups.h>

[[maybe_unused]] static constexpr int THREADS = 256, WARPS = THREADS / 32;
[[maybe_unused]] static constexpr int SLOTS = 8, UNITS_BACK = 16, SEQUENCES = 8;
[[maybe_unused]] static constexpr int DEPTH = 32; // of the sum, two products; lane c of 4 takes 8 neighbours: 16 bytes
[[maybe_unused]] static constexpr int AT_ONCE = 8;

/** Sums over `count` x 32 of one or two tiles of 16 rows; two chains each. `row`: of the lane's sequence. */
template <typename T, int TILES>
static __device__ __forceinline__ void long_product(float sum[TILES][4], const uint4 *weight, const T *row, int count,
                                                    int lane)
{
    float part[2][TILES][4] = {};
    const T *mine = row + (lane & 3) * 8;
    for (int j0 = 0; j0 < count; j0 += AT_ONCE) {
        uint4 x[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) // past L1: other blocks wrote it
            x[j] =
                j0 + j < count ? __ldcg(reinterpret_cast<const uint4 *>(mine + (j0 + j) * DEPTH)) : uint4{0, 0, 0, 0};
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (j0 + j < count)
#pragma unroll
                for (int i = 0; i < 2 * TILES; i++) {
                    uint4 w = weight[((j0 + j) * 2 * TILES + i) * 32 + lane];
                    const uint32_t fragment[4] = {w.x, w.y, w.z, w.w};
                    mma(part[i / TILES][i % TILES], fragment, i < TILES ? x[j].x : x[j].z, i < TILES ? x[j].y : x[j].w,
                        T());
                }
    }
#pragma unroll
    for (int i = 0; i < TILES; i++)
        for (int k = 0; k < 4; k++)
            sum[i][k] = part[0][i][k] + part[1][i][k];
}

/** Place k of the sum at which product i of the pair and lane c begin to take 4. */
[[maybe_unused]] static __device__ __forceinline__ int depth_of(int pair, int half, int c)
{
    return pair * DEPTH + 8 * c + 4 * half;
}

template <class C, typename T> static __global__ void __launch_bounds__(THREADS) forward_grid(recurrent_forward<T> a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ uint4 weight[];
    const int n = a.hidden, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, q = lane >> 2, c = lane & 3;
    const int slot = blockIdx.x * SLOTS + q, pairs = n / DEPTH;
    const float bias = C::APART ? a.bias[slot] : 0.0f;
    // pair of products, then product, then tile: sums 0 and 1, or 2 and 3, of 8 slots
    for (int i = warp; i < 4 * pairs; i += WARPS) {
        const int sum = 2 * (i & 1), k = depth_of(i >> 2, i >> 1 & 1, c);
        const T *row = a.weight + row_of<C>(sum, slot, n) * n + k,
                *next = a.weight + row_of<C>(sum + 1, slot, n) * n + k;
        uint2 upper = *reinterpret_cast<const uint2 *>(row), lower = {0, 0};
        if (sum + 1 < SLOT_ROWS<C>)
            lower = *reinterpret_cast<const uint2 *>(next);
        weight[i * 32 + lane] = {upper.x, lower.x, upper.y, lower.y};
    }
    __syncthreads();
    for (int t = 0; t < a.steps; t++) {
        for (int64_t first = warp * SEQUENCES; first < a.batch; first += WARPS * SEQUENCES) {
            float product[2][4] = {};
            int64_t reads = first + q < a.batch ? first + q : first;
            if (t > 0)
                long_product<T, 2>(product, weight, a.dst + (reads * a.steps + t - 1) * n, pairs, lane);
            for (int i = 0; i < 2 && first + 2 * c + i < a.batch; i++) {
                int64_t step = (first + 2 * c + i) * a.steps + t;
                const float mine[SUMS] = {product[0][i], product[0][2 + i], product[1][i], product[1][2 + i]};
                float sum[SUMS] = {};
                T x[SUMS];
                slot_load<C>(x, a, step, slot);
                slot_start<C>(sum, x, bias);
                for (int k = 0; k < SUMS; k++)
                    sum[k] = mine[k] + sum[k];
                slot_advance<C>(a, step, t, slot, sum);
            }
        }
        cooperative_groups::this_grid().sync();
    }
#endif
}

template <class C, typename T>
static __global__ void __launch_bounds__(THREADS) backward_grid(recurrent_backward<T> a, float *flow)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ uint4 weight[];
    const int n = a.hidden, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, q = lane >> 2, c = lane & 3;
    const int unit0 = blockIdx.x * UNITS_BACK, unit = unit0 + 2 * q, rows = C::GATES * n, pairs = rows / DEPTH;
    for (int i = warp; i < 2 * pairs; i += WARPS) { // rows q and q + 8 of the tile: units 2q and 2q + 1
        const T *w = a.weight + (int64_t)depth_of(i >> 1, i & 1, c) * n + unit;
        uint32_t two[4];
        for (int k = 0; k < 4; k++)
            two[k] = *reinterpret_cast<const uint32_t *>(w + (int64_t)k * n);
        weight[i * 32 + lane] = {__byte_perm(two[0], two[1], 0x5410), __byte_perm(two[0], two[1], 0x7632),
                                 __byte_perm(two[2], two[3], 0x5410), __byte_perm(two[2], two[3], 0x7632)};
    }
    __syncthreads();
    for (int t = a.steps - 1; t >= 0; t--) {
        for (int64_t first = warp * SEQUENCES; first < a.batch; first += WARPS * SEQUENCES) {
            float sum[1][4] = {};
            int64_t reads = first + q < a.batch ? first + q : first;
            bool last = t + 1 == a.steps;
            if (!last)
                long_product<T, 1>(sum, weight, a.grad_sums + (reads * a.steps + t + 1) * rows, pairs, lane);
            for (int i = 0; i < 4; i++) {
                int64_t sequence = first + 2 * c + (i & 1), step = sequence * a.steps + t;
                if (sequence < a.batch)
                    unit_back<C>(a, step, t, unit + (i >> 1), sum[0][i], last, flow + sequence * n + unit + (i >> 1));
            }
        }
        cooperative_groups::this_grid().sync();
    }
#endif
}

/* ---- the candidates ----
 *
 * A cell has a form for slots, F, and one for units, B: a plain layer's differ. */

/** One call's problem, forward or backward. */
struct grid_problem {
    mixt__recurrent_sizes s;
    mixt_dtype dtype;
    const void *kernel;
    int64_t blocks;
    size_t shared_bytes;
};

template <class F> static grid_problem forward_problem(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    mixt_dtype dtype = call->in[0].dtype;
    return {s, dtype,
            dtype == MIXT_DTYPE_BF16 ? (const void *)forward_grid<F, bf16> : (const void *)forward_grid<F, fp16>,
            s.hidden / (SLOTS * F::WIDTH), (size_t)(s.hidden * SUMS * SLOTS) * 2};
}

template <class B> static grid_problem backward_problem(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    mixt_dtype dtype = call->in[1].dtype;
    return {s, dtype,
            dtype == MIXT_DTYPE_BF16 ? (const void *)backward_grid<B, bf16> : (const void *)backward_grid<B, fp16>,
            s.hidden / UNITS_BACK, (size_t)(s.rows * UNITS_BACK) * 2};
}

/** Whether all blocks run at once. Also lets the kernel have that much shared memory. */
static bool fits(const mixt__cuda_device *gpu, const grid_problem *p)
{
    int cooperative = 0, resident = 0, bytes = (int)p->shared_bytes;
    bool good =
        cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0) == cudaSuccess && cooperative &&
        bytes <= gpu->shared_limit &&
        cudaFuncSetAttribute(p->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess &&
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, p->kernel, THREADS, (size_t)bytes) == cudaSuccess;
    (void)cudaGetLastError();
    return good && p->blocks <= (int64_t)resident * gpu->multiprocessors;
}

static bool supported(const mixt__cuda_device *gpu, const grid_problem *p, const mixt__tensor *weight,
                      const char **reason)
{
    if (p->dtype != MIXT_DTYPE_BF16 && p->dtype != MIXT_DTYPE_FP16)
        *reason = "only for FP16 and BF16";
    else if (p->dtype != weight->dtype)
        *reason = "gates and weights have different formats";
    else if (gpu->sm < 80)
        *reason = "the GPU's Tensor Cores are of another kind";
    else if (p->s.hidden % DEPTH)
        *reason = "the hidden size is not a multiple of 32";
    else if (!p->s.batch || !p->s.steps || p->s.steps > INT32_MAX)
        *reason = "nothing to do, or too much";
    else if (!fits(gpu, p))
        *reason = "the weights are too large for the GPU's shared memory";
    else
        return true;
    return false;
}

static mixt_status launch(const mixt__cuda_device *gpu, const grid_problem *p, void **arguments)
{
    return mixt__cuda_check(cudaLaunchCooperativeKernel(p->kernel, dim3((unsigned)p->blocks), dim3(THREADS), arguments,
                                                        p->shared_bytes, gpu->stream),
                            "a recurrence in a cooperative grid");
}

template <class F> static bool supports(const mixt__call *call, const char **reason)
{
    grid_problem p = forward_problem<F>(call);
    return supported(mixt__cuda_of(call), &p, &call->in[1], reason);
}

template <class B> static bool grad_supports(const mixt__call *call, const char **reason)
{
    grid_problem p = backward_problem<B>(call);
    return supported(mixt__cuda_of(call), &p, &call->in[0], reason);
}

template <class F> static mixt_status run(const mixt__call *call, const mixt__kernel *plain)
{
    grid_problem p = forward_problem<F>(call);
    recurrent_forward<bf16> a = forward_of<F, bf16>(call); // pointers and sizes: the same for every format
    if (!aligned16(a.weight) || !aligned16(a.dst))
        return plain->run(call);
    void *arguments[] = {&a};
    return launch(mixt__cuda_of(call), &p, arguments);
}

template <class B> static mixt_status grad_run(const mixt__call *call, const mixt__kernel *plain)
{
    grid_problem p = backward_problem<B>(call);
    recurrent_backward<bf16> a = backward_of<B, bf16>(call);
    float *flow = mixt__cuda_recurrent_flow(call);
    if (!aligned16(a.weight) || !aligned16(a.grad_sums))
        return plain->run(call);
    void *arguments[] = {&a, &flow};
    MIXT_TRY(launch(mixt__cuda_of(call), &p, arguments));
    return mixt__cuda_recurrent_weight_run(call);
}

#define CANDIDATES(op, slot_cell, unit_cell)                                                                           \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return run<slot_cell>(call, &mixt__cuda_##op##_plain);                                                         \
    }                                                                                                                  \
    static mixt_status op##_grad_run(const mixt__call *call)                                                           \
    {                                                                                                                  \
        return grad_run<unit_cell>(call, &mixt__cuda_##op##_grad_plain);                                               \
    }                                                                                                                  \
    extern "C" const mixt__kernel mixt__cuda_##op##_grid = {                                                           \
        .name = "grid", .supports = supports<slot_cell>, .prepare = mixt__cuda_prepare_tensor, .run = op##_run};       \
    extern "C" const mixt__kernel mixt__cuda_##op##_grad_grid = {.name = "grid",                                       \
                                                                 .supports = grad_supports<unit_cell>,                 \
                                                                 .prepare = mixt__cuda_recurrent_grad_prepare_tensor,  \
                                                                 .run = op##_grad_run,                                 \
                                                                 .release = mixt__cuda_recurrent_grad_release}
CANDIDATES(lstm, lstm_cell, lstm_cell);
CANDIDATES(gru, gru_cell, gru_cell);
CANDIDATES(rnn, rnn_cell<4>, rnn_cell<1>);
#undef CANDIDATES
