/* The recurrences in obvious C, sums in double: forward, through time, and going on from a state.
 *
 * A unit of a cell has up to four sums: products of rows of weight_hh with the state, and what its inputs and biases
 * add. LSTM: input, forget, cell, output. GRU: r, z, q and the new gate's input, which no row of weight_hh reaches.
 * Plain: one. The state that is multiplied is dst as stored, so the gradient sees the very numbers that the forward
 * pass used.
 */
#include "backend/cpu/recurrent/recurrent.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

enum { SUMS_MAX = 4 };

/** What the gradient knows about a unit at a step. */
typedef struct unit {
    double state, carry, before; // dst; the carry after and before
    double saved[SUMS_MAX];
} unit;

/** What one unit does at one step. carry: the FP32 number beside dst, an LSTM's cell or a GRU's state before rounding.
 */
typedef struct cell {
    int gates;   // sums that rows of weight_hh reach
    int saved;   // numbers that the gradient needs beside dst
    bool carry;  // whether there is one
    bool biased; // input 2 is the bias of the third sum, whose input is a sum of its own
    /** The new state; *carry goes from before to after. */
    double (*advance)(const double *sum, double *carry, double *saved, bool relu);
    /** Gradients of the sums from that of the state; *flow: of the carry, from after to before. */
    void (*back)(const unit *u, double grad_state, double *flow, double *result, bool relu);
} cell;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- LSTM ---- */

static double lstm_advance(const double *sum, double *carry, double *saved, bool relu)
{
    (void)relu;
    for (int g = 0; g < 4; g++)
        saved[g] = g == 2 ? tanh(sum[g]) : sigmoid(sum[g]);
    *carry = saved[1] * *carry + saved[0] * saved[2];
    return saved[3] * tanh(*carry);
}

static void lstm_back(const unit *u, double grad_state, double *flow, double *result, bool relu)
{
    const double *g = u->saved, out = tanh(u->carry);
    double grad_cell = *flow + grad_state * g[3] * (1 - out * out);
    (void)relu;
    result[0] = grad_cell * g[2] * g[0] * (1 - g[0]);
    result[1] = grad_cell * u->before * g[1] * (1 - g[1]);
    result[2] = grad_cell * g[0] * (1 - g[2] * g[2]);
    result[3] = grad_state * out * g[3] * (1 - g[3]);
    *flow = grad_cell * g[1];
}

/* ---- GRU; saved: r, z, n, q ---- */

static double gru_advance(const double *sum, double *carry, double *saved, bool relu)
{
    (void)relu;
    saved[0] = sigmoid(sum[0]);
    saved[1] = sigmoid(sum[1]);
    saved[2] = tanh(sum[3] + saved[0] * sum[2]);
    saved[3] = sum[2];
    *carry = (1 - saved[1]) * saved[2] + saved[1] * *carry;
    return *carry;
}

static void gru_back(const unit *u, double grad_state, double *flow, double *result, bool relu)
{
    double r = u->saved[0], z = u->saved[1], n = u->saved[2], q = u->saved[3], grad = grad_state + *flow;
    (void)relu;
    result[3] = grad * (1 - z) * (1 - n * n);
    result[0] = result[3] * q * r * (1 - r);
    result[1] = grad * (u->before - n) * z * (1 - z);
    result[2] = result[3] * r;
    *flow = grad * z;
}

/* ---- plain ---- */

static double rnn_advance(const double *sum, double *carry, double *saved, bool relu)
{
    (void)carry;
    (void)saved;
    return relu ? (sum[0] < 0 ? 0 : sum[0]) : tanh(sum[0]);
}

static void rnn_back(const unit *u, double grad_state, double *flow, double *result, bool relu)
{
    (void)flow;
    result[0] = relu ? (u->state > 0 ? grad_state : 0) : grad_state * (1 - u->state * u->state);
}

static const cell lstm = {.gates = 4, .saved = 4, .carry = true, .advance = lstm_advance, .back = lstm_back};
static const cell gru = {
    .gates = 3, .saved = 4, .carry = true, .biased = true, .advance = gru_advance, .back = gru_back};
static const cell rnn = {.gates = 1, .advance = rnn_advance, .back = rnn_back};

static bool relu_of(const cell *c, const mixt__call *call)
{
    return c == &rnn && ((const mixt__rnn_attrs *)call->attrs)->relu;
}

/* ---- forward ---- */

