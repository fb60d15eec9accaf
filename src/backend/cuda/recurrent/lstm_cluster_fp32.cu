/* The LSTM recurrence in FP32 for Hopper: the cluster of lstm_cluster.cu with fused multiply-adds.
 *
 * A block's 128 rows of weight_hh are 256 KB for H 512: half of them in registers, half in shared memory. Forward: a
 * lane has the four gates of one unit and its warp an eighth of the sum, for 8 sequences; the eighths meet in shared
 * memory, where warp s takes sequence s on. Backward: a lane has two units of the state's gradient and the whole sum
 * over the block's gates; parts go to the blocks that own the units. States and gradients are read as broadcasts of 16
 * bytes, 16 (forward) and 8 multiply-adds a lane each: the arithmetic bounds both, 4096 cycles a step for H 512.
 */
#include "backend/cuda/recurrent/lstm_cluster.cuh"

static constexpr int WARPS = LSTM_THREADS / 32;
static constexpr int HELD = 8, QUADS = 16; // of 4 places along the sum: in registers, and in all

typedef struct forward_memory {
    float4 weight[QUADS - HELD][4][LSTM_THREADS]; // four gates at each place of the sum
    float4 sums[WARPS][LSTM_SEQUENCES][LSTM_UNITS];
    float state[2][LSTM_SEQUENCES][LSTM_UNITS * LSTM_BLOCKS];
    uint64_t arrived[2];
} forward_memory;

/** The four gates' weights of a unit at one place of the sum. */
[[maybe_unused]] static __device__ __forceinline__ float4 gates_at(const lstm_forward<float> &a, int unit, int k,
                                                                   bool used)
{
    int64_t n = a.hidden;
    const float *w = a.weight + unit * n + k;
    if (!used || unit >= n || k >= n)
        return {0, 0, 0, 0};
    return {w[0], w[n * n], w[2 * n * n], w[3 * n * n]};
}

static __device__ __forceinline__ void multiply_add(float4 *sum, const float4 &w, float x)
{
    sum->x = fmaf(w.x, x, sum->x);
    sum->y = fmaf(w.y, x, sum->y);
    sum->z = fmaf(w.z, x, sum->z);
    sum->w = fmaf(w.w, x, sum->w);
}

static __device__ __forceinline__ void multiply_quad(float4 sum[LSTM_SEQUENCES], const float4 w[4],
                                                     const float (*state)[LSTM_UNITS * LSTM_BLOCKS], int k)
{
#pragma unroll
    for (int s = 0; s < LSTM_SEQUENCES; s++) {
        float4 x = *reinterpret_cast<const float4 *>(&state[s][k]);
        multiply_add(&sum[s], w[0], x.x);
        multiply_add(&sum[s], w[1], x.y);
        multiply_add(&sum[s], w[2], x.z);
        multiply_add(&sum[s], w[3], x.w);
    }
}

/** Sums of the four gates for the unit of this lane and the sequence of this warp. */
[[maybe_unused]] static __device__ __forceinline__ float4 forward_product(forward_memory *m,
                                                                          const float4 weight[HELD][4], int step,
                                                                          int k0, int quads)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    float4 sum[LSTM_SEQUENCES] = {}, total = {0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < HELD; j++)
        if (j < quads)
            multiply_quad(sum, weight[j], m->state[step & 1], k0 + 4 * j);
#pragma unroll 2
    for (int j = HELD; j < quads; j++) {
        float4 w[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = m->weight[j - HELD][i][threadIdx.x];
        multiply_quad(sum, w, m->state[step & 1], k0 + 4 * j);
    }
#pragma unroll
    for (int s = 0; s < LSTM_SEQUENCES; s++)
        m->sums[warp][s][lane] = sum[s];
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        float4 x = m->sums[w][warp][lane];
        total = {total.x + x.x, total.y + x.y, total.z + x.z, total.w + x.w};
    }
    __syncthreads(); // before the next step's sums
    return total;
}

