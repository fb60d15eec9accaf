/* The LSTM recurrence in FP16 and BF16 for Hopper: a cluster of up to 16 blocks keeps all of weight_hh in registers and
 * takes 8 sequences through all steps in one launch.
 *
 * A block owns 32 units with their four gates: 128 rows of weight_hh, 16 rows of m16n8k16 fragments in each of 8 warps.
 * Forward, a step: product of the warp's rows with the state (8 sequences, from shared memory), gates and cell state in
 * registers (a lane has one unit of one sequence), and the new state to every block of the cluster: 8 KB come in for
 * H 512. Backward, a step: each block multiplies the gradients of its own gates with its rows, which gives an FP32 part
 * of the state's gradient for all units; parts go to their unit's block, which adds them in order: 16 KB come in.
 * No step waits for device memory: what it reads is prefetched, what it writes nobody waits for.
 */
#include "backend/cuda/recurrent/lstm_cluster.cuh"
#include "backend/cuda/recurrent/lstm_mma.cuh"

/** Rows of the warp's tile: unit 2u + p of 8 has, in row 2u + p, gate 2p, and in row 2u + p + 8, gate 2p + 1. Along the
 *  sum, lane c of 4 takes 4 neighbours of each 16, so that one 8-byte access brings what a product needs. */
