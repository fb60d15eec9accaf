/* The recurrences for every shape, format and GPU: one launch a step.
 *
 * Forward: a block has 32 units (lanes) of 8 sequences (warps); it walks over the state in pieces of 32, the weights of
 * its units' rows and the sequences' states staged in shared memory. Backward: the same block shape; the weights are
 * read along their rows, so they need no staging. Weights go from L2 once a step for each 8 sequences.
 */
#include "backend/cuda/recurrent/cells.cuh"

enum { UNITS = 32, SEQUENCES = 8, PIECE = 32 };

template <class C, typename T> static __global__ void forward_step(recurrent_forward<T> a, int t)
{
    __shared__ float weight[C::GATES * UNITS][PIECE + 1], state[SEQUENCES][PIECE];
    int64_t n = a.hidden, across = (n + UNITS - 1) / UNITS;
    int64_t unit0 = blockIdx.x % across * UNITS, unit = unit0 + threadIdx.x;
    int64_t sequence = blockIdx.x / across * SEQUENCES + threadIdx.y;
    bool valid = unit < n && sequence < a.batch;
    int64_t step = sequence * a.steps + t;
    float sum[SUMS] = {};
    T x[SUMS];
    if (valid) {
        slot_load<C>(x, a, step, unit);
        slot_start<C>(sum, x, C::APART ? a.bias[unit] : 0.0f);
    }
    for (int64_t k0 = 0; t > 0 && k0 < n; k0 += PIECE) {
        int64_t k = k0 + threadIdx.x;
        for (int row = threadIdx.y; row < C::GATES * UNITS; row += SEQUENCES) {
            int64_t u = unit0 + row % UNITS;
            weight[row][threadIdx.x] = k < n && u < n ? to_float(a.weight[(row / UNITS * n + u) * n + k]) : 0.0f;
        }
        state[threadIdx.y][threadIdx.x] = k < n && sequence < a.batch ? to_float(a.dst[(step - 1) * n + k]) : 0.0f;
        __syncthreads();
        for (int i = 0; i < PIECE; i++)
            for (int g = 0; g < C::GATES; g++)
                sum[g] = fmaf(weight[g * UNITS + threadIdx.x][i], state[threadIdx.y][i], sum[g]);
        __syncthreads();
    }
    if (valid)
        slot_advance<C>(a, step, t, unit, sum);
}

/** flow (B, H): of the carry after this step, then of that before it. */
template <class C, typename T> static __global__ void backward_step(recurrent_backward<T> a, float *flow, int t)
{
    int64_t n = a.hidden, across = (n + UNITS - 1) / UNITS, rows = C::GATES * n;
    int64_t unit = blockIdx.x % across * UNITS + threadIdx.x;
    int64_t sequence = blockIdx.x / across * SEQUENCES + threadIdx.y;
    if (unit >= n || sequence >= a.batch)
        return;
    int64_t step = sequence * a.steps + t, row = 0;
    bool last = t + 1 == a.steps;
    const T *next = a.grad_sums + (step + 1) * rows;
    float part[4] = {0, 0, 0, 0};
    for (; !last && row + 4 <= rows; row += 4)
        for (int i = 0; i < 4; i++)
            part[i] = fmaf(to_float(a.weight[(row + i) * n + unit]), to_float(next[row + i]), part[i]);
    for (; !last && row < rows; row++)
        part[0] = fmaf(to_float(a.weight[row * n + unit]), to_float(next[row]), part[0]);
    unit_back<C>(a, step, t, unit, (part[0] + part[1]) + (part[2] + part[3]), last, flow + sequence * n + unit);
}

static int64_t blocks_of(const mixt__recurrent_sizes *s)
{
    return mixt__ceil_div(s->hidden, UNITS) * mixt__ceil_div(s->batch, SEQUENCES);
}

template <class C> static mixt_status run(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    for (int64_t t = 0; blocks_of(&s) && t < s.steps; t++)
        DISPATCH(
            call->in[0].dtype, T,
            (forward_step<C, T><<<(unsigned)blocks_of(&s), dim3(UNITS, SEQUENCES), 0, mixt__cuda_of(call)->stream>>>(
                forward_of<C, T>(call), (int)t)));
    return mixt__cuda_launched("a step of a recurrence");
}

template <class C> static mixt_status grad_run(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    for (int64_t t = s.steps - 1; blocks_of(&s) && t >= 0; t--)
        DISPATCH(
            call->in[1].dtype, T,
            (backward_step<C, T><<<(unsigned)blocks_of(&s), dim3(UNITS, SEQUENCES), 0, mixt__cuda_of(call)->stream>>>(
                backward_of<C, T>(call), mixt__cuda_recurrent_flow(call), (int)t)));
    MIXT_TRY(mixt__cuda_launched("a step back of a recurrence"));
    return mixt__cuda_recurrent_weight_run(call);
}

#define CANDIDATES(op, cell)                                                                                           \
    extern "C" const mixt__kernel mixt__cuda_##op##_plain = {.name = "plain", .run = run<cell>};                       \
    extern "C" const mixt__kernel mixt__cuda_##op##_grad_plain = {.name = "plain",                                     \
                                                                  .prepare = mixt__cuda_recurrent_grad_prepare,        \
                                                                  .run = grad_run<cell>,                               \
                                                                  .release = mixt__cuda_recurrent_grad_release}
CANDIDATES(lstm, lstm_cell);
CANDIDATES(gru, gru_cell);
CANDIDATES(rnn, rnn_cell<1>);
#undef CANDIDATES
