/* The recurrences' gradients through time in FP16 and BF16 for Hopper: the clusters of cluster.cu, backward.
 *
 * A step: a lane has one slot of one sequence and makes the gradients of its four sums; the block multiplies those of
 * its 32 slots with its 128 rows of weight_hh (registers, four tiles of 16 columns in each of 8 warps), which gives an
 * FP32 part of the state's gradient for all units; the parts go to the blocks that own the units and are added there in
 * the order of blocks. 16 KB come in at a step for H 512 and 8 sequences.
 */
#include "backend/cuda/recurrent/cluster.cuh"
#include "backend/cuda/recurrent/mma.cuh"

enum { TILES = 4, DEPTH_BACK = 8, TILE_FLOATS = 128 };

/** Tile rows q and q + 8 are units 2q and 2q + 1 of its 16; along the product, lane c of 4 takes the four sums of slot
 *  4s + c of this block. Tile i of a warp is tile 8i + warp of the state. */
template <class C, typename T>
static __device__ __forceinline__ void backward_weights(uint32_t weight[TILES][DEPTH_BACK][4],
                                                        const recurrent_backward<T> &a, int rank, int warp, int lane)
{
    const int n = a.hidden;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int s = 0; s < DEPTH_BACK; s++) {
            int column = (8 * i + warp) * 16 + 2 * (lane >> 2), slot = rank * CLUSTER_SLOTS + 4 * s + (lane & 3);
            uint32_t two[SUMS] = {};
            for (int g = 0; g < SLOT_ROWS<C> && slot * C::WIDTH < n && column < n; g++)
                two[g] = *reinterpret_cast<const uint32_t *>(a.weight + row_of<C>(g, slot, n) * n + column);
            weight[i][s][0] = __byte_perm(two[0], two[1], 0x5410);
            weight[i][s][1] = __byte_perm(two[0], two[1], 0x7632);
            weight[i][s][2] = __byte_perm(two[2], two[3], 0x5410);
            weight[i][s][3] = __byte_perm(two[2], two[3], 0x7632);
        }
}

/** Tiles of the state's gradient that one block owns. */
template <class C> static constexpr int OWN_TILES = CLUSTER_SLOTS *C::WIDTH / 16;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Two tiles of the warp: their part of the state's gradient, to the blocks that own their units. */
template <class C, typename T>
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
        if (tile / OWN_TILES<C> < blocks) {
            uint32_t to = neighbour_offset(parts, tile / OWN_TILES<C>);
            send(shared_address(parts + tile % OWN_TILES<C> * TILE_FLOATS + lane * 4) + to,
                 shared_address(barrier) + to, sum[i]);
        }
}
#endif

/** What of a lane stays the same over all steps. */
template <typename T> struct backward_lane {
    recurrent_backward<T> a;
    int rank, blocks, warp, lane, local, sequence, slot;
    int64_t first;  // sequence of the cluster
    uint32_t bytes; // that come in at a step
};

/** Which slot and sequence of the block a lane has: one that its own part of a tile brings, or for four units one
 *  whose parts it can read from 32 different banks (see parts_sum). */
template <class C, typename T> static __device__ __forceinline__ void lane_place(backward_lane<T> *l)
{
    if (C::WIDTH == 4) {
        l->local = l->warp * 4 + (l->lane >> 3);
        l->sequence = l->lane & 7;
    } else {
        l->local = l->warp * 4 + (l->lane >> 4) * 2 + (l->lane >> 1 & 1);
        l->sequence = (l->lane >> 2 & 3) * 2 + (l->lane & 1);
    }
}

/** What it carries from step to step, for each group of sequences. */
template <class C, typename T> struct backward_carry {
    slot_inputs<C, T> next;
    float after, flow;
};

/** Of one group of sequences. */
struct backward_memory {
    float parts[2][CLUSTER_BLOCKS * CLUSTER_THREADS];    // from each block, this one's units and sequences
    uint64_t flow[2][CLUSTER_SLOTS * CLUSTER_SEQUENCES]; // the four sums' gradients of each slot
};

/** Adds what the blocks sent for a slot's units to their gradients.
 *
 *  Of four neighbouring units a lane reads two rows of a tile's two pairs, 0, 2, 16 and 18 floats from the first; slots
 *  of a warp lie 32 floats apart, so each begins with another of the four. */
