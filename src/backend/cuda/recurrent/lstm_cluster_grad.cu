/* The LSTM gradient through time in FP16 and BF16 for Hopper: the cluster of lstm_cluster.cu, backward.
 *
 * A step: a lane has one unit of one sequence and makes the gradients of its four gates; the block multiplies those of
 * its 32 units with its 128 rows of weight_hh (registers, four tiles of 16 columns in each of 8 warps), which gives an
 * FP32 part of the state's gradient for all units; the parts go to the blocks that own the units and are added there in
 * the order of blocks. 16 KB come in at a step for H 512 and 8 sequences.
 */
#include "backend/cuda/recurrent/lstm_cluster.cuh"
#include "backend/cuda/recurrent/lstm_mma.cuh"

enum { TILES = 4, DEPTH_BACK = 8 };

/** Tile rows q and q + 8 are units 2q and 2q + 1 of its 16; along the sum, lane c of 4 takes the four gates of unit
 *  4s + c of this block. Tile i of a warp is tile 8i + warp of the state. */
template <typename T>
static __device__ __forceinline__ void backward_weights(uint32_t weight[TILES][DEPTH_BACK][4],
                                                        const lstm_backward<T> &a, int rank, int warp, int lane)
{
    const int n = a.hidden;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int s = 0; s < DEPTH_BACK; s++) {
            int column = (8 * i + warp) * 16 + 2 * (lane >> 2), unit = rank * LSTM_UNITS + 4 * s + (lane & 3);
            uint32_t two[4] = {};
            for (int g = 0; g < 4 && unit < n && column < n; g++)
                two[g] = *reinterpret_cast<const uint32_t *>(a.weight + ((int64_t)g * n + unit) * n + column);
            weight[i][s][0] = __byte_perm(two[0], two[1], 0x5410);
            weight[i][s][1] = __byte_perm(two[0], two[1], 0x7632);
            weight[i][s][2] = __byte_perm(two[2], two[3], 0x5410);
            weight[i][s][3] = __byte_perm(two[2], two[3], 0x7632);
        }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Two tiles of the warp: their part of the state's gradient, to the blocks that own their units. */
