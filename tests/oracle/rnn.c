/* The plain recurrence, its gradient, and going on from a state; errors are carried from step to step. */
#include "oracle/recurrent.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "gates");
    double range = 1 / sqrt((double)x.dims[2]);
    c->attrs.rnn.relu = problem_int(c, "relu", 0);
    case_input_between(c, c->dtype, x, -2, 2);
    case_input_between(c, c->dtype, (mixt__shape){2, {x.dims[2], x.dims[2]}}, -range, range);
}

/** All units of a step; h and eh: the state before, NULL for zeros. */
static void step_of(test_case *c, const recurrent_sizes *s, int64_t step, const double *h, const double *eh)
{
    int64_t n = s->hidden;
    for (int64_t j = 0; j < n; j++) {
        flow sum = recurrent_sum(s, c->in[0].value[step * n + j], c->in[1].value + j * n, 1, h, eh, n);
        bool relu = c->attrs.rnn.relu;
        c->out[0].value[step * n + j] = relu ? fmax(sum.value, 0) : tanh(sum.value);
        c->out[0].slack[step * n + j] = sum.error + (relu ? 0 : (U_MATHS + 4) * U32);
    }
}

static void expect(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[0], &c->in[1]);
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        int64_t before = (step - 1) * s.hidden;
        step_of(c, &s, step, step % s.steps ? c->out[0].value + before : NULL, c->out[0].slack + before);
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "rnn");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs.rnn = f->attrs.rnn;
    c->grad_dst = 2;
    c->grad_of[0] = 0;
    c->grad_of[1] = 1;
    case_copy(c, &f->in[1]);
    case_copy(c, &f->out[0]);
    case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[1], &c->in[0]);
    int64_t n = s.hidden;
    flow *sums = case_alloc(c, (size_t)n * sizeof *sums);
    for (int64_t step = s.batch * s.steps - 1; step >= 0; step--) {
        bool last = (step + 1) % s.steps == 0;
        const double *back = c->out[0].value + (step + 1) * n, *eback = c->out[0].slack + (step + 1) * n;
        for (int64_t j = 0; j < n; j++) {
            double h = c->in[1].value[step * n + j];
            double slope = c->attrs.rnn.relu ? (h > 0 ? 1 : 0) : 1 - h * h;
            flow dh = recurrent_sum(&s, c->in[2].value[step * n + j], c->in[0].value + j, n, last ? NULL : back, eback,
                                    s.rows);
            // 1 - x rounds by u, whatever is left
            sums[j] = (flow){dh.value * slope, dh.error * slope + (slope == 0 ? 0 : 3 * U32 * fabs(dh.value))};
            c->out[0].value[step * n + j] = sums[j].value;
            c->out[0].slack[step * n + j] = sums[j].error;
        }
        recurrent_weight_grad(c, &s, step, sums);
    }
}

static void make_cached(test_case *c)
{
    make(c);
    case_input(c, c->dtype, (mixt__shape){2, {c->in[0].shape.dims[0], c->in[1].shape.dims[1]}});
}

static void expect_cached(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[0], &c->in[1]);
    int64_t n = s.hidden;
    double *exact = case_alloc(c, (size_t)n * sizeof(double));
    test_tensor *state = case_after(c, 2);
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        int64_t b = step / s.steps, t = step % s.steps;
        step_of(c, &s, step, t ? c->out[0].value + (step - 1) * n : c->in[2].value + b * n,
                t ? c->out[0].slack + (step - 1) * n : exact);
        memcpy(state->value + b * n, c->out[0].value + step * n, (size_t)n * sizeof(double));
        memcpy(state->slack + b * n, c->out[0].slack + step * n, (size_t)n * sizeof(double));
    }
}

const oracle oracle_rnn = {.op = "rnn", .make = make, .expect = expect};
const oracle oracle_rnn_grad = {.op = "rnn_grad", .make = make_grad, .expect = expect_grad, .partly_tensor = true};
const oracle oracle_rnn_cached = {.op = "rnn_cached", .make = make_cached, .expect = expect_cached};