static __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm_forward_cluster_fp32(lstm_forward<float> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    forward_memory *m = reinterpret_cast<forward_memory *>(memory);
    const int rank = (int)cluster_rank(), blocks = (int)cluster_size(), warp = threadIdx.x >> 5,
              lane = threadIdx.x & 31;
    const int n = a.hidden, unit = rank * LSTM_UNITS + lane, quads = (n / WARPS + 3) / 4, k0 = warp * quads * 4;
    const int64_t sequence = (int64_t)(blockIdx.x / blocks) * LSTM_SEQUENCES + warp;
    const bool valid = unit < n && sequence < a.batch;
    const uint32_t bytes = (uint32_t)blocks * LSTM_THREADS * sizeof(float);
    float4 weight[HELD][4];
#pragma unroll
    for (int j = 0; j < HELD; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            weight[j][i] = gates_at(a, unit, k0 + 4 * j + i, j < quads);
    for (int j = HELD; j < quads; j++)
        for (int i = 0; i < 4; i++)
            m->weight[j - HELD][i][threadIdx.x] = gates_at(a, unit, k0 + 4 * j + i, true);
    for (int i = threadIdx.x; i < 2 * LSTM_SEQUENCES * LSTM_UNITS * LSTM_BLOCKS; i += LSTM_THREADS)
        (&m->state[0][0][0])[i] = 0;
    arrivals_init(m->arrived, 2, bytes);

    const int64_t at = sequence * a.steps * n + unit, wide = 4 * (int64_t)n;
    const float *x = a.gates_x + (valid ? 4 * sequence * a.steps * n + unit : 0);
    float *gates = a.gates + 4 * sequence * a.steps * n + unit, *dst = a.dst + at, *cells = a.cell + at, cell = 0;
    for (int t = 0; t < a.steps; t++, x += wide, gates += wide, dst += n, cells += n) {
        float input[4] = {x[0], x[n], x[2 * n], x[3 * n]};
        float4 sum = {0, 0, 0, 0};
        if (t > 0) {
            arrivals_wait(m->arrived, t - 1, bytes);
            sum = forward_product(m, weight, t - 1, k0, quads);
        }
        float gate[4] = {sum.x + input[0], sum.y + input[1], sum.z + input[2], sum.w + input[3]};
        lstm_gates g = gates_of(gate);
        cell = fmaf(g.forget, cell, g.input * g.candidate);
        float h = valid ? g.output * tanh_of(cell) : 0.0f;
        if (t + 1 < a.steps)
            for (int i = 0; i < blocks; i++) {
                uint32_t to = neighbour_offset(memory, (rank + i) % blocks);
                send(shared_address(&m->state[t & 1][warp][unit]) + to, shared_address(&m->arrived[t & 1]) + to, h);
            }
        if (valid) {
            gates[0] = g.input;
            gates[n] = g.forget;
            gates[2 * n] = g.candidate;
            gates[3 * n] = g.output;
            *cells = cell;
            *dst = h;
        }
    }
    cluster_sync(); // no block leaves while a neighbour may still address it
#endif
}

/* ---- backward ---- */

static constexpr int HELD_BACK =
    16; // units of the sum, four gates each, whose weights are in registers; the other 16 in memory

typedef struct backward_memory {
    float4 weight[LSTM_UNITS - HELD_BACK][2][LSTM_THREADS];
    float parts[2][LSTM_BLOCKS][LSTM_THREADS];  // from each block, this one's units and sequences
    float4 flow[2][LSTM_UNITS][LSTM_SEQUENCES]; // gradients of the four gates
    uint64_t arrived[2];
} backward_memory;

[[maybe_unused]] static __device__ __forceinline__ float4 gates_from(const lstm_backward<float> &a, int unit,
                                                                     int column)
{
    int64_t n = a.hidden;
    const float *w = a.weight + unit * n + column;
    if (unit >= n || column >= n)
        return {0, 0, 0, 0};
    return {w[0], w[n * n], w[2 * n * n], w[3 * n * n]};
}

[[maybe_unused]] static __device__ __forceinline__ void multiply_unit(float sum[2][LSTM_SEQUENCES], const float4 w[2],
                                                                      const float4 *flow)
{
#pragma unroll
    for (int s = 0; s < LSTM_SEQUENCES; s++) {
        float4 x = flow[s];
#pragma unroll
        for (int i = 0; i < 2; i++)
            sum[i][s] = fmaf(w[i].w, x.w, fmaf(w[i].z, x.z, fmaf(w[i].y, x.y, fmaf(w[i].x, x.x, sum[i][s]))));
    }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/** Two units of the state's gradient for each lane, to the blocks that own them. */
static __device__ __forceinline__ void backward_product(backward_memory *m, const float4 weight[HELD_BACK][2], int step,
                                                        int rank, int blocks)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const float4(*flow)[LSTM_SEQUENCES] = m->flow[step & 1];
    float sum[2][LSTM_SEQUENCES] = {};
    if (warp >= blocks)
        return;
#pragma unroll
    for (int u = 0; u < HELD_BACK; u++)
        multiply_unit(sum, weight[u], flow[u]);
#pragma unroll 4
    for (int u = HELD_BACK; u < LSTM_UNITS; u++) {
        float4 w[2] = {m->weight[u - HELD_BACK][0][threadIdx.x], m->weight[u - HELD_BACK][1][threadIdx.x]};
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

static __global__ void __launch_bounds__(LSTM_THREADS, 1) lstm_backward_cluster_fp32(lstm_backward<float> a)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(16) unsigned char memory[];
    backward_memory *m = reinterpret_cast<backward_memory *>(memory);
    const int rank = (int)cluster_rank(), blocks = (int)cluster_size(), warp = threadIdx.x >> 5,
              lane = threadIdx.x & 31;
    const int local = threadIdx.x >> 2 & 31, slot = (threadIdx.x >> 7) * 4 + (threadIdx.x & 3);
    const int n = a.hidden, unit0 = rank * LSTM_UNITS, unit = unit0 + local;
    const int64_t first = (int64_t)(blockIdx.x / blocks) * LSTM_SEQUENCES, sequence = first + slot;
    const bool valid = unit < n && sequence < a.batch;
    const uint32_t bytes = (uint32_t)blocks * LSTM_THREADS * sizeof(float);
    float4 weight[HELD_BACK][2];
#pragma unroll
    for (int u = 0; u < HELD_BACK; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int column = (i * WARPS + warp) * LSTM_UNITS + lane;
            weight[u][i] = gates_from(a, unit0 + u, column);
            m->weight[u][i][threadIdx.x] = gates_from(a, unit0 + HELD_BACK + u, column);
        }
    arrivals_init(m->arrived, 2, bytes);

    int64_t step = sequence * a.steps + a.steps - 1;
    float cell = valid ? a.cell[step * n + unit] : 0.0f, grad_cell = 0;
    backward_inputs<float> next;
    backward_load(&next, a, sequence, a.steps - 1, unit, valid);
    for (int i = 0, t = a.steps - 1; t >= 0; i++, t--, step--) {
        backward_inputs<float> now = next;
        backward_prefetch(a, first, t - LSTM_AHEAD, unit0);
        float sum[4] = {now.grad_dst, 0, 0, 0}, result[4];
        if (i > 0) {
            arrivals_wait(m->arrived, i - 1, bytes);
#pragma unroll
            for (int b = 0; b < LSTM_BLOCKS; b++)
                if (b < blocks)
                    sum[b & 3] += m->parts[(i - 1) & 1][b][threadIdx.x];
        }
        lstm_gates g = {now.gate[0], now.gate[1], now.gate[2], now.gate[3]};
        gates_back(g, cell, now.cell_before, (sum[0] + sum[1]) + (sum[2] + sum[3]), &grad_cell, result);
        cell = now.cell_before;
        if (t > 0) {
            m->flow[i & 1][local][slot] =
                valid ? float4{result[0], result[1], result[2], result[3]} : float4{0, 0, 0, 0};
            __syncthreads();
            backward_load(&next, a, sequence, t - 1, unit, valid);
            backward_product(m, weight, i, rank, blocks);
        }
        if (valid)
            for (int k = 0; k < 4; k++)
                a.grad_gates[4 * step * n + k * n + unit] = result[k];
    }
    cluster_sync();
#endif
}

/* ---- the candidates ---- */

static const lstm_cluster_kernels forward_kernels = {{(const void *)lstm_forward_cluster_fp32, NULL}};
static const lstm_cluster_kernels backward_kernels = {{(const void *)lstm_backward_cluster_fp32, NULL}};

static bool supports(const mixt__call *call, const char **reason)
{
    *reason = "only for FP32";
    return call->in[0].dtype == MIXT_DTYPE_FP32 &&
           lstm_cluster_supports(forward_kernels, &call->in[0], &call->in[1], sizeof(forward_memory), reason);
}

static bool grad_supports(const mixt__call *call, const char **reason)
{
    *reason = "only for FP32";
    return call->in[2].dtype == MIXT_DTYPE_FP32 &&
           lstm_cluster_supports(backward_kernels, &call->in[2], &call->in[0], sizeof(backward_memory), reason);
}

static mixt_status run(const mixt__call *call)
{
    lstm_forward<float> arguments = lstm_forward_of<float>(call);
    return lstm_cluster_launch(forward_kernels, &call->in[0], sizeof(forward_memory), &arguments);
}

static mixt_status grad_run(const mixt__call *call)
{
    lstm_backward<float> arguments = lstm_backward_of<float>(call);
    MIXT_TRY(lstm_cluster_launch(backward_kernels, &call->in[2], sizeof(backward_memory), &arguments));
    return mixt__cuda_lstm_weight_run(call);
}

extern const mixt__kernel mixt__cuda_lstm_cluster_fp32 = {.name = "cluster_fp32", .supports = supports, .run = run};
extern const mixt__kernel mixt__cuda_lstm_grad_cluster_fp32 = {.name = "cluster_fp32",
                                                               .supports = grad_supports,
                                                               .prepare = mixt__cuda_lstm_grad_prepare,
                                                               .run = grad_run,
                                                               .release = mixt__cuda_lstm_grad_release};
