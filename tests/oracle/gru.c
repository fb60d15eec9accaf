/* The GRU recurrence, its gradient, and going on from a state; errors are carried from step to step.
 *
 * What a step multiplies is dst, rounded to the operands' format; what it goes on from is the state, FP32. */
#include "oracle/recurrent.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "gates");
    int64_t hidden = x.dims[2] / 3;
    double range = 1 / sqrt((double)hidden);
    case_input_between(c, c->dtype, x, -2, 2);
    case_input_between(c, c->dtype, (mixt__shape){2, {x.dims[2], hidden}}, -range, range);
    case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {hidden}});
}

static flow logistic(flow sum)
{
    return (flow){1 / (1 + exp(-sum.value)), 0.25 * sum.error + (U_MATHS + 4) * U32};
}

/** r, z, n and q of unit j, and the state after; h and eh: the state before as it is multiplied, NULL for zeros. */
static flow unit_step(const test_case *c, const recurrent_sizes *s, int64_t step, int64_t j, const double *h,
                      const double *eh, flow before, flow saved[4])
{
    int64_t n = s->hidden;
    const double *x = c->in[0].value + step * s->rows + j, *w = c->in[1].value + j * n;
    saved[0] = logistic(recurrent_sum(s, x[0], w, 1, h, eh, n));
    saved[1] = logistic(recurrent_sum(s, x[n], w + n * n, 1, h, eh, n));
    saved[3] = recurrent_sum(s, c->in[2].value[j], w + 2 * n * n, 1, h, eh, n);
    flow r = saved[0], z = saved[1], q = saved[3];
    saved[2].value = tanh(x[2 * n] + r.value * q.value);
    saved[2].error = r.error * (fabs(q.value) + q.error) + r.value * q.error +
                     2 * U32 * (fabs(x[2 * n]) + fabs(r.value * q.value)) + (U_MATHS + 4) * U32;
    flow new = saved[2];
    double apart = fabs(before.value - new.value), size = fabs(before.value) + fabs(new.value);
    return (flow){(1 - z.value) * new.value + z.value *before.value, z.error *(apart + before.error + new.error) +
                                                                         (1 - z.value) * new.error +
                                                                         z.value *before.error + 4 * U32 *size};
}

static void put(test_tensor *t, int64_t at, flow x)
{
    t->value[at] = x.value;
    t->slack[at] = x.error;
}

static void expect(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[0], &c->in[1]);
    int64_t n = s.hidden;
    for (int64_t step = 0; step < s.batch * s.steps; step++)
        for (int64_t j = 0; j < n; j++) {
            bool first = step % s.steps == 0;
            const double *h = c->out[0].value + (step - 1) * n, *eh = c->out[0].slack + (step - 1) * n;
            flow saved[4], before = first ? (flow){0, 0} : (flow){h[j], eh[j]};
            flow after = unit_step(c, &s, step, j, first ? NULL : h, eh, before, saved);
            put(&c->out[0], step * n + j, after);
            put(&c->out[2], step * n + j, after);
            for (int64_t k = 0; k < 4; k++)
                put(&c->out[1], (step * 4 + k) * n + j, saved[k]);
        }
}

/* ---- gradient ---- */

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "gru");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->grad_dst = 4;
    for (int o = 0; o < 3; o++)
        c->grad_of[o] = o;
    case_copy(c, &f->in[1]);
    for (int o = 0; o < 3; o++)
        case_copy(c, &f->out[o]);
    case_input(c, c->dtype, f->out[0].shape);
}