template <typename T>
static __device__ __forceinline__ void backward_tiles(const uint32_t weight[2][DEPTH_BACK][4],
                                                      const uint64_t value[DEPTH_BACK], int tile, int blocks,
                                                      const float *parts, const uint64_t *barrier, int lane)
{
    float sum[2][4] = {};
#pragma unroll
    for (int s = 0; s < DEPTH_BACK; s++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            mma(sum[i], weight[i][s], (uint32_t)value[s], (uint32_t)(value[s] >> 32), T());
#pragma unroll
    for (int i = 0; i < 2; i++, tile += 8)
        if (tile >> 1 < blocks) {
            uint32_t to = neighbour_offset(parts, tile >> 1);
            send(shared_address(parts + (tile & 1) * 128 + lane * 4) + to, shared_address(barrier) + to, sum[i]);
        }
}
#endif

/** What of a lane stays the same over all steps. */
template <typename T> struct backward_lane {
    lstm_backward<T> a;
    int rank, blocks, warp, lane, local, slot, unit;
    int64_t first;  // sequence of the cluster
    uint32_t bytes; // that come in at a step
};

/** What it carries from step to step, for each group of sequences. */
template <typename T> struct backward_carry {
    backward_inputs<T> next;
    float cell, grad_cell;
};

/** Of one group of sequences. */
struct backward_memory {
    float parts[2][LSTM_BLOCKS][LSTM_THREADS];     // from each block, this one's units and sequences
    uint64_t flow[2][LSTM_UNITS * LSTM_SEQUENCES]; // the four gates' gradients of each of them
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Step i, at time t, of one group of sequences. */
template <typename T>
static __device__ __forceinline__ void
backward_step(const backward_lane<T> &l, const uint32_t weight[TILES][DEPTH_BACK][4], backward_memory *m,
              uint64_t arrived[2], backward_carry<T> *carry, int group, int i, int t)
{
    const int64_t first = l.first + group * LSTM_SEQUENCES, sequence = first + l.slot;
    const bool valid = l.unit < l.a.hidden && sequence < l.a.batch;
    const backward_inputs<T> now = carry->next;
    if (t > 0)
        backward_load(&carry->next, l.a, sequence, t - 1, l.unit, valid);
    backward_prefetch(l.a, first, t - LSTM_AHEAD, l.rank * LSTM_UNITS);
    float sum[4] = {to_float(now.grad_dst), 0, 0, 0}, result[4];
    if (i > 0) {
        arrivals_wait(arrived, i - 1, l.bytes);
#pragma unroll
        for (int b = 0; b < LSTM_BLOCKS; b++)
            if (b < l.blocks)
                sum[b & 3] += m->parts[(i - 1) & 1][b][threadIdx.x];
    }
    lstm_gates g = {to_float(now.gate[0]), to_float(now.gate[1]), to_float(now.gate[2]), to_float(now.gate[3])};
    gates_back(g, carry->cell, now.cell_before, (sum[0] + sum[1]) + (sum[2] + sum[3]), &carry->grad_cell, result);
    carry->cell = now.cell_before;
    uint32_t two[2] = {bits_of<T>(result[0]) | bits_of<T>(result[1]) << 16,
                       bits_of<T>(result[2]) | bits_of<T>(result[3]) << 16};
    if (t > 0) {
        m->flow[i & 1][place_of(l.local, l.slot)] = valid ? (uint64_t)two[1] << 32 | two[0] : 0;
        __syncthreads();
        uint64_t value[DEPTH_BACK];
#pragma unroll
        for (int s = 0; s < DEPTH_BACK; s++)
            value[s] = m->flow[i & 1][place_of(l.lane & 3, l.lane >> 2) + s * 4 * LSTM_SEQUENCES];
        if (l.warp >> 1 < l.blocks)
            backward_tiles<T>(&weight[0], value, l.warp, l.blocks, m->parts[i & 1][l.rank], &arrived[i & 1], l.lane);
        if ((l.warp + 16) >> 1 < l.blocks)
            backward_tiles<T>(&weight[2], value, l.warp + 16, l.blocks, m->parts[i & 1][l.rank], &arrived[i & 1],
                              l.lane);
    }
    if (valid)
        for (int k = 0; k < 4; k++)
            l.a.grad_gates[((sequence * l.a.steps + t) * 4 + k) * l.a.hidden + l.unit] = from_float<T>(result[k]);
}
#endif

/** GROUPS of 8 sequences take turns: while the messages of one are on their way, the others compute. */
template <typename T, int GROUPS>
static __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm_backward_cluster(lstm_backward<T> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint64_t arrived[GROUPS][2];
    backward_memory *m = reinterpret_cast<backward_memory *>(memory);
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    backward_lane<T> l = {a,
                          (int)cluster_rank(),
                          (int)cluster_size(),
                          warp,
                          lane,
                          warp * 4 + (lane >> 4) * 2 + (lane >> 1 & 1),
                          (lane >> 2 & 3) * 2 + (lane & 1)};
    l.unit = l.rank * LSTM_UNITS + l.local;
    l.first = (int64_t)(blockIdx.x / l.blocks) * LSTM_SEQUENCES * GROUPS;
    l.bytes = (uint32_t)l.blocks * LSTM_THREADS * sizeof(float);
    uint32_t weight[TILES][DEPTH_BACK][4];
    backward_weights<T>(weight, a, l.rank, warp, lane);
    arrivals_init(&arrived[0][0], 2 * GROUPS, l.bytes);

    backward_carry<T> carry[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        int64_t sequence = l.first + g * LSTM_SEQUENCES + l.slot;
        bool valid = l.unit < a.hidden && sequence < a.batch;
        backward_load(&carry[g].next, a, sequence, a.steps - 1, l.unit, valid);
        carry[g].cell = valid ? a.cell[(sequence * a.steps + a.steps - 1) * a.hidden + l.unit] : 0.0f;
        carry[g].grad_cell = 0;
    }
    for (int i = 0; i < a.steps; i++)
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (g == 0 || l.first + g * LSTM_SEQUENCES < a.batch)
                backward_step<T>(l, weight, &m[g], arrived[g], &carry[g], g, i, a.steps - 1 - i);
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- the candidate ---- */

/** By groups of sequences in a cluster. */
static lstm_cluster_kernels kernels_of(const mixt__tensor *gates)
{
    if (gates->dtype == MIXT_DTYPE_BF16)
        return {{(const void *)lstm_backward_cluster<bf16, 1>, (const void *)lstm_backward_cluster<bf16, 2>}};
    return {{(const void *)lstm_backward_cluster<fp16, 1>, (const void *)lstm_backward_cluster<fp16, 2>}};
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__tensor *gates = &call->in[2];
    if (gates->dtype == MIXT_DTYPE_BF16 || gates->dtype == MIXT_DTYPE_FP16)
        return lstm_cluster_supports(kernels_of(gates), gates, &call->in[0], sizeof(backward_memory), reason);
    *reason = "only for FP16 and BF16";
    return false;
}

static mixt_status run(const mixt__call *call)
{
    lstm_backward<bf16> arguments = lstm_backward_of<bf16>(call); // pointers and sizes: the same for every format
    if (!aligned16(arguments.weight))
        return mixt__cuda_lstm_grad_plain.run(call);
    MIXT_TRY(lstm_cluster_launch(kernels_of(&call->in[2]), &call->in[2], sizeof(backward_memory), &arguments));
    return mixt__cuda_lstm_weight_run(call);
}

extern const mixt__kernel mixt__cuda_lstm_grad_cluster = {.name = "cluster",
                                                          .supports = supports,
                                                          .prepare = mixt__cuda_lstm_grad_prepare_tensor,
                                                          .run = run,
                                                          .release = mixt__cuda_lstm_grad_release};
