/* The cells of the recurrences on the GPU: what one slot of a layer does at one step, and where its numbers lie.
 *
 * Kernels work on slots of up to four sums, products of rows of weight_hh with the state plus what inputs and biases
 * add. An LSTM's slot is a unit with its gates input, forget, cell, output. A GRU's is a unit with r, z, q and the new
 * gate's input, which no row reaches. A plain layer's slot is one unit, or four neighbouring ones where that is how a
 * kernel takes four rows at once. Sums, gates and what is carried are FP32; only what is stored is rounded. The
 * nonlinearities err by a few units of FP32's roundoff (absolute, results are at most 1), which the fast exponential
 * gives: no table, no branch.
 */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_CELLS_CUH
#define MIXT_BACKEND_CUDA_RECURRENT_CELLS_CUH

#include "backend/cuda/core/device.cuh"
#include "backend/cuda/recurrent/recurrent.h"

extern "C" {
#include "base/status.h"
}

enum { SUMS = 4 }; // of a slot, at most

static __device__ __forceinline__ float sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

static __device__ __forceinline__ float tanh_of(float x)
{
    return fmaf(2.0f, sigmoid(2.0f * x), -1.0f);
}

/* ---- the cells ----
 *
 * GATES   rows of weight_hh for each unit
 * WIDTH   units of a slot
 * CARRY   a unit has an FP32 number beside dst that goes from step to step
 * SAVED   a unit's four numbers are kept for the gradient; otherwise that reads dst
 * APART   gates_x of the new gate is a sum of its own, the fourth, and the third begins with a bias
 *
 * advance   from the sums to the new state h[WIDTH]; *carry goes from before the step to after it
 * back      from the gradient of the state to those of the sums; *flow, of the carry, goes from after to before */

struct lstm_cell {
    static constexpr int GATES = 4, WIDTH = 1;
    static constexpr bool CARRY = true, SAVED = true, APART = false;

    static __device__ __forceinline__ void advance(const float *sum, float *carry, float *saved, float *h, bool)
    {
        saved[0] = sigmoid(sum[0]);
        saved[1] = sigmoid(sum[1]);
        saved[2] = tanh_of(sum[2]);
        saved[3] = sigmoid(sum[3]);
        *carry = fmaf(saved[1], *carry, saved[0] * saved[2]);
        h[0] = saved[3] * tanh_of(*carry);
    }

    static __device__ __forceinline__ void back(const float *saved, float after, float before, const float *grad_h,
                                                float *flow, float *result, bool)
    {
        const float input = saved[0], forget = saved[1], candidate = saved[2], output = saved[3];
        float out = tanh_of(after), grad_c = *flow + grad_h[0] * output * (1.0f - out * out);
        result[0] = grad_c * candidate * input * (1.0f - input);
        result[1] = grad_c * before * forget * (1.0f - forget);
        result[2] = grad_c * input * (1.0f - candidate * candidate);
        result[3] = grad_h[0] * out * output * (1.0f - output);
        *flow = grad_c * forget;
    }
};

/** saved: r, z, n, q; the carry is the state before it is rounded. */
struct gru_cell {
    static constexpr int GATES = 3, WIDTH = 1;
    static constexpr bool CARRY = true, SAVED = true, APART = true;

    static __device__ __forceinline__ void advance(const float *sum, float *carry, float *saved, float *h, bool)
    {
        saved[0] = sigmoid(sum[0]);
        saved[1] = sigmoid(sum[1]);
        saved[2] = tanh_of(fmaf(saved[0], sum[2], sum[3]));
        saved[3] = sum[2];
        *carry = fmaf(saved[1], *carry - saved[2], saved[2]);
        h[0] = *carry;
    }

    static __device__ __forceinline__ void back(const float *saved, float, float before, const float *grad_h,
                                                float *flow, float *result, bool)
    {
        const float r = saved[0], z = saved[1], n = saved[2], q = saved[3];
        float grad = grad_h[0] + *flow;
        result[3] = grad * (1.0f - z) * (1.0f - n * n);
        result[0] = result[3] * q * r * (1.0f - r);
        result[1] = grad * (before - n) * z * (1.0f - z);
        result[2] = result[3] * r;
        *flow = grad * z;
    }
};