template <class C>
[[maybe_unused]] static __device__ __forceinline__ void parts_sum(float grad[C::WIDTH], const float *parts, int blocks,
                                                                  int lane)
{
    if constexpr (C::WIDTH == 1) {
        float sum[4] = {grad[0], 0, 0, 0};
#pragma unroll
        for (int b = 0; b < CLUSTER_BLOCKS; b++)
            if (b < blocks)
                sum[b & 3] += parts[b * CLUSTER_THREADS + threadIdx.x];
        grad[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    } else {
        const int turn = lane >> 3, tile = threadIdx.x >> 5;
        const float *mine = parts + tile * TILE_FLOATS + turn * 32 + (lane >> 1 & 3) * 4 + (lane & 1);
        float sum[4] = {}, half[4];
#pragma unroll
        for (int b = 0; b < CLUSTER_BLOCKS / C::WIDTH; b++)
            if (b < blocks)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int unit = (i + turn) & 3;
                    sum[i] += mine[b * C::WIDTH * CLUSTER_THREADS + (unit & 1) * 2 + (unit >> 1) * 16];
                }
#pragma unroll
        for (int i = 0; i < 4; i++) // back in their places: sum[i] is of unit i + turn
            half[i] = turn & 1 ? sum[(i + 3) & 3] : sum[i];
#pragma unroll
        for (int i = 0; i < 4; i++)
            grad[i] += turn & 2 ? half[(i + 2) & 3] : half[i];
    }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Step i, at time t, of one group of sequences. */
template <class C, typename T>
static __device__ __forceinline__ void
backward_step(const backward_lane<T> &l, const uint32_t weight[TILES][DEPTH_BACK][4], backward_memory *m,
              uint64_t arrived[2], backward_carry<C, T> *carry, int group, int i, int t)
{
    const int64_t first = l.first + group * CLUSTER_SEQUENCES, sequence = first + l.sequence;
    const bool valid = l.slot * C::WIDTH < l.a.hidden && sequence < l.a.batch;
    const slot_inputs<C, T> now = carry->next;
    float *own = m->parts[i & 1] + l.rank * C::WIDTH * CLUSTER_THREADS;
    if (t > 0)
        backward_load(&carry->next, l.a, sequence, t - 1, l.slot, valid);
    backward_prefetch<C>(l.a, first, t - CLUSTER_AHEAD, l.rank * CLUSTER_SLOTS);
    float grad[C::WIDTH], result[SUMS];
#pragma unroll
    for (int k = 0; k < C::WIDTH; k++)
        grad[k] = to_float(now.grad_dst[k]);
    if (i > 0) {
        arrivals_wait(arrived, i - 1, l.bytes);
        parts_sum<C>(grad, m->parts[(i - 1) & 1], l.blocks, l.lane);
    }
    slot_back(now, carry->after, grad, &carry->flow, result, l.a.relu);
    carry->after = now.before;
    uint32_t two[2] = {bits_of<T>(result[0]) | bits_of<T>(result[1]) << 16,
                       bits_of<T>(result[2]) | (C::APART ? 0 : bits_of<T>(result[3]) << 16)};
    if (t > 0) {
        m->flow[i & 1][place_of(l.local, l.sequence)] = valid ? (uint64_t)two[1] << 32 | two[0] : 0;
        __syncthreads();
        uint64_t value[DEPTH_BACK];
#pragma unroll
        for (int s = 0; s < DEPTH_BACK; s++)
            value[s] = m->flow[i & 1][place_of(l.lane & 3, l.lane >> 2) + s * 4 * CLUSTER_SEQUENCES];
        if (l.warp / OWN_TILES<C> < l.blocks)
            backward_tiles<C, T>(&weight[0], value, l.warp, l.blocks, own, &arrived[i & 1], l.lane);
        if ((l.warp + 16) / OWN_TILES<C> < l.blocks)
            backward_tiles<C, T>(&weight[2], value, l.warp + 16, l.blocks, own, &arrived[i & 1], l.lane);
    }
    if (valid)
        slot_grad_store<C>(l.a, sequence * l.a.steps + t, l.slot, result);
}
#endif

/** GROUPS of 8 sequences take turns: while the messages of one are on their way, the others compute. */
template <class C, typename T, int GROUPS>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1) backward_cluster(recurrent_backward<T> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ uint64_t arrived[GROUPS][2];
    backward_memory *m = reinterpret_cast<backward_memory *>(memory);
    backward_lane<T> l = {a, (int)cluster_rank(), (int)cluster_size(), (int)threadIdx.x >> 5, (int)threadIdx.x & 31};
    lane_place<C>(&l);
    l.slot = l.rank * CLUSTER_SLOTS + l.local;
    l.first = (int64_t)(blockIdx.x / l.blocks) * CLUSTER_SEQUENCES * GROUPS;
    l.bytes = (uint32_t)l.blocks * C::WIDTH * CLUSTER_THREADS * sizeof(float);
    uint32_t weight[TILES][DEPTH_BACK][4];
    backward_weights<C, T>(weight, a, l.rank, l.warp, l.lane);
    arrivals_init(&arrived[0][0], 2 * GROUPS, l.bytes);

    backward_carry<C, T> carry[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        int64_t sequence = l.first + g * CLUSTER_SEQUENCES + l.sequence;
        bool valid = l.slot * C::WIDTH < a.hidden && sequence < a.batch;
        backward_load(&carry[g].next, a, sequence, a.steps - 1, l.slot, valid);
        carry[g].after = C::CARRY && valid ? a.carry[(sequence * a.steps + a.steps - 1) * a.hidden + l.slot] : 0.0f;
        carry[g].flow = 0;
    }
    for (int i = 0; i < a.steps; i++)
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (g == 0 || l.first + g * CLUSTER_SEQUENCES < a.batch)
                backward_step<C, T>(l, weight, &m[g], arrived[g], &carry[g], g, i, a.steps - 1 - i);
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- the candidates ---- */

/** By groups of sequences in a cluster. */
template <class C> static cluster_kernels kernels_of(const mixt__call *call)
{
    if (call->in[1].dtype == MIXT_DTYPE_BF16)
        return {{(const void *)backward_cluster<C, bf16, 1>, (const void *)backward_cluster<C, bf16, 2>}};
    return {{(const void *)backward_cluster<C, fp16, 1>, (const void *)backward_cluster<C, fp16, 2>}};
}

template <class C> static cluster_problem problem_of(const mixt__call *call)
{
    return {mixt__recurrent_grad_sizes(call), C::WIDTH, sizeof(backward_memory),
            "the gradient of a recurrence in a cluster"};
}

template <class C> static bool supports(const mixt__call *call, const char **reason)
{
    mixt_dtype dtype = call->in[1].dtype;
    cluster_problem p = problem_of<C>(call);
    if (dtype == MIXT_DTYPE_BF16 || dtype == MIXT_DTYPE_FP16)
        return cluster_supports(mixt__cuda_of(call), kernels_of<C>(call), &p, &call->in[1], &call->in[0], reason);
    *reason = "only for FP16 and BF16";
    return false;
}

template <class C> static mixt_status run(const mixt__call *call, const mixt__kernel *plain)
{
    recurrent_backward<bf16> arguments = backward_of<C, bf16>(call); // pointers and sizes: the same for every format
    cluster_problem p = problem_of<C>(call);
    if (!aligned16(arguments.weight))
        return plain->run(call);
    MIXT_TRY(cluster_launch(mixt__cuda_of(call), kernels_of<C>(call), &p, &arguments));
    return mixt__cuda_recurrent_weight_run(call);
}

#define CANDIDATE(op, cell)                                                                                            \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return run<cell>(call, &mixt__cuda_##op##_grad_plain);                                                         \
    }                                                                                                                  \
    extern "C" const mixt__kernel mixt__cuda_##op##_grad_cluster = {.name = "cluster",                                 \
                                                                    .supports = supports<cell>,                        \
                                                                    .prepare =                                         \
                                                                        mixt__cuda_recurrent_grad_prepare_tensor,      \
                                                                    .run = op##_run,                                   \
                                                                    .release = mixt__cuda_recurrent_grad_release}
CANDIDATE(lstm, lstm_cell);
CANDIDATE(gru, gru_cell);
CANDIDATE(rnn, rnn_cell<4>);
#undef CANDIDATE
