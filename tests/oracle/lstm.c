/* The LSTM recurrence and its gradient, errors carried from step to step.
 *
 * The state that is fed back, and the gate gradients that flow back, are the stored ones: each adds a rounding to the
 * operands' format (`low`). */
#include "oracle/oracle.h"

#include <math.h>

typedef struct sizes {
    int64_t batch, steps, hidden;
    double low;
} sizes;

static sizes sizes_of(const test_case *c, const test_tensor *gates)
{
    bool low = c->dtype == MIXT_DTYPE_FP16 || c->dtype == MIXT_DTYPE_BF16;
    return (sizes){gates->shape.dims[0], gates->shape.dims[1], gates->shape.dims[2] / 4,
                   low ? number_roundoff(c->dtype) : 0};
}

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "gates");
    double range = 1 / sqrt((double)x.dims[2] / 4);
    case_input_between(c, c->dtype, x, -2, 2);
    case_input_between(c, c->dtype, (mixt__shape){2, {x.dims[2], x.dims[2] / 4}}, -range, range);
}

static void gate_of(test_case *c, const sizes *s, int64_t step, bool first, int64_t row)
{
    const double *w = c->in[1].value + row * s->hidden, *h = c->out[0].value + (step - 1) * s->hidden,
                 *eh = c->out[0].slack + (step - 1) * s->hidden;
    double x = c->in[0].value[step * 4 * s->hidden + row], sum = x, size = fabs(x), error = 0;
    for (int64_t j = 0; !first && j < s->hidden; j++) {
        sum += w[j] * h[j];
        size += fabs(w[j] * h[j]);
        error += fabs(w[j]) * (eh[j] + s->low * fabs(h[j]));
    }
    error += ((double)s->hidden + 2) * U32 * size;
    bool cell = row / s->hidden == 2;
    c->out[1].value[step * 4 * s->hidden + row] = cell ? tanh(sum) : 1 / (1 + exp(-sum));
    c->out[1].slack[step * 4 * s->hidden + row] = (cell ? error : 0.25 * error) + (U_MATHS + 4) * U32;
}

static void expect(test_case *c)
{
    sizes s = sizes_of(c, &c->in[0]);
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        bool first = step % s.steps == 0;
        for (int64_t row = 0; row < 4 * s.hidden; row++)
            gate_of(c, &s, step, first, row);
        for (int64_t j = 0; j < s.hidden; j++) {
            const double *g = c->out[1].value + step * 4 * s.hidden + j,
                         *eg = c->out[1].slack + step * 4 * s.hidden + j;
            int64_t n = s.hidden, at = step * n + j;
            double before = first ? 0 : c->out[2].value[at - n], ebefore = first ? 0 : c->out[2].slack[at - n];
            double cell = g[n] * before + g[0] * g[2 * n], out = tanh(cell);
            double ecell = g[n] * ebefore + fabs(before) * eg[n] + eg[0] * fabs(g[2 * n]) + g[0] * eg[2 * n] +
                           3 * U32 * (fabs(g[n] * before) + fabs(g[0] * g[2 * n]));
            c->out[2].value[at] = cell;
            c->out[2].slack[at] = ecell;
            c->out[0].value[at] = g[3 * n] * out;
            c->out[0].slack[at] =
                eg[3 * n] * fabs(out) + g[3 * n] * (ecell + (U_MATHS + 2) * U32) + 2 * U32 * fabs(g[3 * n] * out);
        }
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "lstm");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->grad_dst = 4;
    c->grad_of[0] = 0;
    c->grad_of[1] = 1;
    case_copy(c, &f->in[1]);
    for (int o = 0; o < 3; o++)
        case_copy(c, &f->out[o]);
    case_input(c, c->dtype, f->out[0].shape);
}

typedef struct flow { // gradient of a cell state on its way back, with its error
    double value, error;
} flow;

static void back_unit(test_case *c, const sizes *s, int64_t step, int64_t j, flow *cell)
{
    int64_t n = s->hidden, at = step * n + j, wide = 4 * n;
    bool first = step % s->steps == 0, last = (step + 1) % s->steps == 0;
    const double *g = c->in[2].value + step * wide + j, *w = c->in[0].value;
    const double *next = c->out[0].value + (step + 1) * wide, *enext = c->out[0].slack + (step + 1) * wide;
    double dh = c->in[4].value[at], size = fabs(dh), edh = 0;
    for (int64_t row = 0; !last && row < wide; row++) {
        dh += w[row * n + j] * next[row];
        size += fabs(w[row * n + j] * next[row]);
        edh += fabs(w[row * n + j]) * (enext[row] + s->low * fabs(next[row]));
    }
    edh += ((double)wide + 2) * U32 * size;
    double before = first ? 0 : c->in[3].value[at - n], out = tanh(c->in[3].value[at]), eout = (U_MATHS + 2) * U32;
    double i = g[0], f = g[n], u = g[2 * n], o = g[3 * n], slope = o * (1 - out * out);
    double dc = cell->value + dh * slope;
    double edc = cell->error + edh * slope + fabs(dh * o) * 3 * eout + 4 * U32 * (fabs(cell->value) + fabs(dh * slope));
    const double factor[4] = {u * i * (1 - i), before * f * (1 - f), i * (1 - u * u), out * o * (1 - o)};
    const double around[4] = {fabs(u * i), fabs(before * f), fabs(i),
                              fabs(out * o)}; // 1 - x rounds by u, whatever is left
    for (int k = 0; k < 4; k++) {
        double from = k == 3 ? dh : dc, error = k == 3 ? edh : edc;
        c->out[0].value[step * wide + k * n + j] = from * factor[k];
        c->out[0].slack[step * wide + k * n + j] =
            error * fabs(factor[k]) + fabs(from) * 6 * U32 * around[k] + (k == 3 ? fabs(dh) * eout * o * (1 - o) : 0);
    }
    *cell = (flow){dc * f, edc * f + U32 * fabs(dc * f)};
}

static void expect_grad(test_case *c)
{
    sizes s = sizes_of(c, &c->in[2]);
    int64_t n = s.hidden, wide = 4 * n;
    flow *cell = case_alloc(c, (size_t)n * sizeof *cell);
    for (int64_t step = s.batch * s.steps - 1; step >= 0; step--)
        for (int64_t j = 0; j < n; j++) {
            if ((step + 1) % s.steps == 0)
                cell[j] = (flow){0, 0};
            back_unit(c, &s, step, j, &cell[j]);
        }
    double terms = (double)(s.batch * s.steps) + 2, operands = 2 * number_operand(c); // a library multiplies
    for (int64_t step = 0; step < s.batch * s.steps; step++)
        for (int64_t i = 0; step % s.steps && i < wide * n; i++) {
            double da = c->out[0].value[step * wide + i / n], ea = c->out[0].slack[step * wide + i / n];
            double h = c->in[1].value[(step - 1) * n + i % n];
            c->out[1].value[i] += da * h;
            c->out[1].slack[i] += fabs(h) * (ea + s.low * fabs(da) + terms * U32 * fabs(da));
            c->out[1].slack[i] += fabs(h) * operands * (2 + operands) * (fabs(da) + ea);
        }
}

const oracle oracle_lstm = {.op = "lstm", .make = make, .expect = expect};
const oracle oracle_lstm_grad = {.op = "lstm_grad", .make = make_grad, .expect = expect_grad, .partly_tensor = true};