/** What the gradient reads of it is dst. */
template <int UNITS> struct rnn_cell {
    static constexpr int GATES = 1, WIDTH = UNITS;
    static constexpr bool CARRY = false, SAVED = false, APART = false;

    static __device__ __forceinline__ void advance(const float *sum, float *, float *, float *h, bool relu)
    {
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            h[i] = relu ? (sum[i] < 0.0f ? 0.0f : sum[i]) : tanh_of(sum[i]);
    }

    static __device__ __forceinline__ void back(const float *state, float, float, const float *grad_h, float *,
                                                float *result, bool relu)
    {
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            result[i] = relu ? (state[i] > 0.0f ? grad_h[i] : 0.0f) : grad_h[i] * (1.0f - state[i] * state[i]);
    }
};

/** Rows of weight_hh that reach a slot. */
template <class C> static constexpr int SLOT_ROWS = C::GATES * C::WIDTH;

/** Row i of them, and the place of its number in what is laid out like gates_x. */
template <class C> static __device__ __forceinline__ int64_t row_of(int i, int64_t slot, int64_t hidden)
{
    return C::GATES == 1 ? slot * C::WIDTH + i : i * hidden + slot;
}

/* ---- the tensors of a call with their element type; sequences lie (B, T, ·) ---- */

template <typename T> struct recurrent_forward {
    const T *gates_x, *weight;
    const float *bias;
    T *dst, *saved;
    float *carry;
    int64_t batch;
    int steps, hidden;
    bool relu;
};

template <typename T> struct recurrent_backward {
    const T *weight, *saved;
    const float *carry;
    const T *grad_dst;
    T *grad_gates, *grad_sums;
    int64_t batch;
    int steps, hidden;
    bool relu;
};

/** What a slot's sums begin with; `step` counts over sequences. */
template <class C, typename T>
static __device__ __forceinline__ void slot_load(T *x, const recurrent_forward<T> &a, int64_t step, int64_t slot)
{
    const T *from = a.gates_x + step * C::GATES * a.hidden;
#pragma unroll
    for (int i = 0; i < SLOT_ROWS<C>; i++)
        x[i] = from[row_of<C>(i, slot, a.hidden)];
}

template <class C, typename T> static __device__ __forceinline__ void slot_start(float *sum, const T *x, float bias)
{
#pragma unroll
    for (int i = 0; i < SLOT_ROWS<C>; i++)
        sum[i] = to_float(x[i]);
    if (C::APART) {
        sum[3] = sum[2];
        sum[2] = bias;
    }
}

/** What a slot leaves behind at a step. */
template <class C, typename T>
static __device__ __forceinline__ void slot_store(const recurrent_forward<T> &a, int64_t step, int64_t slot,
                                                  const float *saved, float carry, const float *h)
{
    int64_t n = a.hidden;
    if (C::SAVED)
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            a.saved[(step * SUMS + i) * n + slot] = from_float<T>(saved[i]);
    if (C::CARRY)
        a.carry[step * n + slot] = carry;
#pragma unroll
    for (int i = 0; i < C::WIDTH; i++)
        a.dst[step * n + slot * C::WIDTH + i] = from_float<T>(h[i]);
}

/** The same from the sums, with the carry in memory. */
template <class C, typename T>
static __device__ __forceinline__ void slot_advance(const recurrent_forward<T> &a, int64_t step, int t, int64_t slot,
                                                    const float *sum)
{
    float carry = C::CARRY && t > 0 ? a.carry[(step - 1) * a.hidden + slot] : 0.0f, saved[SUMS], h[C::WIDTH];
    C::advance(sum, &carry, saved, h, a.relu);
    slot_store<C>(a, step, slot, saved, carry, h);
}

/** What a step backward reads of a slot. */
template <class C, typename T> struct slot_inputs {
    T saved[SUMS], grad_dst[C::WIDTH];
    float before;
};

