/* What the LSTM files of the GPU share: sizes, the gates' arithmetic, and the candidates' parts.
 *
 * Sums, gates and cell state are FP32; only what is stored is rounded. The nonlinearities err by a few units of FP32's
 * roundoff (absolute, results are at most 1), which the fast exponential gives: no table, no branch.
 */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_LSTM_CUH
#define MIXT_BACKEND_CUDA_RECURRENT_LSTM_CUH

#include "backend/cuda/core/device.cuh"
#include "backend/cuda/recurrent/lstm.h"

extern "C" {
#include "base/status.h"
}

static __device__ __forceinline__ float sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

static __device__ __forceinline__ float tanh_of(float x)
{
    return fmaf(2.0f, sigmoid(2.0f * x), -1.0f);
}

/** Gates of one unit, input, forget, cell, output: from their sums to after the nonlinearity. */
struct lstm_gates {
    float input, forget, candidate, output;
};

static __device__ __forceinline__ lstm_gates gates_of(const float sum[4])
{
    return {sigmoid(sum[0]), sigmoid(sum[1]), tanh_of(sum[2]), sigmoid(sum[3])};
}

/** Gradients of the four sums, given that of the state; `grad_cell` goes from after this step to before it. */
static __device__ __forceinline__ void gates_back(const lstm_gates &g, float cell, float cell_before, float grad_h,
                                                  float *grad_cell, float result[4])
{
    float out = tanh_of(cell), grad_c = *grad_cell + grad_h * g.output * (1.0f - out * out);
    result[0] = grad_c * g.candidate * g.input * (1.0f - g.input);
    result[1] = grad_c * cell_before * g.forget * (1.0f - g.forget);
    result[2] = grad_c * g.input * (1.0f - g.candidate * g.candidate);
    result[3] = grad_h * out * g.output * (1.0f - g.output);
    *grad_cell = grad_c * g.forget;
}

/** Tensors of a call with their element type; sequences lie (B, T, ·). */
template <typename T> struct lstm_forward {
    const T *gates_x, *weight;
    T *dst, *gates;
    float *cell;
    int64_t batch;
    int steps, hidden;
};

template <typename T> struct lstm_backward {
    const T *weight, *gates;
    const float *cell;
    const T *grad_dst;
    T *grad_gates;
    int64_t batch;
    int steps, hidden;
};

/** What one unit of one sequence leaves behind at a step; `step` counts over sequences. */
template <typename T>
static __device__ __forceinline__ void lstm_store(const lstm_forward<T> &a, int64_t step, int64_t unit,
                                                  const lstm_gates &g, float cell, float h)
{
    int64_t n = a.hidden;
    T *gates = a.gates + step * 4 * n + unit;
    gates[0] = from_float<T>(g.input);
    gates[n] = from_float<T>(g.forget);
    gates[2 * n] = from_float<T>(g.candidate);
    gates[3 * n] = from_float<T>(g.output);
    a.cell[step * n + unit] = cell;
    a.dst[step * n + unit] = from_float<T>(h);
}

/** The same from the gates' sums, with the cell state in memory. */
template <typename T>
static __device__ __forceinline__ void lstm_advance(const lstm_forward<T> &a, int64_t step, int t, int64_t unit,
                                                    const float sum[4])
{
    lstm_gates g = gates_of(sum);
    float before = t > 0 ? a.cell[(step - 1) * a.hidden + unit] : 0.0f;
    float cell = fmaf(g.forget, before, g.input * g.candidate);
    lstm_store(a, step, unit, g, cell, g.output * tanh_of(cell));
}

/** The same backward, given what the steps after add to the state's gradient; the cell state's gradient lies in memory.
 */
template <typename T>
static __device__ __forceinline__ void lstm_back(const lstm_backward<T> &a, int64_t step, int t, int64_t unit,
                                                 float grad_after, bool last, float *grad_cell)
{
    int64_t n = a.hidden;
    const T *g = a.gates + step * 4 * n + unit;
    lstm_gates gate = {to_float(g[0]), to_float(g[n]), to_float(g[2 * n]), to_float(g[3 * n])};
    float flow = last ? 0.0f : *grad_cell, result[4], before = t > 0 ? a.cell[(step - 1) * n + unit] : 0.0f;
    gates_back(gate, a.cell[step * n + unit], before, grad_after + to_float(a.grad_dst[step * n + unit]), &flow,
               result);
    *grad_cell = flow;
    for (int i = 0; i < 4; i++)
        a.grad_gates[step * 4 * n + i * n + unit] = from_float<T>(result[i]);
}

template <typename T> static lstm_forward<T> lstm_forward_of(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[0]);
    return {(const T *)call->in[0].data,
            (const T *)call->in[1].data,
            (T *)call->out[0].data,
            (T *)call->out[1].data,
            (float *)call->out[2].data,
            s.batch,
            (int)s.steps,
            (int)s.hidden};
}

template <typename T> static lstm_backward<T> lstm_backward_of(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    return {(const T *)call->in[0].data,
            (const T *)call->in[2].data,
            (const float *)call->in[3].data,
            (const T *)call->in[4].data,
            (T *)call->out[0].data,
            s.batch,
            (int)s.steps,
            (int)s.hidden};
}

#endif
