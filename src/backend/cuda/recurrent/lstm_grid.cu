/* The LSTM recurrence in FP16 and BF16 by a whole grid that stays: for GPUs without clusters, and for more weights than
 * one cluster holds.
 *
 * Each block keeps its share of weight_hh in shared memory, in the order in which lanes of m16n8k16 products take it,
 * and all blocks wait for each other after every step: a cooperative launch, so that all of them run at once. Forward:
 * a block has 8 units with their four gates (two tiles), a warp 8 sequences at a time; the states of the step before
 * come from L2, B H elements a block. Backward: a block has 16 units of the state's gradient, the sum runs over all
 * gates of the step after, 4 B H elements a block. Cell states and their gradients stay with one lane, in memory.
 */
#include "backend/cuda/recurrent/lstm_mma.cuh"

#include <cooperative_groups.h>

[[maybe_unused]] static constexpr int THREADS = 256, WARPS = THREADS / 32;
[[maybe_unused]] static constexpr int UNITS = 8, UNITS_BACK = 16, SEQUENCES = 8;
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

template <typename T> static __global__ void __launch_bounds__(THREADS) lstm_forward_grid(lstm_forward<T> a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ uint4 weight[];
    const int n = a.hidden, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, q = lane >> 2, c = lane & 3;
    const int unit0 = blockIdx.x * UNITS, unit = unit0 + q, pairs = n / DEPTH;
    const int64_t square = (int64_t)n * n;
    // pair of products, then product, then tile: gates 0 and 1, or 2 and 3, of 8 units
    for (int i = warp; i < 4 * pairs; i += WARPS) {
        const T *row = a.weight + 2 * (i & 1) * square + (int64_t)unit * n + depth_of(i >> 2, i >> 1 & 1, c);
        uint2 upper = *reinterpret_cast<const uint2 *>(row), lower = *reinterpret_cast<const uint2 *>(row + square);
        weight[i * 32 + lane] = {upper.x, lower.x, upper.y, lower.y};
    }
    __syncthreads();
    for (int t = 0; t < a.steps; t++) {
        for (int64_t first = warp * SEQUENCES; first < a.batch; first += WARPS * SEQUENCES) {
            float sum[2][4] = {};
            int64_t reads = first + q < a.batch ? first + q : first;
            if (t > 0)
                long_product<T, 2>(sum, weight, a.dst + (reads * a.steps + t - 1) * n, pairs, lane);
            for (int i = 0; i < 2 && first + 2 * c + i < a.batch; i++) {
                int64_t step = (first + 2 * c + i) * a.steps + t;
                const T *x = a.gates_x + 4 * step * n + unit;
                float gate[4] = {sum[0][i] + to_float(x[0]), sum[0][2 + i] + to_float(x[n]),
                                 sum[1][i] + to_float(x[2 * n]), sum[1][2 + i] + to_float(x[3 * n])};
                lstm_advance(a, step, t, unit, gate);
            }
        }
        cooperative_groups::this_grid().sync();
    }
#endif
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) lstm_backward_grid(lstm_backward<T> a, float *grad_cell)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ uint4 weight[];
    const int n = a.hidden, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, q = lane >> 2, c = lane & 3;
    const int unit0 = blockIdx.x * UNITS_BACK, unit = unit0 + 2 * q, pairs = 4 * n / DEPTH;
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
                long_product<T, 1>(sum, weight, a.grad_gates + (reads * a.steps + t + 1) * 4 * n, pairs, lane);
            for (int i = 0; i < 4; i++) {
                int64_t sequence = first + 2 * c + (i & 1), step = sequence * a.steps + t;
                if (sequence < a.batch)
                    lstm_back(a, step, t, unit + (i >> 1), sum[0][i], last, grad_cell + sequence * n + unit + (i >> 1));
            }
        }
        cooperative_groups::this_grid().sync();
    }
#endif
}

/* ---- the candidates ---- */

static const void *kernel_of(mixt_dtype dtype, bool forward)
{
    if (dtype == MIXT_DTYPE_BF16)
        return forward ? (const void *)lstm_forward_grid<bf16> : (const void *)lstm_backward_grid<bf16>;
    return forward ? (const void *)lstm_forward_grid<fp16> : (const void *)lstm_backward_grid<fp16>;
}

