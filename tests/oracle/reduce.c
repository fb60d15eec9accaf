/* Sum or mean over some dimensions: n numbers summed in any order in FP32 are off by at most n·u·sum|x|. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    c->attrs.reduce.axes = (uint32_t)problem_int(c, "axes", 1);
    c->attrs.reduce.mean = problem_int(c, "mean", 0) != 0;
    c->attrs.reduce.keep_dims = problem_int(c, "keep_dims", 0) != 0;
    case_input(c, c->dtype, problem_shape(c, "src"));
}

/** Where element i of the source goes. */
static int64_t target(const mixt__reduce_attrs *at, const mixt__shape *x, int64_t i)
{
    int64_t place = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t index = i % x->dims[d];
        i /= x->dims[d];
        if (at->axes >> d & 1)
            continue;
        place += index * stride;
        stride *= x->dims[d];
    }
    return place;
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    const mixt__reduce_attrs *at = &c->attrs.reduce;
    double n = y->count ? (double)x->count / (double)y->count : 0, divisor = at->mean ? n : 1;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t o = target(at, &x->shape, i);
        y->value[o] += x->value[i] / divisor;
        y->slack[o] += (n + 2 * at->mean) * U32 * fabs(x->value[i]) / divisor;
    }
    for (int64_t o = 0; o < y->count && n == 1; o++)
        y->slack[o] = 0; // nothing is added: a copy
}

const oracle oracle_reduce = {.op = "reduce", .make = make, .expect = expect};
