/* The recurrences in FP32 for Hopper: the clusters of cluster.cu with fused multiply-adds.
 *
 * A block has 32 units; an LSTM's 128 rows of weight_hh are 256 KB for H 512: half of them in registers, half in shared
 * memory. Forward: a lane has all gates of one unit and its warp an eighth of the sum, for 8 sequences; the eighths
 * meet in shared memory, where warp s takes sequence s on. Backward: a lane has two units of the state's gradient and
 * the whole sum over the block's gates; parts go to the blocks that own the units. States and gradients are read as
 * broadcasts, up to 16 bytes, 4 (forward) and 2 multiply-adds a gate and lane each: for an LSTM the arithmetic bounds
 * both, 4096 cycles a step for H 512.
 */
#include "backend/cuda/recurrent/cluster.cuh"

static constexpr int WARPS = CLUSTER_THREADS / 32;
static constexpr int HELD = 8, QUADS = 16; // of 4 places along the sum: in registers, and in all

/** The numbers of a unit's gates: weights at one place of the sum, sums, or gradients. */
template <int GATES> struct alignas(GATES == 4 ? 16 : 4) gates_of {
    float g[GATES];
};

template <class C> using cell_gates = gates_of<C::GATES>;

template <class C> struct forward_memory {
    cell_gates<C> weight[QUADS - HELD][4][CLUSTER_THREADS];
    cell_gates<C> sums[WARPS][CLUSTER_SEQUENCES][CLUSTER_SLOTS];
    alignas(16) float state[2][CLUSTER_SEQUENCES][CLUSTER_UNITS];
    uint64_t arrived[2];
};

/** The weights of a unit at one place of the sum, which is a column of weight_hh. */
template <class C>
[[maybe_unused]] static __device__ __forceinline__ cell_gates<C> gates_at(const float *weight, int n, int unit, int k,
                                                                          bool used)
{
    cell_gates<C> r = {};
    if (used && unit < n && k < n)
#pragma unroll
        for (int i = 0; i < C::GATES; i++)
            r.g[i] = weight[((int64_t)i * n + unit) * n + k];
    return r;
}

template <int GATES>
static __device__ __forceinline__ void multiply_add(gates_of<GATES> *sum, const gates_of<GATES> &w, float x)
{
#pragma unroll
    for (int i = 0; i < GATES; i++)
        sum->g[i] = fmaf(w.g[i], x, sum->g[i]);
}

template <int GATES>
static __device__ __forceinline__ void multiply_quad(gates_of<GATES> sum[CLUSTER_SEQUENCES], const gates_of<GATES> w[4],
                                                     const float (*state)[CLUSTER_UNITS], int k)
{
#pragma unroll
    for (int s = 0; s < CLUSTER_SEQUENCES; s++) {
        float4 x = *reinterpret_cast<const float4 *>(&state[s][k]);
        multiply_add(&sum[s], w[0], x.x);
        multiply_add(&sum[s], w[1], x.y);
        multiply_add(&sum[s], w[2], x.z);
        multiply_add(&sum[s], w[3], x.w);
    }
}

/** Products of all gates for the unit of this lane and the sequence of this warp. */
template <class C>
[[maybe_unused]] static __device__ __forceinline__ cell_gates<C>
forward_product(forward_memory<C> *m, const cell_gates<C> weight[HELD][4], int step, int k0, int quads)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    cell_gates<C> sum[CLUSTER_SEQUENCES] = {}, total = {};
#pragma unroll
    for (int j = 0; j < HELD; j++)
        if (j < quads)
            multiply_quad(sum, weight[j], m->state[step & 1], k0 + 4 * j);
#pragma unroll 2
    for (int j = HELD; j < quads; j++) {
        cell_gates<C> w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = m->weight[j - HELD][i][threadIdx.x];
        multiply_quad(sum, w, m->state[step & 1], k0 + 4 * j);
    }