template <typename T, int DEPTH>
static __device__ __forceinline__ void forward_weights(uint32_t weight[DEPTH][4], const lstm_forward<T> &a, int unit,
                                                       int pair, int c)
{
    const T *row = a.weight + ((int64_t)2 * pair * a.hidden + unit) * a.hidden;
#pragma unroll
    for (int s = 0; s < DEPTH; s++) {
        int k = 16 * s + 4 * c;
        uint2 upper = {0, 0}, lower = {0, 0};
        if (unit < a.hidden && k < a.hidden) {
            upper = *reinterpret_cast<const uint2 *>(row + k);
            lower = *reinterpret_cast<const uint2 *>(row + (int64_t)a.hidden * a.hidden + k);
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
        uint2 x = mine[s * 4 * LSTM_SEQUENCES];
        mma(part[s & 3], weight[s], x.x, x.y, T());
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = (part[0][i] + part[1][i]) + (part[2][i] + part[3][i]);
}

/** From two gates of two sequences to four gates of one: with the lane of the other pair of gates. */
[[maybe_unused]] static __device__ __forceinline__ void exchange_gates(const float sum[4], int pair, float gate[4])
{
    float other0 = __shfl_xor_sync(0xffffffffu, pair ? sum[0] : sum[1], 4);
    float other1 = __shfl_xor_sync(0xffffffffu, pair ? sum[2] : sum[3], 4);
    gate[0] = pair ? other0 : sum[0];
    gate[1] = pair ? other1 : sum[2];
    gate[2] = pair ? sum[1] : other0;
    gate[3] = pair ? sum[3] : other1;
}

/** The states of 4 neighbouring units of the lane's sequence. */
template <typename T> static __device__ __forceinline__ uint64_t gather_units(float h, int u)
{
    uint32_t mine = bits_of<T>(h), other = __shfl_xor_sync(0xffffffffu, mine, 8);
    uint32_t two = u & 1 ? other | mine << 16 : mine | other << 16, next = __shfl_xor_sync(0xffffffffu, two, 16);
    return u & 2 ? (uint64_t)two << 32 | next : (uint64_t)next << 32 | two;
}

/** What of a lane stays the same over all steps. */
template <typename T> struct forward_lane {
    lstm_forward<T> a;
    int rank, blocks, warp, lane, pair, u, slot, unit;
    int64_t first;         // sequence of the cluster
    uint32_t neighbour[4]; // blocks u, u + 4, u + 8, u + 12 of the cluster
    uint32_t bytes;        // that come in at a step
};

/** What it carries from step to step, for each group of sequences. */
template <typename T> struct forward_carry {
    T next[4];
    float cell;
};

template <typename T>
static __device__ __forceinline__ void forward_load(T x[4], const forward_lane<T> &l, int64_t sequence, int t,
                                                    bool valid)
{
    const T *from = l.a.gates_x + (valid ? (sequence * l.a.steps + t) * 4 * l.a.hidden + l.unit : 0);
#pragma unroll
    for (int i = 0; i < 4; i++)
        x[i] = from[(int64_t)i * l.a.hidden];
}

/** Into L2, by one warp: a lane for each gate of each sequence. */
template <typename T>
static __device__ __forceinline__ void forward_prefetch(const forward_lane<T> &l, int64_t first, int t)
{
    int64_t sequence = first + (l.lane & 7);
    if (l.warp == 0 && l.rank * LSTM_UNITS < l.a.hidden && sequence < l.a.batch && t < l.a.steps)
        prefetch_l2(l.a.gates_x + ((sequence * l.a.steps + t) * 4 + (l.lane >> 3)) * l.a.hidden + l.rank * LSTM_UNITS);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** One step of one group of sequences. */
template <typename T, int DEPTH>
static __device__ __forceinline__ void forward_step(const forward_lane<T> &l, const uint32_t weight[DEPTH][4],
                                                    uint64_t (*state)[DEPTH * 4 * LSTM_SEQUENCES], uint64_t arrived[2],
                                                    forward_carry<T> *carry, int group, int t)
{
    const int64_t first = l.first + group * LSTM_SEQUENCES, sequence = first + l.slot;
    const bool valid = l.unit < l.a.hidden && sequence < l.a.batch;
    float sum[4] = {}, gate[4], input[4];
    for (int i = 0; i < 4; i++)
        input[i] = to_float(carry->next[i]);
    if (t + 1 < l.a.steps)
        forward_load(carry->next, l, sequence, t + 1, valid);
    forward_prefetch(l, first, t + LSTM_AHEAD);
    if (t > 0) {
        arrivals_wait(arrived, t - 1, l.bytes);
        forward_product<T, DEPTH>(sum, weight, state[(t - 1) & 1], l.lane);
    }
    exchange_gates(sum, l.pair, gate);
    for (int i = 0; i < 4; i++)
        gate[i] = valid ? gate[i] + input[i] : 0.0f;
    lstm_gates g = gates_of(gate);
    carry->cell = fmaf(g.forget, carry->cell, g.input * g.candidate);
    float h = g.output * tanh_of(carry->cell);
    uint64_t units = gather_units<T>(h, l.u);
    if (t + 1 < l.a.steps)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (l.u + 4 * i < l.blocks)
                send(shared_address(&state[t & 1][place_of(l.rank * 8 + l.warp, l.slot)]) + l.neighbour[i],
                     shared_address(&arrived[t & 1]) + l.neighbour[i], units);
    if (valid)
        lstm_store(l.a, sequence * l.a.steps + t, l.unit, g, carry->cell, h);
}
#endif

/** GROUPS of 8 sequences take turns: while the messages of one are on their way, the others compute. */
template <typename T, int DEPTH, int GROUPS>
static __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm_forward_cluster(lstm_forward<T> a)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(16) uint64_t state[GROUPS][2][DEPTH * 4 * LSTM_SEQUENCES];
    __shared__ uint64_t arrived[GROUPS][2];
    const int lane = threadIdx.x & 31, pair = lane >> 2 & 1;
    forward_lane<T> l = {a,    (int)cluster_rank(), (int)cluster_size(),  (int)threadIdx.x >> 5, lane,
                         pair, lane >> 3,           2 * (lane & 3) + pair};
    l.unit = l.rank * LSTM_UNITS + l.warp * 4 + l.u;
    l.first = (int64_t)(blockIdx.x / l.blocks) * LSTM_SEQUENCES * GROUPS;
    l.bytes = (uint32_t)l.blocks * LSTM_UNITS * LSTM_SEQUENCES * sizeof(T);
    uint32_t weight[DEPTH][4];
    forward_weights<T, DEPTH>(weight, a, l.unit, pair, lane & 3);
    for (int i = threadIdx.x; i < GROUPS * 2 * DEPTH * 4 * LSTM_SEQUENCES; i += LSTM_THREADS)
        (&state[0][0][0])[i] = 0;
    for (int i = 0; i < 4; i++)
        l.neighbour[i] = l.u + 4 * i < l.blocks ? neighbour_offset(state, l.u + 4 * i) : 0;
    arrivals_init(&arrived[0][0], 2 * GROUPS, l.bytes);

    forward_carry<T> carry[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        int64_t sequence = l.first + g * LSTM_SEQUENCES + l.slot;
        forward_load(carry[g].next, l, sequence, 0, l.unit < a.hidden && sequence < a.batch);
        carry[g].cell = 0;
    }
    for (int t = 0; t < a.steps; t++)
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (g == 0 || l.first + g * LSTM_SEQUENCES < a.batch)
                forward_step<T, DEPTH>(l, weight, state[g], arrived[g], &carry[g], g, t);
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- the candidate ---- */

template <typename T, int GROUPS> static const void *kernel_of(int64_t hidden)
{
    if (hidden <= 128)
        return (const void *)lstm_forward_cluster<T, 8, GROUPS>;
    return hidden <= 256 ? (const void *)lstm_forward_cluster<T, 16, GROUPS>
                         : (const void *)lstm_forward_cluster<T, 32, GROUPS>;
}

/** By groups of sequences in a cluster. */
static lstm_cluster_kernels kernels_of(const mixt__tensor *gates)
{
    int64_t hidden = gates->shape.dims[2] / 4;
    if (gates->dtype == MIXT_DTYPE_BF16)
        return {{kernel_of<bf16, 1>(hidden), kernel_of<bf16, 2>(hidden)}};
    return {{kernel_of<fp16, 1>(hidden), kernel_of<fp16, 2>(hidden)}};
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__tensor *gates = &call->in[0];
    if (gates->dtype == MIXT_DTYPE_BF16 || gates->dtype == MIXT_DTYPE_FP16)
        return lstm_cluster_supports(kernels_of(gates), gates, &call->in[1], 0, reason);
    *reason = "only for FP16 and BF16";
    return false;
}

static mixt_status run(const mixt__call *call)
{
    lstm_forward<bf16> arguments = lstm_forward_of<bf16>(call); // pointers and sizes: the same for every format
    if (!aligned16(arguments.weight))
        return mixt__cuda_lstm_plain.run(call);
    return lstm_cluster_launch(kernels_of(&call->in[0]), &call->in[0], 0, &arguments);
}

extern const mixt__kernel mixt__cuda_lstm_cluster = {
    .name = "cluster", .supports = supports, .prepare = mixt__cuda_prepare_tensor, .run = run};
