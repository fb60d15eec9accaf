/* The recurrences in FP16 and BF16 for Hopper: a cluster of up to 16 blocks keeps all of weight_hh in registers and
 * takes 8 sequences through all steps in one launch.
 *
 * A block owns 32 slots with their four sums: 128 rows of weight_hh, 16 rows of m16n8k16 fragments in each of 8 warps;
 * a GRU's fourth rows are zeros. A step: product of the warp's rows with the state (8 sequences, from shared memory),
 * gates and carry in registers (a lane has one slot of one sequence), and the new state to every block of the cluster:
 * 8 KB come in for H 512. No step waits for device memory: what it reads is prefetched, what it writes nobody waits
 * for.
 */
#include "backend/cuda/recurrent/cluster.cuh"
#include "backend/cuda/recurrent/mma.cuh"

/** Rows of the warp's tile: slot 2u + p of 8 has, in row 2u + p, sum 2p, and in row 2u + p + 8, sum 2p + 1. Along the
 *  product, lane c of 4 takes 4 neighbours of each 16, so that one 8-byte access brings what a product needs. */
template <class C, typename T, int DEPTH>
static __device__ __forceinline__ void forward_weights(uint32_t weight[DEPTH][4], const recurrent_forward<T> &a,
                                                       int slot, int pair, int c)
{
    const int64_t n = a.hidden;
    const bool valid = slot * C::WIDTH < n;
    const T *upper_row = a.weight + row_of<C>(2 * pair, slot, n) * n;
    const T *lower_row = a.weight + row_of<C>(2 * pair + 1, slot, n) * n;
#pragma unroll
    for (int s = 0; s < DEPTH; s++) {
        int k = 16 * s + 4 * c;
        uint2 upper = {0, 0}, lower = {0, 0};
        if (valid && k < n) {
            upper = *reinterpret_cast<const uint2 *>(upper_row + k);
            if (SLOT_ROWS<C> == SUMS || pair == 0)
                lower = *reinterpret_cast<const uint2 *>(lower_row + k);
        }
        weight[s][0] = upper.x;
        weight[s][1] = lower.x;
        weight[s][2] = upper.y;
        weight[s][3] = lower.y;
    }
}

