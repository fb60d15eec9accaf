/* Softmax over the last dimension and its gradient.
 *
 * Bound: the argument x - max is rounded once (u·|x - max| in the exponent, so relative in the result), exp and the sum
 * of C terms and the division are relative errors. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    double range = problem_real(c, "range", 4);
    case_input_between(c, c->dtype, problem_shape(c, "src"), -range, range);
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t columns = x->shape.dims[x->shape.rank - 1];
    for (int64_t row = 0; columns && row < x->count / columns; row++) {
        const double *in = x->value + row * columns;
        double most = -INFINITY, least = INFINITY, total = 0;
        for (int64_t i = 0; i < columns; i++) {
            most = fmax(most, in[i]);
            least = fmin(least, in[i]);
        }
        for (int64_t i = 0; i < columns; i++)
            total += exp(in[i] - most);
        for (int64_t i = 0; i < columns; i++) {
            double p = exp(in[i] - most) / total;
            y->value[row * columns + i] = p;
            y->slack[row * columns + i] = p * U32 * ((double)columns + 2 * (most - least) + 2 * U_MATHS + 2);
        }
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "softmax");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->grad_dst = 1;
    case_copy(c, &f->out[0]);
    case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    const test_tensor *y = &c->in[0], *dy = &c->in[1], *dx = &c->out[0];
    int64_t columns = y->shape.dims[y->shape.rank - 1];
    for (int64_t row = 0; columns && row < y->count / columns; row++) {
        const double *p = y->value + row * columns, *g = dy->value + row * columns;
        double dot = 0, size = 0;
        for (int64_t i = 0; i < columns; i++) {
            dot += p[i] * g[i];
            size += fabs(p[i] * g[i]);
        }
        for (int64_t i = 0; i < columns; i++) {
            dx->value[row * columns + i] = p[i] * (g[i] - dot);
            dx->slack[row * columns + i] = p[i] * U32 * (((double)columns + 4) * size + 3 * fabs(g[i]));
        }
    }
}

const oracle oracle_softmax = {.op = "softmax", .make = make, .expect = expect};
const oracle oracle_softmax_grad = {.op = "softmax_grad", .make = make_grad, .expect = expect_grad};
