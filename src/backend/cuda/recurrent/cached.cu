/* The recurrences that go on from a state: one launch a step.
 *
 * A warp takes one unit of one sequence: its lanes share the columns of the unit's rows of weight_hh, which go from
 * memory once a step and sequence, and its first lane makes the state. The state before step t is row t - 1 of dst, so
 * that no warp overwrites what others still read; the last row becomes the state at the end. A GRU's state is FP32 and
 * its own carry: a copy of it, rounded, is what the first step multiplies.
 */
#include "backend/cuda/recurrent/recurrent.h"

#include "backend/cuda/core/device.cuh"

extern "C" {
#include "base/status.h"
}

enum { THREADS = 256, WARPS = THREADS / 32, LSTM = 4, GRU = 3, RNN = 1 }; // cells by the gates of a unit

typedef struct problem {
    const void *gates_x, *weight, *before; // before: the state (B, H) of the run before
    const float *bias;
    float *carry; // (B, H): an LSTM's cell, a GRU's state
    void *dst;
    int64_t batch, steps, hidden;
    bool relu;
} problem;

static __device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/** The new state of a unit from its sums; x_new: of a GRU, whose third sum has none of its inputs. */
template <int GATES>
static __device__ __forceinline__ float unit_step(const float sum[GATES], float x_new, float *carry, bool relu)
{
    if constexpr (GATES == LSTM) {
        *carry = fmaf(sigmoid(sum[1]), *carry, sigmoid(sum[0]) * tanhf(sum[2]));
        return sigmoid(sum[3]) * tanhf(*carry);
    } else if constexpr (GATES == GRU) {
        float made = tanhf(fmaf(sigmoid(sum[0]), sum[2], x_new));
        *carry = fmaf(sigmoid(sum[1]), *carry - made, made);
        return *carry;
    } else
        return relu ? (sum[0] < 0.0f ? 0.0f : sum[0]) : tanhf(sum[0]);
}

template <int GATES, typename T> static __global__ void __launch_bounds__(THREADS) cached_step(problem p, int64_t t)
{
    int64_t n = p.hidden, at = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5), b = at / n, unit = at % n;
    int lane = threadIdx.x & 31;
    if (b >= p.batch)
        return;
    const T *state = t ? (const T *)p.dst + (b * p.steps + t - 1) * n : (const T *)p.before + b * n;
    const T *gates_x = (const T *)p.gates_x + (b * p.steps + t) * GATES * n;
    float sum[GATES], x = 0;
    for (int g = 0; g < GATES; g++) {
        const T *row = (const T *)p.weight + (g * n + unit) * n;
        float product = 0;
        for (int64_t k = lane; k < n; k += 32)
            product = fmaf(to_float(row[k]), to_float(state[k]), product);
        x = to_float(gates_x[g * n + unit]);
        sum[g] = warp_sum(product) + (GATES == GRU && g == 2 ? p.bias[unit] : x);
    }
    if (lane == 0) {
        float *carry = GATES == RNN ? nullptr : p.carry + b * n + unit;
        ((T *)p.dst)[(b * p.steps + t) * n + unit] = from_float<T>(unit_step<GATES>(sum, x, carry, p.relu));
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) round_state(const float *state, T *dst, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        dst[i] = from_float<T>(state[i]);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    (void)arena;
    call->workspace_bytes = (size_t)(s.batch * s.hidden) * mixt_dtype_size(call->out[0].dtype);
    return MIXT_OK;
}

/** The last row of dst, to go on from. */
static mixt_status keep_state(const mixt__call *call, const problem *p)
{
    size_t row = (size_t)p->hidden * mixt_dtype_size(call->out[0].dtype);
    const char *last = (const char *)p->dst + (size_t)(p->steps - 1) * row;
    return mixt__cuda_check(cudaMemcpy2DAsync(call->in[2].data, row, last, (size_t)p->steps * row, row,
                                              (size_t)p->batch, cudaMemcpyDeviceToDevice, mixt__cuda_of(call)->stream),
                            "keeping a recurrence's state");
}

template <int GATES> static mixt_status run(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    problem p = {call->in[0].data,  call->in[1].data, call->in[2].data, nullptr,  nullptr,
                 call->out[0].data, s.batch,          s.steps,          s.hidden, false};
    unsigned blocks = (unsigned)mixt__ceil_div(s.batch * s.hidden, WARPS);
    if (!blocks || !p.steps)
        return MIXT_OK;
    if (GATES == RNN)
        p.relu = ((const mixt__rnn_attrs *)call->attrs)->relu;
    else
        p.carry = (float *)call->in[3].data;
    if (GATES == GRU) {
        p.bias = (const float *)call->in[2].data;
        p.before = call->workspace;
        DISPATCH(call->in[0].dtype, T,
                 (round_state<T>
                  <<<(unsigned)mixt__ceil_div(s.batch * s.hidden, THREADS), THREADS, 0, mixt__cuda_of(call)->stream>>>(
                      p.carry, (T *)call->workspace, s.batch * s.hidden)));
    }
    for (int64_t t = 0; t < p.steps; t++)
        DISPATCH(call->in[0].dtype, T,
                 (cached_step<GATES, T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(p, t)));
    MIXT_TRY(mixt__cuda_launched("a recurrence that goes on"));
    return GATES == GRU ? MIXT_OK : keep_state(call, &p);
}

static const mixt__kernel lstm = {.name = "plain", .run = run<LSTM>};
static const mixt__kernel gru = {.name = "plain", .prepare = prepare, .run = run<GRU>};
static const mixt__kernel rnn = {.name = "plain", .run = run<RNN>};

extern "C" {
const mixt__kernel *const mixt__cuda_lstm_cached_kernels[] = {&lstm, NULL};
const mixt__kernel *const mixt__cuda_gru_cached_kernels[] = {&gru, NULL};
const mixt__kernel *const mixt__cuda_rnn_cached_kernels[] = {&rnn, NULL};
}