template <typename T, int DEPTH>
[[maybe_unused]] static __device__ __forceinline__ void forward_product(float sum[4], const uint32_t weight[DEPTH][4],
                                                                        const uint64_t *state, int lane)
{
    float part[4][4] = {}; // four chains: a product's latency is several times its share of the pipe
    const uint2 *mine = reinterpret_cast<const uint2 *>(state) + place_of(lane & 3, lane >> 2);
#pragma unroll
    for (int s = 0; s < DEPTH; s++) {
        uint2 x = mine[s * 4 * CLUSTER_SEQUENCES];
        mma(part[s & 3], weight[s], x.x, x.y, T());
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = (part[0][i] + part[1][i]) + (part[2][i] + part[3][i]);
}

/** From two sums of two sequences to four sums of one: with the lane of the other pair of sums. */
[[maybe_unused]] static __device__ __forceinline__ void exchange_sums(const float sum[4], int pair, float all[4])
{
    float other0 = __shfl_xor_sync(0xffffffffu, pair ? sum[0] : sum[1], 4);
    float other1 = __shfl_xor_sync(0xffffffffu, pair ? sum[2] : sum[3], 4);
    all[0] = pair ? other0 : sum[0];
    all[1] = pair ? other1 : sum[2];
    all[2] = pair ? sum[1] : other0;
    all[3] = pair ? sum[3] : other1;
}

/** The states of 4 neighbouring units of the lane's sequence: of four lanes, or a lane's own. */
template <class C, typename T> static __device__ __forceinline__ uint64_t gather_units(const float *h, int u)
{
    if constexpr (C::WIDTH == 4) {
        uint32_t low = bits_of<T>(h[0]) | bits_of<T>(h[1]) << 16, high = bits_of<T>(h[2]) | bits_of<T>(h[3]) << 16;
        return (uint64_t)high << 32 | low;
    } else {
        uint32_t mine = bits_of<T>(h[0]), other = __shfl_xor_sync(0xffffffffu, mine, 8);
        uint32_t two = u & 1 ? other | mine << 16 : mine | other << 16, next = __shfl_xor_sync(0xffffffffu, two, 16);
        return u & 2 ? (uint64_t)two << 32 | next : (uint64_t)next << 32 | two;
    }
}

/** What of a lane stays the same over all steps. */
template <typename T> struct forward_lane {
    recurrent_forward<T> a;
    int rank, blocks, warp, lane, pair, u, sequence, slot;
    int64_t first;         // sequence of the cluster
    float bias;            // of the slot's third sum
    uint32_t neighbour[4]; // blocks that it sends to: the lanes that have the same units share them out
    uint32_t bytes;        // that come in at a step
};

/** What it carries from step to step, for each group of sequences. */
template <typename T> struct forward_carry {
    T next[SUMS];
    float carry;
};

/** Block i of those that a lane sends to. */
template <class C> static __device__ __forceinline__ int target_of(int i, int u)
{
    return C::WIDTH == 4 ? i : u + 4 * i;
}

template <class C, typename T>
static __device__ __forceinline__ void forward_load(T x[SUMS], const forward_lane<T> &l, int64_t sequence, int t,
                                                    bool valid)
{
    slot_load<C>(x, l.a, valid ? sequence * l.a.steps + t : 0, valid ? l.slot : 0);
}

/** Into L2, by one warp: a lane for each 64 bytes of each sequence. */
template <class C, typename T>
static __device__ __forceinline__ void forward_prefetch(const forward_lane<T> &l, int64_t first, int t)
{
    int64_t sequence = first + (l.lane & 7);
    int part = l.lane >> 3, unit = l.rank * CLUSTER_SLOTS * C::WIDTH + (C::GATES == 1 ? part * CLUSTER_SLOTS : 0);
    if (l.warp == 0 && part < SLOT_ROWS<C> && unit < l.a.hidden && sequence < l.a.batch && t < l.a.steps)
        prefetch_l2(l.a.gates_x + ((sequence * l.a.steps + t) * C::GATES + (C::GATES == 1 ? 0 : part)) * l.a.hidden +
                    unit);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** One step of one group of sequences. */
template <class C, typename T, int DEPTH>
static __device__ __forceinline__ void forward_step(const forward_lane<T> &l, const uint32_t weight[DEPTH][4],
                                                    uint64_t (*state)[DEPTH * 4 * CLUSTER_SEQUENCES],
                                                    uint64_t arrived[2], forward_carry<T> *carry, int group, int t)
{
    const int64_t first = l.first + group * CLUSTER_SEQUENCES, sequence = first + l.sequence;
    const bool valid = l.slot * C::WIDTH < l.a.hidden && sequence < l.a.batch;
    float product[4] = {}, sum[SUMS], start[SUMS] = {}, saved[SUMS], h[C::WIDTH];
    slot_start<C>(start, carry->next, l.bias);
    if (t + 1 < l.a.steps)
        forward_load<C>(carry->next, l, sequence, t + 1, valid);
    forward_prefetch<C>(l, first, t + CLUSTER_AHEAD);
    if (t > 0) {
        arrivals_wait(arrived, t - 1, l.bytes);
        forward_product<T, DEPTH>(product, weight, state[(t - 1) & 1], l.lane);
    }
    exchange_sums(product, l.pair, sum);
    for (int i = 0; i < SUMS; i++)
        sum[i] = valid ? sum[i] + start[i] : 0.0f;
    C::advance(sum, &carry->carry, saved, h, l.a.relu);
    uint64_t units = gather_units<C, T>(h, l.u);
    if (t + 1 < l.a.steps)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (target_of<C>(i, l.u) < l.blocks)
                send(shared_address(&state[t & 1][place_of(C::WIDTH == 4 ? l.slot : l.rank * 8 + l.warp, l.sequence)]) +
                         l.neighbour[i],
                     shared_address(&arrived[t & 1]) + l.neighbour[i], units);
    if (valid)
        slot_store<C>(l.a, sequence * l.a.steps + t, l.slot, saved, carry->carry, h);
}
#endif

/** GROUPS of 8 sequences take turns: while the messages of one are on their way, the others compute. */
template <class C, typename T, int DEPTH, int GROUPS>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1) forward_cluster(recurrent_forward<T> a)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(16) uint64_t state[GROUPS][2][DEPTH * 4 * CLUSTER_SEQUENCES];
    __shared__ uint64_t arrived[GROUPS][2];
    const int lane = threadIdx.x & 31, pair = lane >> 2 & 1;
    forward_lane<T> l = {a,    (int)cluster_rank(), (int)cluster_size(),  (int)threadIdx.x >> 5, lane,
                         pair, lane >> 3,           2 * (lane & 3) + pair};
    l.slot = l.rank * CLUSTER_SLOTS + l.warp * 4 + l.u;
    l.first = (int64_t)(blockIdx.x / l.blocks) * CLUSTER_SEQUENCES * GROUPS;
    l.bias = C::APART && l.slot < a.hidden ? a.bias[l.slot] : 0.0f;
    l.bytes = (uint32_t)l.blocks * CLUSTER_SLOTS * C::WIDTH * CLUSTER_SEQUENCES * sizeof(T);
    uint32_t weight[DEPTH][4];
    forward_weights<C, T, DEPTH>(weight, a, l.slot, pair, lane & 3);
    for (int i = threadIdx.x; i < GROUPS * 2 * DEPTH * 4 * CLUSTER_SEQUENCES; i += CLUSTER_THREADS)
        (&state[0][0][0])[i] = 0;
    for (int i = 0; i < 4; i++)
        l.neighbour[i] = target_of<C>(i, l.u) < l.blocks ? neighbour_offset(state, target_of<C>(i, l.u)) : 0;
    arrivals_init(&arrived[0][0], 2 * GROUPS, l.bytes);

    forward_carry<T> carry[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        int64_t sequence = l.first + g * CLUSTER_SEQUENCES + l.sequence;
        forward_load<C>(carry[g].next, l, sequence, 0, l.slot * C::WIDTH < a.hidden && sequence < a.batch);
        carry[g].carry = 0;
    }
    for (int t = 0; t < a.steps; t++)
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (g == 0 || l.first + g * CLUSTER_SEQUENCES < a.batch)
                forward_step<C, T, DEPTH>(l, weight, state[g], arrived[g], &carry[g], g, t);
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- the candidates ---- */

template <class C, typename T, int GROUPS> static const void *kernel_of(int64_t hidden)
{
    if (hidden > 256)
        return (const void *)forward_cluster<C, T, 32, GROUPS>;
    if (hidden > 128 || C::WIDTH == 4) // the least cluster has two blocks: 256 units of a plain layer
        return (const void *)forward_cluster<C, T, 16, GROUPS>;
    return (const void *)forward_cluster < C, T, C::WIDTH == 4 ? 16 : 8, GROUPS > ;
}

/** By groups of sequences in a cluster. */
template <class C> static cluster_kernels kernels_of(const mixt__call *call)
{
    int64_t hidden = call->in[1].shape.dims[1];
    if (call->in[0].dtype == MIXT_DTYPE_BF16)
        return {{kernel_of<C, bf16, 1>(hidden), kernel_of<C, bf16, 2>(hidden)}};
    return {{kernel_of<C, fp16, 1>(hidden), kernel_of<C, fp16, 2>(hidden)}};
}

template <class C> static cluster_problem problem_of(const mixt__call *call)
{
    return {mixt__recurrent_sizes_of(call), C::WIDTH, 0, "a recurrence in a cluster"};
}

template <class C> static bool supports(const mixt__call *call, const char **reason)
{
    mixt_dtype dtype = call->in[0].dtype;
    cluster_problem p = problem_of<C>(call);
    if (dtype == MIXT_DTYPE_BF16 || dtype == MIXT_DTYPE_FP16)
        return cluster_supports(mixt__cuda_of(call), kernels_of<C>(call), &p, &call->in[0], &call->in[1], reason);
    *reason = "only for FP16 and BF16";
    return false;
}

template <class C> static mixt_status run(const mixt__call *call, const mixt__kernel *plain)
{
    recurrent_forward<bf16> arguments = forward_of<C, bf16>(call); // pointers and sizes: the same for every format
    cluster_problem p = problem_of<C>(call);
    if (!aligned16(arguments.weight))
        return plain->run(call);
    return cluster_launch(mixt__cuda_of(call), kernels_of<C>(call), &p, &arguments);
}

#define CANDIDATE(op, cell)                                                                                            \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return run<cell>(call, &mixt__cuda_##op##_plain);                                                              \
    }                                                                                                                  \
    extern "C" const mixt__kernel mixt__cuda_##op##_cluster = {                                                        \
        .name = "cluster", .supports = supports<cell>, .prepare = mixt__cuda_prepare_tensor, .run = op##_run}
CANDIDATE(lstm, lstm_cell);
CANDIDATE(gru, gru_cell);
CANDIDATE(rnn, rnn_cell<4>);
#undef CANDIDATE