template <class C, typename T>
static __device__ __forceinline__ void slot_inputs_load(slot_inputs<C, T> *r, const recurrent_backward<T> &a,
                                                        int64_t step, int t, int64_t slot)
{
    const int64_t n = a.hidden;
    constexpr int count = C::SAVED ? SUMS : C::WIDTH;
    const T *saved = a.saved + step * (C::SAVED ? SUMS : 1) * n;
#pragma unroll
    for (int i = 0; i < count; i++)
        r->saved[i] = saved[C::SAVED ? i * n + slot : slot * C::WIDTH + i];
#pragma unroll
    for (int i = 0; i < C::WIDTH; i++)
        r->grad_dst[i] = a.grad_dst[step * n + slot * C::WIDTH + i];
    r->before = C::CARRY && t > 0 ? a.carry[(step - 1) * n + slot] : 0.0f;
}

template <class C, typename T>
static __device__ __forceinline__ void slot_back(const slot_inputs<C, T> &in, float after, const float *grad_h,
                                                 float *flow, float *result, bool relu)
{
    constexpr int count = C::SAVED ? SUMS : C::WIDTH;
    float saved[SUMS];
#pragma unroll
    for (int i = 0; i < count; i++)
        saved[i] = to_float(in.saved[i]);
    C::back(saved, after, in.before, grad_h, flow, result, relu);
}

/** The gradients that a slot leaves behind at a step. */
template <class C, typename T>
static __device__ __forceinline__ void slot_grad_store(const recurrent_backward<T> &a, int64_t step, int64_t slot,
                                                       const float *result)
{
    int64_t first = step * C::GATES * a.hidden;
#pragma unroll
    for (int i = 0; i < SLOT_ROWS<C>; i++) {
        int64_t at = first + row_of<C>(i, slot, a.hidden);
        a.grad_gates[at] = from_float<T>(result[C::APART && i == 2 ? 3 : i]);
        if (C::APART)
            a.grad_sums[at] = from_float<T>(result[i]);
    }
}

/** A whole step backward of one unit, given what the steps after add to its state's gradient; flow lies in memory. */
template <class C, typename T>
static __device__ __forceinline__ void unit_back(const recurrent_backward<T> &a, int64_t step, int t, int64_t unit,
                                                 float grad_after, bool last, float *flow_at)
{
    static_assert(C::WIDTH == 1, "a unit is a slot here");
    slot_inputs<C, T> in;
    slot_inputs_load(&in, a, step, t, unit);
    float flow = last || !C::CARRY ? 0.0f : *flow_at, result[SUMS];
    float grad = grad_after + to_float(in.grad_dst[0]);
    slot_back(in, C::CARRY ? a.carry[step * a.hidden + unit] : 0.0f, &grad, &flow, result, a.relu);
    if (C::CARRY)
        *flow_at = flow;
    slot_grad_store<C>(a, step, unit, result);
}

/* ---- from a call ---- */

template <class C> static bool relu_of(const mixt__call *call)
{
    return C::GATES == 1 && ((const mixt__rnn_attrs *)call->attrs)->relu;
}

template <class C, typename T> static recurrent_forward<T> forward_of(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    return {(const T *)call->in[0].data,
            (const T *)call->in[1].data,
            C::APART ? (const float *)call->in[2].data : nullptr,
            (T *)call->out[0].data,
            C::SAVED ? (T *)call->out[1].data : nullptr,
            C::CARRY ? (float *)call->out[2].data : nullptr,
            s.batch,
            (int)s.steps,
            (int)s.hidden,
            relu_of<C>(call)};
}

template <class C, typename T> static recurrent_backward<T> backward_of(const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    return {(const T *)call->in[0].data,
            (const T *)call->in[C::SAVED ? 2 : 1].data,
            C::CARRY ? (const float *)call->in[3].data : nullptr,
            (const T *)call->in[call->in_count - 1].data,
            (T *)call->out[0].data,
            (T *)mixt__recurrent_grad_sums(call),
            s.batch,
            (int)s.steps,
            (int)s.hidden,
            relu_of<C>(call)};
}

#endif