/** Gradients of r's, z's and q's sums and of x_n; *state: what reaches the state directly, from after to before. */
static void back_unit(const test_case *c, const recurrent_sizes *s, int64_t step, int64_t j, flow dh, flow *state,
                      flow result[4])
{
    int64_t n = s->hidden;
    const double *saved = c->in[2].value + step * 4 * n + j;
    double r = saved[0], z = saved[n], new = saved[2 * n], q = saved[3 * n];
    double before = step % s->steps ? c->in[3].value[(step - 1) * n + j] : 0;
    double factor = (1 - z) * (1 - new *new), slope = before - new;
    double d = dh.value + state->value, e = dh.error + state->error + 2 * U32 * (fabs(dh.value) + fabs(state->value));
    result[3] = (flow){d * factor, e * fabs(factor) + fabs(d) * 6 * U32}; // 1 - x rounds by u, whatever is left
    double dn = result[3].value, edn = result[3].error;
    result[0] = (flow){dn * q * r * (1 - r), edn * fabs(q * r * (1 - r)) + 6 * U32 * fabs(dn * q * r)};
    result[1] = (flow){d * slope * z * (1 - z),
                       e * fabs(slope * z * (1 - z)) + 8 * U32 * fabs(d) * (fabs(before) + fabs(new)) * z};
    result[2] = (flow){dn * r, edn * r + 2 * U32 * fabs(dn * r)};
    *state = (flow){d * z, e * z + 2 * U32 * fabs(d * z)};
}

static void expect_grad(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[1], &c->in[0]);
    int64_t n = s.hidden;
    flow *state = case_alloc(c, (size_t)n * sizeof *state), *sums = case_alloc(c, (size_t)s.rows * sizeof *sums);
    double *back = case_alloc(c, (size_t)s.rows * sizeof *back), *eback = case_alloc(c, (size_t)s.rows * sizeof *eback);
    double terms = (double)(s.batch * s.steps) + 2;
    for (int64_t step = s.batch * s.steps - 1; step >= 0; step--) {
        bool last = (step + 1) % s.steps == 0;
        for (int64_t j = 0; j < n; j++) {
            flow result[4], dh = recurrent_sum(&s, c->in[4].value[step * n + j], c->in[0].value + j, n,
                                               last ? NULL : back, eback, s.rows);
            state[j] = last ? (flow){0, 0} : state[j];
            back_unit(c, &s, step, j, dh, &state[j], result);
            for (int64_t g = 0; g < 3; g++) {
                sums[g * n + j] = result[g];
                put(&c->out[0], (step * 3 + g) * n + j, result[g == 2 ? 3 : g]);
            }
            c->out[2].value[j] += result[2].value;
            c->out[2].slack[j] += result[2].error + (s.low + terms * U32) * fabs(result[2].value);
        }
        for (int64_t row = 0; row < s.rows; row++) {
            back[row] = sums[row].value;
            eback[row] = sums[row].error;
        }
        recurrent_weight_grad(c, &s, step, sums);
    }
}

/* ---- going on from a state ---- */

static void make_cached(test_case *c)
{
    make(c);
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){2, {c->in[0].shape.dims[0], c->in[1].shape.dims[1]}}, -1, 1);
}

static void expect_cached(test_case *c)
{
    recurrent_sizes s = recurrent_sizes_of(c, &c->in[0], &c->in[1]);
    int64_t n = s.hidden;
    double *exact = case_alloc(c, (size_t)n * sizeof(double));
    test_tensor *state = case_after(c, 3);
    for (int64_t step = 0; step < s.batch * s.steps; step++) {
        int64_t b = step / s.steps, t = step % s.steps;
        const double *h = t ? c->out[0].value + (step - 1) * n : c->in[3].value + b * n;
        const double *eh = t ? c->out[0].slack + (step - 1) * n : exact;
        for (int64_t j = 0; j < n; j++) {
            flow saved[4], after = unit_step(c, &s, step, j, h, eh, (flow){h[j], eh[j]}, saved);
            put(&c->out[0], step * n + j, after);
            put(state, b * n + j, after);
        }
    }
}

const oracle oracle_gru = {.op = "gru", .make = make, .expect = expect};
const oracle oracle_gru_grad = {.op = "gru_grad", .make = make_grad, .expect = expect_grad, .partly_tensor = true};
const oracle oracle_gru_cached = {.op = "gru_cached", .make = make_cached, .expect = expect_cached};
