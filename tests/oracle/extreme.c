/* Largest and smallest elements are exact; equal ones share the gradient, which is divided once. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    mixt__extreme_attrs *at = &c->attrs.extreme;
    at->axis = (int)problem_int(c, "axis", 0);
    at->count = (int)problem_int(c, "count", 1);
    at->keep_dims = problem_int(c, "keep_dims", 0) != 0;
    at->smallest = problem_int(c, "smallest", 0) != 0;
    at->index = problem_int(c, "index", 0) != 0;
    case_input(c, c->dtype, problem_shape(c, "src"));
}

/** How many elements are reduced to one, and how far apart they lie. */
static int64_t reduced(const mixt__extreme_attrs *at, const mixt__shape *x, int64_t *inner)
{
    int64_t count = 1;
    *inner = 1;
    for (int d = at->axis; d < x->rank; d++)
        *(d < at->axis + at->count ? &count : inner) *= x->dims[d];
    return count;
}

/** Whether a comes before b. */
static bool beats(const mixt__extreme_attrs *at, double a, double b)
{
    return !isnan(b) && (isnan(a) || (at->smallest ? a < b : a > b));
}

static void expect(test_case *c)
{
    const mixt__extreme_attrs *at = &c->attrs.extreme;
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t inner, count = reduced(at, &x->shape, &inner);
    for (int64_t o = 0; o < y->count; o++) {
        const double *from = x->value + o / inner * count * inner + o % inner;
        int64_t best = 0;
        for (int64_t i = 1; i < count; i++)
            if (beats(at, from[i * inner], from[best * inner]))
                best = i;
        y->value[o] = at->index ? (double)best : from[best * inner];
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "extreme");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 2;
    c->inexact = true;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->out[0]);
    case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->in[1], *dx = &c->out[0];
    int64_t inner, count = reduced(&c->attrs.extreme, &x->shape, &inner);
    for (int64_t o = 0; o < y->count; o++) {
        int64_t base = o / inner * count * inner + o % inner;
        double equal = 0;
        for (int64_t i = 0; i < count; i++)
            equal += x->value[base + i * inner] == y->value[o];
        for (int64_t i = 0; i < count; i++) {
            double part = x->value[base + i * inner] == y->value[o] ? c->in[2].value[o] / equal : 0;
            dx->value[base + i * inner] = part;
            dx->slack[base + i * inner] = equal > 1 ? U32 * fabs(part) : 0;
        }
    }
}

const oracle oracle_extreme = {.op = "extreme", .make = make, .expect = expect, .exact_integers = true};
const oracle oracle_extreme_grad = {.op = "extreme_grad", .make = make_grad, .expect = expect_grad};