#pragma unroll
    for (int s = 0; s < CLUSTER_SEQUENCES; s++)
        m->sums[warp][s][lane] = sum[s];
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        cell_gates<C> x = m->sums[w][warp][lane];
#pragma unroll
        for (int i = 0; i < C::GATES; i++)
            total.g[i] += x.g[i];
    }
    __syncthreads(); // before the next step's sums
    return total;
}

/** Into registers and shared memory; and no state yet. */
template <class C>
[[maybe_unused]] static __device__ __forceinline__ void
forward_begin(forward_memory<C> *m, cell_gates<C> weight[HELD][4], const recurrent_forward<float> &a, int unit, int k0,
              int quads)
{
#pragma unroll
    for (int j = 0; j < HELD; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            weight[j][i] = gates_at<C>(a.weight, a.hidden, unit, k0 + 4 * j + i, j < quads);
    for (int j = HELD; j < quads; j++)
        for (int i = 0; i < 4; i++)
            m->weight[j - HELD][i][threadIdx.x] = gates_at<C>(a.weight, a.hidden, unit, k0 + 4 * j + i, true);
    for (int i = threadIdx.x; i < 2 * CLUSTER_SEQUENCES * CLUSTER_UNITS; i += CLUSTER_THREADS)
        (&m->state[0][0][0])[i] = 0;
}

template <class C>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1) forward_cluster_fp32(recurrent_forward<float> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    forward_memory<C> *m = reinterpret_cast<forward_memory<C> *>(memory);
    const int rank = (int)cluster_rank(), blocks = (int)cluster_size(), warp = threadIdx.x >> 5,
              lane = threadIdx.x & 31;
    const int n = a.hidden, unit = rank * CLUSTER_SLOTS + lane, quads = (n / WARPS + 3) / 4, k0 = warp * quads * 4;
    const int64_t sequence = (int64_t)(blockIdx.x / blocks) * CLUSTER_SEQUENCES + warp;
    const bool valid = unit < n && sequence < a.batch;
    const uint32_t bytes = (uint32_t)blocks * CLUSTER_THREADS * sizeof(float);
    cell_gates<C> weight[HELD][4];
    forward_begin<C>(m, weight, a, unit, k0, quads);
    arrivals_init(m->arrived, 2, bytes);

    const float bias = C::APART && valid ? a.bias[unit] : 0.0f;
    float carry = 0;
    for (int t = 0; t < a.steps; t++) {
        const int64_t step = sequence * a.steps + t;
        float x[SUMS], sum[SUMS] = {}, saved[SUMS], h;
        slot_load<C>(x, a, valid ? step : t, valid ? unit : 0);
        slot_start<C>(sum, x, bias);
        if (t > 0) {
            arrivals_wait(m->arrived, t - 1, bytes);
            cell_gates<C> product = forward_product<C>(m, weight, t - 1, k0, quads);
#pragma unroll
            for (int i = 0; i < C::GATES; i++)
                sum[i] += product.g[i];
        }
        C::advance(sum, &carry, saved, &h, a.relu);
        h = valid ? h : 0.0f;
        if (t + 1 < a.steps)
            for (int i = 0; i < blocks; i++) {
                uint32_t to = neighbour_offset(memory, (rank + i) % blocks);
                send(shared_address(&m->state[t & 1][warp][unit]) + to, shared_address(&m->arrived[t & 1]) + to, h);
            }
        if (valid)
            slot_store<C>(a, step, unit, saved, carry, &h);
    }
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- backward ---- */

static constexpr int HELD_BACK =
    16; // units of the sum, all gates each, whose weights are in registers; the other 16 in memory

template <class C> struct backward_memory {
    cell_gates<C> weight[CLUSTER_SLOTS - HELD_BACK][2][CLUSTER_THREADS];
    cell_gates<C> flow[2][CLUSTER_SLOTS][CLUSTER_SEQUENCES];     // gradients of the gates' sums
    alignas(16) float parts[2][CLUSTER_BLOCKS][CLUSTER_THREADS]; // from each block, this one's units and sequences
    uint64_t arrived[2];
};

template <int GATES>
[[maybe_unused]] static __device__ __forceinline__ void
multiply_unit(float sum[2][CLUSTER_SEQUENCES], const gates_of<GATES> w[2], const gates_of<GATES> *flow)
{
#pragma unroll
    for (int s = 0; s < CLUSTER_SEQUENCES; s++) {
        gates_of<GATES> x = flow[s];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int k = 0; k < GATES; k++)
                sum[i][s] = fmaf(w[i].g[k], x.g[k], sum[i][s]);
    }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Two units of the state's gradient for each lane, to the blocks that own them. */
template <class C>
static __device__ __forceinline__ void backward_product(backward_memory<C> *m, const cell_gates<C> weight[HELD_BACK][2],
                                                        int step, int rank, int blocks)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const cell_gates<C>(*flow)[CLUSTER_SEQUENCES] = m->flow[step & 1];
    float sum[2][CLUSTER_SEQUENCES] = {};
    if (warp >= blocks)
        return;
#pragma unroll
    for (int u = 0; u < HELD_BACK; u++)
        multiply_unit(sum, weight[u], flow[u]);
#pragma unroll 4
    for (int u = HELD_BACK; u < CLUSTER_SLOTS; u++) {
        cell_gates<C> w[2] = {m->weight[u - HELD_BACK][0][threadIdx.x], m->weight[u - HELD_BACK][1][threadIdx.x]};
        multiply_unit(sum, w, flow[u]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int owner = i * WARPS + warp;
        if (owner >= blocks)
            return;
        uint32_t to = neighbour_offset(m, owner), barrier = shared_address(&m->arrived[step & 1]) + to;
        send(shared_address(&m->parts[step & 1][rank][lane * 4]) + to, barrier, &sum[i][0]);
        send(shared_address(&m->parts[step & 1][rank][128 + lane * 4]) + to, barrier, &sum[i][4]);
    }
}
#endif

template <class C>
static __global__ void __launch_bounds__(CLUSTER_THREADS, 1) backward_cluster_fp32(recurrent_backward<float> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    backward_memory<C> *m = reinterpret_cast<backward_memory<C> *>(memory);
    const int rank = (int)cluster_rank(), blocks = (int)cluster_size(), warp = threadIdx.x >> 5,
              lane = threadIdx.x & 31;
    const int local = threadIdx.x >> 2 & 31, slot = (threadIdx.x >> 7) * 4 + (threadIdx.x & 3);
    const int n = a.hidden, unit0 = rank * CLUSTER_SLOTS, unit = unit0 + local;
    const int64_t first = (int64_t)(blockIdx.x / blocks) * CLUSTER_SEQUENCES, sequence = first + slot;
    const bool valid = unit < n && sequence < a.batch;
    const uint32_t bytes = (uint32_t)blocks * CLUSTER_THREADS * sizeof(float);
    cell_gates<C> weight[HELD_BACK][2];
#pragma unroll
    for (int u = 0; u < HELD_BACK; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int column = (i * WARPS + warp) * CLUSTER_SLOTS + lane;
            weight[u][i] = gates_at<C>(a.weight, n, unit0 + u, column, true);
            m->weight[u][i][threadIdx.x] = gates_at<C>(a.weight, n, unit0 + HELD_BACK + u, column, true);
        }
    arrivals_init(m->arrived, 2, bytes);

    int64_t step = sequence * a.steps + a.steps - 1;
    float after = C::CARRY && valid ? a.carry[step * n + unit] : 0.0f, flow = 0;
    slot_inputs<C, float> next;
    backward_load(&next, a, sequence, a.steps - 1, unit, valid);
    for (int i = 0, t = a.steps - 1; t >= 0; i++, t--, step--) {
        slot_inputs<C, float> now = next;
        backward_prefetch<C>(a, first, t - CLUSTER_AHEAD, unit0);
        float sum[4] = {now.grad_dst[0], 0, 0, 0}, result[SUMS];
        if (i > 0) {
            arrivals_wait(m->arrived, i - 1, bytes);
#pragma unroll
            for (int b = 0; b < CLUSTER_BLOCKS; b++)
                if (b < blocks)
                    sum[b & 3] += m->parts[(i - 1) & 1][b][threadIdx.x];
        }
        float grad = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        slot_back(now, after, &grad, &flow, result, a.relu);
        after = now.before;
        if (t > 0) {
            cell_gates<C> gates;
#pragma unroll
            for (int k = 0; k < C::GATES; k++)
                gates.g[k] = valid ? result[k] : 0.0f;
            m->flow[i & 1][local][slot] = gates;
            __syncthreads();
            backward_load(&next, a, sequence, t - 1, unit, valid);
            backward_product<C>(m, weight, i, rank, blocks);
        }
        if (valid)
            slot_grad_store<C>(a, step, unit, result);
    }
    cluster_sync();
#endif
}

/* ---- the candidates ---- */

template <class C> static cluster_kernels forward_kernels()
{
    return {{(const void *)forward_cluster_fp32<C>, NULL}};
}

template <class C> static cluster_kernels backward_kernels()
{
    return {{(const void *)backward_cluster_fp32<C>, NULL}};
}

template <class C> static cluster_problem problem_of(const mixt__call *call)
{
    return {mixt__recurrent_sizes_of(call), 1, sizeof(forward_memory<C>), "an FP32 recurrence in a cluster"};
}

template <class C> static cluster_problem grad_problem_of(const mixt__call *call)
{
    return {mixt__recurrent_grad_sizes(call), 1, sizeof(backward_memory<C>),
            "the gradient of an FP32 recurrence in a cluster"};
}

template <class C> static bool supports(const mixt__call *call, const char **reason)
{
    cluster_problem p = problem_of<C>(call);
    *reason = "only for FP32";
    return call->in[0].dtype == MIXT_DTYPE_FP32 &&
           cluster_supports(mixt__cuda_of(call), forward_kernels<C>(), &p, &call->in[0], &call->in[1], reason);
}

template <class C> static bool grad_supports(const mixt__call *call, const char **reason)
{
    cluster_problem p = grad_problem_of<C>(call);
    *reason = "only for FP32";
    return call->in[1].dtype == MIXT_DTYPE_FP32 &&
           cluster_supports(mixt__cuda_of(call), backward_kernels<C>(), &p, &call->in[1], &call->in[0], reason);
}

template <class C> static mixt_status run(const mixt__call *call)
{
    recurrent_forward<float> arguments = forward_of<C, float>(call);
    cluster_problem p = problem_of<C>(call);
    return cluster_launch(mixt__cuda_of(call), forward_kernels<C>(), &p, &arguments);
}

template <class C> static mixt_status grad_run(const mixt__call *call)
{
    recurrent_backward<float> arguments = backward_of<C, float>(call);
    cluster_problem p = grad_problem_of<C>(call);
    MIXT_TRY(cluster_launch(mixt__cuda_of(call), backward_kernels<C>(), &p, &arguments));
    return mixt__cuda_recurrent_weight_run(call);
}

#define CANDIDATES(op, cell)                                                                                           \
    extern "C" const mixt__kernel mixt__cuda_##op##_cluster_fp32 = {                                                   \
        .name = "cluster_fp32", .supports = supports<cell>, .run = run<cell>};                                         \
    extern "C" const mixt__kernel mixt__cuda_##op##_grad_cluster_fp32 = {.name = "cluster_fp32",                       \
                                                                         .supports = grad_supports<cell>,              \
                                                                         .prepare = mixt__cuda_recurrent_grad_prepare, \
                                                                         .run = grad_run<cell>,                        \
                                                                         .release = mixt__cuda_recurrent_grad_release}
CANDIDATES(lstm, lstm_cell);
CANDIDATES(gru, gru_cell);
CANDIDATES(rnn, rnn_cell<1>);
#undef CANDIDATES
