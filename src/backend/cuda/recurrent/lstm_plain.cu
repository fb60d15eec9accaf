/* The LSTM recurrence for every shape, format and GPU: one launch a step.
 *
 * Forward: a block has 32 units (lanes) of 8 sequences (warps); it walks over the state in pieces of 32, the weights of
 * its 4 x 32 rows and the sequences' states staged in shared memory. Backward: the same block shape; the weights are
 * read along their rows, so they need no staging. Weights go from L2 once a step: 4 H² elements for each 8 sequences.
 */
#include "backend/cuda/recurrent/lstm.cuh"

enum { UNITS = 32, SEQUENCES = 8, PIECE = 32, THREADS = UNITS * SEQUENCES };

template <typename T> static __global__ void lstm_forward_step(lstm_forward<T> a, int t)
{
    __shared__ float weight[4 * UNITS][PIECE + 1], state[SEQUENCES][PIECE];
    int64_t n = a.hidden, across = (n + UNITS - 1) / UNITS;
    int64_t unit0 = blockIdx.x % across * UNITS, unit = unit0 + threadIdx.x;
    int64_t sequence = blockIdx.x / across * SEQUENCES + threadIdx.y;
    bool valid = unit < n && sequence < a.batch;
    int64_t step = sequence * a.steps + t;
    float sum[4];
    for (int g = 0; g < 4; g++)
        sum[g] = valid ? to_float(a.gates_x[step * 4 * n + g * n + unit]) : 0.0f;
    for (int64_t k0 = 0; t > 0 && k0 < n; k0 += PIECE) {
        int64_t k = k0 + threadIdx.x;
        for (int row = threadIdx.y; row < 4 * UNITS; row += SEQUENCES) {
            int64_t u = unit0 + row % UNITS;
            weight[row][threadIdx.x] = k < n && u < n ? to_float(a.weight[(row / UNITS * n + u) * n + k]) : 0.0f;
        }
        state[threadIdx.y][threadIdx.x] = k < n && sequence < a.batch ? to_float(a.dst[(step - 1) * n + k]) : 0.0f;
        __syncthreads();
        for (int i = 0; i < PIECE; i++)
            for (int g = 0; g < 4; g++)
                sum[g] = fmaf(weight[g * UNITS + threadIdx.x][i], state[threadIdx.y][i], sum[g]);
        __syncthreads();
    }
    if (valid)
        lstm_advance(a, step, t, unit, sum);
}

/** grad_cell (B, H): of the cell state after this step, then of that before it. */
template <typename T> static __global__ void lstm_backward_step(lstm_backward<T> a, float *grad_cell, int t)
{
    int64_t n = a.hidden, across = (n + UNITS - 1) / UNITS;
    int64_t unit = blockIdx.x % across * UNITS + threadIdx.x;
    int64_t sequence = blockIdx.x / across * SEQUENCES + threadIdx.y;
    if (unit >= n || sequence >= a.batch)
        return;
    int64_t step = sequence * a.steps + t;
    bool last = t + 1 == a.steps;
    const T *next = a.grad_gates + (step + 1) * 4 * n;
    float part[4] = {0, 0, 0, 0};
    for (int64_t row = 0; !last && row < 4 * n; row += 4)
        for (int i = 0; i < 4; i++)
            part[i] = fmaf(to_float(a.weight[(row + i) * n + unit]), to_float(next[row + i]), part[i]);
    lstm_back(a, step, t, unit, (part[0] + part[1]) + (part[2] + part[3]), last, grad_cell + sequence * n + unit);
}

template <typename T>
static __global__ void lstm_shift(const T *dst, T *shifted, int64_t count, int64_t row, int64_t steps)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        shifted[i] = i / row % steps ? dst[i - row] : T{};
}

mixt_status mixt__cuda_lstm_shift(const mixt__tensor *dst, void *shifted)
{
    size_t row_bytes = (size_t)mixt__tensor_last(dst) * mixt_dtype_size(dst->dtype);
    int64_t bytes = mixt__tensor_count(dst) * (int64_t)mixt_dtype_size(dst->dtype), steps = dst->shape.dims[1];
    unsigned blocks = (unsigned)(8 * mixt__cuda.multiprocessors);
    if (!bytes)
        return MIXT_OK;
    if (row_bytes % 16 == 0 && aligned16(dst->data))
        lstm_shift<<<blocks, THREADS, 0, mixt__cuda.stream>>>((const uint4 *)dst->data, (uint4 *)shifted, bytes / 16,
                                                              (int64_t)row_bytes / 16, steps);
    else
        lstm_shift<<<blocks, THREADS, 0, mixt__cuda.stream>>>((const uint16_t *)dst->data, (uint16_t *)shifted,
                                                              bytes / 2, (int64_t)row_bytes / 2, steps);
    return mixt__cuda_launched("lstm shift");
}

static int64_t blocks_of(const mixt__lstm_sizes *s)
{
    return mixt__ceil_div(s->hidden, UNITS) * mixt__ceil_div(s->batch, SEQUENCES);
}

static mixt_status run(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[0]);
    for (int64_t t = 0; blocks_of(&s) && t < s.steps; t++)
        DISPATCH(call->in[0].dtype, T,
                 (lstm_forward_step<T><<<(unsigned)blocks_of(&s), dim3(UNITS, SEQUENCES), 0, mixt__cuda.stream>>>(
                     lstm_forward_of<T>(call), (int)t)));
    return mixt__cuda_launched("lstm step");
}

static mixt_status grad_run(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    for (int64_t t = s.steps - 1; blocks_of(&s) && t >= 0; t--)
        DISPATCH(call->in[2].dtype, T,
                 (lstm_backward_step<T><<<(unsigned)blocks_of(&s), dim3(UNITS, SEQUENCES), 0, mixt__cuda.stream>>>(
                     lstm_backward_of<T>(call), (float *)call->workspace, (int)t)));
    MIXT_TRY(mixt__cuda_launched("lstm backward step"));
    return mixt__cuda_lstm_weight_run(call);
}

extern const mixt__kernel mixt__cuda_lstm_plain = {.name = "plain", .run = run};
extern const mixt__kernel mixt__cuda_lstm_grad_plain = {
    .name = "plain", .prepare = mixt__cuda_lstm_grad_prepare, .run = grad_run, .release = mixt__cuda_lstm_grad_release};