/** The sums of unit j at a step; `state`: that before it, NULL for zeros. */
static void sums_of(const cell *c, const mixt__call *call, int64_t step, int64_t j, const double *state, double *sum)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    const mixt__tensor *x = &call->in[0], *weight = &call->in[1];
    for (int64_t g = 0; g < c->gates; g++) {
        int64_t row = g * s.hidden + j;
        double product = 0, input = (double)mixt__load(x->data, x->dtype, step * s.rows + row);
        for (int64_t i = 0; state && i < s.hidden; i++)
            product += (double)mixt__load(weight->data, weight->dtype, row * s.hidden + i) * state[i];
        if (c->biased && g == 2) {
            sum[3] = input;
            input = (double)((const float *)call->in[2].data)[j];
        }
        sum[g] = input + product;
    }
}

/** Row `row` of a matrix of states as numbers of the operands' format. */
static void load_state(const mixt__tensor *states, mixt_dtype dtype, int64_t row, int64_t hidden, double *state)
{
    for (int64_t j = 0; j < hidden; j++) {
        float x = mixt__load(states->data, states->dtype, row * hidden + j), rounded;
        mixt__store(&rounded, dtype, 0, x);
        state[j] = (double)mixt__load(&rounded, dtype, 0);
    }
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)mixt__recurrent_sizes_of(call).hidden * sizeof(double);
    return MIXT_OK;
}

static mixt_status forward(const cell *c, const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    const mixt__tensor *dst = &call->out[0], *kept = &call->out[1];
    double *state = call->workspace, sum[SUMS_MAX], saved[SUMS_MAX];
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        bool first = step % s.steps == 0;
        if (!first)
            load_state(dst, dst->dtype, step - 1, s.hidden, state);
        for (int64_t j = 0; j < s.hidden; j++) {
            int64_t at = step * s.hidden + j;
            float *after = c->carry ? (float *)call->out[2].data + at : NULL;
            double carry = after && !first ? (double)after[-s.hidden] : 0;
            sums_of(c, call, step, j, first ? NULL : state, sum);
            mixt__store(dst->data, dst->dtype, at, (float)c->advance(sum, &carry, saved, relu_of(c, call)));
            for (int64_t k = 0; k < c->saved; k++)
                mixt__store(kept->data, kept->dtype, (step * c->saved + k) * s.hidden + j, (float)saved[k]);
            if (after)
                *after = (float)carry;
        }
    }
    return MIXT_OK;
}

/* ---- going on from a state ---- */

static mixt_status cached(const cell *c, const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_sizes_of(call);
    const mixt__tensor *dst = &call->out[0], *cache = &call->in[c->biased ? 3 : 2];
    const size_t row = (size_t)s.hidden * mixt_dtype_size(dst->dtype);
    double *state = call->workspace, sum[SUMS_MAX], saved[SUMS_MAX];
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        int64_t b = step / s.steps, t = step % s.steps;
        load_state(t ? dst : cache, dst->dtype, t ? step - 1 : b, s.hidden, state);
        for (int64_t j = 0; j < s.hidden; j++) {
            float *kept = c->carry ? (float *)call->in[3].data + b * s.hidden + j : NULL;
            double carry = kept ? (double)*kept : 0;
            sums_of(c, call, step, j, state, sum);
            mixt__store(dst->data, dst->dtype, step * s.hidden + j,
                        (float)c->advance(sum, &carry, saved, relu_of(c, call)));
            if (kept)
                *kept = (float)carry;
        }
        if (t + 1 == s.steps && !c->biased)
            memcpy((char *)cache->data + (size_t)b * row, (const char *)dst->data + (size_t)step * row, row);
    }
    return MIXT_OK;
}

/* ---- through time ---- */

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes =
        mixt__recurrent_side_bytes(call) + (size_t)mixt__recurrent_grad_sizes(call).hidden * sizeof(double);
    return MIXT_OK;
}

static unit unit_at(const cell *c, const mixt__call *call, const mixt__recurrent_sizes *s, int64_t step, int64_t j)
{
    const mixt__tensor *dst = &call->in[1];
    int64_t at = step * s->hidden + j;
    unit u = {.state = (double)mixt__load(dst->data, dst->dtype, at)};
    for (int64_t k = 0; k < c->saved; k++)
        u.saved[k] = (double)mixt__load(call->in[2].data, call->in[2].dtype, (step * c->saved + k) * s->hidden + j);
    if (c->carry) {
        const float *carry = (const float *)call->in[3].data + at;
        u.carry = (double)*carry;
        u.before = step % s->steps ? (double)carry[-s->hidden] : 0;
    }
    return u;
}