static size_t shared_bytes(const mixt__lstm_sizes *s, bool forward)
{
    return (size_t)s->hidden * (forward ? 4 * UNITS : 4 * UNITS_BACK) * 2;
}

static int64_t blocks_of(const mixt__lstm_sizes *s, bool forward)
{
    return s->hidden / (forward ? UNITS : UNITS_BACK);
}

/** Whether all blocks run at once. Also lets the kernel have that much shared memory. */
static bool fits(const void *kernel, const mixt__lstm_sizes *s, bool forward)
{
    int cooperative = 0, resident = 0, bytes = (int)shared_bytes(s, forward);
    bool good = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0) == cudaSuccess && cooperative &&
                bytes <= mixt__cuda.shared_limit &&
                cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess &&
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, THREADS, (size_t)bytes) == cudaSuccess;
    (void)cudaGetLastError();
    return good && blocks_of(s, forward) <= (int64_t)resident * mixt__cuda.multiprocessors;
}

static bool supported(const mixt__tensor *gates, const mixt__tensor *weight, bool forward, const char **reason)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(gates);
    if (gates->dtype != MIXT_DTYPE_BF16 && gates->dtype != MIXT_DTYPE_FP16)
        *reason = "only for FP16 and BF16";
    else if (gates->dtype != weight->dtype)
        *reason = "gates and weights have different formats";
    else if (mixt__cuda.sm < 80)
        *reason = "the GPU's Tensor Cores are of another kind";
    else if (s.hidden % DEPTH)
        *reason = "the hidden size is not a multiple of 32";
    else if (!s.batch || !s.steps || s.steps > INT32_MAX)
        *reason = "nothing to do, or too much";
    else if (!fits(kernel_of(gates->dtype, forward), &s, forward))
        *reason = "the weights are too large for the GPU's shared memory";
    else
        return true;
    return false;
}

static bool supports(const mixt__call *call, const char **reason)
{
    return supported(&call->in[0], &call->in[1], true, reason);
}

static bool grad_supports(const mixt__call *call, const char **reason)
{
    return supported(&call->in[2], &call->in[0], false, reason);
}

static mixt_status launch(const mixt__tensor *gates, bool forward, void **arguments)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(gates);
    return mixt__cuda_check(cudaLaunchCooperativeKernel(kernel_of(gates->dtype, forward),
                                                        dim3((unsigned)blocks_of(&s, forward)), dim3(THREADS),
                                                        arguments, shared_bytes(&s, forward), mixt__cuda.stream),
                            "lstm in a cooperative grid");
}

static mixt_status run(const mixt__call *call)
{
    lstm_forward<bf16> a = lstm_forward_of<bf16>(call); // pointers and sizes: the same for every format
    if (!aligned16(a.weight) || !aligned16(a.dst))
        return mixt__cuda_lstm_plain.run(call);
    void *arguments[] = {&a};
    return launch(&call->in[0], true, arguments);
}

static mixt_status grad_run(const mixt__call *call)
{
    lstm_backward<bf16> a = lstm_backward_of<bf16>(call);
    float *grad_cell = (float *)call->workspace;
    if (!aligned16(a.weight) || !aligned16(a.grad_gates))
        return mixt__cuda_lstm_grad_plain.run(call);
    void *arguments[] = {&a, &grad_cell};
    MIXT_TRY(launch(&call->in[2], false, arguments));
    return mixt__cuda_lstm_weight_run(call);
}

extern const mixt__kernel mixt__cuda_lstm_grid = {
    .name = "grid", .supports = supports, .prepare = mixt__cuda_prepare_tensor, .run = run};
extern const mixt__kernel mixt__cuda_lstm_grad_grid = {.name = "grid",
                                                       .supports = grad_supports,
                                                       .prepare = mixt__cuda_lstm_grad_prepare_tensor,
                                                       .run = grad_run,
                                                       .release = mixt__cuda_lstm_grad_release};
