/* The recurrence of an LSTM layer in obvious C, and its gradient through time.
 *
 * The state that is fed back is dst as stored, so the gradient sees the very numbers that the forward pass used.
 */
#include "backend/cpu/recurrent/lstm.h"
#include "num/num.h"

#include <math.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/** Row `row` of weight_hh times the state after step t - 1. */
static double recurrent(const mixt__call *call, const mixt__lstm_sizes *s, int64_t b, int64_t t, int64_t row)
{
    const mixt__tensor *weight = &call->in[1], *dst = &call->out[0];
    double sum = 0;
    for (int64_t j = 0; t > 0 && j < s->hidden; j++)
        sum += (double)mixt__load(weight->data, weight->dtype, row * s->hidden + j) *
               (double)mixt__load(dst->data, dst->dtype, (b * s->steps + t - 1) * s->hidden + j);
    return sum;
}

static void forward_step(const mixt__call *call, const mixt__lstm_sizes *s, int64_t b, int64_t t)
{
    const mixt__tensor *gates_x = &call->in[0], *dst = &call->out[0], *gates = &call->out[1];
    float *cell = call->out[2].data;
    int64_t step = b * s->steps + t;
    for (int64_t j = 0; j < s->hidden; j++) {
        double gate[4];
        for (int64_t g = 0; g < 4; g++) {
            int64_t row = g * s->hidden + j;
            double x = (double)mixt__load(gates_x->data, gates_x->dtype, step * 4 * s->hidden + row);
            x += recurrent(call, s, b, t, row);
            gate[g] = g == 2 ? tanh(x) : sigmoid(x);
            mixt__store(gates->data, gates->dtype, step * 4 * s->hidden + row, (float)gate[g]);
        }
        double before = t > 0 ? (double)cell[(step - 1) * s->hidden + j] : 0;
        double c = gate[1] * before + gate[0] * gate[2];
        cell[step * s->hidden + j] = (float)c;
        mixt__store(dst->data, dst->dtype, step * s->hidden + j, (float)(gate[3] * tanh(c)));
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[0]);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t t = 0; t < s.steps; t++)
            forward_step(call, &s, b, t);
    return MIXT_OK;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)mixt__lstm_sizes_of(&call->in[2]).hidden * sizeof(double);
    return MIXT_OK;
}

/** Writes grad_gates_x of one step; `grad_cell` goes from the gradient after this step to that before it. */
static void backward_step(const mixt__call *call, const mixt__lstm_sizes *s, int64_t b, int64_t t, double *grad_cell)
{
    const mixt__tensor *weight = &call->in[0], *gates = &call->in[2], *grad_dst = &call->in[4], *grad = &call->out[0];
    const float *cell = call->in[3].data;
    int64_t step = b * s->steps + t, wide = 4 * s->hidden;
    for (int64_t j = 0; j < s->hidden; j++) {
        double grad_h = (double)mixt__load(grad_dst->data, grad_dst->dtype, step * s->hidden + j);
        for (int64_t row = 0; t + 1 < s->steps && row < wide; row++)
            grad_h += (double)mixt__load(weight->data, weight->dtype, row * s->hidden + j) *
                      (double)mixt__load(grad->data, grad->dtype, (step + 1) * wide + row);
        double gate[4], before = t > 0 ? (double)cell[(step - 1) * s->hidden + j] : 0;
        for (int64_t g = 0; g < 4; g++)
            gate[g] = (double)mixt__load(gates->data, gates->dtype, step * wide + g * s->hidden + j);
        double out = tanh((double)cell[step * s->hidden + j]);
        double grad_c = grad_cell[j] + grad_h * gate[3] * (1 - out * out);
        double result[4] = {grad_c * gate[2] * gate[0] * (1 - gate[0]), grad_c * before * gate[1] * (1 - gate[1]),
                            grad_c * gate[0] * (1 - gate[2] * gate[2]), grad_h * out * gate[3] * (1 - gate[3])};
        for (int64_t g = 0; g < 4; g++)
            mixt__store(grad->data, grad->dtype, step * wide + g * s->hidden + j, (float)result[g]);
        grad_cell[j] = grad_c * gate[1];
    }
}

/** grad_weight_hh: over all steps but the first of each sequence, grad_gates_x times the state before. */
static void weight_grad(const mixt__call *call, const mixt__lstm_sizes *s)
{
    const mixt__tensor *dst = &call->in[1], *grad = &call->out[0], *grad_weight = &call->out[1];
    for (int64_t row = 0; row < 4 * s->hidden; row++)
        for (int64_t j = 0; j < s->hidden; j++) {
            int64_t i = row * s->hidden + j;
            double sum = call->accumulate >> 1 & 1 ? (double)mixt__load(grad_weight->data, grad_weight->dtype, i) : 0;
            for (int64_t b = 0; b < s->batch; b++)
                for (int64_t step = b * s->steps + 1; step < (b + 1) * s->steps; step++)
                    sum += (double)mixt__load(grad->data, grad->dtype, step * 4 * s->hidden + row) *
                           (double)mixt__load(dst->data, dst->dtype, (step - 1) * s->hidden + j);
            mixt__store(grad_weight->data, grad_weight->dtype, i, (float)sum);
        }
}

static mixt_status grad_run(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    double *grad_cell = call->workspace;
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t j = 0; j < s.hidden; j++)
            grad_cell[j] = 0;
        for (int64_t t = s.steps - 1; t >= 0; t--)
            backward_step(call, &s, b, t, grad_cell);
    }
    weight_grad(call, &s);
    return MIXT_OK;
}

const mixt__kernel mixt__lstm_plain = {.name = "plain", .run = run};
const mixt__kernel mixt__lstm_grad_plain = {.name = "plain", .prepare = grad_prepare, .run = grad_run};
