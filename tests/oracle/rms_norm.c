/* Root-mean-square norm of rows and its gradient. Bounds: n additions of squares, which cannot cancel. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src"), p = {1, {x.dims[x.rank - 1]}};
    c->attrs.norm = (mixt__norm_attrs){.eps = (float)problem_real(c, "eps", 1e-5)};
    case_input_between(c, c->dtype, x, -1.5, 1.5);
    case_input_between(c, MIXT_DTYPE_FP32, p, 0.5, 1.5);
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t n = x->shape.dims[x->shape.rank - 1], rows = n ? x->count / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = r * n; i < (r + 1) * n; i++)
            squares += x->value[i] * x->value[i];
        double rstd = 1 / sqrt(squares / (double)n + c->attrs.norm.eps), relative = ((double)n + 8) * U32;
        c->out[1].value[r] = rstd;
        c->out[1].slack[r] = rstd * relative;
        for (int64_t k = 0; k < n; k++) {
            y->value[r * n + k] = x->value[r * n + k] * rstd * c->in[1].value[k];
            y->slack[r * n + k] = fabs(y->value[r * n + k]) * (relative + 2 * U32);
        }
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "rms_norm");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 3;
    c->grad_of[0] = 0;
    c->grad_of[1] = 1;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->in[1]);
    case_copy(c, &f->out[1]);
    case_input(c, c->dtype, f->out[0].shape);
    if (problem_int(c, "addend", 0)) {
        c->attrs.norm.addend = true;
        test_tensor *addend = case_input(c, c->dtype, f->out[0].shape);
        if (c->unrounded) // differences of the forward see the gradient alone
            memset(addend->value, 0, (size_t)addend->count * sizeof(double));
    }
}

static void expect_grad(test_case *c)
{
    const test_tensor *x = &c->in[0], *dx = &c->out[0], *dw = &c->out[1];
    int64_t n = x->shape.dims[x->shape.rank - 1], rows = n ? x->count / n : 0;
    for (int64_t r = 0; r < rows; r++) {
        double rstd = c->in[2].value[r], mean = 0, size = 0;
        for (int64_t k = 0; k < n; k++) {
            double v = x->value[r * n + k] * rstd, dy = c->in[3].value[r * n + k], h = dy * c->in[1].value[k];
            mean += h * v / (double)n;
            size += fabs(h * v) / (double)n;
            dw->value[k] += dy * v;
            dw->slack[k] += ((double)rows + 4) * U32 * fabs(dy * v);
        }
        double emean = ((double)n + 5) * U32 * size;
        for (int64_t k = 0; k < n; k++) {
            int64_t i = r * n + k;
            double v = x->value[i] * rstd, h = c->in[3].value[i] * c->in[1].value[k];
            dx->value[i] = rstd * (h - v * mean);
            dx->slack[i] = rstd * (5 * U32 * (fabs(h) + fabs(v * mean)) + fabs(v) * emean);
            if (c->attrs.norm.addend) {
                dx->value[i] += c->in[4].value[i];
                dx->slack[i] += 2 * U32 * (fabs(dx->value[i]) + fabs(c->in[4].value[i]));
            }
        }
    }
}

const oracle oracle_rms_norm = {.op = "rms_norm", .make = make, .expect = expect};
const oracle oracle_rms_norm_grad = {.op = "rms_norm_grad", .make = make_grad, .expect = expect_grad};