static void backward_step(const cell *c, const mixt__call *call, int64_t step, double *flow)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    const mixt__tensor *weight = &call->in[0], *grad_dst = &call->in[call->in_count - 1], *grad = &call->out[0];
    bool last = (step + 1) % s.steps == 0;
    for (int64_t j = 0; j < s.hidden; j++) {
        double result[SUMS_MAX], grad_state = (double)mixt__load(grad_dst->data, grad_dst->dtype, step * s.hidden + j);
        unit u = unit_at(c, call, &s, step, j);
        for (int64_t row = 0; !last && row < s.rows; row++)
            grad_state += (double)mixt__load(weight->data, weight->dtype, row * s.hidden + j) *
                          (double)mixt__load(mixt__recurrent_grad_sums(call), grad->dtype, (step + 1) * s.rows + row);
        c->back(&u, grad_state, &flow[j], result, relu_of(c, call));
        for (int64_t g = 0; g < c->gates; g++) {
            int64_t at = step * s.rows + g * s.hidden + j;
            mixt__store(mixt__recurrent_grad_sums(call), grad->dtype, at, (float)result[g]);
            mixt__store(grad->data, grad->dtype, at, (float)result[c->biased && g == 2 ? 3 : g]);
        }
    }
}

/** grad_weight_hh: over all steps but the first of each sequence, what flows back times the state before. */
static void weight_grad(const mixt__call *call, const mixt__recurrent_sizes *s)
{
    const mixt__tensor *dst = &call->in[1], *grad_weight = &call->out[1];
    mixt_dtype dtype = call->out[0].dtype;
    for (int64_t i = 0; i < s->rows * s->hidden; i++) {
        int64_t row = i / s->hidden, j = i % s->hidden;
        double sum = call->accumulate >> 1 & 1 ? (double)mixt__load(grad_weight->data, grad_weight->dtype, i) : 0;
        for (int64_t step = 0; step < s->batch * s->steps; step++)
            if (step % s->steps)
                sum += (double)mixt__load(mixt__recurrent_grad_sums(call), dtype, step * s->rows + row) *
                       (double)mixt__load(dst->data, dst->dtype, (step - 1) * s->hidden + j);
        mixt__store(grad_weight->data, grad_weight->dtype, i, (float)sum);
    }
}

/** grad_bias_hn: what flows back to the third sum, over all steps. */
static void bias_grad(const mixt__call *call, const mixt__recurrent_sizes *s)
{
    float *grad_bias = call->out[2].data;
    for (int64_t j = 0; j < s->hidden; j++) {
        double sum = call->accumulate >> 2 & 1 ? (double)grad_bias[j] : 0;
        for (int64_t step = 0; step < s->batch * s->steps; step++)
            sum += (double)mixt__load(mixt__recurrent_grad_sums(call), call->out[0].dtype,
                                      step * s->rows + 2 * s->hidden + j);
        grad_bias[j] = (float)sum;
    }
}

static mixt_status backward(const cell *c, const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    double *flow = (double *)(void *)((char *)call->workspace + mixt__recurrent_side_bytes(call));
    for (int64_t step = s.batch * s.steps - 1; step >= 0; step--) {
        if ((step + 1) % s.steps == 0)
            memset(flow, 0, (size_t)s.hidden * sizeof *flow);
        backward_step(c, call, step, flow);
    }
    weight_grad(call, &s);
    if (c->biased)
        bias_grad(call, &s);
    return MIXT_OK;
}

/* ---- the candidates ---- */

#define CANDIDATES(op)                                                                                                 \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return forward(&op, call);                                                                                     \
    }                                                                                                                  \
    static mixt_status op##_run_cached(const mixt__call *call)                                                         \
    {                                                                                                                  \
        return cached(&op, call);                                                                                      \
    }                                                                                                                  \
    static mixt_status op##_run_grad(const mixt__call *call)                                                           \
    {                                                                                                                  \
        return backward(&op, call);                                                                                    \
    }                                                                                                                  \
    const mixt__kernel mixt__##op##_plain = {.name = "plain", .prepare = prepare, .run = op##_run};                    \
    const mixt__kernel mixt__##op##_cached_plain = {.name = "plain", .prepare = prepare, .run = op##_run_cached};      \
    const mixt__kernel mixt__##op##_grad_plain = {.name = "plain", .prepare = grad_prepare, .run = op##_run_grad}
CANDIDATES(lstm);
CANDIDATES(gru);
CANDIDATES(rnn);
